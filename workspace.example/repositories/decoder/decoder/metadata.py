# SPDX-License-Identifier: Apache-2.0
"""The library's description of itself, under the keys that MLC's libraries carry."""

import json

import tvm
from tvm import relax

from .config import Config


def memory_usage(mod: tvm.IRModule) -> dict[str, int]:
    """Bytes of device storage that each planned function allocates: temporaries and results.

    Parameters and inputs are not part of it.
    """
    alloc_storage = tvm.ir.Op.get("relax.vm.alloc_storage")
    usage = {}
    for name, func in mod.functions_items():
        if not isinstance(func, relax.Function):
            continue
        total = 0

        def visit(expr):
            nonlocal total
            if isinstance(expr, relax.Call) and expr.op == alloc_storage:
                total += int(expr.args[0].values[0])

        relax.analysis.post_order_visit(func, visit)
        usage[name.name_hint] = total
    return dict(sorted(usage.items()))


def describe(config: Config, max_batch_size: int, params: list, usage: dict[str, int]) -> str:
    """The JSON text. It starts with model_type, by which tools find it in the wasm's data."""
    return json.dumps(
        {
            "model_type": config.model_type,
            "quantization": config.quantization,
            "context_window_size": config.context_window_size,
            "sliding_window_size": -1,
            "attention_sink_size": -1,
            "prefill_chunk_size": config.prefill_chunk_size,
            "tensor_parallel_shards": 1,
            "pipeline_parallel_stages": 1,
            "kv_state_kind": "kv_cache",
            "max_batch_size": max_batch_size,
            "active_vocab_size": config.vocab_size,
            "params": [
                {"name": name, "shape": [int(n) for n in param.shape], "dtype": param.dtype}
                for name, param in params
            ],
            "kv_cache": {
                "num_hidden_layers": config.num_hidden_layers,
                "num_attention_heads": config.num_attention_heads,
                "num_key_value_heads": config.num_key_value_heads,
                "head_dim": config.head_dim,
            },
            "memory_usage": usage,
        }
    )


def attach(mod: tvm.IRModule, text: str) -> tvm.IRModule:
    """Add `_metadata() -> text` to a module that is already lowered for the virtual machine."""
    builder = relax.BlockBuilder(mod)
    with builder.function("_metadata", params=[], attrs={"global_symbol": "_metadata"}):
        builder.emit_func_output(tvm.ir.StringImm(text))
    return builder.finalize()
