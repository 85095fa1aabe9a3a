"""Models that come quantized, and the number formats of quantized_dtype."""

import ctypes
import pathlib

import numpy as np
import pytest
from library import Input, Output, TensorAttr
from rknn.api import RKNN


def run(path, inputs, dataset=None, **options):
    rknn = RKNN(verbose=False)
    try:
        rknn.config(**{"target_platform": "rk3588", **options})
        assert rknn.load_onnx(model=path) == 0
        if rknn.build(do_quantization=dataset is not None, dataset=dataset) != 0:
            return None
        assert rknn.init_runtime() == 0
        return rknn.inference(inputs=inputs, data_format=["nchw"] * len(inputs))
    finally:
        rknn.release()


def cosine(a, b):
    a, b = np.ravel(a).astype(np.float64), np.ravel(b).astype(np.float64)
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


@pytest.fixture
def qdq_model(make_onnx):
    """Conv + Relu between QuantizeLinear and DequantizeLinear, weights of int8 per channel."""
    r = np.random.default_rng(3)
    scalar = lambda v, t: np.array(v, t)
    constants = {
        "xs": scalar(0.02, np.float32),
        "xz": scalar(128, np.uint8),
        "ys": scalar(0.03, np.float32),
        "yz": scalar(0, np.uint8),
        "wq": r.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8),
        "ws": r.uniform(0.001, 0.004, 8).astype(np.float32),
        "wz": np.zeros(8, np.int8),
        "bq": r.integers(-3000, 3000, 8).astype(np.int32),
    }
    constants["bs"] = constants["xs"] * constants["ws"]
    nodes = [
        ("QuantizeLinear", ["x", "xs", "xz"], ["xq"], {}),
        ("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], {}),
        ("DequantizeLinear", ["wq", "ws", "wz"], ["wd"], {"axis": 0}),
        ("DequantizeLinear", ["bq", "bs"], ["bd"], {"axis": 0}),
        ("Conv", ["xd", "wd", "bd"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["c"], ["a"], {}),
        ("QuantizeLinear", ["a", "ys", "yz"], ["aq"], {}),
        ("DequantizeLinear", ["aq", "ys", "yz"], ["y"], {}),
    ]
    return make_onnx(nodes, {"x": ("float32", [1, 3, 8, 8])}, {"y": ("float32", [1, 8, 8, 8])}, constants)


def test_own_parameters(qdq_model):
    x = np.random.default_rng(1).uniform(-2.5, 2.5, (1, 3, 8, 8)).astype(np.float32)
    exact, integers = run(qdq_model, [x], float_dtype="float32")[0], run(qdq_model, [x])[0]
    assert integers.dtype == np.float32
    steps = np.round(integers / 0.03)
    assert np.allclose(steps * 0.03, integers, atol=1e-5), "results lie on the model's own grid"
    assert np.abs(integers - exact).max() <= 0.0301 and (integers != exact).mean() < 0.02


def test_toolkit1_has_one_scale_per_tensor(qdq_model, capfd):
    assert run(qdq_model, [], target_platform="rk1808") is None
    text = "".join(capfd.readouterr())
    assert "'wq' are quantized per channel" in text and "8 scales" in text


def test_quantized_twice_is_refused(qdq_model, tmp_path, capfd):
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 8, 8), np.float32))
    dataset = tmp_path / "dataset.txt"
    dataset.write_text("x.npy\n")
    assert run(qdq_model, [], dataset=str(dataset)) is None
    assert "quantized already" in "".join(capfd.readouterr())


