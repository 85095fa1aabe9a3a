"""The keys of RKNN.config(): which exist, which types they take, and what Toolkit1 spellings mean."""

import numbers

from .. import _openrknn

QUANTIZED_DTYPES = ["w8a8", "w8a16", "w16a16i", "w16a16i_dfp", "w4a16"]
OLD_QUANTIZED_DTYPES = {
    "asymmetric_quantized-8": "w8a8",
    "asymmetric_quantized-u8": "w8a8",
    "asymmetric_affine-u8": "w8a8",
    "dynamic_fixed_point-8": "w8a8",
    "dynamic_fixed_point-i8": "w8a8",
    "dynamic_fixed_point-16": "w16a16i_dfp",
    "dynamic_fixed_point-i16": "w16a16i_dfp",
}
DEFAULTS = dict(
    mean_values=None,
    std_values=None,
    quantized_dtype="w8a8",
    quantized_algorithm="normal",
    quantized_method="channel",
    quantized_hybrid_level=0,
    target_platform=None,
    quant_img_RGB2BGR=False,
    float_dtype="float16",
    optimization_level=3,
    custom_string=None,
    remove_weight=False,
    compress_weight=False,
    inputs_yuv_fmt=None,
    single_core_mode=False,
    dynamic_input=None,
    model_pruning=False,
    op_target=None,
    quantize_weight=False,
    remove_reshape=False,
    sparse_infer=False,
    enable_flash_attention=False,
    auto_hybrid_cos_thresh=0.98,
    auto_hybrid_euc_thresh=None,
    disable_rules=None,
)
# Legal in the vendor's validator or in older releases, without an effect here.
IGNORED = {
    "output_optimize",
    "set_op_attr",
    "sram_prefer",
    "nbuf_prefer",
    "check_data",
    "stream_op",
    "enable_rnn_loop",
    "output_tensor_type",
    "npu_do_output_nhwc",
    "custom_inf",
    "img_quant_RGB2BGR",
    "target_sub_class",
    "auto_hybrid_quant",
    "input_attrs",
    "core_num",
    "subgraph_dtype_target",
    "batch_size",
    "epochs",
    "need_horizontal_merge",
    "quantized_moving_alpha",
    "mmse_epoch",
    "quantized_divergence_nbins",
    "quantize_input_node",
    "merge_dequant_layer_and_output_node",
    "force_builtin_perm",
    "deconv_merge",
    "conv_mul_merge",
    "do_sparse_network",
    "remove_tensorflow_output_permute",
    "inputs_scale_range",
    "caffe_mean_file",
    "mean_file",
    "dtype",
    "force_gray",
    "input_fitting",
    "input_normalization",
    "model_data_format",
    "model_quantize",
    "optimize",
    "quantized_hybrid",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip",
    "random_mirror",
    "restart",
    "samples",
}
# Not available yet. They only make a model smaller or faster, so they are ignored with a remark; remove_weight would change what the
# model is, and the builder refuses it.
NOT_YET_HARMLESS = {"model_pruning", "remove_reshape", "enable_flash_attention"}
BOOLS = {k for k, v in DEFAULTS.items() if isinstance(v, bool)} - {"quant_img_RGB2BGR"}


def _number_lists(name, value):
    """[[a, b], [c]] from a nested or flat list of numbers, None from None."""
    if value is None:
        return None
    try:
        rows = list(value)
        if all(isinstance(v, numbers.Real) for v in rows):
            rows = [rows]
        rows = [[float(v) for v in row] for row in rows]
    except (TypeError, ValueError):
        raise ValueError(f"Invalid {name} {value!r}, expect a list of lists of numbers, e.g. [[128, 128, 128]]!") from None
    if name == "std_values" and any(v == 0 for row in rows for v in row):
        raise ValueError(f"Invalid std_values {value!r}, zero is not allowed!")
    return rows


def _channel_mean_value(text):
    """Toolkit1's 'M0 M1 M2 S0#...' as (mean_values, std_values)."""
    means, stds = [], []
    for part in str(text).split("#"):
        try:
            numbers_ = [float(v) for v in part.split()]
        except ValueError:
            numbers_ = []
        if len(numbers_) < 2 or numbers_[-1] == 0:
            raise ValueError(f"Invalid channel_mean_value '{text}', expect e.g. '128 128 128 128'!")
        means.append(numbers_[:-1])
        stds.append([numbers_[-1]] * (len(numbers_) - 1))
    return means, stds


