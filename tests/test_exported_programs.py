"""Archives that torch.export wrote (tests/data/exported_program/make.py), against what PyTorch computed."""

import pathlib

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "exported_program"
NAMES = sorted(path.stem for path in MODELS.glob("*.pt2"))


def test_there_are_models():
    assert NAMES == ["convolutions", "decoder", "recognizer"]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_those_of_pytorch(name):
    stored = np.load(MODELS / f"{name}.npz")
    inputs = [stored[f"input_{i}"] for i in range(sum(key.startswith("input_") for key in stored.files))]
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_pytorch(MODELS / f"{name}.pt2", input_size_list=[list(x.shape) for x in inputs]) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    found = rknn.inference(inputs, data_format=["nchw"] * len(inputs))
    rknn.release()
    expected = [stored[f"output_{i}"] for i in range(len(stored.files) - len(inputs))]
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
