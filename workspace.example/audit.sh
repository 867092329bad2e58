#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: audit.sh REBUILD_MODEL
#
# Shows on the example what an auditor relies on: a signed bundle is verified and replayed from nothing but itself, without
# a network, and is identical; whatever is changed in it afterwards ends in its class and is named. Each case starts from
# an untouched copy.
set -euo pipefail

program=$(realpath "${1:?usage: audit.sh REBUILD_MODEL}")
cd "$(dirname "${BASH_SOURCE[0]}")"
# What differs is kept by the program where temporary files go.
scratch=$(mktemp -d)
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT

passed=0
pass() { passed=$((passed + 1)); echo "ok: $1"; }
fail() { cat "$scratch/said" >&2; echo "not ok: $1" >&2; echo "$passed passed, 1 failed"; exit 1; }

# expect CODE DESCRIPTION TEXT… -- COMMAND…: it ends with that exit code and says each text.
expect() {
  local code=$1 description=$2 found=0 texts=() text
  shift 2
  while [ "$1" != -- ]; do texts+=("$1"); shift; done
  shift
  "$@" >"$scratch/said" 2>&1 || found=$?
  [ "$found" = "$code" ] || fail "$description: exit code $code, not $found"
  for text in ${texts[@]+"${texts[@]}"}; do
    grep -qF -- "$text" "$scratch/said" || fail "$description: says \`$text\`"
  done
  pass "$description"
}

# Nothing of this account, and no network: what an auditor's machine has in common with this one is its tools.
alone=(env -i "PATH=$PATH" "TMPDIR=$TMPDIR")
for variable in HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME; do
  mkdir -p "$scratch/empty/$variable"
  alone+=("$variable=$scratch/empty/$variable")
done
without=", without a network"
if unshare --user --map-root-user --net true 2>/dev/null; then
  alone=(unshare --user --map-root-user --net "${alone[@]}")
elif unshare --net true 2>/dev/null; then
  alone=(unshare --net "${alone[@]}")
else
  without=", WITH a network"
  echo "THE KERNEL LETS NO NETWORK BE TAKEN AWAY: what follows runs with one" >&2
fi
if [ "$without" = ", without a network" ]; then
  # A header, and no route to anywhere.
  [ "$("${alone[@]}" cat /proc/self/net/route | wc -l)" -le 1 ] || fail "there is no route to anywhere"
fi

flip() { # FILE OFFSET: change one byte, in a new file of the same name
  python3 - "$1" "$2" <<'P'
import os, pathlib, sys
path = pathlib.Path(sys.argv[1])
content = bytearray(path.read_bytes())
content[int(sys.argv[2])] ^= 1
path.unlink()
path.write_bytes(content)
P
}

