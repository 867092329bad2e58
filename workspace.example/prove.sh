#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: prove.sh REBUILD_MODEL
#
# Shows on the example what is promised of every build: a dry run lists exactly the steps that then
# run; two directories, one of them killed half way and resumed, give the same digests; one flipped
# byte makes `verify` fail and name the artifact.
set -euo pipefail

program=$(realpath "${1:?usage: prove.sh REBUILD_MODEL}")
cd "$(dirname "${BASH_SOURCE[0]}")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed=0
pass() { passed=$((passed + 1)); echo "ok: $1"; }
fail() { cat "$scratch"/*.json >&2; echo "not ok: $1" >&2; echo "$passed passed, 1 failed"; exit 1; }

# field PATH: a value of the JSON document on standard input, one line for each element of a list.
field() {
  python3 -c 'import functools, json, sys
value = functools.reduce(lambda v, k: v[k], sys.argv[1].split("."), json.load(sys.stdin))
print("\n".join(map(str, value)) if isinstance(value, list) else value)' "$1"
}

steps_of_plan() {
  python3 -c 'import json, sys; print("\n".join(s["id"] for s in json.load(sys.stdin)["plan"]["steps"]))'
}

# prepare DIRECTORY: put the command that builds there into `build`.
prepare() {
  build=("$program" build --workspace "$scratch/$1/workspace" --output "$scratch/$1/dist"
    --format json --progress plain)
}

./set-up.sh >/dev/null
"$program" build --dry-run --format json | steps_of_plan | sort >"$scratch/planned"
prepare one
"${build[@]}" >"$scratch/one.json" || fail "the build in the first directory"
field ran <"$scratch/one.json" | sort | cmp -s - "$scratch/planned" || fail "a dry run lists the steps that run"
pass "a dry run lists the steps that run"

prepare two
"${build[@]}" >"$scratch/two.json" & victim=$!
until [ "$(grep -c '"done"' "$scratch/two/workspace/journal.jsonl" 2>/dev/null)" -ge 12 ] 2>/dev/null; do
  kill -0 $victim 2>/dev/null || fail "the build in the second directory was too quick to be killed"
  sleep 0.2
done
kill -KILL $victim
wait $victim 2>/dev/null || true
[ ! -e "$scratch/two/dist" ] || fail "a killed build delivers nothing"
pass "a killed build delivers nothing"
"${build[@]}" --resume >"$scratch/two.json" || fail "the killed build is resumed"
[ "$(field fresh <"$scratch/two.json" | wc -l)" -ge 11 ] || fail "what was done before the kill stands"
pass "what was done before the kill stands"
cmp "$scratch/one/dist/manifest.json" "$scratch/two/dist/manifest.json" || fail "both directories have the same digests"
pass "both directories have the same digests"

manifest=$scratch/one/dist/manifest.json
"$program" verify "$manifest" >/dev/null || fail "verify accepts what was built"
pass "verify accepts what was built"
python3 - "$scratch/one/dist/decoder-webgpu.wasm.gz" <<'P'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(1000)
    byte = file.read(1)[0]
    file.seek(1000)
    file.write(bytes([byte ^ 1]))
P
code=0
"$program" verify "$manifest" 2>"$scratch/verify" || code=$?
[ $code = 8 ] || fail "a flipped byte ends verify with exit code 8, not $code"
grep -q 'decoder-webgpu.wasm.gz' "$scratch/verify" || fail "verify names the artifact with the flipped byte"
pass "a flipped byte is found and the artifact named"

"$program" smoke "$scratch/two/dist/manifest.json" || fail "the library of the resumed build computes the reference's logits in a browser"
pass "the library of the resumed build computes the reference's logits in a browser"
echo "$passed passed, 0 failed"