def test_samples_that_say_nothing_are_told(make_onnx, tmp_path, capfd):
    r = np.random.default_rng(5)
    constants = {
        "w": r.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "b": np.full(4, -1000, np.float32),
        "v": r.standard_normal((2, 4, 1, 1)).astype(np.float32),
    }
    model = make_onnx(
        [("Conv", ["x", "w", "b"], ["c"], {}), ("Relu", ["c"], ["dead"], {}), ("Conv", ["dead", "v"], ["y"], {})],
        {"x": ("float32", [1, 3, 8, 8])},
        {"y": ("float32", [1, 2, 6, 6])},
        constants,
    )
    np.save(tmp_path / "good.npy", r.standard_normal((1, 3, 8, 8)).astype(np.float32))
    np.save(tmp_path / "zero.npy", np.zeros((1, 3, 8, 8), np.float32))
    (tmp_path / "dataset.txt").write_text("good.npy\nzero.npy\n")
    assert run(model, [np.zeros((1, 3, 8, 8), np.float32)], dataset=str(tmp_path / "dataset.txt")) is not None
    text = capfd.readouterr().err
    assert "input 'x'" in text and "zero.npy" in text and "good.npy" not in text
    assert "'dead' (always 0)" in text and "'y' (always" not in text


@pytest.mark.parametrize(
    ("pads", "mean", "std", "kept"),
    [
        (0, [127.5] * 3, [127.5] * 3, True),
        (1, [127.5] * 3, [127.5] * 3, True),
        (1, [0] * 3, [255] * 3, True),
        (0, [123.675, 116.28, 103.53], [58.395, 57.12, 57.375], False),
    ],
    ids=["no border", "half a pixel", "only a scale", "three means"],
)
def test_pixels_are_read_exactly_where_the_first_layer_can_take_the_rest(make_onnx, tmp_path, pads, mean, std, kept):
    r = np.random.default_rng(6)
    weights = r.standard_normal((4, 3, 3, 3)).astype(np.float32)
    model = make_onnx(
        [("Conv", ["x", "w"], ["y"], {"pads": [pads] * 4})],
        {"x": ("float32", [1, 3, 16, 16])},
        {"y": ("float32", [1, 4, 14 + 2 * pads, 14 + 2 * pads])},
        {"w": weights},
    )
    pixels = r.integers(0, 256, (1, 3, 16, 16)).astype(np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    (tmp_path / "dataset.txt").write_text("x.npy\n")

    def results(inputs, **inference):
        rknn = RKNN(verbose=False)
        rknn.config(target_platform="rk3588", mean_values=[mean], std_values=[std])
        assert rknn.load_onnx(model) == 0
        assert rknn.build(do_quantization=True, dataset=str(tmp_path / "dataset.txt")) == 0 and rknn.init_runtime() == 0
        found = rknn.inference([inputs], data_format="nchw", **inference)[0]
        rknn.release()
        return found

    found = results(pixels)
    raw = results((pixels.astype(np.int16) - 128).astype(np.int8), inputs_pass_through=[1])
    assert (found == raw).all() == kept
    shift, scale = (np.reshape(v, (1, 3, 1, 1)).astype(np.float32) for v in (mean, std))
    exact = run(model, [(pixels - shift) / scale], float_dtype="float32")[0]
    step = (exact.max() - exact.min()) / 255
    assert np.abs(found - exact).max() < 4 * step


@pytest.fixture
def float_model(make_onnx):
    r = np.random.default_rng(4)
    constants = {
        "w": (r.standard_normal((16, 3, 3, 3)) * 0.3).astype(np.float32),
        "b": r.standard_normal(16).astype(np.float32),
        "v": (r.standard_normal((8, 16, 1, 1)) * 0.3).astype(np.float32),
    }
    nodes = [
        ("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Sigmoid", ["c"], ["s"], {}),
        ("Conv", ["s", "v"], ["d"], {}),
        ("Relu", ["d"], ["y"], {}),
    ]
    return make_onnx(nodes, {"x": ("float32", [1, 3, 8, 8])}, {"y": ("float32", [1, 8, 8, 8])}, constants)


@pytest.mark.parametrize(
    "dtype, platform, least",
    [
        ("w8a8", "rk3588", 0.999),
        ("asymmetric_quantized-8", "rk3588", 0.999),
        ("asymmetric_affine-u8", "rk3588", 0.998),
        ("dynamic_fixed_point-i8", "rk3588", 0.99),
        ("asymmetric_affine-u8", "rk1808", 0.998),
        ("dynamic_fixed_point-i8", "rk1808", 0.99),
        ("dynamic_fixed_point-i16", "rk1808", 0.99999),
        ("w16a16i", "rv1106", 0.99999),
        ("w16a16i_dfp", "rv1106", 0.99999),
        ("w8a16", "rk3562", 0.9999),
        ("w4a16", "rk3576", 0.98),
    ],
)
def test_number_formats(float_model, tmp_path, dtype, platform, least):
    r = np.random.default_rng(5)
    x = r.uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    dataset = tmp_path / "dataset.txt"
    dataset.write_text("x.npy\n")
    exact = run(float_model, [x], float_dtype="float32")[0]
    got = run(float_model, [x], dataset=str(dataset), quantized_dtype=dtype, target_platform=platform)[0]
    assert cosine(exact, got) >= least


def test_groups_are_finer_than_channels(make_onnx, tmp_path):
    r = np.random.default_rng(6)
    weights = r.standard_normal((16, 128, 1, 1)) * np.logspace(-1, 1, 16)[:, None, None, None]  # channels of different size
    weights[:, :32] *= 20  # and groups in them
    path = make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 128, 4, 4])},
        {"y": ("float32", [1, 16, 4, 4])},
        {"w": weights.astype(np.float32)},
    )
    x = r.uniform(-1, 1, (1, 128, 4, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    dataset = tmp_path / "dataset.txt"
    dataset.write_text("x.npy\n")
    exact = run(path, [x], float_dtype="float32")[0]

    def error(method):  # of each channel, relative to its size
        got = run(path, [x], dataset=str(dataset), quantized_dtype="w4a16", target_platform="rk3576", quantized_method=method)[0]
        return np.mean(np.abs(got - exact).mean((0, 2, 3)) / np.abs(exact).mean((0, 2, 3)))

    assert error("layer") > 2 * error("channel") and error("channel") > error("group64") > error("group32")


def test_gdq_looks_at_the_samples(make_onnx, tmp_path, openrknn):
    """Inputs that go together: errors of single weights can make up for each other, nearest integers cannot."""
    r = np.random.default_rng(11)
    mix = r.standard_normal((64, 8)) / 3
    samples = [(r.standard_normal((1, 6, 8)) @ mix.T + 0.1 * r.standard_normal((1, 6, 64))).astype(np.float32) for _ in range(24)]
    for i, x in enumerate(samples[:20]):
        np.save(tmp_path / f"x{i}.npy", x)
    (tmp_path / "dataset.txt").write_text("".join(f"x{i}.npy\n" for i in range(20)))
    path = make_onnx(
        [("MatMul", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 6, 64])},
        {"y": ("float32", [1, 6, 48])},
        {"w": r.standard_normal((64, 48)).astype(np.float32)},
    )

    def error(**options):
        rknn = RKNN(verbose=False)
        rknn.config(target_platform="rk3576", quantized_dtype="w4a16", **options)
        assert (
            rknn.load_onnx(model=path) == 0
            and rknn.build(do_quantization=True, dataset=str(tmp_path / "dataset.txt")) == 0
            and rknn.init_runtime() == 0
        )
        got = [rknn.inference([x])[0] for x in samples[20:]]
        rknn.release()
        return np.mean([np.square(a - b).mean() for a, b in zip(got, exact)])

    exact = [run(path, [x], float_dtype="float32")[0] for x in samples[20:]]
    for method in ("layer", "channel", "group32"):
        assert error(quantized_method=method, quantized_algorithm="gdq") < 0.5 * error(
            quantized_method=method, quantized_algorithm="mmse"
        ), method
    assert error() == error(quantized_algorithm="gdq") < error(quantized_algorithm="normal")  # the default
    # What it gained on samples held back is told, and fitting weights is a step that can be left out.
    analyse = ("analyse", path, "-t", "rk3576", "--dtype", "w4a16", "--dataset", str(tmp_path / "dataset.txt"))
    name, gain, without, kept = openrknn(*analyse).stdout.splitlines()[1].split()
    assert (name, kept) == ("round_adaptively", "kept") and float(gain) < 0.5 * float(without)
    assert error(disable_rules=["round_adaptively"]) == error(quantized_algorithm="mmse")
    assert "round_adaptively" not in openrknn(*analyse, "--disable-rules", "round_adaptively").stdout


def test_biases_take_back_what_weight_only_rounding_does_to_means(make_onnx, tmp_path):
    """Inputs far from zero: rounded weights move every channel's mean."""
    r = np.random.default_rng(4)
    path = make_onnx(
        [("Conv", ["x", "w", "b"], ["y"], {})],
        {"x": ("float32", [1, 16, 8, 8])},
        {"y": ("float32", [1, 8, 8, 8])},
        {"w": r.standard_normal((8, 16, 1, 1)).astype(np.float32), "b": r.standard_normal(8).astype(np.float32)},
    )
    samples = [(10 + r.standard_normal((1, 16, 8, 8))).astype(np.float32) for _ in range(3)]
    for i, x in enumerate(samples[:2]):
        np.save(tmp_path / f"x{i}.npy", x)
    (tmp_path / "dataset.txt").write_text("x0.npy\nx1.npy\n")
    exact = run(path, [samples[2]], float_dtype="float32")[0]
    options = dict(dataset=str(tmp_path / "dataset.txt"), quantized_dtype="w4a16", target_platform="rk3576")
    error = lambda **more: np.square(run(path, [samples[2]], quantized_algorithm="normal", **options, **more)[0] - exact).mean()
    assert error() < 0.2 * error(disable_rules=["correct_bias"])


@pytest.fixture
def wide_model(make_onnx, tmp_path):
    """Weights enough to decide the size of the file; path, one input, a dataset."""
    r = np.random.default_rng(9)
    constants = {
        "w": (r.standard_normal((256, 64, 3, 3)) * 0.1).astype(np.float32),
        "v": (r.standard_normal((256, 300)) * 0.1).astype(np.float32),
        "g": (r.standard_normal((200, 300)) * 0.1).astype(np.float32),
        "h": r.standard_normal(200).astype(np.float32),
    }
    nodes = [
        ("Conv", ["x", "w"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["c"], ["a"], {}),
        ("GlobalAveragePool", ["a"], ["p"], {}),
        ("Flatten", ["p"], ["f"], {}),
        ("MatMul", ["f", "v"], ["m"], {}),
        ("Gemm", ["m", "g", "h"], ["y"], {"transB": 1}),
    ]
    path = make_onnx(nodes, {"x": ("float32", [1, 64, 4, 4])}, {"y": ("float32", [1, 200])}, constants, name="wide")
    x = r.uniform(-1, 1, (1, 64, 4, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "dataset.txt").write_text("x.npy\n")
    return path, x, str(tmp_path / "dataset.txt")


@pytest.mark.parametrize(
    "options, bits, scales, least",
    [
        (dict(quantized_dtype="w8a16", target_platform="rk3562"), 8, 256 + 300 + 200, 0.9999),
        (dict(quantized_dtype="w4a16", target_platform="rk3576"), 4, 256 + 300 + 200, 0.98),
        (
            dict(quantized_dtype="w4a16", target_platform="rk3576", quantized_method="group32"),
            4,
            256 * 2 + 300 * 8 + 200 * 10,
            0.985,
        ),
        (
            dict(quantized_dtype="w4a16", target_platform="rv1126b", quantized_method="group256", quantized_algorithm="mmse"),
            4,
            256 + 300 + 200 * 2,
            0.98,
        ),
        (dict(quantize_weight=True), 8, 256 + 300 + 200, 0.9999),
        (dict(quantize_weight=True, float_dtype="float32"), 8, 256 + 300 + 200, 0.9999),
    ],
)
def test_small_weights_are_stored_small(wide_model, tmp_path, options, bits, scales, least):
    """Files hold the integers and scales; what is loaded computes what was built."""
    model, x, dataset = wide_model
    exact = run(model, [x], float_dtype="float32")[0]
    rknn = RKNN(verbose=False)
    rknn.config(**{"target_platform": "rk3588", "remove_streams": True, **options})
    assert rknn.load_onnx(model=model) == 0
    quantizes = "quantize_weight" not in options
    assert rknn.build(do_quantization=quantizes, dataset=dataset if quantizes else None) == 0
    path = tmp_path / "small.rknn"
    assert rknn.export_rknn(str(path)) == 0 and rknn.init_runtime() == 0
    built = rknn.inference([x], data_format=["nchw"])[0]
    rknn.release()
    assert cosine(built, exact) >= least
    loaded = RKNN(verbose=False)
    assert loaded.load_rknn(str(path)) == 0 and loaded.init_runtime(eval_mem=True) == 0
    np.testing.assert_array_equal(loaded.inference([x], data_format=["nchw"])[0], built)
    memory = loaded.eval_memory(is_print=False)
    loaded.release()
    weights = (256 * 64 * 9 + 256 * 300 + 200 * 300) * bits / 8 + 4 * scales
    assert weights < path.stat().st_size < weights + 16384
    assert memory["weight_memory"] < weights * 1.1 + 8192


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("float_dtype", ["float16", "float32"])
def test_weights_that_come_small_stay_small(make_onnx, tmp_path, bits, float_dtype):
    """Float layers after DequantizeLinear of constant weights."""
    r = np.random.default_rng(12)
    limit = 2 ** (bits - 1) - 1
    constants = {
        "wq": r.integers(-limit, limit + 1, (256, 128, 1, 1)).astype(np.int8),
        "ws": r.uniform(0.001, 0.004, 256).astype(np.float32),
    }
    path = make_onnx(
        [("DequantizeLinear", ["wq", "ws"], ["w"], {"axis": 0}), ("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 128, 4, 4])},
        {"y": ("float32", [1, 256, 4, 4])},
        constants,
    )
    x = r.uniform(-1, 1, (1, 128, 4, 4)).astype(np.float32)
    rknn = RKNN(verbose=False)
    rknn.config(target_platform="rk3588", float_dtype=float_dtype)
    assert (
        rknn.load_onnx(model=path) == 0
        and rknn.build(do_quantization=False) == 0
        and rknn.export_rknn(str(tmp_path / "m.rknn")) == 0
    )
    rknn.release()
    assert (tmp_path / "m.rknn").stat().st_size < 256 * 128 * bits / 8 + 12288
    loaded = RKNN(verbose=False)
    assert loaded.load_rknn(str(tmp_path / "m.rknn")) == 0 and loaded.init_runtime() == 0
    exact = np.einsum("oi,nihw->nohw", constants["wq"][:, :, 0, 0] * constants["ws"][:, None], x)
    np.testing.assert_allclose(
        loaded.inference([x], data_format=["nchw"])[0], exact, atol=2e-5 if float_dtype == "float32" else 5e-3
    )
    loaded.release()


@pytest.mark.parametrize(
    "dtype, platform",
    [("w4a16", "rk3588"), ("w8a16", "rk3588"), ("w16a16i", "rk3568"), ("w8a16", "rv1106"), ("dynamic_fixed_point-i16", "rk3588")],
)
def test_formats_a_chip_has_not(dtype, platform):
    rknn = RKNN(verbose=False)
    with pytest.raises(Exception, match=f"Invalid quantized_dtype '{dtype}' for {platform}, expect in "):
        rknn.config(target_platform=platform, quantized_dtype=dtype)
    rknn.release()


INT8, UINT8, INT16, NHWC, DFP, AFFINE = 2, 3, 4, 1, 1, 2


@pytest.mark.parametrize(
    "dtype, platform, kind, bits",
    [
        ("dynamic_fixed_point-i8", "rk1808", INT8, 7),
        ("dynamic_fixed_point-i16", "rk1808", INT16, 15),
        ("w16a16i_dfp", "rv1106", INT16, 15),
    ],
)
def test_fixed_point_ports_say_so(float_model, tmp_path, openrknn, dtype, platform, kind, bits):
    x = np.full((1, 3, 8, 8), 3.0, np.float32)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "dataset.txt").write_text("x.npy\n")
    rknn = RKNN(verbose=False)
    rknn.config(target_platform=platform, quantized_dtype=dtype)
    assert rknn.load_onnx(model=float_model) == 0 and rknn.build(do_quantization=True, dataset=str(tmp_path / "dataset.txt")) == 0
    path = str(tmp_path / "m.rknn")
    assert rknn.export_rknn(path) == 0
    rknn.release()
    library = ctypes.CDLL(str(pathlib.Path(openrknn("--libdir").stdout.strip()) / "librknnrt.so"))
    context = ctypes.c_uint64()
    assert library.rknn_init(ctypes.byref(context), path.encode(), 0, 0, None) == 0
    for command in (1, 2):
        attr = TensorAttr(index=0)
        assert library.rknn_query(context, command, ctypes.byref(attr), ctypes.sizeof(attr)) == 0
        assert (attr.type, attr.qnt_type, attr.zp) == (kind, DFP, 0) and attr.scale == 2.0**-attr.fl
        if command == 1:
            assert attr.fl == bits - 2, "values up to 4 need two bits in front of the point"
    assert library.rknn_destroy(context) == 0


def test_c_and_python_give_the_same(float_model, tmp_path, openrknn):
    r = np.random.default_rng(8)
    picture = r.integers(0, 256, (1, 8, 8, 3)).astype(np.uint8)
    np.save(tmp_path / "x.npy", picture.transpose(0, 3, 1, 2).astype(np.float32))
    dataset = tmp_path / "dataset.txt"
    dataset.write_text("x.npy\n")
    rknn = RKNN(verbose=False)
    rknn.config(target_platform="rk3588", mean_values=[[128, 120, 110]], std_values=[[64, 60, 50]])
    assert rknn.load_onnx(model=float_model) == 0 and rknn.build(do_quantization=True, dataset=str(dataset)) == 0
    path = str(tmp_path / "m.rknn")
    assert rknn.export_rknn(path) == 0 and rknn.init_runtime() == 0
    wanted = rknn.inference([picture])[0]

    library = ctypes.CDLL(str(pathlib.Path(openrknn("--libdir").stdout.strip()) / "librknnrt.so"))
    context = ctypes.c_uint64()
    assert library.rknn_init(ctypes.byref(context), path.encode(), 0, 0, None) == 0
    attrs = []
    for command in (1, 2):  # RKNN_QUERY_INPUT_ATTR, RKNN_QUERY_OUTPUT_ATTR
        attr = TensorAttr(index=0)
        assert library.rknn_query(context, command, ctypes.byref(attr), ctypes.sizeof(attr)) == 0
        assert (attr.type, attr.qnt_type) == (INT8, AFFINE) and attr.scale > 0
        attrs.append(attr)

    def outputs(array, kind, pass_through, want_float):
        array = np.ascontiguousarray(array)
        given = Input(0, array.ctypes.data, array.nbytes, pass_through, kind, NHWC)
        assert library.rknn_inputs_set(context, 1, ctypes.byref(given)) == 0 and library.rknn_run(context, None) == 0
        result = np.zeros(wanted.shape, np.float32 if want_float else np.int8)
        out = Output(want_float, 1, 0, result.ctypes.data, result.nbytes)
        assert library.rknn_outputs_get(context, 1, ctypes.byref(out), None) == 0
        return result

    np.testing.assert_array_equal(outputs(picture, UINT8, 0, 1), wanted)
    raw = outputs(picture, UINT8, 0, 0)
    np.testing.assert_allclose((raw.astype(np.float32) - attrs[1].zp) * np.float32(attrs[1].scale), wanted, rtol=1e-6)
    # What the input conversion makes of the picture, made by hand: (x - mean) / std, then the input's scale and zero point.
    real = (picture.astype(np.float32) - np.float32([128, 120, 110])) / np.float32([64, 60, 50])
    codes = np.clip(np.rint(real.astype(np.float64) / np.float32(attrs[0].scale)) + attrs[0].zp, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(outputs(codes, INT8, 1, 1), wanted)
    np.testing.assert_array_equal(rknn.inference([codes], inputs_pass_through=[1])[0], wanted)
    assert library.rknn_destroy(context) == 0
    rknn.release()
