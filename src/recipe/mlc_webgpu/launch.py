"""Runs `mlc_llm` from its source tree with a compiler wheel that lacks its native library: the
objects that its serving part registers on import are unknown there, and no compilation needs them."""
import runpy
import sys

from tvm_ffi import registry

registry._SKIP_UNKNOWN_OBJECTS = True
sys.argv[0] = "mlc_llm"
runpy.run_module("mlc_llm", run_name="__main__")
