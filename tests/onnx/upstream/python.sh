# The real Python, but for pip: what is not in --find-links is gone.
case "$*" in
  *sys.executable*) echo "$0"; exit ;;
  "-m pip download"*) ;;
  *) exec REAL_PYTHON "$@" ;;
esac
while [ $# -gt 0 ]; do
  case "$1" in
    --find-links) links=$2 ;;
    --dest) dest=$2 ;;
  esac
  shift
done
cp "$links"/*.whl "$dest"
