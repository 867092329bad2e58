# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions that TVM's frontend has no operator for.

Shapes use b batch, s positions of this call, t positions of the cache, g key/value heads, r query
heads that share one of those, d head size. `position` is the cache index of the call's first token,
known at run time.
"""

from tvm import te, tirx

from .quantization import BITS, GROUP, PER_WORD, ZERO_POINT


def embedding(ids, table):
    """Rows (b, s, hidden) of table (vocab, hidden) for ids (b, s)."""
    return te.compute(
        (*ids.shape, table.shape[1]), lambda b, s, i: table[ids[b, s], i], name="embedding"
    )


def quantized_matmul(x, words, scale):
    """x (b, s, in) times a quantized matrix's transpose -> (b, s, out).

    One function for both stages, so that no dequantized matrix is ever stored.
    """
    batch, length, inner = x.shape
    out = words.shape[0]
    mask = tirx.const((1 << BITS) - 1, "uint32")

    def value(j, k):
        shift = tirx.Cast("uint32", k % PER_WORD * BITS)
        code = (words[j, k // PER_WORD] >> shift) & mask
        return (tirx.Cast("float32", code) - float(ZERO_POINT)) * scale[j, k // GROUP]

    weight = te.compute((out, inner), value, name="dequantize")
    k = te.reduce_axis((0, inner), name="k")
    return te.compute(
        (batch, length, out),
        lambda b, s, j: te.sum(x[b, s, k] * weight[j, k], axis=k),
        name="matmul",
    )


def rotary(x, position, theta):
    """Rotate x (b, s, heads, d): element i pairs with i + d / 2, as in Llama."""
    half = x.shape[3] // 2

    def value(b, s, h, i):
        exponent = tirx.Cast("float32", i % half) * (-1.0 / int(half))
        angle = tirx.Cast("float32", position + s) * tirx.power(
            tirx.const(theta, "float32"), exponent
        )
        partner = tirx.if_then_else(i < half, -x[b, s, h, i + half], x[b, s, h, i - half])
        return x[b, s, h, i] * tirx.cos(angle) + partner * tirx.sin(angle)

    return te.compute(x.shape, value, name="rotary")


def cache_update(cache, new, position):
    """Copy of cache (b, t, g, d) with new (b, s, g, d) at position."""
    length = new.shape[1]

    def value(b, t, g, d):
        inside = tirx.all(t >= position, t < position + length)
        return tirx.if_then_else(inside, new[b, t - position, g, d], cache[b, t, g, d])

    return te.compute(cache.shape, value, name="cache_update")


def attention_scores(query, keys, position):
    """Scaled, causally masked scores (b, g, r, s, t) of query (b, s, g, r, d) on keys (b, t, g, d).

    The mask is a stage of its own: inside the sum it would be unrolled into hundreds of branches.
    """
    batch, length, groups, share, size = query.shape
    scale = tirx.const(int(size) ** -0.5, "float32")
    i = te.reduce_axis((0, size), name="i")
    product = te.compute(
        (batch, groups, share, length, keys.shape[1]),
        lambda b, g, r, s, t: te.sum(query[b, s, g, r, i] * keys[b, t, g, i], axis=i),
        name="product",
    )

    def masked(b, g, r, s, t):
        visible = t <= position + s
        return tirx.if_then_else(visible, product[b, g, r, s, t] * scale, tirx.const(-1e30, "float32"))

    return te.compute(product.shape, masked, name="scores")


def attention_values(weights, values):
    """Weighted sum (b, s, g, r, d) of values (b, t, g, d) under weights (b, g, r, s, t)."""
    batch, groups, share, length, total = weights.shape
    t = te.reduce_axis((0, total), name="t")
    return te.compute(
        (batch, length, groups, share, values.shape[3]),
        lambda b, s, g, r, d: te.sum(weights[b, g, r, s, t] * values[b, t, g, d], axis=t),
        name="attended",
    )
