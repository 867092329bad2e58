"""A compiler that looks for bitcode where the real one does, and joins it to a library."""
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
made = b"\6inputs" + f"{given.quantization} {given.device} {given.overrides}\n".encode()
for path in bitcode:
    with open(path, "rb") as file:
        made += file.read()
# A library, with what it is made from in a section of its own; its size in two digits of seven bits.
with open(given.out, "wb") as file:
    file.write(bytes.fromhex("@library") + bytes([0, len(made) & 127 | 128, len(made) >> 7]) + made)
