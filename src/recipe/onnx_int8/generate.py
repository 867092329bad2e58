"""Runs the generation contract with onnxruntime, and writes what was said beside the contract, so
that a browser can be held against it. `generate.mjs` does the same thing step for step.
arguments: CONTRACT MODEL TOKENIZER OUT"""
import json
import math
import re
import sys
import time

import numpy
import onnxruntime
import tokenizers

contract, model, tokenizer, out = sys.argv[1:]
contract = json.loads(contract)
tokenizer = tokenizers.Tokenizer.from_file(tokenizer)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}[contract["optimization"]]
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
sentence = re.compile(f"^(.*?[{re.escape(contract['sentence_ends'])}])", re.DOTALL)
end_token = tokenizer.token_to_id(contract["end_token"])
if end_token is None:
    sys.exit(f"the tokenizer has no token {contract['end_token']}")


def mulberry32(state):
    """Numbers from 0 to 1, 1 excluded, in 32-bit arithmetic."""
    mask = 0xFFFFFFFF
    while True:
        state = (state + 0x6D2B79F5) & mask
        t = ((state ^ (state >> 15)) * (state | 1)) & mask
        t ^= (t + ((t ^ (t >> 7)) * (t | 61))) & mask
        yield ((t ^ (t >> 14)) & mask) / 4294967296


def draw(logits, number):
    """A token, and how near the drawn number lies to where another token would begin."""
    # The higher logit first, of equal ones the lower id.
    order = numpy.lexsort((numpy.arange(logits.size), -logits))[: contract["top_k"]]
    first = float(logits[order[0]])
    weights = [math.exp((float(logits[token]) - first) / contract["temperature"]) for token in order]
    wanted, total = number * sum(weights), 0.0
    for token, weight in zip(order, weights):
        if total + weight > wanted:
            return int(token), min(wanted - total, total + weight - wanted) / sum(weights)
        total += weight
    return int(order[-1]), 0.0


def say(prompt, seed):
    ids, tokens, numbers, margin = tokenizer.encode(prompt).ids, [], mulberry32(seed), 1.0
    text, found = "", None
    for _ in range(contract["max_new_tokens"]):
        logits = session.run(None, {"input_ids": numpy.array([ids + tokens], numpy.int64)})[0][0, -1]
        token, distance = draw(logits, next(numbers))
        margin = min(margin, distance)
        if token == end_token:
            break
        tokens.append(token)
        text = tokenizer.decode(tokens, skip_special_tokens=False)
        text = "".join(letter for letter in text if letter not in contract["strip"])
        found = sentence.match(text)
        if found:
            break
    said = (found[1] if found else text).strip()
    return {"seed": seed, "prompt_tokens": ids, "tokens": tokens, "said": said, "sentence": bool(found),
            "closest_draw": margin}


runs, traps, began, count = [], [], time.perf_counter(), 0
for text in contract["texts"]:
    for seed in contract["seeds"]:
        runs.append({"text": text, **say(contract["prompt"].replace("{text}", text), seed)})
        count += len(runs[-1]["tokens"])
        print(runs[-1]["said"])
        if not runs[-1]["said"]:
            sys.exit(f"to {text!r} with seed {seed} the model says nothing")
print(f"{count / (time.perf_counter() - began):.1f} tokens a second in {len(runs)} runs")
if not any(run["sentence"] for run in runs):
    sys.exit(f"no run has a complete sentence within {contract['max_new_tokens']} tokens")
for trap in contract["traps"]:
    text, seed = contract["texts"][0], contract["seeds"][0]
    traps.append({"prompt": trap, "text": text, **say(trap.replace("{text}", text), seed)})
    print(f"the prompt {trap!r} gives {traps[-1]['said']!r}")
result = {"schema": 1, "runtime": f"onnxruntime {onnxruntime.__version__}", "contract": contract,
          "runs": runs, "traps": traps}
with open(out, "w", encoding="utf-8") as file:
    json.dump(result, file, indent=2, ensure_ascii=False)
    file.write("\n")
