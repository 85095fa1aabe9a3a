"""Models that Keras wrote (tests/data/keras/make.py), against what Keras computed."""

import pathlib

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "keras"
FILES = sorted(p.name for p in MODELS.iterdir() if p.suffix in (".h5", ".keras"))


def test_there_are_models_of_both_generations():
    assert len(FILES) >= 10 and any(name.startswith("old_") for name in FILES)


@pytest.mark.parametrize("name", FILES)
def test_outputs_are_those_of_keras(name):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_keras(MODELS / name) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    stored = np.load((MODELS / name).with_suffix(".npz"))
    inputs = [stored[f"input_{i}"] for i in range(sum(key.startswith("input_") for key in stored.files))]
    found = rknn.inference(inputs)
    expected = [stored[f"output_{i}"] for i in range(len(stored.files) - len(inputs))]
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    rknn.release()


def test_unknown_layers_are_reported_at_once(tmp_path, capfd):
    bytes_ = (MODELS / "classifier.h5").read_bytes()
    changed = bytes_.replace(b'"class_name": "Flatten"', b'"class_name": "Flutten"')
    changed = changed.replace(b'"class_name": "MaxPooling2D"', b'"class_name": "MixPooling2D"')
    assert changed != bytes_
    (tmp_path / "m.h5").write_bytes(changed)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_keras(tmp_path / "m.h5") == -1
    error = capfd.readouterr().err
    assert "'Flutten' is not supported" in error and "'MixPooling2D' is not supported" in error


def test_unknown_functions_are_named(tmp_path, capfd):
    bytes_ = (MODELS / "operations.h5").read_bytes()
    changed = bytes_.replace(b'"class_name": "Absolute"', b'"class_name": "Absolate"')
    assert changed != bytes_
    (tmp_path / "m.h5").write_bytes(changed)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_keras(tmp_path / "m.h5") == -1
    assert "the function 'Absolate' is not supported" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["first_state.keras", "old_first_state.keras"])
def test_layers_with_more_inputs_than_we_read_are_refused(name, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_keras(MODELS / "refused" / name) == -1
    assert "more than one tensor is given to the layer" in capfd.readouterr().err


def test_masks_are_warned_of(tmp_path, capfd):
    bytes_ = (MODELS / "sequence.h5").read_bytes()
    changed = bytes_.replace(b'"mask_zero": false', b'"mask_zero": true ')
    assert changed != bytes_
    (tmp_path / "m.h5").write_bytes(changed)
    for path in (tmp_path / "m.h5", MODELS / "sequence.h5"):
        rknn = RKNN()
        rknn.config(target_platform="rk3588")
        assert rknn.load_keras(path) == 0
        assert ("masks (mask_zero)" in capfd.readouterr().err) == (path.parent == tmp_path)


def test_axes_outside_of_the_tensor_are_refused(tmp_path, capfd):
    bytes_ = (MODELS / "sequence.h5").read_bytes()
    changed = bytes_.replace(b'"axis": 1', b'"axis": 9')
    assert changed != bytes_
    (tmp_path / "m.h5").write_bytes(changed)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_keras(tmp_path / "m.h5") == -1
    assert "the axis is outside of the tensor" in capfd.readouterr().err


def test_weights_alone_are_no_model(tmp_path, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    changed = (MODELS / "classifier.h5").read_bytes().replace(b"model_config", b"model_confug")
    (tmp_path / "w.h5").write_bytes(changed)
    assert rknn.load_keras(tmp_path / "w.h5") == -1
    assert "holds no description of a model" in capfd.readouterr().err


def test_command_line_recognizes_keras(openrknn, tmp_path):
    done = openrknn("convert", MODELS / "classifier.keras", "-o", tmp_path / "m.rknn", "-t", "rk3588")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.rknn").stat().st_size > 0
