"""Arrays of any dtype, rank and stride as inputs of a model, and the arguments of inference() in the order of either toolkit."""

import math
import os

import numpy as np

INPUT_TYPES = ("float32", "float16", "int8", "uint8", "int16")  # names Toolkit1's `data_type` takes


def _is_layout(value):
    """'nchw', or a list of such names."""
    names = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else []
    return bool(names) and all(isinstance(n, str) and n.lower() in ("nchw", "nhwc") for n in names)


def _is_type(value):
    """'uint8', or a list of such names."""
    names = value if isinstance(value, (list, tuple)) else [value]
    return bool(names) and all(isinstance(n, str) and n.lower() in INPUT_TYPES for n in names)


def _fits(found, expected):
    """Same rank and extents; a negative expected extent is open."""
    return len(found) == len(expected) and all(e < 0 or f == e for f, e in zip(found, expected))


def _read_as(port, layout):
    """The shape an array for `port` has in `layout`, which is 'nhwc' unless stated and matters to 4-D inputs only."""
    shape = list(port["shape"])
    if len(shape) != 4:
        return shape
    nchw = shape if port["layout"] != "nhwc" else [shape[0], shape[3], shape[1], shape[2]]
    return nchw if str(layout).lower() == "nchw" else [nchw[0], nchw[2], nchw[3], nchw[1]]


def _fits_port(shape, port, layout):
    """Whether an array of this shape is for `port`; a missing batch of one is added later."""
    expected = _read_as(port, layout)
    return _fits(shape, expected) or len(expected) == 4 and expected[0] == 1 and _fits(shape, expected[1:])


def arguments(positional, options, remark_unused):
    """(data_format, inputs_pass_through) from the arguments of inference() after the inputs, in the order of either toolkit.
    `remark_unused(given, *known)` warns of keywords that are not known."""
    names = ["data_format", "inputs_pass_through", "get_frame_id"]
    if positional and _is_type(positional[0]) or len(positional) > 1 and positional[0] is None and _is_layout(positional[1]):
        names.insert(0, "data_type")
    if len(positional) > len(names):
        raise ValueError(f"Too many arguments for inference, expect inputs and {', '.join(names)}!")
    given = dict(zip(names, positional))
    twice = given.keys() & options.keys()
    if twice:
        raise ValueError(f"The '{min(twice)}' of inference is given twice!")
    given.update(options)
    data_type = given.get("data_type")
    if data_type is not None and not _is_type(data_type):
        raise ValueError(f"Invalid data_type {data_type!r}, expect in {list(INPUT_TYPES)}!")
    remark_unused(given, "data_type", "outputs", *names)
    return given.get("data_format"), given.get("inputs_pass_through")


def prepare(session, inputs, data_format, pass_through, warn, own_order=None):
    """(array, layout, pass_through) per input of the model; chooses the set of dynamic_input that the shapes belong to. `own_order`:
    without data_format, 4-D arrays in the order of the model itself are taken too; gets the text about the first one."""
    sets = session.shape_sets()
    ports = sets[0]  # inputs are as many in all sets, and have the same names
    arrays = _as_list(inputs, ports)
    formats = _formats(data_format, len(ports))
    flags = _pass_through_flags(pass_through, len(ports))
    if len(sets) > 1:
        chosen = _choose_set(sets, [np.shape(array) for array in arrays], formats)
        session.choose_program(chosen)
        ports = sets[chosen]
    if data_format is None and any(len(p["shape"]) == 4 for p in ports):
        warn("The 'data_format' is not set, and its default value is 'nhwc'!")
    if data_format is None and own_order is not None:
        formats = [_own_layout(array, port, own_order) for array, port in zip(arrays, ports)]
    return [_prepare_input(*item, warn) for item in zip(arrays, ports, formats, flags)]


def _own_layout(array, port, remark):
    """The layout of a 4-D input whose array only fits the order of the model; None otherwise. Programs written for boards, where
    only the number of elements counts, pass such arrays."""
    shape, own = np.shape(array), str(port["layout"])
    if len(port["shape"]) != 4 or own != "nchw" or _fits(shape, _read_as(port, "nhwc")) or not _fits(shape, port["shape"]):
        return None
    remark(f"The input(ndarray) shape {shape} of '{port['name']}' is 'nchw', set data_format to say so! It is taken like that!")
    return own


def _as_list(inputs, ports):
    if inputs is None:
        raise ValueError("The inputs are None!")
    if isinstance(inputs, (str, bytes, dict)):
        raise ValueError(f"Invalid inputs of type {type(inputs).__name__}, expect a list of ndarray, one per input of the model!")
    arrays = [inputs] if isinstance(inputs, np.ndarray) or not hasattr(inputs, "__iter__") else list(inputs)
    if len(arrays) != len(ports):
        raise ValueError(
            f"The number of inputs is wrong, expect {len(ports)} ({', '.join(p['name'] for p in ports)}), found {len(arrays)}!"
        )
    return arrays


