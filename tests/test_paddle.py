"""Models that PaddlePaddle wrote (tests/data/paddle/make.py), against what Paddle computed."""

import pathlib
import shutil

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "paddle"
FILES = sorted(p.name for p in MODELS.iterdir() if p.suffix in (".json", ".pdmodel"))


def stored(name):
    arrays = np.load((MODELS / name).with_suffix(".npz"))
    inputs = [arrays[f"input_{i}"] for i in range(sum(key.startswith("input_") for key in arrays.files))]
    return inputs, [arrays[f"output_{i}"] for i in range(len(arrays.files) - len(inputs))]


def run(name, inputs, dataset=None, **config):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", **config)
    assert rknn.load_paddle(MODELS / name) == 0
    assert rknn.build(do_quantization=dataset is not None, dataset=dataset) == 0
    assert rknn.init_runtime() == 0
    found = rknn.inference(inputs, data_format=["nchw"] * len(inputs))
    rknn.release()
    return found


def test_there_are_models_of_both_formats():
    assert sum(name.endswith(".json") for name in FILES) >= 20 and sum(name.endswith(".pdmodel") for name in FILES) >= 20


@pytest.mark.parametrize("name", FILES)
def test_outputs_are_those_of_paddle(name):
    inputs, expected = stored(name)
    found = run(name, inputs, float_dtype="float32")
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["branches.json", "branches_old.pdmodel"])
def test_conditions_run_in_float16(name):
    inputs, expected = stored(name)
    for a, b in zip(run(name, inputs), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", ["residual.json", "text_detector_old.pdmodel", "mobile.json"])
def test_quantized_networks_stay_close(name, tmp_path):
    inputs, expected = stored(name)
    random = np.random.default_rng(3)
    lines = []
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", random.uniform(-1, 1, inputs[0].shape).astype(np.float32))
        lines.append(f"{tmp_path}/{i}.npy\n")
    (tmp_path / "dataset.txt").write_text("".join(lines))
    found = run(name, inputs, dataset=str(tmp_path / "dataset.txt"))
    for a, b in zip(found, expected):
        similarity = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
        assert similarity > 0.98


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("qat_")])
def test_trained_quantization_is_kept(name, tmp_path):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_paddle(MODELS / name) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.export_rknn(tmp_path / "m.rknn") == 0
    assert rknn.init_runtime() == 0
    inputs, expected = stored(name)
    found = rknn.inference(inputs, data_format=["nchw"])
    np.testing.assert_allclose(found[0], expected[0], atol=0.03 * np.abs(expected[0]).max())
    rknn.release()


def test_weights_may_have_another_name(tmp_path):
    shutil.copy(MODELS / "residual.json", tmp_path / "a.json")
    shutil.copy(MODELS / "residual.pdiparams", tmp_path / "b.pdiparams")
    inputs, expected = stored("residual.json")
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_paddle(tmp_path / "a.json", params=tmp_path / "b.pdiparams") == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    np.testing.assert_allclose(rknn.inference(inputs, data_format=["nchw"])[0], expected[0], rtol=2e-4, atol=2e-5)
    rknn.release()


def test_a_file_per_parameter(tmp_path, capfd):
    """What Paddle 1 writes by default."""
    arrays = np.load(MODELS / "separate" / "model.npz")
    found = run("separate/__model__", [arrays["input_0"]], float_dtype="float32")
    np.testing.assert_allclose(found[0], arrays["output_0"], rtol=2e-4, atol=2e-5)
    capfd.readouterr()
    shutil.copytree(MODELS / "separate", tmp_path / "m")
    weights = sorted(p for p in (tmp_path / "m").iterdir() if p.name.endswith("w_0"))
    weights[-1].unlink()
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_paddle(tmp_path / "m" / "__model__") == -1
    assert weights[-1].name in capfd.readouterr().err


def test_unknown_operators_are_reported_at_once(tmp_path, capfd):
    text = (MODELS / "residual.json").read_text()
    changed = text.replace('"1.relu"', '"1.rolu"').replace('"1.softmax"', '"1.sofmax"')
    (tmp_path / "m.json").write_text(changed)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_paddle(tmp_path / "m.json") == -1
    error = capfd.readouterr().err
    assert "'rolu' of PaddlePaddle is not supported" in error and "'sofmax' of PaddlePaddle is not supported" in error


@pytest.mark.parametrize("name", ["mobile.json", "mobile_old.pdmodel"])
def test_command_line_recognizes_paddle(openrknn, tmp_path, name):
    done = openrknn("convert", MODELS / name, "-o", tmp_path / "m.rknn", "-t", "rk3588")
    assert done.returncode == 0, done.stderr
    assert "random" not in done.stdout + done.stderr
    assert (tmp_path / "m.rknn").stat().st_size > 0


def test_parameters_alone_are_no_model(openrknn):
    done = openrknn("info", MODELS / "mobile.pdiparams")
    assert done.returncode != 0 and "parameters of a PaddlePaddle model" in done.stderr
