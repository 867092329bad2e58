#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check.py DIRECTORY PUBLIC_KEY PRIVATE_KEY

What programs that are not ours make of an attestation and a bill of materials: in-toto's own message types, the DSSE
implementation of securesystemslib, CycloneDX's schema, and packageurl. DIRECTORY holds bare.intoto.json, signed.intoto.json
(the same, signed with PRIVATE_KEY by rebuild-model) and manifest.cdx.json. Writes foreign.intoto.json, the same statement signed by
securesystemslib, for rebuild-model to verify.
"""

import copy
import hashlib
import json
import re
import sys
from pathlib import Path

import google.protobuf.json_format as json_format
from cryptography.hazmat.primitives.serialization import (
    Encoding, PublicFormat, load_pem_private_key, load_pem_public_key)
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import resource_descriptor, statement, statement_pb2
from packageurl import PackageURL
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

directory, public_path, private_path = map(Path, sys.argv[1:])
passed = 0


def ok(what, holds=True):
    global passed
    if not holds:
        sys.exit(f"not ok: {what}")
    passed += 1
    print(f"ok: {what}")


# The statement and its predicate, as in-toto's protocol buffers read them. An unknown field is an error here.
bare = (directory / "bare.intoto.json").read_bytes()
text = json.loads(bare)
message = json_format.ParseDict(text, statement_pb2.Statement())
statement.Statement.copy_from_pb(message).validate()
ok("in-toto-attestation accepts the statement")
predicate = json_format.ParseDict(text["predicate"], provenance_pb2.Provenance())
definition, run = predicate.build_definition, predicate.run_details
descriptors = [*message.subject, *definition.resolved_dependencies, *run.byproducts]
for found in descriptors:
    resource_descriptor.ResourceDescriptor.copy_from_pb(found).validate()
ok(f"it accepts the SLSA provenance and its {len(descriptors)} descriptors")
ok("type, builder and invocation are stated",
   text["predicateType"] == "https://slsa.dev/provenance/v1" and definition.build_type and run.builder.id
   and run.metadata.invocation_id and definition.external_parameters)
ok("times are in order", run.metadata.started_on.ToDatetime() <= run.metadata.finished_on.ToDatetime())
lengths = {"sha256": 64, "gitCommit": 40, "gitTree": 40}
ok("digests are what their algorithms give", all(
    re.fullmatch("[0-9a-f]{%d}" % lengths[algorithm], digest)
    for found in descriptors for algorithm, digest in found.digest.items()))
ok("contents have their digests", all(
    hashlib.sha256(found.content).hexdigest() == found.digest["sha256"] for found in descriptors if found.content))
ok("names of subjects are unique", len({found.name for found in message.subject}) == len(message.subject))

# Both ways over the envelope.
public_key = load_pem_public_key(public_path.read_bytes())
der = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
keyid = hashlib.sha256(der).hexdigest()
key = SSlibKey.from_crypto(public_key, keyid=keyid)
signed = json.loads((directory / "signed.intoto.json").read_bytes())
envelope = Envelope.from_dict(copy.deepcopy(signed))  # it changes what it is given
ok("the envelope holds the bare statement's bytes", envelope.payload == bare)
ok("securesystemslib accepts our signature", list(envelope.verify([key], 1)) == [keyid])
spoilt = Envelope.from_dict(copy.deepcopy(signed))
spoilt.payload = bare.replace(b"urn:x-rebuild-model:builder:local", b"urn:x-rebuild-model:builder:other")
try:
    spoilt.verify([key], 1)
    ok("securesystemslib refuses it over other bytes", False)
except VerificationError:
    ok("securesystemslib refuses it over other bytes")
foreign = Envelope(bare, "application/vnd.in-toto+json", {})
foreign.sign(CryptoSigner(load_pem_private_key(private_path.read_bytes(), None), key))
(directory / "foreign.intoto.json").write_text(json.dumps(foreign.to_dict()))
ok("ed25519 being deterministic, its signature is ours", foreign.to_dict()["signatures"] == signed["signatures"])

# The bill of materials.
bill_text = (directory / "manifest.cdx.json").read_text()
ok("CycloneDX's strict schema accepts the bill of materials",
   JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill_text) is None)
bill = json.loads(bill_text)
references = [component["bom-ref"] for component in bill["components"]]
ok("its references are unique and resolve",
   len(set(references)) == len(references) and bill["dependencies"][0]["dependsOn"] == references)
for component in bill["components"]:
    if "purl" in component:
        url = PackageURL.from_string(component["purl"])
        ok(f"{component['purl']} is a canonical package url", url.to_string() == component["purl"])
ok("it has every dependency", len(bill["components"]) == len(definition.resolved_dependencies))
print(f"{passed} passed, 0 failed")
