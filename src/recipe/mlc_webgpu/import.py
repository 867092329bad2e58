"""Imports the compiler with the tvm-ffi package in a directory. A library of another ABI ends this
process, or has another version. arguments: DIRECTORY VERSION"""
import pathlib
import sys

directory, version = sys.argv[1:]
sys.path.insert(0, directory)
import tvm_ffi

place = pathlib.Path(tvm_ffi.__file__)
if pathlib.Path(directory) not in place.parents:
    sys.exit(f"tvm_ffi was imported from {place}, not from {directory}")
if tvm_ffi.__version__ != version:
    sys.exit(f"tvm_ffi has version {tvm_ffi.__version__}, and the pins say {version}")
import tvm

# Printing is where compilers with a library of another version crash.
print(tvm.__version__, tvm.IRModule())
