# SPDX-License-Identifier: Apache-2.0
"""The model's shape, read from config.json. Needs no TVM."""

import dataclasses
import json
import pathlib


@dataclasses.dataclass(frozen=True)
class Config:
    """Field names are those of an MLC chat configuration; sizes count elements or tokens."""

    model_type: str
    quantization: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    context_window_size: int
    prefill_chunk_size: int

    @staticmethod
    def load(path: str) -> "Config":
        """Read the file; an unknown or missing key is an error."""
        return Config(**json.loads(pathlib.Path(path).read_text(encoding="utf-8")))

    @property
    def group_size(self) -> int:
        """Query heads that share one key/value head."""
        return self.num_attention_heads // self.num_key_value_heads

    def linears(self) -> dict[str, tuple[int, int]]:
        """Quantized matrices in parameter order: name -> (out, in)."""
        query = self.num_attention_heads * self.head_dim
        key = self.num_key_value_heads * self.head_dim
        shapes = {}
        for i in range(self.num_hidden_layers):
            layer = f"model.layers.{i}"
            shapes[f"{layer}.self_attn.q_proj"] = (query, self.hidden_size)
            shapes[f"{layer}.self_attn.k_proj"] = (key, self.hidden_size)
            shapes[f"{layer}.self_attn.v_proj"] = (key, self.hidden_size)
            shapes[f"{layer}.self_attn.o_proj"] = (self.hidden_size, query)
            shapes[f"{layer}.mlp.gate_proj"] = (self.intermediate_size, self.hidden_size)
            shapes[f"{layer}.mlp.up_proj"] = (self.intermediate_size, self.hidden_size)
            shapes[f"{layer}.mlp.down_proj"] = (self.hidden_size, self.intermediate_size)
        shapes["lm_head"] = (self.vocab_size, self.hidden_size)
        return shapes

    def norms(self) -> list[str]:
        """Names of the RMSNorm weights, each of shape (hidden,)."""
        names = []
        for i in range(self.num_hidden_layers):
            names += [
                f"model.layers.{i}.input_layernorm.weight",
                f"model.layers.{i}.post_attention_layernorm.weight",
            ]
        return [*names, "model.norm.weight"]