def check(options, warn):
    """Complete, checked options from the keywords of config(). Raises ValueError; `warn(text)` takes remarks."""
    options = dict(options)
    result = dict(DEFAULTS)
    if options.get("channel_mean_value") is not None:
        result["mean_values"], result["std_values"] = _channel_mean_value(options["channel_mean_value"])
    options.pop("channel_mean_value", None)
    reorder = options.pop("reorder_channel", None)
    swapped = []
    if isinstance(reorder, bool):
        result["quant_img_RGB2BGR"] = reorder
    elif reorder is not None:
        orders = [part.split() for part in str(reorder).split("#")]
        if any(order not in (["0", "1", "2"], ["2", "1", "0"]) for order in orders):
            raise ValueError(f"Invalid reorder_channel '{reorder}', expect '0 1 2' or '2 1 0'!")
        swapped = [order == ["2", "1", "0"] for order in orders]
    if any(swapped) and options.get("quant_img_RGB2BGR"):
        raise ValueError(
            "reorder_channel '2 1 0' swaps the channels of calibration pictures too, quant_img_RGB2BGR would swap them back!"
        )
    unknown = [k for k in options if k not in DEFAULTS and k not in IGNORED]
    if unknown:
        raise ValueError(
            f"Invalid config key {', '.join(map(repr, unknown))}, expect in {sorted(DEFAULTS | dict.fromkeys(IGNORED))}!"
        )
    for key in sorted(IGNORED & options.keys()):
        warn(f"The '{key}' has no effect and is ignored!")
    for key, value in options.items():
        if key in IGNORED:
            continue
        if key in BOOLS and not isinstance(value, (bool, numbers.Integral)):
            raise ValueError(f"Invalid {key} {value!r}, expect True or False!")
        result[key] = bool(value) if key in BOOLS else value
    for key in ("mean_values", "std_values"):
        result[key] = _number_lists(key, result[key])
    platform = result["target_platform"]
    if isinstance(platform, (list, tuple)):
        if not platform or not all(isinstance(p, str) for p in platform):
            raise ValueError(f"Invalid target_platform {platform!r}!")
        families = sorted({_openrknn.platform_family(p) for p in platform})
        if len(families) > 1:
            raise ValueError(
                f"Invalid target_platform {platform!r}, the chips of a list must run the same model, found {' and '.join(families)}: "
                "build one model for each!"
            )
        platform = platform[0]
    if platform is None:
        platform = ""  # the builder picks its default and says so
    if not isinstance(platform, str):
        raise ValueError(f"Invalid target_platform {platform!r}!")
    result["target_platform"] = platform.lower()
    dtype = OLD_QUANTIZED_DTYPES.get(result["quantized_dtype"], result["quantized_dtype"])
    if dtype not in QUANTIZED_DTYPES:
        raise ValueError(f"Invalid quantized_dtype {result['quantized_dtype']!r}, expect in {QUANTIZED_DTYPES}!")
    _one_of(result, "quantized_algorithm", ["normal", "mmse", "kl_divergence", "gdq", "moving_average", "adaround"])
    if result["quantized_algorithm"] == "gdq" and dtype not in ("w4a16", "w8a16"):
        raise ValueError("Invalid quantized_algorithm 'gdq', it needs quantized_dtype 'w4a16' or 'w8a16'!")
    groups = [f"group{size}" for size in range(32, 257, 32)]
    _one_of(result, "quantized_method", ["layer", "channel"] + groups)
    if result["quantized_method"] in groups and dtype != "w4a16":
        raise ValueError(f"Invalid quantized_method '{result['quantized_method']}', it needs quantized_dtype 'w4a16'!")
    _one_of(result, "float_dtype", ["float16", "float32"])
    _one_of(result, "optimization_level", [0, 1, 2, 3])
    _one_of(result, "quantized_hybrid_level", [0, 1, 2, 3])
    for key in ("auto_hybrid_cos_thresh", "auto_hybrid_euc_thresh"):
        value = result[key]
        if (isinstance(value, bool) or not isinstance(value, numbers.Real)) and not (
            value is None and key.endswith("euc_thresh")
        ):
            raise ValueError(f"Invalid {key} {value!r}, expect a number!")
        result[key] = None if value is None else float(value)
    if result["custom_string"] is not None:
        result["custom_string"] = str(result["custom_string"])
        if len(result["custom_string"].encode()) > 1023:
            raise ValueError("Invalid custom_string, expect at most 1023 bytes!")
    target = {} if result["op_target"] is None else result["op_target"]
    if not isinstance(target, dict) or any(v not in ("cpu", "npu", "gpu", "auto") for v in target.values()):
        raise ValueError(f"Invalid op_target {target!r}, expect a dict whose values are 'cpu', 'npu', 'gpu' or 'auto'!")
    rules = result["disable_rules"]
    if rules is not None and (isinstance(rules, str) or not all(isinstance(r, str) for r in rules)):
        raise ValueError(f"Invalid disable_rules {rules!r}, expect a list of rule names!")
    for key in sorted(NOT_YET_HARMLESS):
        if result[key]:
            warn(f"The '{key}' is not available yet and is ignored!")
    if result.pop("inputs_yuv_fmt"):
        warn("The 'inputs_yuv_fmt' is not available yet and is ignored: the model takes RGB pictures, not YUV!")
    result["reorder_channel"] = swapped
    result["quant_img_RGB2BGR"] = _flags(result["quant_img_RGB2BGR"])
    result["dynamic_input"] = _shape_sets(result["dynamic_input"])
    return result


def _flags(value):
    """One flag, or one per input, as a list."""
    flags = list(value) if isinstance(value, (list, tuple)) else [value]
    if not flags or not all(isinstance(f, (bool, numbers.Integral)) for f in flags):
        raise ValueError(f"Invalid quant_img_RGB2BGR {value!r}, expect True or False, or a list of them!")
    return [bool(f) for f in flags]


def _shape_sets(value):
    """dynamic_input as lists of ints; a set of a model with one input may leave out the list around its shape."""
    if value is None:
        return []
    wrong = ValueError(f"Invalid dynamic_input {value!r}, expect sets of shapes like [[[1,3,224,224]], [[1,3,160,160]]]!")
    is_list = lambda v: isinstance(v, (list, tuple))
    if not is_list(value) or not value or not all(is_list(s) and s for s in value):
        raise wrong
    sets = [[s] if all(isinstance(d, numbers.Integral) for d in s) else list(s) for s in value]
    if any(
        not is_list(shape) or any(isinstance(d, bool) or not isinstance(d, numbers.Integral) or not 0 < d < 2**31 for d in shape)
        for s in sets
        for shape in s
    ):
        raise wrong
    if len({len(s) for s in sets}) > 1:
        raise ValueError(f"Invalid dynamic_input {value!r}, expect the same number of shapes in every set!")
    return [[[int(d) for d in shape] for shape in s] for s in sets]


def _one_of(options, key, legal):
    if isinstance(options[key], bool) or options[key] not in legal:
        raise ValueError(f"Invalid {key} {options[key]!r}, expect in {legal}!")
