"""Places where a script would silently get something else than it asks for."""

import inspect

import numpy as np
import pytest
from conftest import picture
from rknn.api import RKNN
from rknnlite.api import RKNNLite


def gray_model(make_onnx):
    return make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 1, 8, 6])},
        {"y": ("float32", [1, 2, 8, 6])},
        {"w": np.array([1, -1], np.float32).reshape(2, 1, 1, 1)},
    )


def test_channel_mean_value_of_one_channel(make_onnx, build):
    x = np.random.default_rng(1).integers(0, 256, (1, 8, 6, 1)).astype(np.uint8)
    model = gray_model(make_onnx)
    expected = build(model, mean_values=[[10]], std_values=[[4]]).inference([x])[0]
    for text in ("10 0 0 4", "10 4"):
        np.testing.assert_array_equal(build(model, channel_mean_value=text).inference([x])[0], expected)


def test_several_means_of_one_channel_are_refused_elsewhere(make_onnx, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", mean_values=[[10, 0, 0]], std_values=[[4, 4, 4]])
    assert rknn.load_onnx(gray_model(make_onnx)) == -1 and "expect 1" in capfd.readouterr().err


def test_the_old_name_of_quant_img_RGB2BGR(conv_model, tmp_path):
    from PIL import Image

    Image.fromarray(np.full((8, 6, 3), (250, 60, 10), np.uint8)).save(tmp_path / "p.png")
    (tmp_path / "dataset.txt").write_text("p.png")

    def result(**options):
        rknn = RKNN()
        rknn.config(target_platform="rk3588", **options)
        assert rknn.load_onnx(conv_model) == 0 and rknn.build(dataset=str(tmp_path / "dataset.txt")) == 0
        rknn.export_rknn(str(tmp_path / "m.rknn"))
        return (tmp_path / "m.rknn").read_bytes()

    assert result(img_quant_RGB2BGR=True) == result(quant_img_RGB2BGR=True) != result()


@pytest.mark.parametrize(
    "options",
    [{"channel_mean_value": "0 0 0 1", "reorder_channel": "0 1 2"}, {"quantized_dtype": "asymmetric_quantized-u8"}],
)
def test_toolkit1_options_make_a_toolkit1_script(conv_model, capfd, options):
    rknn = RKNN()
    rknn.config(**options)
    assert "using default target platform rk1808." in capfd.readouterr().err
    assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime(eval_mem=True) == 0
    assert isinstance(rknn.eval_perf(is_print=False), dict) and "npu_memory" in rknn.eval_memory(is_print=False)


def test_toolkit1_keywords_with_a_chip_of_toolkit2(conv_model):
    for options, kind in (({"batch_size": 16}, dict), ({"reorder_channel": True}, str), ({}, str)):
        rknn = RKNN()
        rknn.config(target_platform="rk3588", **options)
        assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
        assert isinstance(rknn.eval_perf(is_print=False), kind)


def test_a_loaded_model_takes_arrays_in_its_own_order(conv_model, build, tmp_path, capfd):
    rknn = build(conv_model)
    path = str(tmp_path / "m.rknn")
    assert rknn.export_rknn(path) == 0
    nchw = picture().transpose(0, 3, 1, 2)
    with pytest.raises(ValueError, match="expect 'nhwc'"):
        rknn.inference([nchw])
    loaded = RKNN()
    assert loaded.load_rknn(path) == 0 and loaded.init_runtime() == 0
    capfd.readouterr()
    expected = rknn.inference([picture()])[0]
    for _ in range(2):
        np.testing.assert_array_equal(loaded.inference([nchw])[0], expected)
    assert capfd.readouterr().err.count("is 'nchw', set data_format") == 1
    np.testing.assert_array_equal(loaded.inference([picture()])[0], expected)
    with pytest.raises(ValueError, match="expect 'nhwc'"):
        loaded.inference([picture().transpose(0, 2, 1, 3)])


def test_unknown_keywords_of_every_call_are_named(conv_model, tmp_path, capfd):
    def named(call, *args, **kwargs):
        capfd.readouterr()
        result = call(*args, **kwargs)
        assert "The 'colour' is not known and is ignored" in capfd.readouterr().err, call
        return result

    rknn = named(RKNN, colour=1)
    rknn.config(target_platform="rk3588")
    assert named(rknn.load_onnx, conv_model, colour=1) == 0
    assert named(rknn.build, do_quantization=False, colour=1) == 0
    path = str(tmp_path / "m.rknn")
    assert named(rknn.export_rknn, path, colour=1) == 0
    assert named(rknn.init_runtime, colour=1) == 0
    assert len(named(rknn.inference, [picture()], colour=1)) == 1
    assert isinstance(named(rknn.eval_perf, is_print=False, colour=1), str)
    assert named(rknn.load_rknn, path, colour=1) == 0
    assert named(rknn.list_support_target_platform, path, colour=1)
    assert named(rknn.list_devices, colour=1) == ([], [])
    assert named(rknn.export_rknn_precompile_model, path, colour=1) == 0
    rknn.load_onnx(modle=conv_model)
    text = capfd.readouterr().err
    assert "'modle' is not known and is ignored, did you mean 'model'?" in text
    rknn.release()


def test_the_runtime_column_comes_from_the_c_library(conv_model, tmp_path, capfd):
    from PIL import Image

    Image.fromarray(np.random.default_rng(1).integers(0, 256, (8, 6, 3)).astype(np.uint8)).save(tmp_path / "p.png")
    rknn = RKNN(verbose=True)
    rknn.config(target_platform="rk3588", mean_values=[[127.5] * 3], std_values=[[64] * 3])
    assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == 0
    capfd.readouterr()
    assert rknn.accuracy_analysis([str(tmp_path / "p.png")], output_dir=str(tmp_path / "s"), target="rk3588") == 0
    out, err = capfd.readouterr()
    assert "RKNN Runtime Information, librknnrt version" in err  # what rknn_init says
    assert "runtime_error" in out
    row = next(line for line in out.splitlines() if line.startswith("[Relu] y"))
    assert row.split()[2] == "1.00000" and row.count("1.00000") == 4
    assert (tmp_path / "s" / "runtime" / "y.txt").exists()


def test_computed_weights_of_convolutions_run_on_the_npu(make_onnx):
    model = make_onnx(
        [("Mul", ["k", "f"], ["w"], {}), ("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 32, 8, 6]), "k": ("float32", [8, 32, 1, 1])},
        {"y": ("float32", [1, 8, 8, 6])},
        {"f": np.array(0.5, np.float32)},
    )
    rng = np.random.default_rng(2)
    x, k = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 32, 8, 6), (8, 32, 1, 1)))
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime(perf_debug=True) == 0
    row = next(line for line in rknn.eval_perf(is_print=False).splitlines() if ":Conv_1" in line)
    assert " NPU " in row
    found = rknn.inference([x, k], data_format="nchw")[0]
    np.testing.assert_allclose(found, np.einsum("oi,nihw->nohw", k[:, :, 0, 0] * 0.5, x), atol=0.05)


