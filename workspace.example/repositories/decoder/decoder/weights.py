# SPDX-License-Identifier: Apache-2.0
"""Write seeded weights as tvmjs reads them, and the calls a browser must answer with which logits.

Only exactly rounded arithmetic reaches the weights, so their bytes are the same on every machine.
The logits pass through sin and exp and are rounded to six decimals for that reason.
"""

import argparse
import hashlib
import json
import pathlib

import numpy as np

from . import quantization, reference
from .config import Config

SEED = 20261130
SHARD_BYTES = 16 * 1024
PROMPT_TOKENS = 13
DECODE_STEPS = 4
TOLERANCE = 2e-3
"""Absolute, between float32 on a GPU and float64 here."""


def generate(config: Config) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Parameters as stored, and the same in float64 with matrices (out, in) dequantized."""
    random = np.random.Generator(np.random.PCG64(SEED))

    def uniform(shape, low, high):
        return (random.random(shape) * (high - low) + low).astype(np.float32)

    plain = {"model.embed_tokens.weight": uniform((config.vocab_size, config.hidden_size), -1, 1)}
    plain |= {name: uniform((config.hidden_size,), 0.5, 1.5) for name in config.norms()}
    stored = dict(plain)
    exact = {name: value.astype(np.float64) for name, value in plain.items()}
    for name, (out, inner) in config.linears().items():
        bound = (3.0 / inner) ** 0.5
        words, scale = quantization.quantize(uniform((out, inner), -bound, bound))
        stored |= {f"{name}.q_weight": words, f"{name}.q_scale": scale}
        exact[name] = quantization.dequantize(words, scale)
    return stored, exact


def write_shards(stored: dict[str, np.ndarray], out: pathlib.Path):
    """tensor-cache.json and params_shard_*.bin, each at most SHARD_BYTES unless one tensor is more."""
    shards, payload, records = [], b"", []

    def flush():
        name = f"params_shard_{len(shards)}.bin"
        (out / name).write_bytes(payload)
        shards.append(
            {
                "dataPath": name,
                "format": "raw-shard",
                "nbytes": len(payload),
                "records": records,
                "md5sum": hashlib.md5(payload, usedforsecurity=False).hexdigest(),
            }
        )

    for name, value in stored.items():
        data = value.tobytes()
        if payload and len(payload) + len(data) > SHARD_BYTES:
            flush()
            payload, records = b"", []
        records.append(
            {
                "name": name,
                "shape": list(value.shape),
                "dtype": str(value.dtype),
                "format": "raw",
                "nbytes": len(data),
                "byteOffset": len(payload),
            }
        )
        payload += data
    flush()
    cache = {"metadata": {"ParamSize": len(stored)}, "records": shards}
    (out / "tensor-cache.json").write_text(json.dumps(cache, indent=1), encoding="utf-8")


def calls(config: Config, exact: dict[str, np.ndarray]) -> list[dict]:
    """Prefill by chunks, the last one padded with zeros, then greedy decoding.

    Each call names the ids to pass, the cache position of the first, and the logits of the rows
    that are not padding.
    """
    random = np.random.Generator(np.random.PCG64(SEED + 1))
    tokens = random.integers(config.vocab_size, size=PROMPT_TOKENS).tolist()
    steps = []

    def add(function, position, count, length):
        rows = reference.logits(config, exact, tokens)[position : position + count]
        top = np.sort(rows, axis=1)
        if (top[:, -1] - top[:, -2]).min() < 2 * TOLERANCE:
            raise ValueError(f"{function} at {position}: the two largest logits are too close")
        steps.append(
            {
                "function": function,
                "position": position,
                "input_ids": tokens[position : position + count] + [0] * (length - count),
                "logits": np.round(rows, 6).tolist(),
            }
        )
        return int(rows[-1].argmax())

    chunk = config.prefill_chunk_size
    for position in range(0, PROMPT_TOKENS, chunk):
        following = add("prefill", position, min(chunk, PROMPT_TOKENS - position), chunk)
    for position in range(PROMPT_TOKENS, PROMPT_TOKENS + DECODE_STEPS):
        tokens.append(following)
        following = add("decode", position, 1, 1)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="the model's config.json")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="directory")
    args = parser.parse_args()

    config = Config.load(args.config)
    stored, exact = generate(config)
    args.out.mkdir(exist_ok=True)
    write_shards(stored, args.out)
    expected = {"tolerance": TOLERANCE, "calls": calls(config, exact)}
    (args.out / "reference.json").write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    main()
