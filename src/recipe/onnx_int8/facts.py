"""Holds model and tokenizer against each other before anything is made of them, and writes what
they say. Needs no package.
arguments: DIRECTORY ARCHITECTURE VOCABULARY WEIGHTS OUT"""
import json
import pathlib
import sys

directory, architecture, pinned, weights, out = sys.argv[1:]
directory = pathlib.Path(directory)


def read(name):
    try:
        return json.loads((directory / name).read_text(encoding="utf-8"))
    except ValueError as error:
        sys.exit(f"{name} is not JSON: {error}")


with open(directory / weights, "rb") as file:
    head = file.read(64)
if head.startswith(b"version https://git-lfs"):
    sys.exit(f"{weights} is a Git LFS pointer and not the weights: download the file that it points to")
is_archive = head.startswith(b"PK\x03\x04") or head.startswith(b"\x80\x02")
is_safe = head[8:9] == b"{"
if not (is_safe if weights.endswith(".safetensors") else is_archive):
    sys.exit(f"{weights} is neither an archive of torch nor safetensors; it begins with {head[:12]!r}")

config = read("config.json")
found = config.get("model_type")
if found != architecture:
    sys.exit(f"the model is of architecture {found}, and the pins say {architecture}: "
             "the export is known to keep causality for that one only")

tokenizer = read("tokenizer.json")
ids = dict(tokenizer["model"]["vocab"])
ids.update((token["content"], token["id"]) for token in tokenizer.get("added_tokens", []))
size, vocabulary = len(set(ids.values())), config["vocab_size"]
if size != vocabulary or max(ids.values()) != size - 1:
    sys.exit(f"the tokenizer has {size} tokens up to id {max(ids.values())}, and the model {vocabulary}: "
             "they do not belong together")
if vocabulary != int(pinned):
    sys.exit(f"the model has {vocabulary} tokens, and the pins say {pinned}")

facts = {
    "schema": 1,
    "architecture": found,
    "vocabulary": vocabulary,
    "positions": config["max_position_embeddings"],
    "window": config.get("window_size"),
    "layers": config.get("num_layers"),
    "hidden": config.get("hidden_size"),
}
print(facts)
with open(out, "w", encoding="utf-8") as file:
    json.dump(facts, file, indent=2)
    file.write("\n")
