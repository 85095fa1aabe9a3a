"""rknnlite.api.RKNNLite: the calls of scripts that were written for a board, Lite2's and Lite1's forms, and how they fail."""

import os
import subprocess
import sys

import numpy as np
import pytest
from rknn.api import RKNN
from rknnlite.api import RKNNLite

MODELS = os.path.join(os.path.dirname(__file__), "..", "examples", "models")


def build(path, platform, **config):
    """The bundled classifier of 64 x 64 pictures for `platform`."""
    rknn = RKNN()
    rknn.config(target_platform=platform, mean_values=[[127.5] * 3], std_values=[[127.5] * 3], **config)
    assert rknn.load_onnx(os.path.join(MODELS, "shapes.onnx")) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.export_rknn(str(path)) == 0
    return rknn


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lite")


@pytest.fixture(scope="module")
def rk3588(folder):
    """(path, results of the toolkit for `picture()`)"""
    path = folder / "rk3588.rknn"
    rknn = build(path, "rk3588")
    assert rknn.init_runtime() == 0
    results = rknn.inference([picture()])
    rknn.release()
    return str(path), results


def picture(height=64, width=64):
    return np.random.default_rng(3).integers(0, 256, (1, height, width, 3), np.uint8)


def ready(path, **options):
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0
    assert lite.init_runtime(**options) == 0
    return lite


def test_names_and_constants():
    assert str(RKNNLite) == "<class 'rknnlite.api.rknn_lite.RKNNLite'>"
    names = ["AUTO", "0", "1", "2", "0_1", "0_1_2", "ALL"]
    assert [getattr(RKNNLite, f"NPU_CORE_{name}") for name in names] == [0, 1, 2, 4, 3, 7, 0xFFFF]


def test_same_results_as_the_toolkit(rk3588, capfd):
    path, expected = rk3588
    lite = ready(path, core_mask=RKNNLite.NPU_CORE_0_1_2)
    results = lite.inference(inputs=[picture()])
    assert [r.dtype for r in results] == [np.float32] * len(expected)
    for result, wanted in zip(results, expected):
        assert result.tobytes() == wanted.tobytes()
    for layout in (["nhwc"], "nhwc", "NHWC"):
        assert lite.inference([picture()], data_format=layout)[0].tobytes() == expected[0].tobytes()
    lite.release()
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("W rknn-toolkit-lite2 version: ")
    assert [line for line in lines if line.startswith("E ")] == []


def test_nchw_is_turned_with_a_warning(rk3588, capfd):
    path, expected = rk3588
    lite = ready(path)
    nchw = np.ascontiguousarray(picture().transpose(0, 3, 1, 2))
    for layout in (["nchw"], "nchw", ["NCHW"]):
        capfd.readouterr()
        assert lite.inference([nchw], layout)[0].tobytes() == expected[0].tobytes()
        assert (
            "W The input[0] need NHWC data format, but NCHW set, the data format and data buffer will be changed to NHWC."
            in capfd.readouterr().err
        )


def test_a_picture_without_a_batch(rk3588, folder, capfd):
    """Refused for Toolkit2's chips; Lite1's scripts feed pictures of three dimensions."""
    lite = ready(rk3588[0])
    assert lite.inference([picture()[0]]) is None
    assert "The input[0] need 4dims input, but 3dims input buffer feed." in capfd.readouterr().err
    build(folder / "rk3399pro.rknn", "rk3399pro").release()
    lite = RKNNLite()
    assert lite.load_rknn(str(folder / "rk3399pro.rknn")) == 0
    assert lite.init_runtime(target="rk3399pro", device_id=None, async_mode=False, perf_debug=False, eval_mem=False) == 0
    with_batch, without = lite.inference([picture()]), lite.inference([picture()[0]])
    assert with_batch[0].tobytes() == without[0].tobytes()
    typed = lite.inference([picture()[0]], "uint8", "nhwc")  # Lite1: data_type before data_format
    assert typed[0].tobytes() == without[0].tobytes()


def test_async_mode_returns_the_results_of_the_call_before(rk3588):
    path, expected = rk3588
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0 and lite.init_runtime(async_mode=True) == 0
    first, second, third = (lite.inference([array]) for array in (picture(), 0 * picture(), picture()))
    assert [a.shape for a in first] == [a.shape for a in expected] and not first[0].any()
    assert second[0].tobytes() == expected[0].tobytes() != third[0].tobytes()
    assert lite.init_runtime() == 0
    assert lite.inference([picture()])[0].tobytes() == expected[0].tobytes()


