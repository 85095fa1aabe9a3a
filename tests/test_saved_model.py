"""Folders that TensorFlow wrote (tests/data/saved_model/make.py), against what TensorFlow computed."""

import pathlib
import shutil

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "saved_model"
NAMES = sorted(path.parent.name for path in MODELS.glob("*/saved_model.pb"))


def test_there_are_models():
    assert NAMES == ["module", "network", "objects", "without_variables"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", ["", "saved_model.pb"])
@pytest.mark.parametrize("sizes", [[[1, 8, 8, 3]], None])  # an open batch is 1
def test_outputs_are_those_of_tensorflow(name, file, sizes):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_tensorflow(MODELS / name / file, inputs=None, input_size_list=sizes, outputs=None) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    stored = np.load(MODELS / f"{name}.npz")
    found = rknn.inference([stored["input_0"]], data_format=["nhwc"])
    assert len(found) == len(stored.files) - 1
    for i, a in enumerate(found):
        np.testing.assert_allclose(a, stored[f"output_{i}"], rtol=2e-4, atol=2e-5)
    rknn.release()


def load(folder, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    done = rknn.load_tensorflow(folder, inputs=None, input_size_list=None, outputs=None)
    return done, "".join(capfd.readouterr())


def test_damaged_variables_are_refused(tmp_path, capfd):
    folder = tmp_path / "module"
    shutil.copytree(MODELS / "module", folder)
    index, data = folder / "variables" / "variables.index", folder / "variables" / "variables.data-00000-of-00001"
    whole, values = index.read_bytes(), data.read_bytes()
    data.write_bytes(values[:40])
    done, text = load(folder, capfd)
    assert done == -1 and "too short" in text
    data.write_bytes(values)
    for end in range(0, len(whole), 7):
        index.write_bytes(whole[:end])
        done, text = load(folder, capfd)
        assert done == -1 and "damaged" in text or not end, (end, text)
    random = np.random.default_rng(0)
    for _ in range(60):  # whatever comes of it, it is no crash
        changed = bytearray(whole)
        changed[random.integers(len(whole))] = random.integers(256)
        index.write_bytes(changed)
        load(folder, capfd)
    shutil.rmtree(folder / "variables")
    done, text = load(folder, capfd)
    assert done == -1 and "not frozen" in text


def test_damaged_objects_do_no_harm(tmp_path, capfd):
    folder = tmp_path / "objects"
    shutil.copytree(MODELS / "objects", folder)
    graph, data = folder / "saved_model.pb", folder / "variables" / "variables.data-00000-of-00001"
    random = np.random.default_rng(0)
    for file in (graph, data):
        whole = file.read_bytes()
        first = whole.index(b"inbound_nodes")  # the objects begin before it
        for _ in range(60):
            changed = bytearray(whole)
            changed[random.integers(first, len(whole))] = random.integers(256)
            file.write_bytes(changed)
            load(folder, capfd)
        file.write_bytes(whole)
    nameless = data.read_bytes().replace(b"VARIABLE_VALUE\x12", b"VARIABLE_VALUF\x12")
    data.write_bytes(nameless)
    done, text = load(folder, capfd)
    assert done == -1 and "the files hold no value of the variable" in text
