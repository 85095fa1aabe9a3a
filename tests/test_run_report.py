"""RKNN_LOG_LEVEL and the variables of layer dumps, in C programs and in scripts of the toolkit."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from library import BUILD, build_model

TITLES = (
    "RKNN Model Information, version: ",
    "Feature Tensor Information Table",
    "Network Layer Information Table",
    "dump npy tensor to: ",
    "dump text tensor to: ",
)
SHOWN = {None: 0, "0": 0, "1": 0, "2": 1, "3": 2, "4": 3, "5": 4, "6": 5, "9": 5}

SCRIPT = """
import sys, numpy as np
from rknn.api import RKNN
rknn = RKNN()
assert rknn.load_rknn(sys.argv[1]) == 0 and rknn.init_runtime() == 0
rknn.inference([np.full((1, 64, 64, 3), 100, np.uint8)], data_format="nhwc")
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_model(tmp_path_factory.mktemp("model") / "int8.rknn", "rk3588", True)


@pytest.fixture(params=["c", "python"])
def speak(request, model, tmp_path):
    """A function that runs the model once, in an empty folder, and returns the lines on standard error."""
    command = [BUILD / "capi_basic", model, "100"] if request.param == "c" else [sys.executable, "-c", SCRIPT, model]
    if request.param == "c" and not BUILD.exists():
        pytest.skip(f"needs the C programs of the build in {BUILD}")

    def call(**variables):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("RKNN_", "NN_"))}
        done = subprocess.run(command, capture_output=True, text=True, env=plain | variables, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        # The C program destroys its context twice, to see the second call refused.
        return [line for line in done.stderr.splitlines() if "] rknn_destroy: " not in line]

    return call


@pytest.mark.parametrize("level", SHOWN)
def test_each_level_adds_something(speak, tmp_path, level):
    lines = speak(RKNN_DUMP_DIR=str(tmp_path), **({} if level is None else {"RKNN_LOG_LEVEL": level}))
    assert [any(title in line for line in lines) for title in TITLES] == [i < SHOWN[level] for i in range(len(TITLES))]
    of_the_runtime = [line for line in lines if "RKNN: [" in line]
    assert bool(of_the_runtime) == (SHOWN[level] > 0)
    # Tools strip this prefix.
    assert all(re.match(r"^[DIEW]\s+RKNN:\s*\[[\d:.]+\]\s*", line) for line in of_the_runtime)
    assert not [line for line in lines if line.startswith("E")]


def test_files_of_the_layers(speak, tmp_path):
    speak(RKNN_LOG_LEVEL="5", RKNN_DUMP_DIR=str(tmp_path))
    names = sorted(os.listdir(tmp_path))
    assert [int(name[:3]) for name in names] == sorted(int(name[:3]) for name in names)
    assert re.fullmatch(r"000_InputOperator_\w+_shape_1_3_64_64_float\.npy", names[0])
    assert all(re.fullmatch(r"\d{3}_[A-Za-z]+_.+_shape(_\d+)+_float\.npy", name) for name in names), names
    real = {name[:3]: np.load(tmp_path / name) for name in names}
    for name in names:
        os.remove(tmp_path / name)
    speak(RKNN_LOG_LEVEL="5", RKNN_DUMP_DIR=str(tmp_path), RKNN_DUMP_QUANT="1")
    stored = sorted(os.listdir(tmp_path))
    assert len(stored) == len(names) and any(name.endswith("_int8.npy") for name in stored)
    for name in stored:
        array = np.load(tmp_path / name)
        assert array.shape == real[name[:3]].shape
        if array.dtype == np.int8:  # one scale and one zero point connect the two
            q, x = array.astype(np.float64).ravel(), real[name[:3]].astype(np.float64).ravel()
            if np.ptp(q) > 0:
                slope, offset = np.polyfit(q, x, 1)
                assert slope > 0 and np.allclose(slope * q + offset, x, atol=1e-3 * slope), name


def test_files_of_the_first_toolkit(speak, tmp_path):
    speak(NN_LAYER_DUMP="1")
    names = os.listdir(tmp_path)
    assert names and all(re.fullmatch(r".+_\d+_out\d+_(nchw|nd)(_\d+)+\.tensor", name) for name in names), names
    for name in names:
        shape = [int(n) for n in re.search(r"_(?:nchw|nd)((?:_\d+)+)\.tensor", name).group(1).split("_")[1:]]
        assert np.loadtxt(tmp_path / name).size == np.prod(shape), name


def test_a_missing_folder_does_not_stop_the_run(speak, tmp_path):
    lines = speak(RKNN_LOG_LEVEL="5", RKNN_DUMP_DIR=str(tmp_path / "missing"))
    failed = [line for line in lines if line.startswith("E RKNN: [") and "failed open dump path: " in line]
    assert len(failed) == sum("dump npy tensor to: " in line for line in lines) > 0
    assert os.listdir(tmp_path) == []
