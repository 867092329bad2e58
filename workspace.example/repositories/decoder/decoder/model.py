# SPDX-License-Identifier: Apache-2.0
"""The decoder as relax modules. Every call writes the cache functionally and returns the copy."""

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec

from . import kernels
from .config import Config
from .quantization import GROUP, PER_WORD


class Embedding(nn.Module):
    """Ids (b, s) to float32 rows (b, s, hidden)."""

    def __init__(self, rows: int, hidden: int):
        self.weight = nn.Parameter((rows, hidden), "float32")

    def forward(self, ids: nn.Tensor) -> nn.Tensor:
        return op.tensor_expr_op(kernels.embedding, "embedding", [ids, self.weight])


class QuantizedLinear(nn.Module):
    """(…, in) -> (…, out) with q4f32_1 weights."""

    def __init__(self, out_features: int, in_features: int):
        self.q_weight = nn.Parameter((out_features, in_features // PER_WORD), "uint32")
        self.q_scale = nn.Parameter((out_features, in_features // GROUP), "float32")

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        args = [x, self.q_weight, self.q_scale]
        return op.tensor_expr_op(kernels.quantized_matmul, "quantized_matmul", args)


class Attention(nn.Module):
    """Grouped-query attention over a static cache (b, context, g, d)."""

    def __init__(self, config: Config, linears: dict[str, tuple[int, int]], prefix: str):
        self.config = config
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, QuantizedLinear(*linears[f"{prefix}.self_attn.{name}"]))

    def forward(self, x, position, keys, values):
        c = self.config
        batch, length, _ = x.shape

        def heads(projected, count):
            return op.reshape(projected, (batch, length, count, c.head_dim))

        def rotary(y):
            return op.tensor_expr_op(kernels.rotary, "rotary", [y, position, c.rope_theta])

        def store(cache, y):
            return op.tensor_expr_op(kernels.cache_update, "cache_update", [cache, y, position])

        query = rotary(heads(self.q_proj(x), c.num_attention_heads))
        keys = store(keys, rotary(heads(self.k_proj(x), c.num_key_value_heads)))
        values = store(values, heads(self.v_proj(x), c.num_key_value_heads))
        query = op.reshape(query, (batch, length, c.num_key_value_heads, c.group_size, c.head_dim))
        scores = op.tensor_expr_op(
            kernels.attention_scores, "attention_scores", [query, keys, position]
        )
        weights = op.softmax(scores, axis=-1)
        attended = op.tensor_expr_op(
            kernels.attention_values, "attention_values", [weights, values]
        )
        flat = op.reshape(attended, (batch, length, c.num_attention_heads * c.head_dim))
        return self.o_proj(flat), keys, values


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, linears: dict[str, tuple[int, int]], prefix: str):
        for name in ("gate_proj", "up_proj", "down_proj"):
            setattr(self, name, QuantizedLinear(*linears[f"{prefix}.mlp.{name}"]))

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.down_proj(op.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Pre-norm attention and MLP with residuals."""

    def __init__(self, config: Config, linears: dict[str, tuple[int, int]], index: int):
        prefix = f"model.layers.{index}"
        norm = (config.hidden_size, -1, config.rms_norm_eps, False)
        self.input_layernorm = nn.RMSNorm(*norm)
        self.self_attn = Attention(config, linears, prefix)
        self.post_attention_layernorm = nn.RMSNorm(*norm)
        self.mlp = MLP(linears, prefix)

    def forward(self, x, position, keys, values):
        attended, keys, values = self.self_attn(self.input_layernorm(x), position, keys, values)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), keys, values


class Model(nn.Module):
    """Token ids to hidden states."""

    def __init__(self, config: Config, linears: dict[str, tuple[int, int]]):
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            [Layer(config, linears, i) for i in range(config.num_hidden_layers)]
        )
        self.norm = nn.RMSNorm(config.hidden_size, -1, config.rms_norm_eps, False)

    def forward(self, input_ids, position, cache):
        x = self.embed_tokens(input_ids)
        updated = []
        for i, layer in enumerate(self.layers):
            x, keys, values = layer(x, position, cache[2 * i], cache[2 * i + 1])
            updated += [keys, values]
        return self.norm(x), updated


class Decoder(nn.Module):
    """The exported functions. A cache is the list [keys 0, values 0, keys 1, values 1, …]."""

    def __init__(self, config: Config, max_batch_size: int):
        linears = config.linears()
        self.config = config
        self.cache_shape = (
            max_batch_size,
            config.context_window_size,
            config.num_key_value_heads,
            config.head_dim,
        )
        self.model = Model(config, linears)
        self.lm_head = QuantizedLinear(*linears["lm_head"])

    def create_kv_cache(self):
        """An empty cache of float32 tensors (b, context, g, d)."""
        return [op.zeros(self.cache_shape) for _ in range(2 * self.config.num_hidden_layers)]

    def forward(self, input_ids, position, cache):
        """Ids (b, s) to logits (b, s, vocab), one row for every position, and the new cache.

        A prompt shorter than s may be padded at its end: attention is causal, and a later call
        overwrites the padding's cache entries before they become visible.
        """
        hidden, updated = self.model(input_ids, position, cache)
        return (self.lm_head(hidden), *updated)

    def prefill(self, input_ids, position, cache):
        """forward over a whole chunk."""
        return self.forward(input_ids, position, cache)

    def decode(self, input_ids, position, cache):
        """forward over one token."""
        return self.forward(input_ids, position, cache)

    def method_specs(self) -> dict:
        """Signatures for export. All lengths are static: a dynamic one is not reproducible."""
        modes = {"param_mode": "packed", "effect_mode": "none"}
        tensor = spec.Tensor(list(self.cache_shape), "float32")
        layers = self.config.num_hidden_layers

        def step(length):
            return {
                "input_ids": spec.Tensor([self.cache_shape[0], length], "int32"),
                "position": int,
                "cache": [tensor] * (2 * layers),
                "$": modes,
            }

        return {
            "prefill": step(self.config.prefill_chunk_size),
            "decode": step(1),
            "create_kv_cache": {"$": {"param_mode": "none", "effect_mode": "none"}},
        }