def test_target_as_first_argument(rk3588):
    lite = RKNNLite()
    assert lite.load_rknn(rk3588[0]) == 0
    assert lite.init_runtime("rk3588") == 0
    assert lite.init_runtime(None) == 0


def test_shape_sets(folder, capfd):
    build(folder / "sets.rknn", "rk3588", dynamic_input=[[[1, 3, 64, 64]], [[1, 3, 32, 48]]]).release()
    lite = ready(str(folder / "sets.rknn"))
    for height, width in ((32, 48), (64, 64), (32, 48)):
        nchw = np.ascontiguousarray(picture(height, width).transpose(0, 3, 1, 2))
        assert lite.inference([nchw], data_format=["nchw"]) is not None
    capfd.readouterr()
    assert lite.inference([picture(40, 40)]) is None
    assert "Set input shape failed. error code: RKNN_ERR_FAIL" in capfd.readouterr().err
    assert lite.inference([picture()]) is not None, "a refused call changes nothing"


def test_load_rknn_reads_and_init_runtime_judges(folder, capfd):
    lite = RKNNLite()
    assert lite.load_rknn(str(folder / "missing.rknn")) == -1
    assert lite.load_rknn("") == -1
    assert lite.load_rknn(None) == -1
    assert lite.init_runtime() == -1
    path = folder / "broken.rknn"
    path.write_bytes(b"RKNN" + bytes(500))
    capfd.readouterr()
    assert lite.load_rknn(str(path)) == 0
    assert lite.init_runtime() == -1
    lines = capfd.readouterr().err
    assert lines.startswith("E Catch exception when init runtime!\nE Traceback (most recent call last):")
    assert "RKNN init failed. error code: RKNN_ERR_MODEL_INVALID" in lines
    assert lite.inference([picture()]) is None
    assert lite.load_rknn(os.path.join(MODELS, "shapes.onnx")) == 0
    assert lite.init_runtime() == -1
    assert "it is a model of onnx: load it with load_onnx" in capfd.readouterr().err


def test_the_file_may_vanish_after_load_rknn(rk3588, folder):
    path = folder / "copy.rknn"
    path.write_bytes(open(rk3588[0], "rb").read())
    lite = RKNNLite()
    assert lite.load_rknn(str(path)) == 0
    path.unlink()
    assert lite.init_runtime() == 0
    assert lite.inference([picture()])[0].tobytes() == rk3588[1][0].tobytes()


def test_core_masks(rk3588, folder, capfd, monkeypatch):
    lite = RKNNLite()
    assert lite.load_rknn(rk3588[0]) == 0
    for mask in (0, 1, 2, 4, 3, 7, 0xFFFF):
        assert lite.init_runtime(core_mask=mask) == 0
    monkeypatch.setenv("ORKNN_DEVICE", str(folder / "nobody.sock"))  # a mask is refused before the board is looked for
    for board in ({}, {"target": "rk3588"}):
        for mask in (5, 6, 8, -1, 1.5, 2**32 + 1, 2**70):
            capfd.readouterr()
            assert lite.init_runtime(core_mask=mask, **board) == -1
            assert f"core_mask {mask}" in capfd.readouterr().err.splitlines()[-1], (mask, board)
    monkeypatch.delenv("ORKNN_DEVICE")
    build(folder / "rk3566.rknn", "rk3566").release()
    assert lite.load_rknn(str(folder / "rk3566.rknn")) == 0
    assert lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0) == -1, "the chip has one core"
    assert lite.init_runtime() == 0


def test_wrong_inputs(rk3588, capfd):
    lite = ready(rk3588[0])
    for inputs in (None, [], [picture(), picture()], [picture(10, 10)], "picture.jpg", [np.array(["x"])]):
        capfd.readouterr()
        assert lite.inference(inputs) is None, inputs
        assert "E Catch exception when inference!" in capfd.readouterr().err
    assert lite.inference([picture()], data_format=["nhwc", "nhwc"]) is None
    assert lite.inference([picture()], data_format="chwn") is None
    assert lite.inference([picture()], inputs_pass_through=[2]) is None
    assert lite.inference([picture()]) is not None


