"""Signs ad hoc every native library below a directory that has no valid signature, and verifies it:
macOS kills a process that loads one, without a word. argument: DIRECTORY"""
import pathlib
import subprocess
import sys


def is_valid(library):
    return subprocess.run(["/usr/bin/codesign", "--verify", library], capture_output=True).returncode == 0


for library in sorted(pathlib.Path(sys.argv[1]).rglob("*")):
    if library.suffix not in (".dylib", ".so") or library.is_symlink() or is_valid(library):
        continue
    subprocess.run(["/usr/bin/codesign", "--force", "--sign", "-", library], check=True)
    if not is_valid(library):
        sys.exit(f"{library} has no valid signature after it was signed")
    print("signed", library)
