// Puts a CommonJS bundle of TVM's browser module in place of the one inside WebLLM's bundle. The place
// is found by its shape: a top-level function that runs once and whose module exports
// `createPolyfillWASI` and `detectGPUDevice`. Every other byte stays as it is.
// arguments: WEBLLM_BUNDLE TVM_BUNDLE OUT
import { readFileSync, writeFileSync } from "node:fs";
const [source, bundle, out] = process.argv.slice(-3);
const text = readFileSync(source, "utf8");
const name = String.raw`\w+(?:\$\d+)?`;
const opening = new RegExp(String.raw`^function ${name} \(\) \{\n\tif \((${name})\) return (${name})\.exports;\n\t\1 = 1;\n`, "gm");
const found = [];
for (const match of text.matchAll(opening)) {
  const module = match[2].replaceAll("$", "\\$");
  const closing = new RegExp(String.raw`\n\t\} ?\(${module}, ${module}\.exports\)\);\n\treturn ${module}\.exports;(?=\n\}\n)`, "g");
  closing.lastIndex = match.index;
  if (closing.exec(text) === null) continue;
  const [begin, end] = [match.index + match[0].length, closing.lastIndex];
  const body = text.slice(begin, end);
  const isTvm = ["createPolyfillWASI", "detectGPUDevice"].every((key) => new RegExp(String.raw`\bexports\.${key} = `).test(body));
  if (isTvm) found.push({ begin, end, module: match[2] });
}
if (found.length !== 1) {
  console.error(`${source} is a bundle of another shape: it has ${found.length} TVM modules, and 1 is wanted`);
  process.exit(1);
}
const [{ begin, end, module }] = found;
const body = `\t(function (module, exports) {\n${readFileSync(bundle, "utf8")}\n\t}(${module}, ${module}.exports));\n\treturn ${module}.exports;`;
writeFileSync(out, text.slice(0, begin) + body + text.slice(end));
