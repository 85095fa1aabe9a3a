"""The keys of RKNN.config(), and how Python values become the native build options. The native side has the default values, knows the
keys of other releases and checks what the values say."""

import difflib
import numbers

from .. import _openrknn


def _flag(key, value):
    if not isinstance(value, (bool, numbers.Integral)):
        raise ValueError(f"Invalid {key} {value!r}, expect True or False!")
    return bool(value)


def _flags(key, value):
    """One flag, or one per input, as a list."""
    flags = list(value) if isinstance(value, (list, tuple)) else [value]
    if not flags or not all(isinstance(f, (bool, numbers.Integral)) for f in flags):
        raise ValueError(f"Invalid {key} {value!r}, expect True or False, or a list of them!")
    return [bool(f) for f in flags]


def _name(key, value):
    return str(value)


def _text(key, value):
    return "" if value is None else str(value)


def _whole_number(key, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"Invalid {key} {value!r}, expect a whole number!")
    return int(value)


def _number(key, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"Invalid {key} {value!r}, expect a number!")
    return float(value)


def _number_or_none(key, value):
    return None if value is None else _number(key, value)


def _number_lists(key, value):
    """[[a, b], [c]] from a nested or flat list of numbers, None from None."""
    if value is None:
        return None
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
    names = [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(name, str) for name in names) or value is not None and not names:
        raise ValueError(f"Invalid {key} {value!r}, expect the name of a chip, e.g. 'rk3588'!")
    return names


def _targets(key, value):
    targets = {} if value is None else value
    if not isinstance(targets, dict) or not all(isinstance(text, str) for item in targets.items() for text in item):
        raise ValueError(f"Invalid {key} {value!r}, expect a dict whose values are 'cpu', 'npu', 'gpu' or 'auto'!")
    return targets


def _names(what):
    """Makes the conversion of a list of texts, each `what`."""

    def names(key, value):
        texts = [] if value is None else value
        if isinstance(texts, str) or not hasattr(texts, "__iter__") or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"Invalid {key} {value!r}, expect a list of {what}!")
        return list(texts)

    return names


def _picture_formats(key, value):
    """One per input; None, '' and 'rgb' leave an input as it is."""
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, (list, tuple)) or not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError(f"Invalid {key} {value!r}, expect a format like 'nv12' or None per input!")
    return ["" if text is None else text.lower() for text in texts]


def _shape_sets(key, value):
    """Lists of ints; a set of a model with one input may leave out the list around its shape."""
    if value is None:
        return []
    wrong = ValueError(f"Invalid {key} {value!r}, expect sets of shapes like [[[1,3,224,224]], [[1,3,160,160]]]!")
    is_list = lambda v: isinstance(v, (list, tuple))
    if not is_list(value) or not value or not all(is_list(s) for s in value):
        raise wrong
    sets = [[s] if s and all(isinstance(d, numbers.Integral) for d in s) else list(s) for s in value]
    if any(
        not is_list(shape) or any(isinstance(d, bool) or not isinstance(d, numbers.Integral) for d in shape)
        for s in sets
        for shape in s
    ):
        raise wrong
    return [[[int(d) for d in shape] for shape in s] for s in sets]


# How the value of each key becomes a native one.
KEYS = dict(
    mean_values=_number_lists,
    std_values=_number_lists,
    quantized_dtype=_name,
    quantized_algorithm=_name,
    quantized_method=_name,
    target_platform=_platforms,
    quant_img_RGB2BGR=_flags,
    float_dtype=_name,
    optimization_level=_whole_number,
    custom_string=_text,
    remove_weight=_flag,
    compress_weight=_flag,
    single_core_mode=_flag,
    dynamic_input=_shape_sets,
    model_pruning=_flag,
    op_target=_targets,
    quantize_weight=_flag,
    remove_reshape=_flag,
    registers=_flag,
    sparse_infer=_flag,
    enable_flash_attention=_flag,
    auto_hybrid_cos_thresh=_number,
    auto_hybrid_euc_thresh=_number_or_none,
    disable_rules=_names("rule names"),
    quantized_hybrid_level=_whole_number,
    inputs_yuv_fmt=_picture_formats,
)


def _channel_order(key, value):
    """Toolkit1's '0 1 2#2 1 0', an order per input; the first releases of Toolkit2 had a truth value."""
    return str(value).lower() if isinstance(value, bool) else _text(key, value)


TOOLKIT1_KEYS = dict(
    channel_mean_value=_text,
    reorder_channel=_channel_order,
    batch_size=_whole_number,
    epochs=_whole_number,
)
# Of other releases, from the native table: what is legal without an effect, what has another name now, what only Toolkit1 has.
_OLD = _openrknn.old_config_keys()
IGNORED = {key for key, now, toolkit1 in _OLD if not now}
RENAMED = {key: now for key, now, toolkit1 in _OLD if now}
IGNORED_TOOLKIT1 = {key for key, now, toolkit1 in _OLD if toolkit1}


def _is_toolkit1(key, value):
    """Whether only Toolkit1 has the key; the first releases of Toolkit2 had reorder_channel as a truth value."""
    return key in IGNORED_TOOLKIT1 or key in TOOLKIT1_KEYS and not (key == "reorder_channel" and isinstance(value, bool))


def convert(options, warn):
    """The native options from the keywords of config(); those of Toolkit2 win over Toolkit1's. Raises ValueError for keys that no
    release has and for values of the wrong type; `warn(text)` takes remarks."""
    known = {*KEYS, *TOOLKIT1_KEYS, *RENAMED, *IGNORED}
    unknown = [key for key in options if key not in known]
    if unknown:
        legal = sorted(known - TOOLKIT1_KEYS.keys() - RENAMED.keys())
        meant = difflib.get_close_matches(unknown[0], legal, n=1)
        hint = f"did you mean {meant[0]!r}?" if meant else f"expect in {legal}!"
        raise ValueError(f"Invalid config key {', '.join(map(repr, unknown))}, {hint}")
    result = {}
    if any(_is_toolkit1(key, value) for key, value in options.items() if value is not None):
        result["toolkit1"] = True
    for key, translate in TOOLKIT1_KEYS.items():
        if options.get(key) is not None:
            result[key] = translate(key, options[key])
    for old, key in RENAMED.items():
        if old in options and key not in options:
            result[key] = KEYS[key](old, options[old])
    for key, value in options.items():
        converted = KEYS[key](key, value) if key in KEYS else None
        if converted is not None:
            result[key] = converted
    for key in sorted(IGNORED & options.keys()):
        warn(f"The '{key}' has no effect and is ignored!")
    return result
