# SPDX-License-Identifier: Apache-2.0
"""Check a freshly built libtvm_ffi: it loads, has the version, and exports the named symbols.

usage: check.py LIBRARY MAJOR.MINOR.PATCH SYMBOL…
"""

import ctypes
import sys


def main():
    path, version, *symbols = sys.argv[1:]
    library = ctypes.CDLL(path)
    missing = [symbol for symbol in symbols if not hasattr(library, symbol)]
    if missing:
        sys.exit(f"{path} lacks {', '.join(missing)}")
    numbers = (ctypes.c_uint32 * 3)()
    library.TVMFFIGetVersion(numbers)
    found = ".".join(map(str, numbers))
    if found != version:
        sys.exit(f"{path} is version {found}, not {version}")


if __name__ == "__main__":
    main()
