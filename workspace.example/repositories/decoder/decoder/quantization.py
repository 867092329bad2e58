# SPDX-License-Identifier: Apache-2.0
"""q4f32_1: 4-bit weights in groups of 32 with one float32 scale a group."""

import numpy as np

BITS = 4
GROUP = 32
PER_WORD = 32 // BITS
ZERO_POINT = 7
"""Codes 0..14 stand for -7..7, so that zero is exact."""


def quantize(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pack weight (out, in) into codes uint32 (out, in / 8) and scales float32 (out, in / 32).

    Code k of a word lies in bits 4k to 4k + 3.
    """
    out, inner = weight.shape
    groups = weight.reshape(out, inner // GROUP, GROUP)
    scale = (np.abs(groups).max(axis=2) / ZERO_POINT).astype(np.float32)
    codes = np.rint(groups / scale[:, :, None]) + ZERO_POINT
    words = codes.clip(0, 2 * ZERO_POINT).astype(np.uint32).reshape(out, -1, PER_WORD)
    shifts = np.arange(PER_WORD, dtype=np.uint32) * BITS
    return np.bitwise_or.reduce(words << shifts, axis=2), scale


def dequantize(words: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Undo quantize in float64: (out, in)."""
    shifts = np.arange(PER_WORD, dtype=np.uint32) * BITS
    codes = (words[:, :, None] >> shifts) & ((1 << BITS) - 1)
    values = codes.reshape(words.shape[0], -1).astype(np.float64) - ZERO_POINT
    return values * np.repeat(scale.astype(np.float64), GROUP, axis=1)
