"""Models of com.microsoft operators and of new opsets (tests/data/onnxruntime/make.py), against what ONNX Runtime or the onnx reference computed."""

import pathlib

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "onnxruntime"
FILES = sorted(path.stem for path in MODELS.glob("*.onnx"))


def test_there_are_models():
    assert {"attention_past", "gqa_fixed_cache", "nbits_4_zero", "bitcast_26"} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_outputs_are_those_of_onnx_runtime(name):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(MODELS / f"{name}.onnx") == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    stored = np.load(MODELS / f"{name}.npz")
    inputs = [stored[f"input_{i}"] for i in range(sum(key.startswith("input_") for key in stored.files))]
    found = rknn.inference(inputs, data_format=["nchw"] * len(inputs))
    expected = [stored[f"output_{i}"] for i in range(len(stored.files) - len(inputs))]
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    rknn.release()
