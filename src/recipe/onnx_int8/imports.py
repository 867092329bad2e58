"""Imports everything that the build needs, and names the library that is missing.
arguments: OUT NAME…"""
import importlib
import json
import re
import sys
import traceback

versions = {}
for name in sys.argv[2:]:
    try:
        versions[name] = importlib.import_module(name).__version__
    except Exception as error:
        traceback.print_exc()
        library = re.search(r"(\S+\.so[\w.]*): cannot open shared object file", str(error))
        if library:
            sys.exit(f"{name} cannot be imported: the library {library[1]} is missing; "
                     "add the package that brings it to the requirements")
        if isinstance(error, ModuleNotFoundError) and error.name:
            sys.exit(f"{name} cannot be imported: the Python package {error.name} is missing; "
                     "add it to the requirements")
        sys.exit(f"{name} cannot be imported: {type(error).__name__}: {error}")
    print(name, versions[name])
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(versions, file, indent=2)
    file.write("\n")