def test_float_ids_that_only_the_cpu_reads_stay_exact(make_onnx):
    table = np.arange(5000, dtype=np.float32).reshape(5000, 1) % 7
    model = make_onnx(
        [("Cast", ["ids"], ["i"], dict(to=7)), ("Gather", ["t", "i"], ["y"], {})],
        {"ids": ("float32", [4])},
        {"y": ("float32", [4, 1])},
        {"t": table},
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
    ids = np.array([2049, 4097, 4999, 3], np.float32)  # float16 has no 2049
    np.testing.assert_array_equal(rknn.inference([ids])[0][:, 0], ids % 7)


def test_a_device_id_may_follow_the_target_without_its_name(conv_model, build, capfd):
    rknn = build(conv_model)

    def said(*positional, **named):
        capfd.readouterr()
        assert rknn.init_runtime("rk3588", *positional, **named) == 0
        return capfd.readouterr().err

    named = said(device_id="515e9b401c060c0b")
    assert "515e9b401c060c0b" in named
    assert said("515e9b401c060c0b") == said("515e9b401c060c0b", True, True) == said(None, "515e9b401c060c0b") == named
    assert rknn.init_runtime("rk3588", "a", True, True, False, 1) == -1


def test_toolkit1_skips_lines_whose_files_are_missing(conv_model, tmp_path, capfd):
    from PIL import Image

    Image.fromarray(np.full((8, 6, 3), (250, 60, 10), np.uint8)).save(tmp_path / "p.png")
    (tmp_path / "list.txt").write_text("none.png\n\np.png\np.png\n")
    dataset = str(tmp_path / "list.txt")

    def script(**options):
        rknn = RKNN()
        rknn.config(target_platform="rk1808", **options)
        assert rknn.load_onnx(conv_model) == 0
        return rknn

    rknn = script()
    assert rknn.build(dataset=dataset) == 0
    err = capfd.readouterr().err
    assert "Can not find file: none.png. This line will be ignored!" in err and "1 blank line(s)" in err
    (tmp_path / "list.txt").write_text("p.png\np.png\n")
    assert rknn.accuracy_analysis(dataset, output_dir=None) == 0  # the first line
    assert "the first of 2" in capfd.readouterr().err
    (tmp_path / "list.txt").write_text("none.png\n")
    assert script().build(dataset=dataset) == -1 and "there is no valid data" in capfd.readouterr().err


def public_calls(kind):
    return [name for name, call in inspect.getmembers(kind, callable) if not name.startswith("_") and inspect.isfunction(call)]


@pytest.mark.parametrize("kind, name", [(kind, name) for kind in (RKNN, RKNNLite) for name in public_calls(kind)])
def test_every_call_goes_on_without_keywords_it_does_not_know(kind, name, capfd):
    """What a call then misses is another matter: nothing is loaded here. config() refuses keys that it does not know."""
    arguments = [None] * sum(
        p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty
        for p in inspect.signature(getattr(kind, name)).parameters.values()
    )
    model = kind()
    try:
        getattr(model, name)(*arguments[1:], no_such_keyword=1)
    except ValueError as error:
        assert name == "config" or "no_such_keyword" not in str(error)
    err = capfd.readouterr().err
    assert name == "config" or f"W {name}: The 'no_such_keyword' is not known and is ignored" in err


def test_a_new_object_goes_on_without_keywords_it_does_not_know(capfd):
    for kind in (RKNN, RKNNLite):
        kind(no_such_keyword=1).release()
        assert "The 'no_such_keyword' is not known and is ignored" in capfd.readouterr().err
