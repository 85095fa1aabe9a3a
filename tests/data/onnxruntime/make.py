"""Small models of com.microsoft operators and of new opsets, with what ONNX Runtime (or, where it has no kernel, the onnx reference) computes.

python make.py      (needs: pip install onnx onnxruntime)"""

import pathlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).parent
random = np.random.default_rng(7)
f32 = lambda *shape: random.standard_normal(shape).astype(np.float32)


def save(name, nodes, inputs, outputs, constants=None, opset=21, reference=False):
    """Inputs are {name: array}, outputs a list of names or of (name, type)."""
    outputs = [o if isinstance(o, tuple) else (o, TensorProto.FLOAT) for o in outputs]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs],
        [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()],
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    data = model.SerializeToString()
    if reference:
        expected = ReferenceEvaluator(model).run(None, inputs)
    else:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        expected = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, inputs)
    (HERE / f"{name}.onnx").write_bytes(data)
    arrays = {f"input_{i}": v for i, v in enumerate(inputs.values())}
    arrays |= {f"output_{i}": v for i, v in enumerate(expected)}
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def ms(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain="com.microsoft", **attributes)


def attention():
    weights = {"w": f32(8, 24) * 0.5, "b": f32(24)}
    x = f32(2, 5, 8)
    node = lambda *more, out=("y",), **attributes: [ms("Attention", ["x", "w", "b", *more], list(out), num_heads=2, **attributes)]
    save("attention", node(), {"x": x}, ["y"], weights)
    save("attention_causal", node(unidirectional=1, scale=0.2), {"x": x}, ["y"], weights)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)
    save("attention_mask", node("m"), {"x": x, "m": mask}, ["y"], weights)
    save("attention_lengths", node("m"), {"x": x}, ["y"], {**weights, "m": np.array([5, 3], np.int32)})
    save("attention_rows", node("m"), {"x": x}, ["y"], {**weights, "m": (random.random((2, 5, 5)) > 0.3).astype(np.int32)})
    past = f32(2, 2, 2, 3, 4)
    save(
        "attention_past",
        node("", "past", out=("y", "present"), unidirectional=1),
        {"x": x, "past": past},
        ["y", "present"],
        weights,
    )
    save("attention_bias", node("", "", "bias"), {"x": x}, ["y"], {**weights, "bias": f32(1, 2, 5, 5)})
    sizes = {"w": f32(8, 8 + 8 + 12), "b": f32(28)}
    save("attention_sizes", node(qkv_hidden_sizes=[8, 8, 12]), {"x": x}, ["y"], sizes)


def multi_head_attention():
    q, k, v = f32(2, 4, 8), f32(2, 6, 8), f32(2, 6, 8)
    node = lambda inputs, out=("y",), **attributes: [ms("MultiHeadAttention", inputs, list(out), num_heads=2, **attributes)]
    save("mha", node(["q", "k", "v"]), {"q": q, "k": k, "v": v}, ["y"])
    save("mha_bias", node(["q", "k", "v", "b", "", "t"]), {"q": q, "k": k, "v": v}, ["y"], {"b": f32(24), "t": f32(1, 1, 4, 6)})
    mask = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]], np.int32)
    save("mha_mask", node(["q", "k", "v", "", "m"]), {"q": q, "k": k, "v": v, "m": mask}, ["y"])
    save(
        "mha_past",
        node(["q", "k", "v", "", "", "", "pk", "pv"], ("y", "nk", "nv"), unidirectional=1),
        {"q": q, "k": f32(2, 4, 8), "v": f32(2, 4, 8), "pk": f32(2, 2, 3, 4), "pv": f32(2, 2, 3, 4)},
        ["y", "nk", "nv"],
    )
    save("mha_heads", node(["q", "k", "v"]), {"q": q, "k": f32(2, 2, 6, 4), "v": f32(2, 2, 6, 4)}, ["y"])


