# SPDX-License-Identifier: Apache-2.0
"""The same decoder in float64 numpy, without a cache: what the browser's logits are held against."""

import numpy as np

from .config import Config


def rms_norm(x, weight, epsilon):
    """Normalize the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def rotary(x, theta):
    """Rotate x (s, heads, d) for positions 0 to s - 1; element i pairs with i + d / 2."""
    half = x.shape[2] // 2
    angles = np.arange(x.shape[0])[:, None] * theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def attention(config: Config, x, weights, prefix):
    """Causal grouped-query attention of x (s, hidden)."""
    length = x.shape[0]

    def heads(name):
        return (x @ weights[f"{prefix}.{name}"].T).reshape(length, -1, config.head_dim)

    query = rotary(heads("q_proj"), config.rope_theta)
    keys = np.repeat(rotary(heads("k_proj"), config.rope_theta), config.group_size, axis=1)
    values = np.repeat(heads("v_proj"), config.group_size, axis=1)
    scores = np.einsum("shd,thd->hst", query, keys) / np.sqrt(config.head_dim)
    scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = exponents / exponents.sum(axis=-1, keepdims=True)
    attended = np.einsum("hst,thd->shd", shares, values).reshape(length, -1)
    return attended @ weights[f"{prefix}.o_proj"].T


def mlp(x, weights, prefix):
    """SwiGLU of x (s, hidden)."""
    gate = x @ weights[f"{prefix}.gate_proj"].T
    up = x @ weights[f"{prefix}.up_proj"].T
    return (gate / (1.0 + np.exp(-gate)) * up) @ weights[f"{prefix}.down_proj"].T


def logits(config: Config, weights: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """Logits (s, vocab) of a whole sequence. weights holds float64 matrices (out, in)."""
    epsilon = config.rms_norm_eps
    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(config.num_hidden_layers):
        layer = f"model.layers.{i}"
        normed = rms_norm(x, weights[f"{layer}.input_layernorm.weight"], epsilon)
        x = x + attention(config, normed, weights, f"{layer}.self_attn")
        normed = rms_norm(x, weights[f"{layer}.post_attention_layernorm.weight"], epsilon)
        x = x + mlp(normed, weights, f"{layer}.mlp")
    return rms_norm(x, weights["model.norm.weight"], epsilon) @ weights["lm_head"].T
