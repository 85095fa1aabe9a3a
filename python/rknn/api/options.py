"""How the Python values of RKNN.config() become the native build options. The native side has the table of keys and the default
values, knows the keys of other releases and checks what the values say."""

import difflib
import numbers

import numpy as np

from .. import _openrknn

_TRUTHS = (bool, np.bool_, numbers.Integral)


def flag(key, value):
    if not isinstance(value, _TRUTHS):  # a text of a settings file, 'False', would count as true
        raise ValueError(f"Invalid {key} {value!r}, expect True or False!")
    return bool(value)


def _flags(key, value):
    """One flag, or one per input, as a list."""
    flags = list(value) if isinstance(value, (list, tuple)) else [value]
    if not flags or not all(isinstance(f, _TRUTHS) for f in flags):
        raise ValueError(f"Invalid {key} {value!r}, expect True or False, or a list of them!")
    return [bool(f) for f in flags]


def _text(key, value):
    return str(value)


def whole_number(key, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"Invalid {key} {value!r}, expect a whole number!")
    if not -(2**63) <= value < 2**63:  # the bindings would not say which option it is
        raise ValueError(f"Invalid {key} {value}, expect a whole number that fits 64 bits!")
    return int(value)


def _number(key, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"Invalid {key} {value!r}, expect a number!")
    return float(value)


def _number_lists(key, value):
    """[[a, b], [c]] from a nested or flat list of numbers."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        rows = list(value)
        if all(isinstance(v, numbers.Real) for v in rows):
            rows = [rows]
        return [[float(v) for v in row] for row in rows]
    except (TypeError, ValueError):
        raise ValueError(f"Invalid {key} {value!r}, expect a list of lists of numbers, e.g. [[128, 128, 128]]!") from None


def _platforms(key, value):
    """A chip, or several that run the same model, as a list."""
    names = list(value) if isinstance(value, (list, tuple)) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"Invalid {key} {value!r}, expect the name of a chip, e.g. {_openrknn.default_platform()!r}!")
    return names


def _targets(key, value):
    if not isinstance(value, dict) or not all(isinstance(text, str) for item in value.items() for text in item):
        raise ValueError(f"Invalid {key} {value!r}, expect a dict whose values are 'cpu', 'npu', 'gpu' or 'auto'!")
    return value


def _names(key, value):
    if isinstance(value, str) or not hasattr(value, "__iter__") or not all(isinstance(text, str) for text in value):
        raise ValueError(f"Invalid {key} {value!r}, expect a list of names!")
    return list(value)


def _picture_formats(key, value):
    """One per input; None, '' and 'rgb' leave an input as it is."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError(f"Invalid {key} {value!r}, expect a format like 'nv12' or None per input!")
    return ["" if text is None else text.lower() for text in texts]


def _shape_sets(key, value):
    """Lists of ints; a set of a model with one input may leave out the list around its shape."""
    wrong = ValueError(f"Invalid {key} {value!r}, expect sets of shapes like [[[1,3,224,224]], [[1,3,160,160]]]!")
    is_list = lambda v: isinstance(v, (list, tuple))
    if not is_list(value) or not value or not all(is_list(s) and s for s in value):
        raise wrong
    sets = [[s] if all(isinstance(d, numbers.Integral) for d in s) else list(s) for s in value]
    if any(
        not is_list(shape) or any(isinstance(d, bool) or not isinstance(d, numbers.Integral) for d in shape)
        for s in sets
        for shape in s
    ):
        raise wrong
    return [[[int(d) for d in shape] for shape in s] for s in sets]


# By what the native table says a key takes.
_CONVERSIONS = dict(
    flag=flag,
    whole=whole_number,
    real=_number,
    real_or_none=_number,
    name=_text,
    text=_text,
    number_lists=_number_lists,
    platforms=_platforms,
    flags=_flags,
    names=_names,
    formats=_picture_formats,
    shape_sets=_shape_sets,
    targets=_targets,
)
_CONVERT = {key: _CONVERSIONS[kind] for key, kind, _ in _openrknn.config_keys()}
TOOLKIT1_KEYS = [key for key, _, toolkit1 in _openrknn.config_keys() if toolkit1]
KEYS = [key for key in _CONVERT if key not in TOOLKIT1_KEYS]
# Of other releases, from the native table too.
_OLD = {key: now for key, now, _ in _openrknn.old_config_keys()}


def _converted(key, value, conversion):
    """None is the default value of every key."""
    return None if value is None else conversion(key, value)


def convert(options):
    """The native options from the keywords of config(), in the order in which they are set: those of Toolkit2 win over Toolkit1's and
    over old names. Raises ValueError for keys that no release has and for values of the wrong type."""
    unknown = [key for key in options if key not in _CONVERT and key not in _OLD]
    if unknown:
        legal = sorted({*KEYS, *(key for key, now in _OLD.items() if not now)})
        meant = difflib.get_close_matches(unknown[0], legal, n=1)
        hint = f"did you mean {meant[0]!r}?" if meant else f"expect in {legal}!"
        raise ValueError(f"Invalid config key {', '.join(map(repr, unknown))}, {hint}")
    result = {}
    for key, now in _OLD.items():
        if key in options and now not in options:
            result[key] = _converted(key, options[key], _CONVERT[now] if now else _text)
    for key in (*TOOLKIT1_KEYS, *KEYS):
        if key in options:
            # The first releases of Toolkit2 had reorder_channel as a truth value.
            is_flag = key == "reorder_channel" and isinstance(options[key], bool)
            result[key] = _converted(key, options[key], flag if is_flag else _CONVERT[key])
    return result