def caches(count, size):
    angle = np.outer(np.arange(count), 1 / 100 ** (np.arange(size // 2) / (size // 2)))
    return {"cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}


def group_query_attention():
    out = ["y", "nk", "nv"]

    def case(name, steps, past, total=None, more=(), constants=None, **attributes):
        total = past + steps if total is None else total
        inputs = {"q": f32(1, steps, 4 * 16), "k": f32(1, steps, 2 * 16), "v": f32(1, steps, 2 * 16)}
        if past:
            inputs |= {"pk": f32(1, 2, past, 16), "pv": f32(1, 2, past, 16)}
        inputs["last"] = np.array([total - 1], np.int32)
        node = ms(
            "GroupQueryAttention",
            ["q", "k", "v", *(["pk", "pv"] if past else ["", ""]), "last", "total", *more],
            out,
            num_heads=4,
            kv_num_heads=2,
            **attributes,
        )
        save(name, [node], inputs, out, {"total": np.array(total, np.int32), **(constants or {})})

    case("gqa_prompt", 5, 0)
    case("gqa_step", 1, 6)
    case("gqa_rotary", 1, 6, more=["cos", "sin"], constants=caches(16, 16), do_rotary=1)
    case("gqa_rotary_interleaved", 4, 0, more=["cos", "sin"], constants=caches(16, 16), do_rotary=1, rotary_interleaved=1)
    case("gqa_window", 6, 0, local_window_size=3)
    case("gqa_window_step", 1, 8, local_window_size=3, softcap=5.0)
    case("gqa_fixed_cache", 1, 8, total=5, more=["cos", "sin"], constants=caches(16, 16), do_rotary=1)
    packed = ms("GroupQueryAttention", ["q", "", "", "", "", "last", "total"], out, num_heads=4, kv_num_heads=2)
    constants = {"last": np.array([3], np.int32), "total": np.array(4, np.int32)}
    save("gqa_packed", [packed], {"q": f32(1, 4, 128)}, out, constants)


def rotary():
    ids = np.array([[0, 1, 2], [4, 5, 6]], np.int64)
    node = lambda **attributes: [ms("RotaryEmbedding", ["x", "p", "cos", "sin"], ["y"], **attributes)]
    save("rotary", node(), {"x": f32(2, 3, 16)}, ["y"], {"p": ids, **caches(8, 8)})
    save("rotary_offset", node(interleaved=1), {"x": f32(2, 3, 16)}, ["y"], {"p": np.array([2], np.int64), **caches(8, 8)})
    save("rotary_heads", node(), {"x": f32(2, 2, 3, 8)}, ["y"], {"p": ids, **caches(8, 8)})


def few_bits():
    def case(name, bits, depth, block, zero_points=None, bias=False):
        blocks = -(-depth // block)
        constants = {
            "b": random.integers(0, 256, (6, blocks, block * bits // 8)).astype(np.uint8),
            "s": abs(f32(6 * blocks)) + 0.1,
        }
        names = ["a", "b", "s"]
        if zero_points == "packed":
            constants["z"] = random.integers(0, 256, 6 * -(-blocks * bits // 8)).astype(np.uint8)
        elif zero_points == "float":
            constants["z"] = abs(f32(6 * blocks)) * 4
        names += ["z"] if zero_points else [""] if bias else []
        if bias:
            constants["bias"] = f32(6)
            names += ["", "bias"]
        save(
            name,
            [ms("MatMulNBits", names, ["y"], K=depth, N=6, bits=bits, block_size=block)],
            {"a": f32(3, depth)},
            ["y"],
            constants,
        )

    case("nbits_4", 4, 64, 16)
    case("nbits_4_zero", 4, 96, 32, "packed", bias=True)
    case("nbits_4_float_zero", 4, 64, 16, "float")
    case("nbits_4_rest", 4, 56, 16)
    case("nbits_8", 8, 64, 16)


def embeddings():
    constants = {"word": f32(10, 8), "place": f32(6, 8), "segment": f32(2, 8), "g": f32(8), "be": f32(8)}
    ids, segments = np.array([[1, 5, 9, 0]], np.int32), np.array([[0, 0, 1, 1]], np.int32)
    mask = np.array([[1, 1, 1, 0]], np.int32)
    node = ms("EmbedLayerNormalization", ["i", "s", "word", "place", "segment", "g", "be", "m"], ["y", "n", "sum"], epsilon=1e-5)
    outputs = ["y", ("n", TensorProto.INT32), "sum"]
    save("embed", [node], {"i": ids, "s": segments, "m": mask}, outputs, constants)
    short = ms("EmbedLayerNormalization", ["i", "", "word", "place", "", "g", "be"], ["y", "n"], epsilon=1e-5)
    save("embed_short", [short], {"i": ids}, ["y", ("n", TensorProto.INT32)], constants)


def quantized():
    x = random.integers(0, 256, (1, 4, 8)).astype(np.uint8)
    constants = {
        "w": random.integers(-128, 128, (8, 24)).astype(np.int8),
        "b": f32(24),
        "xs": np.array(0.02, np.float32),
        "ws": np.array(0.01, np.float32),
        "xz": np.array(120, np.uint8),
        "wz": np.array(0, np.int8),
    }
    node = ms("QAttention", ["x", "w", "b", "xs", "ws", "", "xz", "wz"], ["y"], num_heads=2)
    save("qattention", [node], {"x": x}, ["y"], constants)


def new_opsets():
    standard = helper.make_node
    save("cumprod_26", [standard("CumProd", ["x", "a"], ["y"], reverse=1)], {"x": f32(2, 4)}, ["y"], {"a": np.array(1)}, 26, True)
    bits = [standard("BitCast", ["c"], ["i"], to=TensorProto.FLOAT), standard("Add", ["x", "i"], ["y"])]
    save("bitcast_26", bits, {"x": f32(2, 3)}, ["y"], {"c": f32(2, 3).view(np.int32)}, 26, True)
    x, names = f32(1, 2, 5, 4), ["q", "k", "v"]
    node = standard("Attention", names, ["y"], is_causal=1)
    save("attention_25", [node], dict(q=x, k=f32(1, 2, 5, 4), v=f32(1, 2, 5, 4)), ["y"], None, 25, True)
    many = [
        standard("Flatten", ["x"], ["f"], axis=2),
        standard("Shape", ["x"], ["s"]),
        standard("Reshape", ["f", "s"], ["r"]),
        standard("Transpose", ["r"], ["t"], perm=[2, 0, 1]),
        standard("Pad", ["t", "p"], ["y"]),
    ]
    save("shapes_25", many, {"x": f32(2, 3, 4)}, ["y"], {"p": np.array([1, 0, 0, 0, 1, 0])}, 25, True)
    save("swiglu_28", [standard("SwiGLU", ["x", "g"], ["y"], alpha=1.5)], {"x": f32(2, 3), "g": f32(2, 3)}, ["y"], None, 28, True)
    node = standard("CausalConvWithState", ["x", "w", "b", "p"], ["y", "n"], activation="silu")
    constants = {"w": f32(3, 1, 4), "b": f32(3)}
    save("causal_conv_27", [node], {"x": f32(2, 3, 6), "p": f32(2, 3, 3)}, ["y", "n"], constants, 27, True)


def linear_attention():
    """A state in place of a cache."""
    case = dict(q=f32(2, 4, 12), k=f32(2, 4, 6) * 0.5, v=f32(2, 4, 10))
    heads = dict(q_num_heads=4, kv_num_heads=2)
    node = lambda names, **attributes: [helper.make_node("LinearAttention", names, ["y", "s"], **heads, **attributes)]
    save("linear_attention_27", node(["q", "k", "v"], update_rule="linear"), case, ["y", "s"], None, 27, True)
    decay = -np.abs(f32(2, 4, 2))
    gated = node(["q", "k", "v", "", "d"], update_rule="gated", scale=0.7)
    save("linear_attention_gated_27", gated, {**case, "d": decay}, ["y", "s"], None, 27, True)
    rate = random.random((2, 4, 2)).astype(np.float32)
    whole = {**case, "p": f32(2, 2, 3, 5), "d": -np.abs(f32(2, 4, 6)), "b": rate}
    save("linear_attention_delta_27", node(["q", "k", "v", "p", "d", "b"]), whole, ["y", "s"], None, 27, True)


def tables():
    """Embeddings of few bits."""
    rows, width, block = 6, 32, 16
    packed = random.integers(0, 256, (rows, width // 2)).astype(np.uint8)
    scales = np.abs(f32(rows, width // block)) + 0.1
    zero = random.integers(0, 256, (rows, 1)).astype(np.uint8)
    ids = np.array([[3, 0], [5, 1]], np.int64)
    node = lambda *more: [ms("GatherBlockQuantized", ["t", "i", "s", *more], ["y"], block_size=block, quantize_axis=1, bits=4)]
    save("gather_4_bits", node(), {"i": ids}, ["y"], {"t": packed, "s": scales})
    save("gather_4_bits_zero", node("z"), {"i": ids}, ["y"], {"t": packed, "s": scales, "z": zero})


def more_attention():
    """Softmax with a sink, several sequences in a fixed cache, part of a head rotated, steps that only fill up, scores."""
    out = ["y", "nk", "nv"]
    gqa = lambda inputs, out=out, **attributes: [
        ms("GroupQueryAttention", inputs, out, num_heads=4, kv_num_heads=2, **attributes)
    ]
    x = {"q": f32(1, 3, 64), "k": f32(1, 3, 32), "v": f32(1, 3, 32)}
    constants = {"last": np.array([2], np.int32), "total": np.array(3, np.int32)}
    names = ["q", "k", "v", "", "", "last", "total"]
    sink = {**constants, "sink": f32(4), "bias": f32(1, 4, 3, 3)}
    save("gqa_sink", gqa([*names, "", "", "", "bias", "sink"], softcap=2.0), x, out, sink)
    save("gqa_smooth_scores", gqa(names, [*out, "s"], smooth_softmax=1, qk_output=2), x, [*out, "s"], constants)
    save("gqa_all_keys", gqa(names, causal=0), x, out, constants)
    save("gqa_fills_up", gqa(names), x, out, {**constants, "last": np.array([1], np.int32)})
    save("gqa_part_rotated", gqa([*names, "cos", "sin"], do_rotary=1), x, out, {**constants, **caches(8, 16)})
    step = {"q": f32(2, 1, 64), "k": f32(2, 1, 32), "v": f32(2, 1, 32), "pk": f32(2, 2, 6, 16), "pv": f32(2, 2, 6, 16)}
    lengths = {"last": np.array([3, 5], np.int32), "total": np.array(6, np.int32)}
    save("gqa_two_in_fixed_cache", gqa(["q", "k", "v", "pk", "pv", "last", "total"]), step, out, lengths)
    decoder = lambda inputs, **attributes: [ms("DecoderMaskedMultiHeadAttention", inputs, out, num_heads=2, **attributes)]
    x = {"q": f32(1, 1, 8), "k": f32(1, 1, 8), "v": f32(1, 1, 8), "pk": f32(1, 2, 5, 4), "pv": f32(1, 2, 5, 4)}
    names = ["q", "k", "v", "m", "", "pk", "pv", "n", "", "", "b"]
    constants = {"m": np.array([[1, 0, 1, 1]], np.int32), "n": np.array([3], np.int32), "b": f32(24)}
    save("decoder_attention", decoder(names, past_present_share_buffer=1), x, out, constants)
    names[3] = ""
    save("decoder_attention_no_mask", decoder(names, past_present_share_buffer=1), x | {"n": constants.pop("n")}, out, constants)
    q, k, v = f32(1, 3, 8), f32(1, 5, 8), f32(1, 5, 8)
    packed = np.array([4, 0, 3, 0, 5], np.int32)
    mha = ms("MultiHeadAttention", ["q", "k", "v", "", "m"], ["y", "", "", "s"], num_heads=2, unidirectional=1)
    save("mha_more_keys", [mha], {"q": q, "k": k, "v": v}, ["y", "s"], {"m": packed})
    ids = random.integers(0, 8, (3, 2, 3))
    for layout in (0, 1):
        node = ms("MRotaryEmbedding", ["x", "p", "cos", "sin"], ["y"], mrope_section=[2, 3, 3], num_heads=2, mrope_layout=layout)
        save(f"rotary_of_three_{layout}", [node], {"x": f32(2, 3, 32), "p": ids}, ["y"], caches(8, 16))


def more_few_bits():
    b, s = random.integers(0, 256, (6, 4, 8)).astype(np.uint8), abs(f32(6, 4)) + 0.1
    node = ms("MatMulNBits", ["a", "b", "s", "", "g"], ["y"], K=64, N=6, bits=4, block_size=16)
    groups = random.integers(0, 4, 64).astype(np.int32)
    save("nbits_4_other_blocks", [node], {"a": f32(3, 64)}, ["y"], {"b": b, "s": s, "g": groups})
    for kind in (0, 1):
        node = ms("MatMulBnb4", ["a", "b", "s"], ["y"], K=32, N=6, block_size=16, quant_type=kind)
        table = {"b": random.integers(0, 256, 96).astype(np.uint8), "s": abs(f32(12)) + 0.1}
        save(f"bnb4_{kind}", [node], {"a": f32(3, 32)}, ["y"], table)
    names = ["x", "r", "w1", "b1", "w2", "b2"]
    x = {"x": f32(3, 8), "r": f32(3, 4)}
    weights = {"w1": f32(4, 12, 8), "b1": f32(4, 12), "w2": f32(4, 8, 12), "b2": f32(4, 8)}
    save("experts", [ms("MoE", names, ["y"], k=2, activation_type="gelu", normalize_routing_weights=1)], x, ["y"], weights)
    gated = {**weights, "w1": f32(4, 24, 8), "b1": f32(4, 24)}
    swiglu = dict(activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.5, activation_beta=1.0, swiglu_limit=2.0)
    save("experts_gated", [ms("MoE", names, ["y"], k=1, **swiglu)], x, ["y"], gated)
    names = ["x", "r", "w1", "s1", "", "w2", "s2", "b2", "", "", "", "z1", "z2"]
    x = {"x": f32(3, 32), "r": f32(3, 3)}
    u8 = lambda *shape: random.integers(0, 256, shape).astype(np.uint8)
    packed = {"w1": u8(3, 32, 16), "w2": u8(3, 32, 16), "b2": f32(3, 32)}
    rows = {"s1": abs(f32(3, 32)) * 0.02, "s2": abs(f32(3, 32)) * 0.02, "z1": u8(3, 16), "z2": u8(3, 16)}
    blocks = {"s1": abs(f32(3, 32, 2)) * 0.02, "s2": abs(f32(3, 32, 2)) * 0.02, "z1": u8(3, 32, 1), "z2": u8(3, 32, 1)}
    node = lambda **attributes: [ms("QMoE", names, ["y"], k=2, activation_type="silu", expert_weight_bits=4, **attributes)]
    save("experts_4_bits", node(), x, ["y"], packed | rows)
    save("experts_4_bits_blocks", node(block_size=16), x, ["y"], packed | blocks)


def more_quantized():
    i8, u8 = (lambda *s: random.integers(-128, 128, s).astype(np.int8)), (lambda *s: random.integers(0, 256, s).astype(np.uint8))
    scalar = lambda v, t=np.float32: np.array(v, t)
    scales = {"xs": scalar(0.02), "xz": scalar(120, np.uint8), "ws": scalar(0.01), "wz": scalar(3, np.int8)}
    out = {"ys": scalar(0.1), "yz": scalar(110, np.uint8)}
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    conv = ms("QLinearConv", names, ["y"], channels_last=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=2)
    y = [("y", TensorProto.UINT8)]
    save("qconv_channels_last", [conv], {"x": u8(1, 5, 4, 4)}, y, {**scales, **out, "w": i8(6, 2, 3, 3)})
    pool = ms("NhwcMaxPool", ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    save("max_pool_channels_last", [pool], {"x": u8(1, 7, 6, 3)}, y)
    softmax = ms("QLinearSoftmax", ["x", "xs", "xz", "ys", "yz"], ["y"], opset=11)
    save("qsoftmax_no_axis", [softmax], {"x": u8(2, 3, 5)}, y, {**scales, "ys": scalar(1 / 256), "yz": scalar(0, np.uint8)})
    tables = {"word": u8(9, 8), "place": u8(7, 8), "segment": u8(2, 8), "g": u8(8), "be": u8(8)}
    parts = {f"s{i}": scalar(0.01 + 0.002 * i) for i in range(5)} | {f"z{i}": scalar(100 + 9 * i, np.uint8) for i in range(5)}
    node = ms("QEmbedLayerNormalization", ["i", "t", *tables, "", *parts], ["y", "n"], epsilon=1e-5)
    ids = {"i": np.array([[1, 5, 8, 0]], np.int32), "t": np.array([[0, 0, 1, 1]], np.int32)}
    save("embed_quantized", [node], ids, ["y", ("n", TensorProto.INT32)], tables | parts)


def more_pieces():
    for a, b, flags in (((4, 2, 3, 5), (2, 3, 5, 6), "A"), ((5, 2, 3, 4), (5, 2, 3, 6), "AB")):
        attributes = {f"transBatch{side}": 1 for side in flags} | ({"transA": 1} if flags == "AB" else {})
        save(f"matmul_batch_{flags}", [ms("FusedMatMul", ["a", "b"], ["y"], **attributes)], {"a": f32(*a), "b": f32(*b)}, ["y"])
    x = {"x": f32(2, 3, 8)}
    save("scaled_silu", [ms("ScaledSiLU", ["x"], ["y"], alpha=0.7)], x, ["y"])
    save("gated_add", [ms("GatedAdd", ["x", "a", "g"], ["y"])], x | {"a": f32(2, 3, 8), "g": f32(2, 3, 1)}, ["y"])
    norm = ms("GatedRMSNorm", ["x", "s", "g"], ["y"], activation="sigmoid")
    save("gated_norm", [norm], x | {"g": f32(2, 3, 8)}, ["y"], {"s": f32(4)})
    gate = ms("LinearAttentionGate", ["x", "b", "f", "w"], ["y", "z"])
    save("linear_attention_gate", [gate], x | {"w": f32(2, 3, 8)}, ["y", "z"], {"b": f32(8), "f": -abs(f32(8))})
    conv = ms("CausalConvWithState", ["x", "w", "b", "p"], ["y", "s"], channels_last=1, dilation=2, activation="silu")
    save("causal_conv_last", [conv], x | {"p": f32(2, 4, 8)}, ["y", "s"], {"w": f32(8, 1, 3), "b": f32(8)})
    for metric in ("euclidean", "sqeuclidean"):
        save(f"distances_{metric}", [ms("CDist", ["a", "b"], ["y"], metric=metric)], {"a": f32(4, 6), "b": f32(5, 6)}, ["y"])
    save("unfold", [ms("UnfoldTensor", ["x"], ["y"], dim=1, size=3, step=2)], {"x": f32(2, 8, 3)}, ["y"])
    pads = {"w": f32(3, 4, 3, 3), "p": np.array([0, 1, 1, 0])}
    node = ms("ConvTransposeWithDynamicPads", ["x", "w", "p"], ["y"], kernel_shape=[3, 3], strides=[2, 2])
    save("conv_transpose_pads", [node], {"x": f32(1, 3, 4, 4)}, ["y"], pads)
    for name in ("Softplus", "Softsign", "Elu"):
        alpha = {"activation_alpha": 0.3} if name == "Elu" else {}
        node = ms("FusedGemm", ["x", "w"], ["y"], activation=name, **alpha)
        save(f"gemm_{name.lower()}", [node], {"x": f32(4, 5)}, ["y"], {"w": f32(5, 6)})
    blocks = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2, mode="CRD")
    save("space_to_depth_28", [blocks], {"x": f32(1, 3, 4, 6)}, ["y"], None, 28, True)


for part in (
    attention,
    multi_head_attention,
    group_query_attention,
    rotary,
    few_bits,
    embeddings,
    quantized,
    new_opsets,
    linear_attention,
    tables,
    more_attention,
    more_few_bits,
    more_quantized,
    more_pieces,
):
    part()
print(onnx.__version__, ort.__version__)
