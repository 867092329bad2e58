#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: check.sh REBUILD_MODEL MANIFEST
#
# Holds the attestation and the bill of materials beside MANIFEST against programs that are not ours, and our signatures
# against OpenSSL's and securesystemslib's, both ways. Needs uv and openssl; its Python packages go into .setup/outside.
set -euo pipefail

program=$(realpath "${1:?usage: check.sh REBUILD_MODEL MANIFEST}")
manifest=$(realpath "${2:?usage: check.sh REBUILD_MODEL MANIFEST}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=$here/../../.setup/outside
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed=0
pass() { passed=$((passed + 1)); echo "ok: $1"; }
fail() { echo "not ok: $1" >&2; exit 1; }

if ! cmp -s "$here/requirements.txt" "$environment/requirements.txt"; then
  uv venv --quiet --clear "$environment"
  uv pip install --quiet --python "$environment/bin/python" --require-hashes --no-deps -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$environment/requirements.txt"
fi

# The documents under a name of their own: the build's attestation stays as it is.
cp "${manifest%.json}.intoto.json" "$scratch/bare.intoto.json"
cp "${manifest%.json}.cdx.json" "$scratch/manifest.cdx.json"
grep -q '"_type"' "$scratch/bare.intoto.json" || fail "the attestation beside $manifest is a bare statement"
(umask 077 && openssl genpkey -algorithm ed25519 -out "$scratch/key")
openssl pkey -in "$scratch/key" -pubout -out "$scratch/pub"
"$program" sign "$scratch/bare.intoto.json" --key "$scratch/key" --output "$scratch/signed.intoto.json" >/dev/null
verify() { "$program" verify "$1" --manifest "$manifest" --root "$(dirname "$manifest")" --key "$scratch/pub" >/dev/null; }
verify "$scratch/signed.intoto.json" || fail "what sign signed, verify accepts"
pass "what sign signed, verify accepts"

# OpenSSL over the encoding as the specification writes it, put together here.
python3 - "$scratch" <<'P'
import base64, json, pathlib, sys
scratch = pathlib.Path(sys.argv[1])
envelope = json.loads((scratch / "signed.intoto.json").read_text())
payload = base64.b64decode(envelope["payload"])
kind = envelope["payloadType"]
(scratch / "message").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload))
(scratch / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
P
openssl pkeyutl -verify -pubin -inkey "$scratch/pub" -rawin -in "$scratch/message" -sigfile "$scratch/signature" >/dev/null ||
  fail "OpenSSL accepts our signature"
pass "OpenSSL accepts our signature"
openssl pkeyutl -sign -inkey "$scratch/key" -rawin -in "$scratch/message" -out "$scratch/theirs"
cmp -s "$scratch/signature" "$scratch/theirs" || fail "OpenSSL's signature is ours"
pass "OpenSSL's signature is ours"

"$environment/bin/python" "$here/check.py" "$scratch" "$scratch/pub" "$scratch/key"
verify "$scratch/foreign.intoto.json" || fail "verify accepts what securesystemslib signed"
pass "verify accepts what securesystemslib signed"
code=0
openssl genpkey -algorithm ed25519 -out "$scratch/other"
openssl pkey -in "$scratch/other" -pubout -out "$scratch/pub"
verify "$scratch/foreign.intoto.json" 2>/dev/null || code=$?
[ $code = 8 ] || fail "by another key it ends with exit code 8, not $code"
pass "by another key it ends with exit code 8"
echo "$passed passed here, 0 failed"
