"""Exports a causal language model to ONNX with `input_ids` as its only input, and probes its causality.

transformers' `create_causal_mask` cannot be traced by the exporter. It is replaced by one that gives
no mask, which is right only where attention applies a triangle of its own, as GPT-Neo's does. So each
build probes it: another last token must change no earlier logit, not by one bit, neither in the
model nor in its export.
arguments: DIRECTORY OPSET LENGTHS MODEL REPORT"""
import json
import sys

import numpy
import onnxruntime
import torch
import transformers

directory, opset, lengths, model_path, report_path = sys.argv[1:]
lengths = json.loads(lengths)
torch.manual_seed(0)
torch.set_grad_enabled(False)
model = transformers.AutoModelForCausalLM.from_pretrained(
    directory, local_files_only=True, attn_implementation="eager", dtype=torch.float32
).eval()
vocabulary = model.config.vocab_size

module = sys.modules[type(model).__module__]
if not hasattr(module, "create_causal_mask"):
    sys.exit(f"{module.__name__} has no create_causal_mask: this version of transformers is not the one "
             "for which the replacement was written")
module.create_causal_mask = lambda *args, **kwargs: None


class Logits(torch.nn.Module):
    """Token ids in, logits out, and nothing else."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids):
        return self.inner(input_ids=input_ids, use_cache=False).logits


def probe(name, run):
    """The largest change of an earlier logit, by length."""
    changes = {}
    for length in lengths:
        generator = numpy.random.RandomState(length)
        ids = generator.randint(0, vocabulary, (1, length))
        other = ids.copy()
        other[0, -1] = (other[0, -1] + 1 + generator.randint(0, vocabulary - 1)) % vocabulary
        before, after = run(ids), run(other)
        change = float(numpy.abs(before[:, :-1] - after[:, :-1]).max(initial=0.0))
        if change != 0.0 or numpy.array_equal(before[:, -1], after[:, -1]):
            sys.exit(f"{name} is not causal: with {length} tokens another last one changes earlier logits by "
                     f"{change}, and its own by {float(numpy.abs(before[:, -1] - after[:, -1]).max())}")
        changes[str(length)] = change
    return changes


logits = Logits(model)
report = {"schema": 1, "opset": int(opset), "torch": torch.__version__, "transformers": transformers.__version__}
report["model_probe"] = probe("the model", lambda ids: logits(torch.from_numpy(ids)).numpy())
torch.onnx.export(
    logits,
    (torch.arange(8).reshape(1, 8),),
    model_path,
    dynamo=False,
    opset_version=int(opset),
    input_names=["input_ids"],
    output_names=["logits"],
    dynamic_axes={"input_ids": {1: "seq"}, "logits": {1: "seq"}},
)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
inputs = [value.name for value in session.get_inputs()]
if inputs != ["input_ids"]:
    sys.exit(f"the export has the inputs {', '.join(inputs)}, and input_ids alone is wanted: "
             "something else than create_causal_mask asked for a mask")
report["export_probe"] = probe("the export", lambda ids: session.run(None, {"input_ids": ids})[0])
print(json.dumps(report))
with open(report_path, "w", encoding="utf-8") as file:
    json.dump(report, file, indent=2)
    file.write("\n")
