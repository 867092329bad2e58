"""Runs `mlc_llm`, and says so when it and the compiler are of different pairs.

From its source tree it runs without its native library: the objects that its serving part registers
on import are unknown there, and no compilation needs them."""
import importlib.metadata
import os
import runpy
import sys
import traceback

wanted = os.environ.get("RUNTIME_TVM")
found = importlib.metadata.version("apache-tvm") if wanted else None
if wanted != found:
    sys.exit(f"the compiler is apache-tvm {found}, and the browser's runtime {wanted}: "
             "pin the same version under [package.apache-tvm] and in the requirements")

if "SKIP_LOADING_MLCLLM_SO" in os.environ:
    from tvm_ffi import registry

    registry._SKIP_UNKNOWN_OBJECTS = True

sys.argv[0] = "mlc_llm"
try:
    runpy.run_module("mlc_llm", run_name="__main__")
except (ImportError, AttributeError, TypeError) as error:
    # What is renamed between two revisions of the compiler shows as one of these.
    traceback.print_exc()
    sys.exit(f"mlc_llm and the compiler do not match ({type(error).__name__}: {error}): "
             "pin revisions of one pair, or adapt mlc_llm with a patch")
