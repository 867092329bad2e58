# The environment's Python: what needs torch or onnxruntime is done by copying, the rest is real.
script=$2
case "$script" in
  *"torch.onnx.export("*) cp "WORLD/exported.onnx" "$6" && echo '{}' > "$7"; exit ;;
  *"quantize_dynamic("*) cp "$3" "$5"; exit ;;
  *"take(model.graph)"*) cp "$3" "$5" && echo '{}' > "$6"; exit ;;
  *"exported_difference"*) echo '{}' > "$9"; exit ;;
  *"lexsort"*) printf '%s' "$3" > "$6"; exit ;;
esac
PYTHONPATH="WORLD/modules" exec REAL_PYTHON "$@"
