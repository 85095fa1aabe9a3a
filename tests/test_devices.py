"""Targets: without a device in reach the chip is simulated in the process."""

import pytest
from conftest import picture
from rknn.api import RKNN
from rknnlite.api import RKNNLite


def built(model, chip, **config):
    rknn = RKNN()
    rknn.config(target_platform=chip, **config)
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0
    return rknn


@pytest.fixture
def rk3588(conv_model):
    rknn = built(conv_model, "rk3588")
    yield rknn
    rknn.release()


def test_a_target_without_a_device_is_simulated(rk3588, tmp_path, capfd):
    assert rk3588.init_runtime() == 0
    expected = rk3588.inference([picture()])[0]
    capfd.readouterr()
    assert rk3588.init_runtime(target="rk3588", device_id="515e9b401c060c0b", perf_debug=True, eval_mem=True) == 0
    err = capfd.readouterr().err
    assert "I target set by user is: rk3588\n" in err
    assert err.count("\nW init_runtime: There is no rk3588 with id '515e9b401c060c0b' in reach") == 1
    assert rk3588.inference([picture()])[0].tobytes() == expected.tobytes()
    assert "Total Operator Elapsed" in rk3588.eval_perf(is_print=False)
    assert rk3588.eval_memory(is_print=False)["total_memory"] > 0
    assert rk3588.get_sdk_version().count("  DRV: ") == 2
    # Toolkit1's way of loading: the board's files are this machine's, as the board is this process.
    path = str(tmp_path / "m.rknn")
    assert rk3588.export_rknn(path) == 0
    assert rk3588.load_rknn(path, load_model_in_npu=True) == 0
    assert rk3588.init_runtime() == -1
    assert rk3588.init_runtime("RK3588", eval_mem=True) == 0
    assert rk3588.inference([picture()])[0].tobytes() == expected.tobytes()
    assert rk3588.eval_memory(is_print=False)["total_memory"] > 0
    assert rk3588.load_rknn(str(tmp_path / "none.rknn"), load_model_in_npu=True) == 0 and rk3588.init_runtime("rk3588") == -1


def test_a_device_can_be_demanded(rk3588, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("ORKNN_REQUIRE_DEVICE", "1")
    assert rk3588.init_runtime(target="rk3588") == -1
    assert "E init_runtime: Connect to Device Failure (-1): there is no rk3588 in reach" in capfd.readouterr().err
    assert rk3588.accuracy_analysis([str(tmp_path / "a.npy")], target="rk3588") == -1
    assert "Connect to Device Failure (-1)" in capfd.readouterr().err
    path = str(tmp_path / "m.rknn")
    assert rk3588.export_rknn(path) == 0
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0 and lite.init_runtime("rk3588") == -1
    assert "Connect to Device Failure (-1)" in capfd.readouterr().err
    assert lite.init_runtime() == -1, "the board that the program itself runs on has no NPU"


def test_targets_that_cannot_be(rk3588, tmp_path, capfd):
    for target, words in [
        ("rk9999", "rk9999"),
        ("rk2118", "takes no connection"),
        ("rk3566", "made for rk3588 and does not run on rk3566"),
    ]:
        assert rk3588.init_runtime(target=target) == -1
        assert words in capfd.readouterr().err
    path = str(tmp_path / "m.rknn")
    assert rk3588.export_rknn(path) == 0
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0 and lite.init_runtime(target="rv1106") == -1
    assert "does not run on rv1106" in capfd.readouterr().err
    assert lite.init_runtime(target="rk3588s", device_id="127.0.0.1:1") == 0
    assert "W There is no rk3588 with id '127.0.0.1:1' in reach" in capfd.readouterr().err


def test_toolkit1_form(conv_model, capfd):
    rknn = built(conv_model, ["rv1126"])
    assert rknn.init_runtime("rv1109", async_mode=False) == 0  # the same family
    assert "There is no rv1109 in reach" in capfd.readouterr().err
    assert isinstance(rknn.eval_perf(is_print=False), dict)
    assert rknn.get_sdk_version().count("  DRV: ") == 1
    rknn.release()


def test_list_of_no_devices(capsys):
    stars = "*" * 25
    for api in (RKNN(), RKNNLite()):
        capsys.readouterr()
        assert api.list_devices() == ([], [])
        assert capsys.readouterr().out == f"{stars}\nNone devices connected.\n{stars}\n"
        api.release()
