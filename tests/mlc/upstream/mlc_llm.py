"""A compiler that looks for bitcode where the real one does, and joins it."""
import argparse
import json
import os
import shutil
import signal
import sys

parser = argparse.ArgumentParser()
parser.add_argument("verb", choices=["compile"])
parser.add_argument("config")
parser.add_argument("--quantization")
parser.add_argument("--device")
parser.add_argument("--overrides")
parser.add_argument("-o", dest="out")
given = parser.parse_args()
with open(given.config) as file:
    fail = json.load(file).get("fail")
if fail == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if fail == "nothing":
    sys.exit(0)
if fail == "renamed":
    import tvm

    tvm.PrimFunc
if shutil.which("emcc") is None:
    sys.exit("emcc is not on PATH")
names = ["wasm_runtime.bc", "tvmjs_support.bc", "webgpu_runtime.bc"]
bitcode = [os.path.join(os.environ["TVM_HOME"], "web", "dist", "wasm", name) for name in names]
places = [".", os.path.join("web", "dist", "wasm"), os.path.join(os.environ["MLC_LLM_SOURCE_DIR"], "web", "dist", "wasm")]
found = [os.path.join(place, "mlc_wasm_runtime.bc") for place in places]
bitcode.append([path for path in found if os.path.exists(path)][-1])
with open(given.out, "w") as made:
    made.write(f"{given.quantization} {given.device} {given.overrides}\n")
    for path in bitcode:
        with open(path) as file:
            made.write(file.read())
