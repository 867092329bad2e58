"""Replaces triangular masks that are stored element by element by nodes that compute them, and
verifies that not one bit of the logits changes.

A causal mask of 2048 x 2048 bytes says what `row >= column` says. onnxruntime folds the nodes to the
same constant when it loads the model, so that only the file is smaller.
arguments: FROM LENGTHS TO REPORT"""
import json
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

origin, lengths, to, report_path = sys.argv[1:]
# Smaller ones are not worth their nodes.
SMALLEST = 1 << 16


def describe(mask):
    """(size, window) of a mask of `row >= column` and `row - column < window`; None of another."""
    size = mask.shape[-1]
    if mask.dtype != bool or mask.ndim < 2 or mask.size != size * size or mask.shape[-2] != size:
        return None
    square = mask.reshape(size, size)
    window = int(square[:, 0].sum())
    if window == 0:
        return None
    expected = numpy.tril(numpy.ones_like(square))
    expected &= ~numpy.tril(expected, -window)
    return (size, window) if numpy.array_equal(square, expected) else None


def constant(name, array):
    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(array, name))


def computed(name, shape, size, window):
    """Nodes whose last output is the mask called `name`."""
    prefix = f"{name}_computed"

    def node(operator, inputs, output):
        return helper.make_node(operator, inputs, [output], name=f"{prefix}_{operator}_{len(nodes)}")

    nodes = [
        constant(f"{prefix}_zero", numpy.array(0, numpy.int32)),
        constant(f"{prefix}_one", numpy.array(1, numpy.int32)),
        constant(f"{prefix}_size", numpy.array(size, numpy.int32)),
        constant(f"{prefix}_column", numpy.array([size, 1], numpy.int64)),
        constant(f"{prefix}_shape", numpy.array(shape, numpy.int64)),
    ]
    nodes.append(node("Range", [f"{prefix}_zero", f"{prefix}_size", f"{prefix}_one"], f"{prefix}_columns"))
    nodes.append(node("Reshape", [f"{prefix}_columns", f"{prefix}_column"], f"{prefix}_rows"))
    nodes.append(node("Sub", [f"{prefix}_rows", f"{prefix}_columns"], f"{prefix}_distance"))
    nodes.append(node("GreaterOrEqual", [f"{prefix}_distance", f"{prefix}_zero"], f"{prefix}_causal"))
    square = f"{prefix}_causal"
    if window < size:
        nodes.append(constant(f"{prefix}_window", numpy.array(window, numpy.int32)))
        nodes.append(node("Less", [f"{prefix}_distance", f"{prefix}_window"], f"{prefix}_near"))
        nodes.append(node("And", [f"{prefix}_causal", f"{prefix}_near"], f"{prefix}_local"))
        square = f"{prefix}_local"
    nodes.append(node("Reshape", [square, f"{prefix}_shape"], name))
    return nodes


def take(graph):
    """Takes the masks out of the graph; gives the nodes that compute them, and what they were."""
    nodes, masks = [], []

    def consider(name, tensor):
        if tensor.data_type != TensorProto.BOOL or numpy.prod(tensor.dims) < SMALLEST:
            return False
        array = numpy_helper.to_array(tensor)
        found = describe(array)
        if found is None:
            return False
        size, window = found
        nodes.extend(computed(name, array.shape, size, window))
        masks.append({"name": name, "size": size, "window": window, "bytes": array.nbytes})
        return True

    for tensor in list(graph.initializer):
        if consider(tensor.name, tensor):
            graph.initializer.remove(tensor)
    for node in list(graph.node):
        value = next((each.t for each in node.attribute if each.name == "value"), None)
        if node.op_type == "Constant" and value is not None and consider(node.output[0], value):
            graph.node.remove(node)
    return nodes, masks


def session(path, level):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


model = onnx.load(origin, load_external_data=False)
nodes, masks = take(model.graph)
if not masks:
    sys.exit("there is no triangular mask in the model: say `masks = \"stored\"` in the pins")
rest = list(model.graph.node)
del model.graph.node[:]
model.graph.node.extend(nodes + rest)
onnx.checker.check_model(model)
onnx.save(model, to)

compared = {}
levels = onnxruntime.GraphOptimizationLevel
for name, level in (("basic", levels.ORT_ENABLE_BASIC), ("all", levels.ORT_ENABLE_ALL)):
    before, after = session(origin, level), session(to, level)
    vocabulary = before.get_outputs()[0].shape[2]
    compared[name] = {}
    for length in json.loads(lengths):
        ids = numpy.random.RandomState(length).randint(0, vocabulary, (1, length))
        one, two = (each.run(None, {"input_ids": ids})[0] for each in (before, after))
        if one.tobytes() != two.tobytes():
            sys.exit(f"computing the masks changes the logits of {length} tokens by {numpy.abs(one - two).max()}")
        compared[name][str(length)] = int(one.size)
report = {"schema": 1, "masks": masks, "equal_logits": compared}
print(json.dumps(report))
with open(report_path, "w", encoding="utf-8") as file:
    json.dump(report, file, indent=2)
    file.write("\n")