def _formats(data_format, count):
    if data_format is not None and not isinstance(data_format, (str, list, tuple)):
        raise ValueError(f"Invalid data_format {data_format!r}, expect 'nchw' or 'nhwc', or a list of them!")
    formats = [data_format] * count if data_format is None or isinstance(data_format, str) else list(data_format)
    if len(formats) != count:
        raise ValueError(f"The length of data_format is wrong, expect {count}, found {len(formats)}!")
    return formats


def _pass_through_flags(pass_through, count):
    if pass_through is None:
        return [False] * count
    if not isinstance(pass_through, (list, tuple, np.ndarray)) or any(v not in (0, 1) for v in pass_through):
        raise ValueError(f"Invalid inputs_pass_through {pass_through!r}, expect a list of 0 and 1!")
    if len(pass_through) != count:
        raise ValueError(f"The length of inputs_pass_through is wrong, expect {count}, found {len(pass_through)}!")
    return [bool(v) for v in pass_through]


def _choose_set(sets, shapes, formats):
    """Index of the set of dynamic_input that arrays of these shapes belong to."""
    for index, ports in enumerate(sets):
        if all(_fits_port(*item) for item in zip(shapes, ports, formats)):
            return index
    legal = ", ".join(str([_read_as(port, layout) for port, layout in zip(ports, formats)]) for ports in sets)
    raise ValueError(
        f"The input(ndarray) shapes {[list(shape) for shape in shapes]} are wrong, expect those of one set of dynamic_input: {legal}!"
    )


def _prepare_input(array, port, layout, pass_through, warn):
    if array is None or isinstance(array, (str, bytes, os.PathLike)):
        found = "None" if array is None else f"the file name {os.fsdecode(array)!r}: read the file first"
        raise ValueError(f"Input '{port['name']}' is not an array, expect numbers of shape {port['shape']}, found {found}!")
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"The dtype {array.dtype} of input '{port['name']}' is not supported, expect numbers!")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    layout = "nhwc" if layout is None else str(layout).lower()
    if layout not in ("nchw", "nhwc"):
        raise ValueError(f"Invalid data_format '{layout}', expect 'nchw' or 'nhwc'!")
    array = _as_picture(array, port, layout, warn) if len(port["shape"]) == 4 else _as_stated(array, port)
    return np.asarray(array, order="C"), layout, pass_through


def _as_stated(array, port):
    """Extents of 1 may be missing or added."""
    shape = list(port["shape"])
    if _fits(array.shape, shape):
        return array
    if [d for d in array.shape if d != 1] != [d for d in shape if d != 1]:
        raise ValueError(f"The input(ndarray) shape {array.shape} is wrong, expect {tuple(shape)} for input '{port['name']}'!")
    return array.reshape(shape)


def _as_picture(array, port, layout, warn):
    """A 4-D input: its batch may be missing, or its elements may come in another shape of the same size."""
    wanted = _read_as(port, layout)
    if array.shape == tuple(wanted):
        return array
    if array.ndim == 3 and _fits(array.shape, wanted[1:]):
        expanded = (1,) + array.shape
        warn(f"The dims of input(ndarray) shape {array.shape} is wrong, expect dims is 4! Try expand dims to {expanded}!")
        array = array.reshape(expanded)
    elif array.shape == (wanted[0] * wanted[1], *wanted[2:]):  # Toolkit1: pictures of a batch stacked along H
        array = array.reshape(wanted)
    n, c, h, w = wanted
    mistakes = ((n, h, w, c), (n, c, w, h), (n, w, h, c))  # rather than flat views
    if (
        layout == "nchw"
        and array.ndim == 4
        and min(wanted) >= 0
        and array.shape[0] == n
        and array.size == math.prod(wanted)
        and array.shape not in ((n, c, h, w), *mistakes)
    ):
        # As in the C API, where only the number of elements counts: a network that flattens its input does not mind.
        warn(
            f"The input(ndarray) shape {array.shape} is wrong, expect 'nchw' like {tuple(wanted)}! "
            "Its elements are taken in order!"
        )
        array = array.reshape(wanted)
    if not _fits(array.shape, wanted):
        other = "nchw" if layout == "nhwc" else "nhwc"
        fits_other = any(_fits(array.shape, shape) for shape in (_read_as(port, other), _read_as(port, other)[1:]))
        hint = f" Set data_format='{other}' if that is its order!" if fits_other else ""
        raise ValueError(f"The input(ndarray) shape {array.shape} is wrong, expect '{layout}' like {tuple(wanted)}!{hint}")
    return array
