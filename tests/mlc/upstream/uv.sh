# A uv that knows the few things it is asked here; a package is what lies in --find-links.
[ "$1" = --version ] && { echo "uv 1.0.0"; exit; }
verb=$1
while [ $# -gt 0 ]; do
  case "$1" in
    --find-links) links=$2 ;;
    --target) target=$2 ;;
    --out-dir) made=$2 ;;
  esac
  last=$1
  shift
done
case "$verb" in
  venv)
    mkdir -p "$last/bin"
    ln -s REAL_PYTHON "$last/bin/python"
    ;;
  build)
    mkdir -p "$made"
    cc -shared -fPIC -o "$made/libtvm_ffi.so" "$last/src/ffi.c"
    echo "$SETUPTOOLS_SCM_PRETEND_VERSION_FOR_APACHE_TVM_FFI" > "$made/version"
    ;;
  pip)
    [ -n "$target" ] || { [ -e "$links/compiler-1.0-py3-none-any.whl" ]; exit; }
    mkdir -p "$target/tvm_ffi/lib" "$target/tvm"
    cp "$links/libtvm_ffi.so" "$target/tvm_ffi/lib/"
    echo "__version__ = '$(cat "$links/version")'" > "$target/tvm_ffi/__init__.py"
    : > "$target/tvm_ffi/registry.py"
    printf '__version__ = "1.0"\nIRModule = str\n' > "$target/tvm/__init__.py"
    ;;
esac
