# A uv that makes environments with the interpreter of python.sh, and installs nothing.
[ "$1" = --version ] && { echo "uv 1.0.0"; exit; }
[ "$1" = venv ] || exit 0
for last; do :; done
mkdir -p "$last/bin"
ln -s "TOOL" "$last/bin/python"
cp "$(dirname "$0")/venv.script" "$last/bin/python.script"
