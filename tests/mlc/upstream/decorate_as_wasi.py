import sys

with open(sys.argv[1]) as source, open(sys.argv[2], "w") as made:
    made.write(f"// {sys.argv[3]} adapter from " + source.read().replace("// -emit-llvm\n", ""))
