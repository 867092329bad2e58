#!/bin/sh
# An esbuild that puts the entry and the adapter together.
for word; do
  case "$word" in --outfile=*) out=${word#--outfile=} ;; esac
done
cat "$1" src/tvmjs_runtime_wasi.js > "$out"
