"""Detectors that end in a suppression of boxes or in the best scores, as torch exports them (tests/data/detectors/make.py)."""

import pathlib

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "detectors"
NAMES = sorted(p.stem for p in MODELS.glob("*.onnx"))


def detections(name, dataset=None, **config):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", **config)
    assert rknn.load_onnx(MODELS / f"{name}.onnx") == 0
    assert rknn.build(do_quantization=dataset is not None, dataset=dataset) == 0
    assert rknn.init_runtime() == 0
    stored = np.load(MODELS / f"{name}.npz")
    [found] = rknn.inference([stored["input_0"]], data_format=["nchw"])
    rknn.release()
    return found, stored["output_0"]


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:4], b[2:4])
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    both = np.prod(np.maximum(high - low, 0))
    return both / (area(a) + area(b) - both)


def test_both_ends_are_there():
    assert NAMES == ["best", "best_dynamo", "suppressed"]


@pytest.mark.parametrize("name", NAMES)
def test_float32_finds_what_torch_finds(name):
    found, expected = detections(name, float_dtype="float32")
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_float16_finds_the_same_best_box(name):
    found, expected = detections(name)
    assert found.shape == expected.shape
    assert overlap(found[0, 0], expected[0, 0]) > 0.95
    assert found[0, 0, 4] == pytest.approx(expected[0, 0, 4], abs=0.01) and found[0, 0, 5] == expected[0, 0, 5]


@pytest.mark.parametrize("name", NAMES)
def test_int8_finds_most_of_them(name, tmp_path):
    random = np.random.default_rng(2)
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", random.random((1, 3, 32, 32), np.float32))
    (tmp_path / "dataset.txt").write_text("".join(f"{tmp_path}/{i}.npy\n" for i in range(8)))
    found, expected = detections(name, dataset=str(tmp_path / "dataset.txt"))
    assert found.shape == expected.shape and np.isfinite(found).all()
    wanted = expected[0][expected[0, :, 4] > 0]
    hits = sum(any(overlap(w, f) > 0.6 and w[5] == f[5] for f in found[0] if f[4] > 0) for w in wanted)
    assert hits >= 0.6 * len(wanted)
