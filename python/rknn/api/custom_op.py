"""Operators of the user's own: reg_custom_op(), and `from rknn.api.custom_op import get_node_attr` for their methods."""

import numpy as np

from .. import _openrknn
from .model import Model, guarded

# Kinds of attributes, as in ONNX, with the field that holds the value.
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}


class Attribute:
    """An attribute with the fields of ONNX's AttributeProto; a tensor is an array."""

    def __init__(self, name, value):
        self.name = name
        self.f, self.i, self.s, self.t = 0.0, 0, b"", None
        self.floats, self.ints, self.strings = [], [], []
        self.type = self._kind(value)
        if self.type == 3:
            value = value.encode()
        elif self.type == 8:
            value = [text.encode() for text in value]
        setattr(self, _FIELDS[self.type], value)

    @staticmethod
    def _kind(value):
        if isinstance(value, np.ndarray):
            return 4
        if isinstance(value, list):
            return 8 if value and isinstance(value[0], str) else 6 if value and isinstance(value[0], float) else 7
        return 3 if isinstance(value, str) else 1 if isinstance(value, float) else 2


class Node:
    """A node of the source model with the fields of ONNX's NodeProto."""

    doc_string = ""

    def __init__(self, op_type, name, domain, inputs, outputs, attributes):
        self.op_type, self.name, self.domain, self.input, self.output = op_type, name, domain, inputs, outputs
        self.attribute = [Attribute(*item) for item in attributes.items()]


def get_node_attr(node, name):
    """The value of attribute `name` of a node: int, float, str, array or a list; None when it has none."""
    text = lambda value: value.decode(errors="replace") if isinstance(value, bytes) else value
    for attribute in node.attribute:
        if attribute.name != name:
            continue
        if attribute.type not in _FIELDS:
            raise ValueError(f"The attribute '{name}' holds neither numbers, texts nor a tensor!")
        value = getattr(attribute, _FIELDS[attribute.type])
        return [text(v) for v in value] if attribute.type in (6, 7, 8) else text(value)
    return None


class _Calls:
    """The user's methods as the native module calls them: plain names and lists in, checked results out."""

    def __init__(self, op):
        self._op = op
        has = lambda method: callable(getattr(op, method, None))
        self.infer = self._infer if has("shape_infer") else None
        self.compute = self._compute if has("compute") else None

    def _infer(self, node, shapes, dtypes):
        in_dtypes = [None if name is None else np.dtype(name) for name in dtypes]
        result = self._op.shape_infer(Node(*node), [list(shape) for shape in shapes], in_dtypes)
        if not isinstance(result, (tuple, list)) or len(result) != 2 or len(result[0]) != len(result[1]):
            raise ValueError(f"expect two lists of the same length, (out_shapes, out_dtypes), found {result!r}!")
        return [[self._extent(d) for d in shape] for shape in result[0]], [np.dtype(dtype).name for dtype in result[1]]

    @staticmethod
    def _extent(value):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"expect extents that are numbers, found {value!r}!")
        return int(value)

    def _compute(self, node, arrays):
        result = self._op.compute(Node(*node), arrays)
        if isinstance(result, np.ndarray):
            result = [result]
        if not isinstance(result, (tuple, list)):
            raise ValueError(f"expect a list of arrays, found {type(result).__name__}!")
        outputs = [np.asarray(value, order="C") for value in result]
        for i, value in enumerate(outputs):
            if value.dtype.kind not in "biuf":
                raise ValueError(f"expect arrays of numbers, result {i} has dtype {value.dtype}!")
        return outputs


class CustomOperators(Model):
    """reg_custom_op()."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._custom_ops = _openrknn.CustomOps()

    @guarded
    def reg_custom_op(self, custom_op):
        """Makes an operator known to load_onnx and everything after it: an instance of a class, or the class itself, with op_type,
        shape_infer(node, in_shapes, in_dtypes) and compute(node, inputs); see docs/custom_operators.md. A class with nothing but
        the op_type of a standard operator keeps such nodes for the device's own implementation."""
        self._alive("reg_custom_op")
        op = custom_op() if isinstance(custom_op, type) else custom_op
        op_type = getattr(op, "op_type", None)
        if not isinstance(op_type, str) or not op_type:
            raise ValueError(f"Invalid op_type {op_type!r} of custom_op, expect the type of a node!")
        calls = _Calls(op)
        self._custom_ops.add(op_type, calls.infer, calls.compute)
        if self._builder_used or self._loaded is not None:
            self._log.warn("reg_custom_op", f"'{op_type}' is known to models that are loaded from now on!")
