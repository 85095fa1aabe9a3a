"""What the options of config(), build() and init_runtime() change: each test shows the effect of one."""

import os
import re

import numpy as np
import onnx
import pytest
from conftest import picture
from rknn.api import RKNN


def made(path, dataset=None, load=None, keep_runtime=True, **config):
    """A built RKNN object: quantized when there is a dataset."""
    rknn = RKNN(verbose=bool(config.pop("verbose", False)))
    rknn.config(**{"target_platform": "rk3588", **config})
    assert rknn.load_onnx(str(path), **(load or {})) == 0
    assert rknn.build(do_quantization=dataset is not None, dataset=dataset) == 0
    if keep_runtime:
        assert rknn.init_runtime() == 0
    return rknn


def size_of(rknn, path):
    assert rknn.export_rknn(str(path)) == 0
    return os.path.getsize(path)


@pytest.fixture
def samples(tmp_path):
    """samples(count, shape): a list of pictures as arrays, for calibration."""

    def make(count=4, shape=(1, 3, 8, 6)):
        rng = np.random.default_rng(1)
        lines = []
        for i in range(count):
            np.save(tmp_path / f"s{i}.npy", rng.normal(size=shape).astype(np.float32) * (1 + i))
            lines.append(f"s{i}.npy")
        (tmp_path / "dataset.txt").write_text("\n".join(lines))
        return str(tmp_path / "dataset.txt")

    return make


@pytest.fixture
def chain(make_onnx):
    """Three convolutions; channels of the first two that no result depends on."""
    rng = np.random.default_rng(3)
    w1 = rng.standard_normal((64, 3, 3, 3)).astype(np.float32)
    w1[40:] = 0
    b1 = rng.standard_normal(64).astype(np.float32)
    b1[40:] = -1  # Relu makes it 0
    w2 = rng.standard_normal((64, 64, 3, 3)).astype(np.float32)
    w3 = rng.standard_normal((8, 64, 1, 1)).astype(np.float32)
    w3[:, 50:] = 0
    return make_onnx(
        [
            ("Conv", ["x", "w1", "b1"], ["a"], dict(pads=[1, 1, 1, 1])),
            ("Relu", ["a"], ["r"], {}),
            ("Conv", ["r", "w2"], ["b"], dict(pads=[1, 1, 1, 1])),
            ("Conv", ["b", "w3"], ["y"], {}),
        ],
        {"x": ("float32", [1, 3, 8, 6])},
        {"y": ("float32", [1, 8, 8, 6])},
        {"w1": w1, "b1": b1, "w2": w2, "w3": w3},
    )


