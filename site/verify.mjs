// SPDX-License-Identifier: Apache-2.0
// What `rebuild-model verify MANIFEST` checks, for a site's build that has Node.js alone. Copy it.
// usage: node verify.mjs MANIFEST [ROOT]     exits 0 if every artifact is what the manifest says, else 8
import { createHash } from "node:crypto";
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

const decoders = { gzip: gunzipSync, br: brotliDecompressSync, identity: (bytes) => bytes };
const hash = (bytes, as) => createHash("sha256").update(bytes).digest(as);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const demand = (holds, what) => { if (!holds) throw new Error(what); };

function checkSame(bytes, stated, which) {
  demand(bytes.length === stated.size, `${which} size: expected ${stated.size} bytes, found ${bytes.length}`);
  demand(hash(bytes, "hex") === stated.sha256, `${which} sha256: expected ${stated.sha256}, found ${hash(bytes, "hex")}`);
}

function check(root, path, entry) {
  demand(/^[^\\]+$/.test(path) && path.split("/").every((part) => !["", ".", ".."].includes(part)), "its path leads out");
  demand(isObject(entry) && isObject(entry.packed) && isObject(entry.unpacked), "its entry lacks packed or unpacked");
  const { encoding, packed, unpacked, integrity, hashedName } = entry;
  demand(typeof encoding === "string" && Object.hasOwn(decoders, encoding), `encoding ${encoding} is not known`);
  for (const { sha256, size } of [packed, unpacked]) {
    demand(typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256), `${sha256} is no sha256`);
    demand(Number.isSafeInteger(size) && size >= 0, `${size} is no size`);
  }
  const sri = (stated) => `sha256-${Buffer.from(stated.sha256, "hex").toString("base64")}`;
  demand(integrity === undefined || (isObject(integrity) && Object.keys(integrity).length === 2 &&
    integrity.packed === sri(packed) && integrity.unpacked === sri(unpacked)), "integrity does not fit the digests");
  const [, stem, end] = /^(.+?)((?:\.[^.]*)?(?:\.gz|\.br)?)$/s.exec(path.split("/").pop());
  demand(hashedName === undefined || hashedName === `${stem}.${packed.sha256.slice(0, 16)}${end}`, "hashedName does not fit");
  const file = realpathSync(resolve(root, path));
  demand(file.startsWith(root + sep), "a symbolic link leads out of the root");
  demand(lstatSync(file).isFile(), "it is no regular file");
  const bytes = readFileSync(file);
  checkSame(bytes, packed, "packed");
  checkSame(decoders[encoding](bytes, { maxOutputLength: Math.max(1, unpacked.size) }), unpacked, "unpacked");
}

try {
  const manifest = JSON.parse(readFileSync(process.argv[2], "utf8"));
  demand(manifest.schema === 1 && Object.keys(manifest.artifacts ?? {}).length > 0, "no artifact, or another schema");
  const root = realpathSync(process.argv[3] ?? dirname(process.argv[2]));
  for (const [path, entry] of Object.entries(manifest.artifacts)) {
    try { check(root, path, entry); } catch (error) { console.error(`${path}: ${error.message}`); process.exitCode = 8; }
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 8;
}