def test_sdk_version(rk3588, capfd):
    lite = RKNNLite()
    assert lite.get_sdk_version() is None
    assert lite.load_rknn(rk3588[0]) == 0 and lite.init_runtime() == 0
    lines = lite.get_sdk_version().splitlines()
    assert lines[0] == lines[-1] == "=" * 46
    assert lines[1] == "RKNN VERSION:"
    assert [line[:7] for line in lines[2:-1]] == ["  API: ", "  DRV: "]


def test_platform_lists(rk3588, capsys):
    lite = RKNNLite()
    found = lite.list_support_target_platform(rk3588[0])
    assert list(found) == ["filled_target_platform", "support_target_platform"]
    assert found["filled_target_platform"] == ["rk3588"]
    assert "RK3588" in found["support_target_platform"]
    assert "Target platforms filled in RKNN model:         ['rk3588']\n" in capsys.readouterr().out
    assert lite.list_support_target_platform() is None
    assert lite.list_support_target_platform("") is None
    assert "chip family 1: " in capsys.readouterr().out
    assert lite.list_support_target_platform(rknn_model="missing.rknn") is None
    assert lite.list_devices() == ([], [])


def test_every_platform_of_the_list_is_filled_in(folder, capsys):
    build(folder / "two.rknn", ["RK3568", "rk3566"]).release()
    found = RKNNLite().list_support_target_platform(str(folder / "two.rknn"))
    assert found == {"filled_target_platform": ["rk3568", "rk3566"], "support_target_platform": ["RK3566", "RK3568"]}
    assert "Target platforms filled in RKNN model:         ['rk3568', 'rk3566']\n" in capsys.readouterr().out
    assert RKNN().fetch_rknn_model_config(str(folder / "two.rknn"))["target_platform"] == ["rk3568", "rk3566"]


def test_release_at_any_time(rk3588):
    lite = RKNNLite()
    lite.release()
    lite.release()
    assert lite.load_rknn(rk3588[0]) == -1
    assert lite.inference([picture()]) is None


SCRIPT = """
import sys, numpy as np
from rknnlite.api import RKNNLite
lite = RKNNLite(verbose=sys.argv[2] == "verbose")
assert lite.load_rknn(sys.argv[1]) == 0 and lite.init_runtime() == 0
lite.inference([np.zeros((1, 64, 64, 3), np.uint8)])
"""


def run_script(path, verbose="", **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RKNN_")} | variables
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, verbose], capture_output=True, text=True, env=environment, cwd=os.path.dirname(path)
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_log_levels_and_dumps(rk3588, tmp_path):
    """RKNN_LOG_LEVEL from Python: tables and layer files as in C programs, with the same prefix."""
    path = rk3588[0]
    titles = (
        "RKNN Model Information",
        "Feature Tensor Information Table",
        "Network Layer Information Table",
        "dump npy tensor to",
    )
    for level, shown in ((None, 0), ("1", 0), ("2", 1), ("3", 2), ("4", 3), ("5", 4), ("6", 4)):
        variables = {"RKNN_DUMP_DIR": str(tmp_path)} | ({} if level is None else {"RKNN_LOG_LEVEL": level})
        text = run_script(path, **variables)
        assert [title in text for title in titles] == [True] * shown + [False] * (4 - shown), (level, text)
        for line in text.splitlines():
            if "RKNN: [" in line:
                assert line[:9] in ("I RKNN: [", "D RKNN: ["), line
    names = sorted(os.listdir(tmp_path))
    assert names[0].startswith("000_InputOperator_") and names[0].endswith("_shape_1_3_64_64_float.npy"), names
    first = np.load(tmp_path / names[0])
    assert first.shape == (1, 3, 64, 64) and np.allclose(first, -1), "black, normalized"
    assert sum(name.endswith(".txt") for name in names) == sum(name.endswith(".npy") for name in names)
    assert "Network Layer Information Table" in run_script(path, "verbose")
    missing = run_script(path, RKNN_LOG_LEVEL="5", RKNN_DUMP_DIR=str(tmp_path / "missing"))
    assert "E RKNN: [" in missing and "] failed open dump path: " in missing
