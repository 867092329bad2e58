# An emcc that puts its inputs together.
case "$1" in
  --version) echo "emcc (Emscripten) 6.0.13 ()"; exit ;;
  -dumpversion) echo 6.0.13; exit ;;
esac
inputs=
llvm=
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    -x | --pre-js | --js-library) shift ;;
    -emit-llvm) llvm="// -emit-llvm" ;;
    -*) ;;
    /dev/null) ;;
    *) inputs="$inputs $1" ;;
  esac
  shift
done
{
  [ -z "$llvm" ] || echo "$llvm"
  [ -z "$inputs" ] || cat $inputs
} > "$out"
