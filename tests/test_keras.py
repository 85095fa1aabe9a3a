"""Models that Keras wrote (tests/data/keras/make.py), against what Keras computed."""

import json
import pathlib
import zipfile

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


@pytest.fixture
def load(capfd):
    """A function that loads a file and returns the code with what was logged."""

    def run(path):
        rknn = RKNN()
        rknn.config(target_platform="rk3588")
        return rknn.load_keras(path), capfd.readouterr().err

    return run


@pytest.fixture
def changed(tmp_path):
    """A function that writes a copy of a model in which texts have given way to others of their length."""

    def write(name, texts):
        content = (MODELS / name).read_bytes()
        for old, new in texts.items():
            assert old in content and len(old) == len(new)
            content = content.replace(old, new)
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


def test_unknown_layers_are_reported_at_once(changed, load):
    names = {
        b'"class_name": "Flatten"': b'"class_name": "Flutten"',
        b'"class_name": "MaxPooling2D"': b'"class_name": "MixPooling2D"',
    }
    code, error = load(changed("classifier.h5", names))
    assert code == -1 and "'Flutten' is not supported" in error and "'MixPooling2D' is not supported" in error


@pytest.mark.parametrize(
    ("name", "old", "new", "text"),
    [
        ("operations.h5", b'"class_name": "Absolute"', b'"class_name": "Absolate"', "the function 'Absolate' is not supported"),
        ("sequence.h5", b'"axis": 1', b'"axis": 9', "axis out of range"),
        ("classifier.h5", b"model_config", b"model_confug", "holds no description of a model"),
        ("classifier.h5", b'"class_name": "Flatten"', b'"class_name": "Lambda" ', "is Python code, which cannot be read"),
        ("classifier.h5", b'"class_name": "Dropout"', b'"class_name": "Hashing"', "works on texts or tables"),
        ("statistics.h5", b"0.1, 0.5, 0.77", b"0.1, 0.5, 7.07", "a quantile needs a share, or a list of them; expected 0 to 1"),
        ("calls.h5", b'"block", 2, 0', b'"block", 0, 0', "a tensor of the model is missing; found block, call 0"),
        ("branches.h5", b'"class_name": "Add"', b'"class_name": "ELU"', "more than one tensor is given to the layer"),
    ],
    ids=["function", "axis", "weights_alone", "python", "texts", "share", "call", "inputs"],
)
def test_what_cannot_be_read_is_refused(name, old, new, text, changed, load):
    code, error = load(changed(name, {old: new}))
    assert code == -1 and text in error


def test_causal_attention_needs_sequences(tmp_path, load):
    tensor = {"class_name": "__keras_tensor__", "config": {"shape": [None, 4], "dtype": "float32", "keras_history": ["x", 0, 0]}}
    attend = {
        "module": "keras.layers",
        "class_name": "Attention",
        "name": "a",
        "config": {"name": "a", "score_mode": "dot", "use_scale": False},
        "inbound_nodes": [{"args": [[tensor, tensor]], "kwargs": {"use_causal_mask": True}}],
    }
    x = {
        "module": "keras.layers",
        "class_name": "InputLayer",
        "name": "x",
        "config": {"batch_shape": [None, 4], "dtype": "float32", "name": "x"},
        "inbound_nodes": [],
    }
    model = {"name": "m", "layers": [x, attend], "input_layers": [["x", 0, 0]], "output_layers": [["a", 0, 0]]}
    with zipfile.ZipFile(MODELS / "attention.keras") as whole, zipfile.ZipFile(tmp_path / "m.keras", "w") as file:
        for name in whole.namelist():
            is_model = name == "config.json"
            file.writestr(name, json.dumps({"class_name": "Functional", "config": model}) if is_model else whole.read(name))
    code, error = load(tmp_path / "m.keras")
    assert code == -1 and "(Attention): the layer needs sequences of vectors; found scores of rank 2" in error


def test_inner_models_need_tensors(tmp_path, load):
    with zipfile.ZipFile(MODELS / "last_model.keras") as whole, zipfile.ZipFile(tmp_path / "m.keras", "w") as file:
        for name in whole.namelist():
            content = whole.read(name)
            if name == "config.json":
                model = json.loads(content)
                inner = next(layer for layer in model["config"]["layers"] if layer["name"] == "middle")
                inner["inbound_nodes"][0]["args"] = []
                content = json.dumps(model)
            file.writestr(name, content)
    code, error = load(tmp_path / "m.keras")
    assert code == -1 and "'middle' (Functional): a model in the model gets no tensors" in error


def test_quantiles_that_keras_interpolates_otherwise_are_warned_of(load):
    code, error = load(MODELS / "statistics.keras")
    assert code == 0 and error.count("quantiles are interpolated linearly") == 1


def test_masks_that_are_not_used_change_nothing(changed, load):
    masked = changed("sequence.h5", {b'"mask_zero": false': b'"mask_zero": true '})  # a convolution follows, which drops them
    code, _ = load(masked)
    assert code == 0


def test_command_line_recognizes_keras(openrknn, tmp_path):
    done = openrknn("convert", MODELS / "classifier.keras", "-o", tmp_path / "m.rknn", "-t", "rk3588")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.rknn").stat().st_size > 0
