"""The RKNN class as a client script uses it."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import picture
from rknn.api import RKNN


def test_class_is_recognised_by_demo_scripts():
    assert "rknn" in str(type(RKNN()))
    assert (RKNN.NPU_CORE_AUTO, RKNN.NPU_CORE_0_1_2, RKNN.NPU_CORE_ALL) == (0, 7, 0xFFFF)


def test_a_wrong_number_of_threads_is_told(conv_model):
    code = (
        "import sys, numpy as np; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588');"
        "r.load_onnx(sys.argv[1]); r.build(do_quantization=False); r.init_runtime(); r.inference([np.ones((1, 8, 6, 3), np.float32)])"
    )
    for threads in ("abc", "-1", "0", "100000"):
        done = subprocess.run(
            [sys.executable, "-c", code, conv_model],
            capture_output=True,
            text=True,
            env=dict(os.environ, ORKNN_THREADS=threads),
            check=False,
        )
        assert f"ORKNN_THREADS={threads} is not a number of threads" in done.stderr, done.stderr


def test_input_values_that_are_no_numbers_are_refused(conv_model, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(conv_model, input_initial_val=[np.array(["a"])]) == -1
    assert "dtype <U1 of entry 0 of input_initial_val" in capfd.readouterr().err


def test_open_extents_are_told(make_onnx, capfd):
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", ["N", 3])}, {"y": ("float32", ["N", 3])})
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model, input_size_list=[[-1, 3]]) == 0
    assert "The shape ['N', 3] of input 'x' is dynamic" in capfd.readouterr().err


def test_open_extents_of_pictures_take_every_size(make_onnx):
    shape = ("float32", [1, 2, "H", "W"])
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": shape}, {"y": shape})
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(model, input_size_list=[[1, 2, -1, -1]]) == 0
    assert rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
    for size in ((1, 1), (3, 4)):
        x = np.ones((1, 2, *size), np.float32)
        assert np.array_equal(rknn.inference([x], data_format=["nchw"])[0], x)
    rknn.release()


def test_misspelt_keywords_of_loaders_are_named(capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_caffe("net.prototxt", foo=1) == -1  # there is no such file
    assert "The 'foo' is not known and is ignored" in capfd.readouterr().err


def test_inference_accepts_every_input_form(conv_model, build):
    rknn = build(conv_model)
    image = picture()
    nhwc = rknn.inference([image])[0]
    assert nhwc.shape == (1, 4, 8, 6) and nhwc.dtype == np.float32
    nchw = image.transpose(0, 3, 1, 2)
    for same in ([image.astype(np.float64)], (image,), image, [image[0]], [image.astype(np.int64)], [np.asfortranarray(image)]):
        np.testing.assert_array_equal(rknn.inference(same)[0], nhwc)
    np.testing.assert_array_equal(rknn.inference([nchw], data_format="NCHW")[0], nhwc)
    np.testing.assert_array_equal(rknn.inference([nchw], data_format=["nchw"])[0], nhwc)
    np.testing.assert_array_equal(rknn.inference([image[..., ::-1][..., ::-1]], "nhwc")[0], nhwc)
    assert isinstance(rknn.inference([image]), list)


def test_wrong_inputs_raise_with_both_shapes(conv_model, build, capfd):
    rknn = build(conv_model)
    with pytest.raises(ValueError, match=r"shape \(1, 3, 8, 6\) is wrong, expect 'nhwc' like \(1, 8, 6, 3\)"):
        rknn.inference([picture((1, 3, 8, 6))])
    with pytest.raises(ValueError, match="number of inputs"):
        rknn.inference([picture(), picture()])
    with pytest.raises(ValueError, match="data_format"):
        rknn.inference([picture()], data_format="chwn")
    with pytest.raises(ValueError, match="dtype"):
        rknn.inference([np.array(["text"])])
    with pytest.raises(ValueError, match="expect a list of ndarray"):
        rknn.inference("picture.jpg")
    with pytest.raises(ValueError, match="inputs_pass_through"):
        rknn.inference([picture()], inputs_pass_through=["yes"])
    assert "E inference: " in capfd.readouterr().err


def test_mean_and_std_are_part_of_the_model(conv_model, build):
    image = picture()
    plain = build(conv_model).inference([(image.astype(np.float32) - [10, 20, 30]) / [2, 4, 8]])[0]
    inside = build(conv_model, mean_values=[[10, 20, 30]], std_values=[[2, 4, 8]])
    np.testing.assert_allclose(inside.inference([image])[0], plain, rtol=1e-5, atol=1e-4)
    flat = build(conv_model, mean_values=[10, 20, 30], std_values=[2, 4, 8])
    np.testing.assert_array_equal(flat.inference([image])[0], inside.inference([image])[0])
    through = inside.inference([image.transpose(0, 3, 1, 2).astype(np.float32)], data_format="nchw", inputs_pass_through=[1])[0]
    np.testing.assert_allclose(through, build(conv_model).inference([image])[0], rtol=1e-5, atol=1e-3)


def test_reorder_channel_swaps_the_pictures_of_both_toolkits(conv_model, make_onnx, build, capfd):
    image = picture()
    swapped = build(conv_model, reorder_channel="2 1 0", mean_values=[[10, 20, 30]], std_values=[[2, 4, 8]]).inference([image])[0]
    plain = build(conv_model, reorder_channel="0 1 2", mean_values=[[10, 20, 30]], std_values=[[2, 4, 8]])
    np.testing.assert_allclose(swapped, plain.inference([image[..., ::-1]])[0], rtol=1e-5, atol=1e-4)
    assert np.abs(swapped - plain.inference([image])[0]).max() > 1
    grey = make_onnx(
        [("Relu", ["x"], ["y"], {})], {"x": ("float32", [1, 1, 4, 4])}, {"y": ("float32", [1, 1, 4, 4])}, name="grey"
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588", reorder_channel="2 1 0")
    assert rknn.load_onnx(grey) == -1 and "expect an input of 3 channels" in capfd.readouterr().err


def quantized(path, folder, samples, batch=None, **options):
    """A quantized model ready to run."""
    names = []
    for i, sample in enumerate(samples):
        np.save(folder / f"sample{i}.npy", sample)
        names.append(f"sample{i}.npy\n")
    (folder / "dataset.txt").write_text("".join(names))
    rknn = RKNN()
    rknn.config(target_platform="rk3588", **options)
    assert rknn.load_onnx(path) == 0
    assert rknn.build(do_quantization=True, dataset=str(folder / "dataset.txt"), rknn_batch_size=batch) == 0
    assert rknn.init_runtime() == 0
    return rknn


def test_reorder_channel_holds_for_calibration(conv_model, tmp_path):
    # The third channel is loud: ranges taken from the wrong order would clip it.
    samples = [picture((1, 3, 8, 6)).astype(np.float32) * np.float32([0.1, 0.5, 4])[:, None, None] for _ in range(2)]
    swapped = quantized(conv_model, tmp_path, samples, reorder_channel="2 1 0").inference([samples[0]], data_format="nchw")[0]
    plain = quantized(conv_model, tmp_path, [s[:, ::-1] for s in samples]).inference([samples[0][:, ::-1]], data_format="nchw")[0]
    np.testing.assert_array_equal(swapped, plain)


def test_batch(conv_model, make_onnx, tmp_path, capfd):
    pictures = picture((3, 8, 6, 3))
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32", mean_values=[[1, 2, 3]])
    assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
    one_by_one = np.concatenate([rknn.inference([p[None]])[0] for p in pictures])
    assert rknn.build(do_quantization=False, rknn_batch_size=3) == 0 and rknn.init_runtime() == 0
    np.testing.assert_array_equal(rknn.inference([pictures])[0], one_by_one)
    np.testing.assert_array_equal(rknn.inference([pictures.reshape(24, 6, 3)])[0], one_by_one)  # Toolkit1: stacked along H
    exported = str(tmp_path / "batch.rknn")
    assert rknn.export_rknn(exported) == 0 and rknn.load_rknn(exported) == 0 and rknn.init_runtime() == 0
    np.testing.assert_array_equal(rknn.inference([pictures])[0], one_by_one)
    mixing = make_onnx(
        [("ReduceSum", ["x", "axes"], ["y"], {})],
        {"x": ("float32", [2, 3])},
        {"y": ("float32", [1, 3])},
        {"axes": np.array([0])},
        name="mixing",
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(mixing) == 0 and rknn.build(False, None, 2) == 0 and rknn.init_runtime() == 0
    np.testing.assert_array_equal(rknn.inference([np.arange(12, dtype=np.float32).reshape(4, 3)])[0], [[3, 5, 7], [15, 17, 19]])
    assert rknn.build(do_quantization=False, rknn_batch_size=0) == -1 and "rknn_batch_size 0" in capfd.readouterr().err
    assert rknn.build(do_quantization=False, rknn_batch_size="2") == -1
    assert "Invalid rknn_batch_size '2', expect a whole number!" in capfd.readouterr().err
    assert rknn.build(do_quantization=False, rknn_batch_size=2**62) == -1
    assert f"Invalid rknn_batch_size {2**62}, expect a number of samples from 1 to 65536!" in capfd.readouterr().err
    for batch in (2**70, -(2**63) - 1):
        assert rknn.build(do_quantization=False, rknn_batch_size=batch) == -1
        assert f"Invalid rknn_batch_size {batch}, expect a whole number that fits 64 bits!" in capfd.readouterr().err


def test_batch_of_a_quantized_model(conv_model, tmp_path):
    samples = [picture((1, 3, 8, 6)).astype(np.float32)[:, ::step] for step in (1, -1)]
    single, double = (quantized(conv_model, tmp_path, samples, batch) for batch in (None, 2))
    expected = np.concatenate([single.inference([s], data_format="nchw")[0] for s in samples])
    np.testing.assert_array_equal(double.inference([np.concatenate(samples)], data_format="nchw")[0], expected)


@pytest.fixture
def pooled_model(make_onnx):
    """A network whose sizes follow its input, as exporters write it: with the extents of one input in the Reshape."""
    rng = np.random.default_rng(4)
    return make_onnx(
        [
            ("Conv", ["x", "w"], ["c"], dict(pads=[1, 1, 1, 1])),
            ("Relu", ["c"], ["r"], {}),
            ("GlobalAveragePool", ["r"], ["p"], {}),
            ("Shape", ["r"], ["s"], {}),
            ("Slice", ["s", "two", "four"], ["hw"], {}),
            ("ReduceProd", ["hw"], ["n"], dict(keepdims=1)),
            ("Concat", ["head", "n"], ["t"], dict(axis=0)),
            ("Reshape", ["r", "t"], ["y"], {}),
        ],
        {"x": ("float32", ["n", 3, "h", "w"])},
        {"y": ("float32", ["n", 4, "hw"]), "p": ("float32", ["n", 4, 1, 1])},
        {
            "w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
            "two": np.array([2]),
            "four": np.array([4]),
            "head": np.array([1, 4]),
        },
        name="pooled",
    )


SETS = [[[1, 3, 4, 6]], [[1, 3, 8, 6]], [[1, 3, 2, 2]]]


def test_one_set_of_shapes_is_dynamic_too(pooled_model, build, tmp_path):
    rknn = build(pooled_model, dynamic_input=SETS[:1])
    exported = tmp_path / "dynamic.rknn"
    assert rknn.export_rknn(str(exported)) == 0
    content = exported.read_bytes()
    assert b"dynamic_shape" in content and b"static_shape" not in content


def test_dynamic_input(pooled_model, build, tmp_path, capfd):
    rknn = build(pooled_model, dynamic_input=SETS)
    assert "the MaxShape is dynamic_input[1] = [[1,3,8,6]]!" in capfd.readouterr().err
    exported = str(tmp_path / "dynamic.rknn")
    assert rknn.export_rknn(exported) == 0
    content = pathlib.Path(exported).read_bytes()
    assert b"dynamic_shape" in content and b"static_shape" not in content
    loaded = RKNN()
    assert loaded.load_rknn(exported) == 0 and loaded.init_runtime() == 0
    for [shape] in SETS + SETS[:1]:
        image = picture((1, shape[2], shape[3], 3))
        alone = build(pooled_model, load=dict(input_size_list=[shape])).inference([image])
        for runner, array in ((rknn, image), (loaded, image), (rknn, image[0])):
            for found, expected in zip(runner.inference([array]), alone):
                np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(rknn.inference([image.transpose(0, 3, 1, 2)], data_format="nchw")[0], alone[0])
    with pytest.raises(ValueError, match=r"expect those of one set of dynamic_input: \[\[1, 8, 6, 3\]\]"):
        rknn.inference([picture((1, 5, 5, 3))])


def test_dynamic_input_shares_quantization_and_batch(pooled_model, tmp_path):
    samples = [picture((1, 3, 8, 6)).astype(np.float32)]
    rknn = quantized(pooled_model, tmp_path, samples, dynamic_input=SETS)
    alone = quantized(pooled_model, tmp_path, samples, dynamic_input=[SETS[1]])
    for found, expected in zip(rknn.inference(samples, data_format="nchw"), alone.inference(samples, data_format="nchw")):
        np.testing.assert_array_equal(found, expected)
    # A picture whose pixels are all alike gives the same mean in every size once the border is far; here: sizes and values are plausible.
    flat = np.full((1, 3, 4, 6), 100, np.float32)
    y, p = rknn.inference([flat], data_format="nchw")
    assert y.shape == (1, 4, 24) and p.shape == (1, 4, 1, 1)
    np.testing.assert_allclose(p.ravel(), y.mean(axis=2).ravel(), atol=2 * np.ptp(y) / 255)
    both = quantized(pooled_model, tmp_path, samples, batch=2, dynamic_input=SETS)
    np.testing.assert_array_equal(both.inference([np.concatenate([flat, flat])], data_format="nchw")[0], np.concatenate([y, y]))


def test_dynamic_input_of_the_wrong_number_of_inputs(pooled_model, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", dynamic_input=[[[1, 3, 8, 6], [1, 2]]])
    assert rknn.load_onnx(pooled_model) == -1 and "input" in capfd.readouterr().err


@pytest.mark.parametrize(
    "sets, problem",
    [
        ([[[1, 3, 8]]], "in dynamic_input has the wrong number of dimensions"),
        ([[[1, 5, 8, 8]]], "dynamic_input says"),
        ([[[1, 3, 8, 6], [1, 2]]], "dynamic_input has the wrong length"),
    ],
)
def test_mistakes_in_dynamic_input_are_told_as_such(pooled_model, capfd, sets, problem):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", dynamic_input=sets)
    assert rknn.load_onnx(pooled_model) == -1
    lines = capfd.readouterr().err
    assert problem in lines and "input_size_list" not in lines


def test_wrong_mean_length_fails_at_load(conv_model, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", mean_values=[[1, 2]])
    assert rknn.load_onnx(conv_model) == -1
    assert "mean_values" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(target_platform="rv9999"), "Invalid target_platform 'rv9999'"),
        (dict(nonsense=1), "nonsense"),
        (dict(optimization_level=4), "optimization_level"),
        (dict(quantized_dtype="float16"), "Invalid quantized_dtype 'float16', expect in \\['w8a8'"),
        (dict(float_dtype="int3"), "float_dtype"),
        (dict(std_values=[[0]]), "std_values"),
        (dict(op_target={"a": "moon"}), "op_target"),
        (dict(quantized_method="group48"), "quantized_method"),
        (dict(dynamic_input=[[[1, 3, 8, -8]]]), "dynamic_input"),
        (dict(dynamic_input=[[[1, 3]], [[1, 3], [1]]]), "dynamic_input"),
        (dict(reorder_channel="2 0 1"), "reorder_channel"),
        (dict(quant_img_RGB2BGR="yes"), "quant_img_RGB2BGR"),
        (dict(remove_weight=True, dynamic_input=[[[1, 3, 8, 8]], [[1, 3, 16, 16]]]), "cannot share weights"),
        (dict(disable_rules="fold"), "disable_rules"),
        (dict(registers=True, remove_weight=True), "'registers' stores the weights in packed form"),
        (dict(registers=True, remove_streams=True), "the streams that 'remove_streams' leaves out"),
        (dict(target_platform="rk3566", registers=True), "registers of this chip are not known"),
        (dict(mean_values="abc"), "mean_values"),
        (dict(quantized_dtype=8), "Invalid quantized_dtype '8', expect in"),
        (dict(optimization_level=2**40), "Invalid optimization_level 1099511627776"),
        (dict(optimization_level=2**70), "Invalid optimization_level 1180591620717411303424, expect a whole number that fits"),
        (dict(optimization_level="3"), "Invalid optimization_level '3', expect a whole number!"),
        (dict(std_values=[[1, 0, 1]]), "Invalid std_values .*zero is not allowed!"),
        (dict(mean_values=[[float("nan")]]), "Invalid mean_values .*expect finite numbers!"),
        (dict(op_target=["cpu"]), "Invalid op_target .*expect a dict"),
        (dict(single_core_mode="yes"), "Invalid single_core_mode 'yes', expect True or False!"),
        (dict(auto_hybrid_cos_thresh=True), "Invalid auto_hybrid_cos_thresh True, expect a number!"),
        (dict(auto_hybrid_cos_thresh=1.5), "Invalid auto_hybrid_cos_thresh 1.5, expect a number above 0 and up to 1!"),
        (dict(auto_hybrid_euc_thresh=0), "Invalid auto_hybrid_euc_thresh 0, expect None or a number above 0!"),
        (dict(custom_string="x" * 1024), "Invalid custom_string, expect at most 1023 bytes!"),
        (dict(quantized_algorithm="gdq"), "it needs quantized_dtype 'w4a16' or 'w8a16'!"),
        (dict(reorder_channel="2 1 0", quant_img_RGB2BGR=True), "would swap them back"),
        (dict(target_platform=["rk3588", "rk3566"]), "Invalid target_platform 'rk3566'.*must run the same model"),
        (dict(target_platform=[]), "Invalid target_platform \\[\\], expect the name of a chip, e.g. 'rk3566'!"),
        (dict(target_platform=()), "Invalid target_platform \\(\\), expect the name of a chip, e.g. 'rk3566'!"),
        (dict(target_platform=[1]), "Invalid target_platform \\[1\\], expect the name of a chip, e.g. 'rk3566'!"),
        (dict(channel_mean_value="1 2 x"), "Invalid channel_mean_value"),
    ],
)
def test_config_refuses(options, text):
    with pytest.raises(ValueError, match=text):
        RKNN().config(**{"target_platform": "rk3588", **options})


def test_config_reports_every_wrong_value():
    with pytest.raises(ValueError) as refused:
        RKNN().config(target_platform="rk3588", float_dtype="int3", optimization_level=9)
    assert "Invalid float_dtype 'int3'" in str(refused.value) and "Invalid optimization_level 9" in str(refused.value)


def test_config_warns_of_what_the_chip_cannot_do(capfd):
    RKNN().config(target_platform="rk3566", compress_weight=True, sparse_infer=True, single_core_mode=True)
    said = capfd.readouterr().err
    for name in ("compress_weight", "sparse_infer", "single_core_mode"):
        assert said.count(f"'{name}' has no effect on rk3566") == 1


def test_red_and_blue_per_input(conv_model, tmp_path, capfd):
    np.save(tmp_path / "x.npy", np.ones((1, 3, 8, 6), np.float32))
    (tmp_path / "dataset.txt").write_text("x.npy\n")
    for flags, result in (([True], 0), ((False,), 0), ([True, False], -1)):
        rknn = RKNN()
        rknn.config(target_platform="rk3588", quant_img_RGB2BGR=flags)
        assert rknn.load_onnx(conv_model) == 0
        assert rknn.build(do_quantization=True, dataset=str(tmp_path / "dataset.txt")) == result, flags
    assert "quant_img_RGB2BGR" in capfd.readouterr().err
    for flags in ([], ["yes"], [[True]]):
        with pytest.raises(ValueError, match="quant_img_RGB2BGR"):
            RKNN().config(target_platform="rk3588", quant_img_RGB2BGR=flags)


def test_config_accepts_vendor_and_old_keys(conv_model, build, capfd):
    build(
        conv_model,
        channel_mean_value="0 0 0 1",
        batch_size=10,
        sram_prefer=True,
        quantized_dtype="asymmetric_quantized-8",
        target_platform=["RK3588"],
    )
    said = capfd.readouterr().err
    assert "'sram_prefer' has no effect" in said


def test_failure_contract(tmp_path, conv_model, monkeypatch, capfd):
    rknn = RKNN()
    assert rknn.build(do_quantization=False) == -1 and rknn.load_onnx(conv_model) == -1 and rknn.init_runtime() == -1
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(tmp_path / "missing.onnx")) == -1
    assert "missing.onnx" in capfd.readouterr().err
    assert rknn.load_rknn(conv_model) == -1
    assert rknn.load_rknn(str(tmp_path)) == -1
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(conv_model) == 0
    assert rknn.build() == -1  # quantization needs a dataset, and the line says so
    assert "quantization needs a dataset" in capfd.readouterr().err
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime(target="rk9999") == -1
    assert rknn.export_rknn(str(tmp_path / "no" / "such" / "folder.rknn")) == -1
    monkeypatch.setenv("ORKNN_RAISE", "1")
    with pytest.raises(ValueError):
        rknn.load_onnx("missing.onnx")
    with pytest.raises(ValueError):
        RKNN().get_sdk_version()
    rknn.release()
    rknn.release()


@pytest.mark.parametrize(
    "call",
    [
        lambda rknn, model: rknn.load_onnx(model, input_size_list="bad"),
        lambda rknn, model: rknn.load_onnx(None),
        lambda rknn, model: rknn.load_tensorflow(model, predef_file="missing.npz"),
        lambda rknn, model: rknn.load_rknn(None),
        lambda rknn, model: rknn.build(dataset=[]),
        lambda rknn, model: rknn.build(do_quantization=False, rknn_batch_size=0),
        lambda rknn, model: rknn.hybrid_quantization_step1(),
        lambda rknn, model: rknn.hybrid_quantization_step2("m.model", "m.data", None),
    ],
    ids=["sizes", "path", "values", "finished", "dataset", "batch", "step1", "step2"],
)
def test_nothing_of_an_earlier_build_survives_a_failed_call(tmp_path, conv_model, build, call):
    rknn = build(conv_model)
    assert call(rknn, conv_model) == -1
    assert rknn.export_rknn(str(tmp_path / "old.rknn")) == -1
    assert not (tmp_path / "old.rknn").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda rknn: rknn.load_rknn("missing.rknn"),
        lambda rknn: rknn.load_onnx("missing.onnx"),
        lambda rknn: rknn.hybrid_quantization_step2("m.model", "m.data", "m.quantization.cfg"),
    ],
    ids=["load_rknn", "load_onnx", "step2"],
)
def test_the_options_survive_a_failed_call(conv_model, call):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", custom_string="kept")
    assert call(rknn) == -1
    assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == 0


def test_sizes_of_the_wrong_rank_are_told(make_onnx, capfd):
    weights = {"w": np.ones((4, 3, 1, 1), np.float32), "v": np.ones((2, 4, 1, 1), np.float32)}
    model = make_onnx(
        [("Conv", ["x", "w"], ["a"], {}), ("Relu", ["a"], ["b"], {}), ("Conv", ["b", "v"], ["y"], {})],
        {"x": ("float32", ["N", 3, 8, 8])},
        {"y": ("float32", ["N", 2, 8, 8])},
        weights,
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588")

    def refusal(**load):
        assert rknn.load_onnx(model, **load) == -1
        return capfd.readouterr().err

    for sizes in ([[1, 3, 8]], [[3, 8]], [[1, 1, 3, 8, 8]]):
        text = refusal(input_size_list=sizes)
        assert "input 'x'" in text and "expected 4 as in [N,3,8,8]" in text and "found [" in text
    assert "input 'b'" in (text := refusal(inputs=["b"], input_size_list=[[4, 8]])) and "expected 4" in text
    assert "input_size_list says [1,5,8,8] for 'b'" in refusal(inputs=["b"], input_size_list=[[1, 5, 8, 8]])
    assert rknn.load_onnx(model, inputs=["b"], input_size_list=[[4, 6, 6]]) == 0


def test_crop_sizes_and_initial_values(make_onnx, build, capfd):
    model = make_onnx(
        [("Add", ["a", "b"], ["s"], {}), ("Relu", ["s"], ["r"], {}), ("Neg", ["r"], ["n"], {})],
        {"a": ("float32", ["N", 4]), "b": ("float32", ["N", 4])},
        {"n": ("float32", ["N", 4])},
    )
    a, b = np.float32([[1, -2, 3, -4]] * 2), np.float32([[1, 1, 1, 1]] * 2)
    whole = build(model, load=dict(input_size_list=[[2, 4], [2, 4]])).inference([a, b])[0]
    np.testing.assert_array_equal(whole, -np.maximum(a + b, 0))
    cropped = build(model, load=dict(inputs=["s"], input_size_list=[[2, 4]], outputs=["r"])).inference([a])[0]
    np.testing.assert_array_equal(cropped, np.maximum(a, 0))
    assert "If you don't need to crop the model" in capfd.readouterr().err
    fixed = build(model, load=dict(input_size_list=[[2, 4], [2, 4]], input_initial_val=[None, b])).inference([a])[0]
    np.testing.assert_array_equal(fixed, whole)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == -1
    assert "Invalid input_shape" in capfd.readouterr().err
    assert rknn.load_onnx(model, outputs=["nope"], input_size_list=[[2, 4], [2, 4]]) == -1
    assert "nope" in capfd.readouterr().err


def test_unknown_ops_are_reported_at_once(make_onnx, capfd):
    model = make_onnx(
        [("Frobnicate", ["x"], ["a"], {}), ("Defenestrate", ["a"], ["y"], {})], {"x": ("float32", [2])}, {"y": ("float32", [2])}
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == -1
    err = capfd.readouterr().err
    assert "Frobnicate_0" in err and "Defenestrate_1" in err


def test_integer_and_bool_outputs_keep_their_type(make_onnx, build):
    model = make_onnx(
        [
            ("ArgMax", ["x"], ["i"], dict(axis=1, keepdims=0)),
            ("Greater", ["x", "z"], ["g"], {}),
            ("Cast", ["x"], ["c"], dict(to=6)),
        ],
        {"x": ("float32", [2, 3])},
        {"i": ("int64", [2]), "g": ("bool", [2, 3]), "c": ("int32", [2, 3])},
        {"z": np.float32(0)},
    )
    for dtype in ("float32", "float16"):
        index, greater, cast = build(model, float_dtype=dtype).inference([np.float32([[1, 5, 2], [-1, -2, -3]])])
        assert (index.dtype, greater.dtype, cast.dtype) == (np.int64, np.bool_, np.int32)
        assert (
            index.tolist() == [1, 0]
            and greater.tolist() == [[True] * 3, [False] * 3]
            and cast.tolist() == [[1, 5, 2], [-1, -2, -3]]
        )


def test_optimization_levels_agree(shapes_model, build):
    image = picture((1, 64, 64, 3))
    results = [build(shapes_model, optimization_level=level).inference([image])[0] for level in range(4)]
    for other in results[:3]:
        np.testing.assert_allclose(other, results[3], rtol=1e-4, atol=1e-4)


def test_bundled_classifier_is_right(root, shapes_model, build):
    import json

    import pictures

    info = json.loads((root / "examples" / "models" / "shapes.json").read_text())
    rknn = build(shapes_model, float_dtype="float16", mean_values=[[info["mean"]] * 3], std_values=[[info["std"]] * 3])
    right = 0
    for row in info["pictures"]:
        image = pictures.read_png(root / "examples" / "models" / "pictures" / row["file"])
        right += info["classes"][int(np.argmax(rknn.inference([image[None]])[0]))] == row["label"]
    assert right >= 0.95 * len(info["pictures"])


@pytest.fixture
def frozen_graph(tmp_path):
    """y = -x for pictures, with a switch that a predef file may set."""
    shape = "".join(f" dim {{ size: {d} }}" for d in (-1, 2, 2, 3))
    dtype = 'attr { key: "%s" value { type: DT_%s } }'
    path = tmp_path / "net.pbtxt"
    path.write_text(
        f'node {{ name: "in/x" op: "Placeholder" {dtype % ("dtype", "FLOAT")} attr {{ key: "shape" value {{ shape {{{shape} }} }} }} }}\n'
        f'node {{ name: "in/scale" op: "Placeholder" {dtype % ("dtype", "FLOAT")} attr {{ key: "shape" value {{ shape {{ }} }} }} }}\n'
        f'node {{ name: "y" op: "Mul" input: "in/x" input: "in/scale" {dtype % ("T", "FLOAT")} }}\nversions {{ producer: 27 }}\n'
    )
    return path


def load_tensorflow(*args, **kwargs):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    return rknn, rknn.load_tensorflow(*args, **kwargs)


def test_load_tensorflow_takes_the_arguments_of_both_toolkits(tmp_path, frozen_graph, capfd):
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, **{"in#scale": np.float32(-1)})
    image = np.full((1, 2, 2, 3), 200, np.uint8)
    start = (str(frozen_graph), ["in/x"], [[2, 2, 3]], ["y"])
    for args, kwargs, expected in (
        (start + (str(feeds),), {}, -200),
        (start + (feeds, "100", [[2]]), {}, -50),
        (start + (feeds, None, 4), {}, -50),
        (start, dict(predef_file=feeds, mean_values=100, std_values=[2, 2]), -50),
        (start + (feeds, None, None, False), {}, -200),
        (start[:2] + ([1, 2, 2, 3], "y", feeds), {}, -200),
    ):
        rknn, done = load_tensorflow(*args, **kwargs)
        assert done == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0, capfd.readouterr().err
        np.testing.assert_allclose(rknn.inference([image])[0], np.full((1, 2, 2, 3), expected), rtol=1e-6)
    assert load_tensorflow(str(frozen_graph), ["in/x", "in/scale"], [[1, 2, 2, 3], []], ["y"], False)[1] == 0  # Toolkit2
    capfd.readouterr()
    (tmp_path / "noise.npz").write_bytes(b"noise")
    np.savez(tmp_path / "other.npz", nowhere=1)
    for args, words in (
        (start + (True, 1), "Invalid predef_file True"),
        (start + (feeds, "abc"), "Invalid mean_values 'abc'"),
        (start + (feeds, [1, 2]), "expect one number"),
        (start + (1, 2, 3, 4, 5), "at most 8 arguments"),
        (start + (str(tmp_path / "nothing.npz"),), "does not exist"),
        (start + (tmp_path / "noise.npz",), "expect an .npz file"),
        (start + (tmp_path / "other.npz",), "'nowhere' in predef_file=['nowhere']"),
    ):
        assert load_tensorflow(*args)[1] == -1
        assert words in capfd.readouterr().err, args


@pytest.mark.parametrize(
    "sizes, words",
    [
        ([[1, 2, 2, 10**30]], "Invalid extent 1" + "0" * 30),
        ([[1, 2, 2, 0]], "Invalid input_shape = [1,2,2,0] for input 0!"),
        ([[-7, 2, 2, 3]], "Invalid input_shape = [-7,2,2,3]"),
        ([[1, 2, 2.5, 3]], "Invalid input_size_list"),
        ("1,2,2,3", "Invalid input_size_list"),
        (7, "Invalid input_size_list"),
        (["1,2,2,3"], "Invalid input_size_list"),
        ([[1, [2], 2, 3]], "Invalid input_size_list"),
        ([[2**30] * 4], "expected at most 17179869184 elements"),
    ],
)
def test_impossible_sizes_are_refused_with_words(frozen_graph, sizes, words, capfd):
    assert load_tensorflow(str(frozen_graph), ["in/x", "in/scale"], sizes, ["y"])[1] == -1
    assert words in capfd.readouterr().err


METHODS = """config load_caffe load_tensorflow load_tflite load_onnx load_darknet load_pytorch load_keras load_mxnet build hybrid_quantization_step1
    hybrid_quantization_step2 export_rknn load_rknn init_runtime inference eval_perf eval_memory accuracy_analysis get_sdk_version list_devices release
    export_encrypted_rknn_model reg_custom_op codegen direct_build load_firmware export_rknn_precompile_model export_rknn_sync_model register_op
    fetch_rknn_model_config list_support_target_platform""".split()


def test_every_method_of_both_toolkits_exists():
    assert [name for name in METHODS if not callable(getattr(RKNN, name, None))] == []


def test_methods_of_toolkit1(tmp_path, conv_model, build, capfd):
    rknn = build(conv_model, custom_string="mine")
    made, copy, synced = (str(tmp_path / f"{name}.rknn") for name in ("made", "copy", "synced"))
    assert rknn.export_rknn_precompile_model() == -1 and rknn.export_rknn_precompile_model(made) == 0
    again = RKNN()
    assert again.load_rknn(made) == 0 and again.export_rknn_precompile_model(export_path=copy) == 0
    assert open(made, "rb").read() == open(copy, "rb").read()
    assert again.export_rknn_sync_model(made, [0], synced) == 0 and again.fetch_rknn_model_config(synced)["sync_uids"] == [0]
    assert again.load_rknn(synced) == 0 and again.init_runtime() == 0
    np.testing.assert_array_equal(again.inference([picture()])[0], rknn.inference([picture()])[0])
    assert again.export_rknn_sync_model(synced, []) == 0 and open(made, "rb").read() == open(synced, "rb").read()
    assert again.export_rknn_sync_model(input_model=made) == 0 and again.export_rknn_sync_model(conv_model, [1], synced) == -1
    assert again.export_rknn_sync_model(made, ["x"], synced) == -1 and "sync_uids" in capfd.readouterr().err
    config = again.fetch_rknn_model_config(made)
    assert config["target_platform"] == ["rk3588"] and config["custom_string"] == "mine" and len(config["inputs"]) == 1
    assert again.fetch_rknn_model_config(conv_model) is None
    assert again.load_firmware() == -1 and again.register_op("x.rknnop") is None and "x.rknnop" in capfd.readouterr().err
    assert again.direct_build("a.json", "a.data") == -1 and again.load_rknn(made, load_model_in_npu=True) == 0
    assert again.list_devices() == ([], [])


def test_operator_classes_of_toolkit1():
    from rknn.api import IoMap, RKNNCustomOP, Shape

    class Twice(RKNNCustomOP):
        op, def_input = "Twice", [IoMap("in0", "in", "what to double")]

    shape = Shape()
    shape.set_shape(shape=[1, 8, 9, 3], fmt="nhwc")
    assert Twice().def_input[0].name == "in0" and shape.format("nchw") == [1, 3, 8, 9] and shape.format("nhwc") == [1, 8, 9, 3]


def test_platform_lists(conv_model, build):
    build(conv_model, target_platform=["rk3566", "RK3568"])
    for mixed in (["rk3588", "rk3566"], ["rk1808", "rv1126"], ["rk1808", "rk3588"]):
        with pytest.raises(ValueError, match="same model"):
            RKNN().config(target_platform=mixed)
    for wrong in (["rk3588", "rk0"], [], [3588]):
        with pytest.raises(ValueError, match="target_platform"):
            RKNN().config(target_platform=wrong)


def test_inference_in_the_order_of_either_toolkit(conv_model, build, capfd):
    rknn = build(conv_model)
    image = np.random.default_rng(0).integers(0, 255, (1, 3, 8, 6), dtype=np.uint8)
    expected = rknn.inference(inputs=[image], data_format=["nchw"])[0]
    for args, options in (
        ((["uint8"], ["nchw"]), {}),
        (("uint8", "nchw"), {}),
        ((None, "nchw"), {}),
        (("nchw",), {}),
        (("NCHW", None, False), {}),
        (("uint8",), {"data_format": "nchw"}),
        ((), {"data_type": "uint8", "data_format": "nchw", "outputs": None}),
    ):
        np.testing.assert_array_equal(rknn.inference([image], *args, **options)[0], expected)
    np.testing.assert_array_equal(rknn.inference([image.transpose(0, 2, 3, 1)], "uint8")[0], expected)
    for args, options in (
        (("uint9",), {}),
        ((), {"data_type": "complex"}),
        (("nchw",), {"data_format": "nchw"}),
        (("nchw", None, False, 1, 2), {}),
    ):
        with pytest.raises(ValueError):
            rknn.inference([image], *args, **options)
    capfd.readouterr()
    rknn.inference([image], data_format="nchw", data_fromat="nchw")
    assert "'data_fromat' is not known" in capfd.readouterr().err


def test_every_failure_raises_on_request(tmp_path, conv_model, monkeypatch):
    rknn = RKNN()
    assert rknn.eval_perf() is None and rknn.eval_memory() is None and rknn.get_sdk_version() is None and rknn.codegen("x") == -1
    monkeypatch.setenv("ORKNN_RAISE", "1")
    for call in (
        rknn.eval_perf,
        rknn.eval_memory,
        rknn.get_sdk_version,
        lambda: rknn.codegen("x"),
        lambda: rknn.list_support_target_platform(conv_model),
    ):
        with pytest.raises(ValueError):
            call()


def test_config_has_no_effect_on_a_finished_model(tmp_path, conv_model, build, capfd):
    path = str(tmp_path / "m.rknn")
    built = build(conv_model)
    assert built.export_rknn(path) == 0
    capfd.readouterr()
    assert built.load_rknn(path) == 0 and "no effect" not in capfd.readouterr().err
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_rknn(path) == 0 and "no effect on a finished model" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options", [dict(data_format=3), dict(inputs_pass_through=1), dict(inputs_pass_through="1"), dict(inputs_pass_through=[1, 0])]
)
def test_options_of_inference_are_checked(conv_model, build, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        build(conv_model).inference([picture()], **options)


def test_mistakes_are_remarked(make_onnx, build, capfd):
    """What can be computed but is hardly meant is told, once."""
    rknn = build(make_onnx([("Cast", ["x"], ["y"], dict(to=1))], {"x": ("uint8", [2])}, {"y": ("float32", [2])}))
    rknn.inference([np.array([255, 0])])
    assert "outside the range of uint8" not in capfd.readouterr().err
    rknn.inference([np.array([300, -5])])
    assert "'x' has values outside the range of uint8" in capfd.readouterr().err
    rknn.inference([np.array([300, -5])])
    assert "outside the range of uint8" not in capfd.readouterr().err
    build(make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [2])}, {"y": ("float32", [7, 7])}, name="stated"))
    assert "states the shape [7,7] for output 'y'" in capfd.readouterr().err
    build(make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [2])}, {"y": ("float32", [2])}, opset=99, name="opset"))
    assert "opset 99 is newer" in capfd.readouterr().err


def test_an_unknown_isa_is_told(make_onnx):
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [2])}, {"y": ("float32", [2])})
    code = (
        "import sys, numpy as np; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588')\n"
        "assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0 and r.init_runtime() == 0\n"
        "r.inference([np.ones(2, np.float32)])"
    )
    told = lambda isa: (
        subprocess.run(
            [sys.executable, "-c", code, model], check=True, capture_output=True, text=True, env=dict(os.environ, ORKNN_ISA=isa)
        ).stderr
    )
    assert "ORKNN_ISA=bogus is nothing this machine has" in told("bogus") and "ORKNN_ISA" not in told("portable")
