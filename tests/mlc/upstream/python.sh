# The real Python, but for pip: what is not in --find-links is gone.
case "$*" in
  *sys.executable*) echo "$0"; exit ;;
  "-m pip download"*) ;;
  *) exec REAL_PYTHON "$@" ;;
esac
list=
while [ $# -gt 0 ]; do
  last=$1
  case "$1" in
    --find-links) links=$2 ;;
    --dest) dest=$2 ;;
    --log) log=$2 ;;
    -r) list=$2 ;;
  esac
  shift
done
index=$(dirname "$0")/../index
if [ -n "$list" ]; then names=$(sed 's/==.*//' "$list"); else names=${last%%==*}; fi
for name in $names; do
  cp "$links/$name"-*.whl "$dest" 2> /dev/null || cp "$index/$name"-*.whl "$dest" 2> /dev/null || {
    echo "ERROR: No matching distribution found for $name==1.0" >&2
    exit 1
  }
done
