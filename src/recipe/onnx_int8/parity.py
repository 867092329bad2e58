"""Compares the logits of the exported and of the quantized model with the framework's own.
arguments: DIRECTORY EXPORTED QUANTIZED LENGTHS FLOAT_DIFFERENCE COSINE REPORT"""
import json
import sys

import numpy
import onnxruntime
import torch
import transformers

directory, exported, quantized, lengths, float_difference, least_cosine, report_path = sys.argv[1:]
float_difference, least_cosine = float(float_difference), float(least_cosine)
torch.set_grad_enabled(False)
# As it is, with its own mask.
model = transformers.AutoModelForCausalLM.from_pretrained(
    directory, local_files_only=True, attn_implementation="eager", dtype=torch.float32
).eval()


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # More than folding constants, and onnxruntime may quantize activations that are not.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


exported, quantized = session(exported), session(quantized)
report = {"schema": 1, "onnxruntime": onnxruntime.__version__, "lengths": {}}
for length in json.loads(lengths):
    ids = numpy.random.RandomState(length).randint(0, model.config.vocab_size, (1, length))
    reference = model(input_ids=torch.from_numpy(ids), use_cache=False).logits.numpy().astype(numpy.float64)
    exact = exported.run(None, {"input_ids": ids})[0]
    rough = quantized.run(None, {"input_ids": ids})[0]
    if not (numpy.isfinite(exact).all() and numpy.isfinite(rough).all()):
        sys.exit(f"with {length} tokens some logits are not finite")
    centred = reference - reference.mean(axis=-1, keepdims=True)
    other = rough - rough.mean(axis=-1, keepdims=True)
    cosine = (centred * other).sum(axis=-1) / (
        numpy.linalg.norm(centred, axis=-1) * numpy.linalg.norm(other, axis=-1))
    row = {
        "exported_difference": float(numpy.abs(reference - exact).max()),
        "quantized_difference": float(numpy.abs(reference - rough).max()),
        "quantized_cosine": float(cosine.min()),
        "quantized_same_first": float((reference.argmax(axis=-1) == rough.argmax(axis=-1)).mean()),
    }
    report["lengths"][str(length)] = row
    print(length, row)
    if row["exported_difference"] > float_difference:
        sys.exit(f"with {length} tokens the export's logits are off by {row['exported_difference']}, "
                 f"and the pins allow {float_difference}")
    if row["quantized_cosine"] < least_cosine:
        sys.exit(f"with {length} tokens the quantized logits point elsewhere: cosine {row['quantized_cosine']}, "
                 f"and the pins want {least_cosine}")
with open(report_path, "w", encoding="utf-8") as file:
    json.dump(report, file, indent=2)
    file.write("\n")