# forge IN OUT CHANGE: change the statement in the attestation IN by Python text, and write it to OUT. In an envelope the
# signatures stay as they are.
forge() {
  python3 - "$@" <<'P'
import base64, hashlib, json, sys
whole = json.load(open(sys.argv[1]))
statement = json.loads(base64.b64decode(whole["payload"])) if "payload" in whole else whole
byproducts = {b["name"]: b for b in statement["predicate"]["runDetails"]["byproducts"]}
subjects = {s["name"]: s for s in statement["subject"]}
def restate(byproduct):
    canonical = json.dumps(byproduct["annotations"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    byproduct["digest"]["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
exec(sys.argv[3])
if "payload" in whole:
    whole["payload"] = base64.b64encode(json.dumps(statement, indent=2).encode()).decode()
json.dump(whole, open(sys.argv[2], "w"), indent=2)
P
}

make_key() { # NAME: a fresh pair of keys, NAME.key and NAME.pub
  (umask 077 && openssl genpkey -algorithm ed25519 -out "$scratch/$1.key")
  openssl pkey -in "$scratch/$1.key" -pubout -out "$scratch/$1.pub"
}

## What the builder does.

: >"$scratch/said"
./set-up.sh >/dev/null
workspace=$scratch/workspace dist=$scratch/dist
"$program" build --workspace "$workspace" --output "$dist" --progress plain >"$scratch/said" 2>&1 || fail "the build"
cp "$dist/manifest.intoto.json" "$scratch/bare.json"
make_key release
make_key other
"$program" sign "$dist/manifest.intoto.json" --key "$scratch/release.key" >"$scratch/said" 2>&1 || fail "sign"
"$program" bundle --vendor --manifest "$dist/manifest.json" -o "$scratch/bundle.tar.gz" --progress none \
  >"$scratch/said" 2>&1 || fail "bundle"

## What the auditor does with the bundle and the artifacts.

mkdir "$scratch/unpacked"
tar -xzf "$scratch/bundle.tar.gz" -C "$scratch/unpacked"
bundle=$(echo "$scratch"/unpacked/*)
attestation=$bundle/attestation.json
key=(--key "$scratch/release.pub")
verify=("$program" verify "$attestation" --manifest "$bundle/manifest.json" --root "$dist" "${key[@]}")
replay() { # BUNDLE [FLAG…]
  "${alone[@]}" "$program" replay "$1" --offline --progress none "${@:2}"
}

expect 0 "the bundle is whole, and signed by the builder$without" "files" "are what it lists" "signed by" -- \
  "${alone[@]}" "$program" verify "$bundle" "${key[@]}"

expect 0 "the bundle's attestation and the artifacts are verified with the builder's key$without" \
  "9 artifacts are what" "signed by" -- "${alone[@]}" "${verify[@]}"
expect 0 "the bundle is replayed identically from an empty home and an empty cache$without" \
  "identical: all 24 steps made what they made then" -- replay "$bundle" --artifacts "$dist"
[ -z "$(ls "$TMPDIR")" ] || fail "nothing is left of an identical replay"
pass "nothing is left of an identical replay"

## What may have been changed since. Where a step tells, only that step is replayed.

recorded=(--recorded "$workspace")
# copy: an untouched copy of the bundle, in `changed`.
copy() {
  changed=$scratch/changed
  rm -rf "$changed" "$scratch"/empty/XDG_CACHE_HOME/rebuild-model
  cp -a "$bundle" "$changed"
}

# A patch beside the pins.
copy
patch=patches/tvm-runtime-pack.patch
flip "$changed/sources/$patch" 100
expect 8 "a changed patch is found in the bundle" "sources/$patch: expected" -- "$program" verify "$changed"
expect 5 "a changed patch is found beside the pins" "$patch has sha256" -- \
  "$program" pins check --pins "$changed/sources/pins.toml"
expect 5 "a changed patch ends a build" "$patch has sha256" -- "$program" build --offline --vendor "$changed/vendor" \
  --pins "$changed/sources/pins.toml" --workspace "$scratch/refused" --output "$scratch/refused-dist" --progress none
expect 4 "a changed patch ends a replay of the files beside the pins" "input vanished" "$patch has sha256" -- \
  replay "$changed" --beside "$changed/sources" --step patched "${recorded[@]}"
expect 0 "the attestation carries the pinned patch" "identical: all 1 steps" -- \
  replay "$changed" --step patched "${recorded[@]}"

# A wheel.
copy
wheel=$(cd "$changed/vendor" && echo sha256/*/apache_tvm_ffi-*.whl)
pinned=$(basename "$(dirname "$wheel")")
flip "$changed/vendor/$wheel" 5000
found=$(sha256sum "$changed/vendor/$wheel" | cut -d' ' -f1)
expect 8 "a swapped wheel is found in the bundle" "vendor/$wheel: expected" -- "$program" verify "$changed"
expect 4 "a swapped wheel is named, with what it is and what is pinned" "input vanished: step fetch-apache-tvm-ffi" \
  "differs from its pin: expected sha256 $pinned, found $found" "/vendor/$wheel" "hint: " -- replay "$changed" --step fetch-apache-tvm-ffi
expect 4 "it is named by the step that installs it, too" "input vanished: step wheels" \
  "differs from its pin: expected sha256 $pinned, found $found" "/vendor/$wheel" -- replay "$changed" --step wheels
rm -r "${changed:?}/vendor/$(dirname "$wheel")"
expect 4 "a wheel that vanished is named, with the digest to look for" "input vanished: step fetch-apache-tvm-ffi" \
  "${wheel##*/}" "the file with sha256 $pinned" -- replay "$changed" --step fetch-apache-tvm-ffi

# A commit. Its repository is unpacked, so that one object can be changed under its id.
decoder=a7de7a209e2e40d48859f11f66981f8dd5adfbc1
loosen() { # NAME: a copy of the bundle, with the objects of its repository NAME loose, in `repository`
  copy
  repository=$(echo "$changed"/vendor/git/"$1"-*.git)
  mv "$repository"/objects/pack/*.pack "$scratch/pack"
  rm "$repository"/objects/pack/*
  git -C "$repository" unpack-objects -q <"$scratch/pack"
}
object() { git -C "$repository" rev-parse -q "$1" 2>/dev/null; }
alter() { # ID OLD NEW: other content for the object, by Python text
  python3 - "$repository/objects/${1:0:2}/${1:2}" "$2" "$3" <<'P'
import ast, pathlib, sys, zlib
path = pathlib.Path(sys.argv[1])
old, new = (ast.literal_eval(text) for text in sys.argv[2:])
head, body = zlib.decompress(path.read_bytes()).split(b"\0", 1)
assert old in body
body = body.replace(old, new, 1)
path.unlink()
path.write_bytes(zlib.compress(b"%s %d\0%s" % (head.split()[0], len(body), body)))
P
}
loosen decoder
expect 0 "a repository in another form serves the same" "identical: all 1 steps" -- replay "$changed" --step decoder
alter "$decoder" "b'tree $(object "$decoder^{tree}")'" "b'tree $(object "$decoder:decoder")'"
expect 4 "a commit with another tree is named" "input vanished: step decoder: cannot fetch commit $decoder" \
  "${repository##*/}: the repository is damaged: object $decoder" -- replay "$changed" --step decoder
loosen decoder
blob=$(object "$decoder:config.json")
alter "$blob" "b'1'" "b'2'"
expect 4 "a changed file of a commit is named" "input vanished: step decoder: cannot fetch commit $decoder" \
  "${repository##*/}: the repository is damaged: object $blob of config.json" -- replay "$changed" --step decoder
loosen overlay
rm -r "$repository"
expect 4 "a repository that vanished is named" "input vanished: step decoder" "overlay.git for 3rdparty/overlay" -- \
  replay "$changed" --step decoder

# The attestation. Edited in its envelope its signature does not hold, and without one it contradicts itself.
subject=decoder-webgpu.wasm.gz
edit="subjects['$subject']['digest']['sha256'] = '0' * 64"
forge "$scratch/bare.json" "$scratch/edited.json" "$edit"
forge "$attestation" "$scratch/edited-signed.json" "$edit"
verify_other() { "$program" verify "$1" --manifest "$bundle/manifest.json" --root "$dist" "${@:2}"; }
expect 0 "a bare attestation is verified without a key" "9 artifacts are what" -- verify_other "$scratch/bare.json"
expect 8 "an edited subject is named, and what it contradicts" "artifact $subject: \`packed.sha256\`" "step package" -- \
  verify_other "$scratch/edited.json"
expect 11 "a replay tells that a subject was edited" "inconclusive" "subject $subject is stated to have sha256 000000" -- \
  "${alone[@]}" "$program" replay "$scratch/edited.json" --offline --vendor "$bundle/vendor" --progress none \
  --step package "${recorded[@]}"
expect 8 "in a signed attestation the signature does not hold either" "does not hold: the attestation's signatures" "artifact $subject" \
  "is not by it" -- \
  verify_other "$scratch/edited-signed.json" "${key[@]}"
"$program" sign "$scratch/bare.json" --key "$scratch/other.key" --output "$scratch/other.json" >/dev/null
expect 8 "a signature by another key does not do" "must have signed, found 0" "by others" -- \
  verify_other "$scratch/other.json" "${key[@]}"
expect 8 "an attestation without its signature does not do" "the attestation is not signed" -- \
  verify_other "$scratch/bare.json" "${key[@]}"
python3 -c 'import json, sys; e = json.load(open(sys.argv[1])); e["signatures"] = []; json.dump(e, open(sys.argv[2], "w"))' \
  "$attestation" "$scratch/stripped.json"
expect 8 "nor does an envelope without one" "stripped.json is not valid: the envelope has no signature" -- \
  verify_other "$scratch/stripped.json" "${key[@]}"

# The journal.
edit_journal() { # STEP OUTPUT OUT: the builder's journal with another digest for what a step made
  python3 - "$workspace/journal.jsonl" "$@" <<'P'
import json, sys
lines = open(sys.argv[1]).read().splitlines(True)
for index, line in enumerate(lines):
    step = json.loads(line).get("step")
    if step and step["step"] == sys.argv[2] and step["outcome"] == "done":
        lines[index] = line.replace(step["outputs"][sys.argv[3]]["sha256"], "3" * 64)
open(sys.argv[4], "w").writelines(lines)
P
}
edit_journal link decoder-webgpu.wasm "$scratch/journal.jsonl"
expect 0 "the builder's journal is the attested one" "9 artifacts" -- "${verify[@]}" --journal "$workspace/journal.jsonl"
expect 8 "an edited line of it is named" "its record of step link: output decoder-webgpu.wasm" "found 3333" -- \
  "${verify[@]}" --journal "$scratch/journal.jsonl"

# An artifact that was packed again.
cp -r "$dist" "$scratch/repacked"
gzip -dc "$dist/tvmjs.cjs.gz" | gzip -1n >"$scratch/repacked/tvmjs.cjs.gz"
expect 8 "an artifact at another level is told from another one" "artifact tvmjs.cjs.gz: packed sha256" \
  "the content is what is recorded" -- "$program" verify "$scratch/repacked/manifest.json"
expect 9 "a replay tells so, too" "same unpacked, other encoder: published artifact tvmjs.cjs.gz" -- \
  replay "$bundle" --artifacts "$scratch/repacked" --step package "${recorded[@]}"
expect 9 "and a comparison" "the same content in another encoding" "tvmjs.cjs.gz" -- \
  "$program" diff "$dist" "$scratch/repacked"
# What another encoder's build would have recorded.
cp -al "$workspace" "$scratch/encoder"
rm "$scratch/encoder/journal.jsonl"
edit_journal package package "$scratch/encoder/journal.jsonl"
forge "$scratch/bare.json" "$scratch/encoder.json" '
subjects["tvmjs.cjs.gz"]["digest"]["sha256"] = "2" * 64
package = byproducts["step:package"]
package["annotations"]["outputs"]["package"]["sha256"] = "3" * 64
restate(package)'
expect 9 "an attested artifact of another encoder is told from another one" "same unpacked, other encoder" \
  "step package is the first" -- "${alone[@]}" "$program" replay "$scratch/encoder.json" --offline \
  --vendor "$bundle/vendor" --progress none --step package --recorded "$scratch/encoder"
expect 11 "a journal that says otherwise than the attestation is found" "inconclusive" "otherwise of step package" -- \
  replay "$bundle" --step package --recorded "$scratch/encoder"

# Another emcc, before the real one on PATH.
mkdir "$scratch/bin"
emcc=$(command -v emcc)
version=$("$emcc" -dumpversion)
if beside=$(command -v em-config); then ln -s "$beside" "$scratch/bin/em-config"; fi
wrap() { # VERSION [COMMANDS]: an emcc that says VERSION, and runs COMMANDS after the real one
  cat >"$scratch/bin/emcc" <<W
#!/bin/sh
case "\$*" in --version) echo "emcc $1"; exit;; -dumpversion) echo $1; exit;; esac
"$emcc" "\$@" || exit
$2
W
  chmod +x "$scratch/bin/emcc"
}
with_other_emcc=("${alone[@]}" "PATH=$scratch/bin:$PATH")
other_emcc() {
  local alone=("${with_other_emcc[@]}")
  replay "$bundle" "${recorded[@]}" "$@"
}
# An empty custom section is no other program, and another file.
section='for out; do case $out in *.wasm) printf "\000\002\001x" >>"$out";; esac; done'
wrap 99.0.1 ""
expect 0 "another emcc that makes the same is named" "identical: all 1 steps" "tool        emcc" "then $version" \
  "here 99.0.1" "made the same: emcc" -- other_emcc --step link
wrap 99.0.1 "$section"
expect 2 "another emcc that makes something else is tool drift" "tool drift: step link is the first" \
  "tool emcc: $version (" "→ 99.0.1 (" "decoder-webgpu.wasm" -- other_emcc --from link
wrap 1.0.0 ""
expect 2 "an emcc that will not do is tool drift" "tool drift" "\`emcc\` is version 1.0.0" \
  "the recorded build had emcc $version (" -- other_emcc --step link

## Parts, more than once, and with something varied.

expect 0 "linking twice gives the same" "identical: all 1 steps" "in 2 runs" -- \
  replay "$bundle" --step link --times 2 "${recorded[@]}"
expect 0 "from linking on it is the same" "identical: all 3 steps" -- \
  replay "$bundle" --from link --artifacts "$dist" "${recorded[@]}"
expect 0 "in another directory with other jobs it is the same" "identical: all 3 steps" "in 2 runs" \
  "vary        directory" "vary        jobs       1 at a time instead of" "vary        umask      without effect" \
  -- replay "$bundle" --from link --vary all --jobs 2 "${recorded[@]}"
wrap "$version" 'for out; do case $out in *.wasm) pwd >>"$out";; esac; done'
expect 9 "a link that depends on its directory is found" "not reproducible: step link" "this was varied: directory" -- \
  other_emcc --step link --vary directory
expect 11 "a part without what it reads is not replayed" "step link reads what" "--recorded" -- replay "$bundle" --step link
echo "$passed passed, 0 failed$without"
