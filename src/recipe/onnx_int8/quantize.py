"""Quantizes the weights of an ONNX model to 8 bits, symmetrically.

With activations `dynamic` onnxruntime's `quantize_dynamic` does it, which quantizes activations too,
while the model runs. A last bit that differs between processors then becomes a whole step of 8 bits
now and then, and two runtimes draw other tokens. With activations `float` only weights are quantized.
arguments: FROM SETTINGS TO"""
import json
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

origin, settings, to = sys.argv[1:]
settings = json.loads(settings)
# Which input of an operator is its weights.
WEIGHTS = {"MatMul": 1, "Gather": 0}


def quantize(array, axis):
    """8-bit numbers and the scale, or along `axis` the scales."""
    others = None if axis is None else tuple(each for each in range(array.ndim) if each != axis)
    scale = (numpy.abs(array).max(axis=others, keepdims=axis is not None) / 127).astype(numpy.float32)
    scale = numpy.where(scale == 0, numpy.float32(1), scale)
    return numpy.clip(numpy.rint(array / scale), -127, 127).astype(numpy.int8), scale.reshape(-1 if axis is not None else ())


def quantize_weights(graph):
    weights = {tensor.name: tensor for tensor in graph.initializer}
    done, nodes = set(), []
    for node in graph.node:
        place = WEIGHTS.get(node.op_type) if node.op_type in settings["operators"] else None
        tensor = weights.get(node.input[place]) if place is not None else None
        if tensor is None or tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2:
            nodes.append(node)
            continue
        per_channel = settings["per_channel"] and node.op_type == "MatMul"
        # Operators of two kinds may share a tensor and not its scale.
        name = f"{tensor.name}_{node.op_type}"
        axis = {"axis": 1} if per_channel else {}
        if name not in done:
            done.add(name)
            numbers, scale = quantize(numpy_helper.to_array(tensor), axis.get("axis"))
            graph.initializer.append(numpy_helper.from_array(numbers, f"{name}_quantized"))
            graph.initializer.append(numpy_helper.from_array(scale, f"{name}_scale"))
        result = node.output[0]
        if node.op_type == "Gather":
            # Rows are gathered as they are stored, and only those are made numbers again.
            node.input[0], node.output[0] = f"{name}_quantized", f"{result}_quantized"
            nodes.append(node)
            nodes.append(helper.make_node("DequantizeLinear", [f"{result}_quantized", f"{name}_scale"], [result],
                                          name=f"{result}_dequantize"))
        else:
            numbers = f"{result}_weights"
            nodes.append(helper.make_node("DequantizeLinear", [f"{name}_quantized", f"{name}_scale"], [numbers],
                                          name=f"{numbers}_dequantize", **axis))
            node.input[1] = numbers
            nodes.append(node)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    return done


if settings["activations"] == "dynamic":
    quantize_dynamic(
        origin,
        to,
        op_types_to_quantize=settings["operators"],
        per_channel=settings["per_channel"],
        weight_type=QuantType.QInt8,
        use_external_data_format=False,
    )
else:
    model = onnx.load(origin)
    if not quantize_weights(model.graph):
        sys.exit(f"none of the operators {', '.join(settings['operators'])} has weights that could be quantized")
    onnx.checker.check_model(model)
    onnx.save(model, to)
