# SPDX-License-Identifier: Apache-2.0
"""Compile the decoder for WebGPU into two wasm objects: host code (lib0.o) and kernels (devc.o)."""

import argparse
import pathlib

import tvm
from tvm import relax

from . import metadata
from .config import Config
from .model import Decoder

HOST = {"kind": "llvm", "mtriple": "wasm32-unknown-unknown-wasm", "vector-width": 128}


def keep_objects(_target, _objects, **_options):
    """Stand in for a linker: the objects in export_library's directory are the result."""


# Without this TVM writes bitcode of its own LLVM, which other versions of emcc refuse.
keep_objects.object_format = "o"


def lower(decoder: Decoder, target: tvm.target.Target, max_batch_size: int):
    """The module ready for code generation, and its metadata."""
    mod, params, _ = decoder.export_tvm(spec=decoder.method_specs(), allow_extern=True)
    with target:
        mod = relax.backend.gpu_generic.get_default_pipeline(target)(mod)
    usage = metadata.memory_usage(mod)
    text = metadata.describe(decoder.config, max_batch_size, params, usage)
    return metadata.attach(mod, text), text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="the model's config.json")
    parser.add_argument("--max-batch-size", type=int, required=True, help="leading dimension")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="existing directory")
    args = parser.parse_args()

    target = tvm.target.Target("webgpu", host=HOST)
    decoder = Decoder(Config.load(args.config), args.max_batch_size)
    mod, text = lower(decoder, target, args.max_batch_size)
    executable = tvm.compile(mod, target, relax_pipeline=None)
    executable.export_library(
        "objects only", fcompile=keep_objects, workspace_dir=str(args.out)
    )
    (args.out / "metadata.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