def test_model_pruning_takes_channels_out_and_says_so(chain, tmp_path, capfd):
    whole = made(chain, float_dtype="float32")
    capfd.readouterr()
    pruned = made(chain, float_dtype="float32", model_pruning=True, verbose=True)
    lines = capfd.readouterr().err
    assert "model_pruning results:" in lines and "Weight: -" in lines and "GFLOPs: -" in lines
    assert size_of(pruned, tmp_path / "p.rknn") < 0.8 * size_of(whole, tmp_path / "w.rknn")
    expected = whole.inference([picture()])[0]
    np.testing.assert_allclose(pruned.inference([picture()])[0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def behind_zero_channels(make_onnx, layers, constants=None, shape=(1, 4, 8, 6)):
    """A convolution whose first 32 of 64 channels are zero, Relu `r`, then `layers` up to `y`."""
    w = np.random.default_rng(3).standard_normal((64, 3, 3, 3)).astype(np.float32)
    w[:32] = 0
    first = [("Conv", ["x", "w"], ["c"], dict(pads=[1, 1, 1, 1])), ("Relu", ["c"], ["r"], {})]
    return make_onnx(
        [*first, *layers], {"x": ("float32", [1, 3, 8, 6])}, {"y": ("float32", list(shape))}, {"w": w, **(constants or {})}
    )


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


CONSUMERS = {
    "classifier": (
        [
            ("GlobalAveragePool", ["r"], ["p"], {}),
            ("Flatten", ["p"], ["f"], {}),
            ("Gemm", ["f", "m", "b"], ["y"], {}),
        ],
        {"m": numbers(64, 10), "b": numbers(10)},
        (1, 10),
    ),
    "flat rows and columns": (
        [("Reshape", ["r", "s"], ["f"], {}), ("Gemm", ["f", "m"], ["y"], {"transB": 1})],
        {"m": numbers(10, 3072), "s": np.array([1, -1], np.int64)},
        (1, 10),
    ),
    "channels last": (
        [("Transpose", ["r"], ["t"], {"perm": [0, 2, 3, 1]}), ("Flatten", ["t"], ["f"], {}), ("MatMul", ["f", "m"], ["y"], {})],
        {"m": numbers(3072, 10)},
        (1, 10),
    ),
    "nearest": (
        [("Resize", ["r", "", "s"], ["u"], {"mode": "nearest"}), ("Conv", ["u", "v"], ["y"], {"pads": [1, 1, 1, 1]})],
        {"s": np.array([1, 1, 2, 2], np.float32), "v": numbers(4, 64, 3, 3)},
        (1, 4, 16, 12),
    ),
    "linear": (
        [("Resize", ["r", "", "s"], ["u"], {"mode": "linear"}), ("Conv", ["u", "v"], ["y"], {})],
        {"s": np.array([1, 1, 2, 2], np.float32), "v": numbers(4, 64, 1, 1)},
        (1, 4, 16, 12),
    ),
    "normalization": (
        [("BatchNormalization", ["r", "g", "h", "h", "g"], ["n"], {}), ("Conv", ["n", "v"], ["y"], {})],
        {"g": np.abs(numbers(64)) + 1, "h": numbers(64), "v": numbers(4, 64, 1, 1)},
        (1, 4, 8, 6),
    ),
    "groups": (
        [("Conv", ["r", "d"], ["g"], {"group": 4, "pads": [1, 1, 1, 1]}), ("Conv", ["g", "v"], ["y"], {})],
        {"d": numbers(64, 16, 3, 3), "v": numbers(4, 64, 1, 1)},
        (1, 4, 8, 6),
    ),
    "depthwise": (
        [("Conv", ["r", "d"], ["g"], {"group": 64, "pads": [1, 1, 1, 1]}), ("Conv", ["g", "v"], ["y"], {})],
        {"d": numbers(64, 1, 3, 3), "v": numbers(4, 64, 1, 1)},
        (1, 4, 8, 6),
    ),
    "join": (
        [("Concat", ["x", "r", "c"], ["j"], {"axis": 1}), ("Conv", ["j", "v"], ["y"], {"pads": [1, 1, 1, 1]})],
        {"v": numbers(4, 131, 3, 3)},
        (1, 4, 8, 6),
    ),
    "sigmoid into a bias": (
        [
            ("MaxPool", ["r"], ["p"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
            ("Sigmoid", ["p"], ["s"], {}),
            ("Conv", ["s", "v"], ["y"], {}),
        ],
        {"v": numbers(4, 64, 1, 1)},
        (1, 4, 8, 6),
    ),
}


@pytest.mark.parametrize("kind", CONSUMERS)
def test_model_pruning_follows_zero_channels(kind, make_onnx, tmp_path, capfd):
    model = behind_zero_channels(make_onnx, *CONSUMERS[kind])
    whole = made(model, float_dtype="float32")
    capfd.readouterr()
    pruned = made(model, float_dtype="float32", model_pruning=True, verbose=True)
    lines = capfd.readouterr().err
    assert "32 of 64 channels are left" in lines and "always hold one value stay" not in lines
    assert size_of(pruned, tmp_path / "p.rknn") < size_of(whole, tmp_path / "w.rknn")
    expected = whole.inference([picture()])[0]
    np.testing.assert_allclose(pruned.inference([picture()])[0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_model_pruning_says_why_zero_channels_stay(make_onnx, capfd):
    model = behind_zero_channels(
        make_onnx, [("Softmax", ["r"], ["s"], {"axis": 1}), ("Conv", ["s", "v"], ["y"], {})], {"v": numbers(4, 64, 1, 1)}
    )
    made(model, model_pruning=True, verbose=True)
    lines = capfd.readouterr().err
    assert re.search(r"Conv:\S* 32 channel\(s\) that always hold one value stay: Softmax:\S* does not keep them apart", lines)


def test_model_pruning_is_silent_where_nothing_can_go(conv_model, capfd):
    made(conv_model, model_pruning=True, verbose=True)
    assert "model_pruning" not in capfd.readouterr().err


@pytest.fixture
def reshaping(make_onnx):
    """Reshapes at both ends."""
    w = np.random.default_rng(3).standard_normal((4, 3, 1, 1)).astype(np.float32)
    return make_onnx(
        [("Reshape", ["x", "s"], ["p"], {}), ("Conv", ["p", "w"], ["c"], {}), ("Reshape", ["c", "t"], ["y"], {})],
        {"x": ("float32", [3, 48])},
        {"y": ("float32", [4, 48])},
        {"w": w, "s": np.array([1, 3, 8, 6], np.int64), "t": np.array([4, 48], np.int64)},
    )


def test_remove_reshape_changes_the_shapes_of_the_ends(reshaping, capfd):
    x = np.random.default_rng(1).standard_normal((3, 48)).astype(np.float32)
    plain = made(reshaping, float_dtype="float32").inference([x])[0]
    capfd.readouterr()
    bare = made(reshaping, float_dtype="float32", remove_reshape=True)
    lines = capfd.readouterr().err
    assert "changes the shape of input 'x' from [3,48] to [1,3,8,6]" in lines and "output 'y' from [4,48] to [1,4,8,6]" in lines
    found = bare.inference([x.reshape(1, 3, 8, 6)], data_format="nchw")[0]
    assert found.shape == (1, 4, 8, 6)
    np.testing.assert_array_equal(found.reshape(4, 48), plain)


def test_remove_reshape_takes_every_node_that_only_reshapes(make_onnx, capfd):
    w = numbers(4, 3, 1, 1)
    model = make_onnx(
        [("Squeeze", ["x", "a"], ["p"], {}), ("Conv", ["p", "w"], ["c"], {}), ("Flatten", ["c"], ["y"], {})]
        + [("Conv", ["p", "w"], ["d"], {}), ("Relu", ["d"], ["e"], {}), ("Unsqueeze", ["e", "a"], ["z"], {})],
        {"x": ("float32", [1, 1, 3, 8, 6])},
        {"y": ("float32", [1, 192]), "z": ("float32", [1, 1, 4, 8, 6])},
        {"w": w, "a": np.array([0], np.int64)},
    )
    x = numbers(1, 1, 3, 8, 6)
    plain = made(model, float_dtype="float32").inference([x])
    capfd.readouterr()
    bare = made(model, float_dtype="float32", remove_reshape=True)
    lines = capfd.readouterr().err
    assert "changes the shape of input 'x' from [1,1,3,8,6] to [1,3,8,6]" in lines
    assert "output 'y' from [1,192] to [1,4,8,6]" in lines and "output 'z' from [1,1,4,8,6] to [1,4,8,6]" in lines
    found = bare.inference([x[0]], data_format="nchw")
    assert [a.shape for a in found] == [(1, 4, 8, 6)] * 2
    for a, b in zip(found, plain):
        np.testing.assert_array_equal(a.ravel(), b.ravel())


def test_remove_reshape_of_an_output_that_is_listed_twice(make_onnx):
    model = make_onnx(
        [("Conv", ["x", "w"], ["c"], {}), ("Flatten", ["c"], ["y"], {})],
        {"x": ("float32", [1, 3, 8, 6])},
        {"y": ("float32", [1, 192])},
        {"w": numbers(4, 3, 1, 1)},
    )
    x = numbers(1, 3, 8, 6)
    plain = made(model, float_dtype="float32").inference([x], data_format="nchw")[0]
    bare = made(model, load={"outputs": ["y", "y"]}, float_dtype="float32", remove_reshape=True)
    found = bare.inference([x], data_format="nchw")
    assert [a.shape for a in found] == [(1, 4, 8, 6)] * 2
    for a in found:
        np.testing.assert_array_equal(a.ravel(), plain.ravel())


def test_remove_reshape_says_why_a_shape_stays(make_onnx, capfd):
    model = make_onnx(
        [("Reshape", ["x", "s"], ["p"], {}), ("Conv", ["p", "w"], ["c"], {}), ("Neg", ["x"], ["n"], {})]
        + [("Reshape", ["c", "t"], ["y"], {}), ("Neg", ["y"], ["z"], {})],
        {"x": ("float32", [3, 48])},
        {"n": ("float32", [3, 48]), "y": ("float32", [4, 48]), "z": ("float32", [4, 48])},
        {"w": numbers(4, 3, 1, 1), "s": np.array([1, 3, 8, 6], np.int64), "t": np.array([4, 48], np.int64)},
    )
    capfd.readouterr()
    bare = made(model, float_dtype="float32", remove_reshape=True)
    lines = capfd.readouterr().err
    assert re.search(r"leaves input 'x' as it is: Neg '\S*' reads it in the shape \[3,48\]", lines)
    assert re.search(r"leaves output 'y' as it is: Neg '\S*' reads it too", lines)
    assert [a.shape for a in bare.inference([numbers(3, 48)])] == [(3, 48), (4, 48), (4, 48)]


def test_flash_attention_takes_a_causal_choice_as_its_mask(make_onnx):
    shape = [4, 16, 8]
    model = make_onnx(
        [("Transpose", ["k"], ["kt"], {"perm": [0, 2, 1]}), ("MatMul", ["q", "kt"], ["s"], {})]
        + [("Mul", ["s", "c"], ["d"], {}), ("Where", ["open", "d", "low"], ["m"], {}), ("Softmax", ["m"], ["p"], {})]
        + [("MatMul", ["p", "v"], ["y"], {})],
        {name: ("float32", shape) for name in "qkv"},
        {"y": ("float32", shape)},
        {"c": np.float32(0.35), "low": np.float32(-np.inf), "open": np.tril(np.ones((16, 16), bool))},
    )
    arrays = [numbers(*shape) * scale for scale in (1, 2, 3)]
    config = dict(target_platform="rk3576", float_dtype="float32")
    plain = made(model, **config).inference(arrays)[0]
    flash = made(model, enable_flash_attention=True, **config)
    np.testing.assert_allclose(flash.inference(arrays)[0], plain, rtol=1e-5, atol=1e-5)
    flash.init_runtime(perf_debug=True)
    layers = flash.eval_perf(is_print=False)
    assert "Attention" in layers and "Softmax" not in layers and "Where" not in layers


@pytest.mark.parametrize("heads", [[4], [1, 4]], ids=["3-D", "4-D"])
def test_flash_attention_names_what_a_computed_mask_prevents(make_onnx, heads, capfd):
    last = len(heads) + 1
    model = make_onnx(
        [("Transpose", ["k"], ["kt"], {"perm": [*range(last - 1), last, last - 1]}), ("MatMul", ["q", "kt"], ["s"], {})]
        + [("Mul", ["s", "c"], ["d"], {}), ("Where", ["open", "d", "low"], ["m"], {}), ("Softmax", ["m"], ["p"], {})]
        + [("MatMul", ["p", "v"], ["y"], {})],
        {**{name: ("float32", [*heads, 16, 8]) for name in "qkv"}, "open": ("bool", [16, 16])},
        {"y": ("float32", [*heads, 16, 8])},
        {"c": np.float32(0.35), "low": np.float32(-1e9)},
    )
    for flag, expected in ((False, 0), (True, 1)):
        capfd.readouterr()
        made(model, target_platform="rk3576", enable_flash_attention=flag)
        lines = [line for line in capfd.readouterr().err.splitlines() if "enable_flash_attention" in line]
        assert len(lines) == expected
    assert lines[0].startswith("W build") and "'MatMul_5': the condition 'open' of its mask is not constant" in lines[0]


def test_remove_reshape_with_quantization(reshaping, tmp_path):
    np.save(tmp_path / "s.npy", np.random.default_rng(1).standard_normal((3, 48)).astype(np.float32))
    (tmp_path / "dataset.txt").write_text("s.npy")
    rknn = made(reshaping, str(tmp_path / "dataset.txt"), remove_reshape=True)
    assert rknn.inference([np.load(tmp_path / "s.npy").reshape(1, 3, 8, 6)], data_format="nchw")[0].shape == (1, 4, 8, 6)
    assert rknn.accuracy_analysis([str(tmp_path / "s.npy")], output_dir=None) == 0


def nv12_of(rgb):
    """Bytes of a picture by the published formulas, chroma averaged over blocks of four."""
    r, g, b = (rgb[..., i].astype(np.float64) for i in range(3))
    y = 16 + 0.256788 * r + 0.504129 * g + 0.097906 * b
    u = 128 - 0.148223 * r - 0.290993 * g + 0.439216 * b
    v = 128 + 0.439216 * r - 0.367788 * g - 0.071427 * b
    half = lambda p: p.reshape(p.shape[0] // 2, 2, p.shape[1] // 2, 2).mean((1, 3))
    chroma = np.stack([half(u), half(v)], -1).reshape(rgb.shape[0] // 2, rgb.shape[1])
    return np.concatenate([y, chroma]).round().clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("quantized", [False, True])
def test_inputs_yuv_fmt_takes_pictures_of_cameras(conv_model, tmp_path, quantized):
    rgb = np.full((8, 6, 3), (200, 100, 50), np.uint8)
    rgb[4:] = (10, 60, 220)
    options = dict(mean_values=[[127.5, 127.5, 127.5]], std_values=[[64, 64, 64]])
    np.save(tmp_path / "s.npy", rgb.transpose(2, 0, 1)[None].astype(np.float32))
    (tmp_path / "dataset.txt").write_text("s.npy")
    dataset = str(tmp_path / "dataset.txt") if quantized else None
    expected = made(conv_model, dataset, **options).inference([rgb[None]])[0]
    rknn = made(conv_model, dataset, inputs_yuv_fmt=["nv12"], **options)
    bytes_of_picture = nv12_of(rgb)
    assert bytes_of_picture.shape == (12, 6)
    found = rknn.inference([bytes_of_picture[None, :, :, None]])[0]
    cosine = (found * expected).sum() / np.linalg.norm(found) / np.linalg.norm(expected)
    assert found.shape == expected.shape and cosine > 0.999
    swapped = made(conv_model, dataset, inputs_yuv_fmt=["nv21"], **options).inference([bytes_of_picture[None, :, :, None]])[0]
    assert np.abs(swapped - found).max() > 0.1 * np.abs(found).max()  # red for blue


def test_inputs_yuv_fmt_is_checked(conv_model, capfd):
    with pytest.raises(ValueError, match="Invalid inputs_yuv_fmt 'nv13'"):
        RKNN().config(target_platform="rk3588", inputs_yuv_fmt=["nv13"])
    rknn = RKNN()
    rknn.config(target_platform="rk3588", inputs_yuv_fmt=["nv12", "nv12"])
    assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == -1
    assert "len of inputs_yuv_fmt (2)" in capfd.readouterr().err


def test_quantized_hybrid_level_leaves_more_layers_in_float(chain, samples, capfd):
    layers = []
    for level in range(4):
        rknn = made(chain, samples(), quantized_hybrid_level=level)
        text = capfd.readouterr().err
        assert (f"quantized_hybrid_level {level}:" in text) == (level > 0)
        rknn.init_runtime(perf_debug=True)
        layers.append(rknn.eval_perf(is_print=False).count("FLOAT16"))
    assert layers[0] < layers[1] <= layers[2] <= layers[3]
    with pytest.raises(ValueError, match="quantized_hybrid_level 4"):
        RKNN().config(quantized_hybrid_level=4)


def test_layers_in_float_are_chosen_by_their_outputs(chain, samples, capfd):
    """A node may be called like another one's output."""
    model = onnx.load(chain)
    for node, name in zip(model.graph.node, ("y", "relu", "z", "k")):
        node.name = name
    onnx.save(model, chain)
    rknn = made(chain, samples(), quantized_hybrid_level=1)
    assert "1 of 3 layer(s) stay in float: y" in capfd.readouterr().err
    rknn.init_runtime(perf_debug=True)
    rows = [line for line in rknn.eval_perf(is_print=False).splitlines() if " Conv" in line]
    assert [("FLOAT16" in row) for row in rows] == [False, False, True], rows


def test_compress_weight_makes_the_file_smaller(chain, samples, tmp_path):
    for dataset in (None, samples()):
        plain, short = (made(chain, dataset, compress_weight=flag) for flag in (False, True))
        a, b = size_of(plain, tmp_path / "a.rknn"), size_of(short, tmp_path / "b.rknn")
        assert b < (0.9 if dataset is None else 0.96) * a
        loaded = RKNN()
        assert loaded.load_rknn(str(tmp_path / "b.rknn")) == 0 and loaded.init_runtime() == 0
        np.testing.assert_array_equal(loaded.inference([picture()])[0], plain.inference([picture()])[0])
        synced = str(tmp_path / "c.rknn")
        assert loaded.export_rknn_sync_model(str(tmp_path / "b.rknn"), [], synced) == 0 and os.path.getsize(synced) == b


def test_sparse_infer_makes_the_file_smaller(make_onnx, samples, tmp_path):
    w = np.random.default_rng(3).standard_normal((64, 64, 3, 3)).astype(np.float32)
    w[:, 0::4] = w[:, 1::4] = 0  # two of four input channels
    v = np.random.default_rng(4).standard_normal((64, 3, 1, 1)).astype(np.float32)
    model = make_onnx(
        [("Conv", ["x", "v"], ["a"], {}), ("Conv", ["a", "w"], ["y"], dict(pads=[1, 1, 1, 1]))],
        {"x": ("float32", [1, 3, 8, 6])},
        {"y": ("float32", [1, 64, 8, 6])},
        {"w": w, "v": v},
    )
    sizes = [size_of(made(model, samples(), target_platform="rk3576", sparse_infer=flag), tmp_path / "m.rknn") for flag in (0, 1)]
    assert sizes[1] < 0.75 * sizes[0]


def test_hybrid_quantization_keeps_the_options(chain, samples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = []
    for flag in (False, True):
        rknn = RKNN()
        rknn.config(target_platform="rk3588", compress_weight=flag)
        assert rknn.load_onnx(chain) == 0 and rknn.hybrid_quantization_step1(dataset=samples()) == 0
        stem = os.path.splitext(os.path.basename(chain))[0]
        again = RKNN()
        assert again.hybrid_quantization_step2(f"{stem}.model", f"{stem}.data", f"{stem}.quantization.cfg") == 0
        sizes.append(size_of(again, tmp_path / "m.rknn"))
    assert sizes[1] < 0.96 * sizes[0]


def test_hybrid_file_of_the_oldest_toolkit(chain, samples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(chain) == 0 and rknn.hybrid_quantization_step1(dataset=samples()) == 0
    stem = os.path.splitext(os.path.basename(chain))[0]
    (tmp_path / "old.cfg").write_text(
        "%YAML 1.2\n---\n# only one action at once\nhybrid_quantization_action: delete\n'@b_3:weight':\n    dtype: asymmetric_quantized\n"
        "'@b_3:out0':\n    dtype: asymmetric_quantized\n    method: layer\n    max_value:\n    -   10.0\n    min_value:\n    -   -5.0\n"
        "    zero_point:\n    -   85\n    scale:\n    -   0.0588\n    qtype: u8\n"
    )
    again = RKNN()
    assert again.hybrid_quantization_step2(f"{stem}.model", f"{stem}.data", "old.cfg") == 0
    assert again.init_runtime(perf_debug=True) == 0
    assert "FLOAT16" in again.eval_perf(is_print=False)


def test_hybrid_file_of_the_oldest_toolkit_may_list_everything(chain, samples, tmp_path, monkeypatch, capfd):
    """The input of step 1 is listed too, though it is no layer."""
    monkeypatch.chdir(tmp_path)
    rknn = RKNN()
    rknn.config(target_platform="rk1808")
    assert rknn.load_onnx(chain) == 0 and rknn.hybrid_quantization_step1(dataset=samples()) == 0
    stem = next(tmp_path.glob("*.quantization.cfg")).name.partition(".")[0]
    entries = (tmp_path / f"{stem}.quantization.cfg").read_text().partition("quantize_parameters:\n")[2]
    assert "'@x_uint8_0:out0'" in entries
    head = "%YAML 1.2\n---\nhybrid_quantization_action: delete\n"
    (tmp_path / "old.cfg").write_text(head + re.sub("^    ", "", entries, flags=re.M))
    again = RKNN()
    assert again.hybrid_quantization_step2(f"{stem}.json", f"{stem}.data", "old.cfg") == 0
    plain = RKNN()
    plain.config(target_platform="rk1808")
    assert plain.load_onnx(chain) == 0 and plain.build(do_quantization=False) == 0
    results = []
    for model in (again, plain):
        assert model.init_runtime() == 0
        results.append(model.inference([picture().astype(np.float32) / 1000])[0])  # less than a step of uint8
    assert np.isfinite(results[1]).all() and results[1].any()
    np.testing.assert_allclose(*results, rtol=1e-2, atol=1e-2 * np.abs(results[1]).max())  # float16
    (tmp_path / "wrong.cfg").write_text(head + "'@nothing_3:out0':\n    dtype: asymmetric_affine\n")
    capfd.readouterr()
    assert RKNN().hybrid_quantization_step2(f"{stem}.json", f"{stem}.data", "wrong.cfg") == -1
    assert "Invalid operands name 'nothing'" in capfd.readouterr().err


def test_single_core_mode(chain, tmp_path):
    many, one = (made(chain, single_core_mode=flag) for flag in (False, True))
    assert size_of(one, tmp_path / "one.rknn") <= size_of(many, tmp_path / "many.rknn")
    for rknn in (many, one):
        assert rknn.init_runtime(core_mask=RKNN.NPU_CORE_0_1_2, perf_debug=True) == 0
    assert "100.0%/0.0%/0.0%" in one.eval_perf(is_print=False)
    table = one.eval_perf(is_print=False)
    assert table.count("100.0%/0.0%/0.0%") > many.eval_perf(is_print=False).count("100.0%/0.0%/0.0%")


def test_op_target_gpu(chain):
    rknn = made(chain, op_target={"Conv": "gpu"})
    assert rknn.init_runtime(perf_debug=True) == 0
    table = rknn.eval_perf(is_print=False)
    assert " GPU " in table
    ranking = next(line for line in table.splitlines() if line.startswith("Conv"))
    assert ranking.split()[3] != "0"
    np.testing.assert_array_equal(rknn.inference([picture()])[0].shape, (1, 8, 8, 6))


def test_epochs_limit_the_calibration_samples(conv_model, samples, tmp_path):
    x = np.random.default_rng(8).standard_normal((1, 8, 6, 3)).astype(np.float32)
    list_of_all = samples(4)  # each sample has a larger range than the one before
    (tmp_path / "two.txt").write_text("s0.npy\ns1.npy")
    run = lambda dataset, **more: made(conv_model, dataset, target_platform="rk1808", **more).inference([x])[0]
    two, all_of_them = run(str(tmp_path / "two.txt")), run(list_of_all)
    np.testing.assert_array_equal(run(list_of_all, batch_size=1, epochs=2), two)
    np.testing.assert_array_equal(run(list_of_all, batch_size=2, epochs=-1), all_of_them)
    assert np.abs(two - all_of_them).max() > 0
    for key in ("batch_size", "epochs"):
        with pytest.raises(ValueError, match=f"Invalid {key} 0"):
            RKNN().config(target_platform="rk1808", **{key: 0})


def test_pre_compile_is_said_to_be_always_so(conv_model, tmp_path, capfd):
    files = []
    for options in ({}, {"pre_compile": True}):
        rknn = RKNN()
        rknn.config(target_platform="rk1808")
        assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False, **options) == 0
        size_of(rknn, tmp_path / "m.rknn")
        files.append((tmp_path / "m.rknn").read_bytes())
    assert files[0] == files[1] and "pre_compile: every model is compiled" in capfd.readouterr().err


def test_segments_are_named_by_the_uids_that_eval_perf_prints(chain, tmp_path, capfd):
    rknn = made(chain, target_platform="rk1808")
    result = rknn.eval_perf()
    assert "Uid" in capfd.readouterr().out
    uids = [layer["uid"] for layer in result["layers"].values() if "uid" in layer]
    assert uids == list(range(len(uids))) and len(uids) >= 3
    path, synced = str(tmp_path / "m.rknn"), str(tmp_path / "s.rknn")
    size_of(rknn, path)
    assert rknn.export_rknn_sync_model(path, [uids[1]], synced) == 0
    assert rknn.fetch_rknn_model_config(synced)["sync_uids"] == [uids[1]]
    assert rknn.export_rknn_sync_model(path, [99], synced) == -1
    assert "the model has no layer 99" in capfd.readouterr().err


def test_async_mode_returns_the_results_of_the_frame_before(conv_model):
    rknn = made(conv_model)
    frames = [picture(), 255 - picture()]
    expected = [rknn.inference([frame])[0] for frame in frames]
    assert rknn.init_runtime(async_mode=True) == 0
    assert not rknn.inference([frames[0]])[0].any()
    np.testing.assert_array_equal(rknn.inference([frames[1]])[0], expected[0])
    np.testing.assert_array_equal(rknn.inference([frames[1]])[0], expected[1])


@pytest.fixture
def flat_attention(make_onnx):
    return make_onnx(
        [
            ("Transpose", ["k"], ["t"], dict(perm=[0, 2, 1])),
            ("MatMul", ["q", "t"], ["s"], {}),
            ("Softmax", ["s"], ["p"], dict(axis=-1)),
            ("MatMul", ["p", "v"], ["y"], {}),
        ],
        {name: ("float32", [4, 16, 8]) for name in "qkv"},
        {"y": ("float32", [4, 16, 8])},
    )


def test_enable_flash_attention_makes_one_task_of_attention(flat_attention, capfd):
    arrays = [np.random.default_rng(i).standard_normal((4, 16, 8)).astype(np.float32) for i in range(3)]
    plain, flash = (made(flat_attention, target_platform="rk3576", enable_flash_attention=flag) for flag in (False, True))
    np.testing.assert_allclose(flash.inference(arrays)[0], plain.inference(arrays)[0], atol=5e-3)
    tables = []
    for rknn in (plain, flash):
        assert rknn.init_runtime(perf_debug=True) == 0
        tables.append(rknn.eval_perf(is_print=False))
    assert "Softmax" in tables[0] and "Softmax" not in tables[1] and "Attention" in tables[1]
    capfd.readouterr()
    made(flat_attention, enable_flash_attention=True)
    assert "'enable_flash_attention' has no effect on rk3588" in capfd.readouterr().err
