"""eval_perf and eval_memory: the text clients search, the dictionaries they read."""
import re

import numpy as np
import pytest
from rknn.api import RKNN


@pytest.fixture
def model(make_onnx):
    weight = np.random.default_rng(3).standard_normal((32, 3, 3, 3)).astype(np.float32)
    return make_onnx([("Conv", ["x", "w"], ["c"], dict(pads=[1, 1, 1, 1])), ("Relu", ["c"], ["y"], {})],
                     {"x": ("float32", [1, 3, 64, 64])}, {"y": ("float32", [1, 32, 64, 64])}, {"w": weight})


def made(model, platform, **runtime):
    rknn = RKNN()
    rknn.config(target_platform=platform)
    assert rknn.load_onnx(model) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime(**runtime) == 0
    return rknn


def last_total(text):
    """How a known client finds the total."""
    return int(text.split("Time(us): ")[-1].split("\n")[0])


def test_total_only(model, capfd):
    text = made(model, "rk3588").eval_perf()
    out, err = capfd.readouterr()
    assert text in out and "I You can set perf_debug to True in init_runtime" in err
    assert text.startswith("CPU Current Frequency List:\n    - 2256000\nNPU Current Frequency List:\n    - 1000000000\nDDR Current Frequency List:\n    - 2112000000\n")
    assert last_total(text) > 0
    assert "Network Layer" not in text


def test_layer_table(model, capfd):
    rknn = made(model, "rk3588", perf_debug=True)
    text = rknn.eval_perf(is_print=False)
    assert capfd.readouterr().out == ""
    assert rknn.eval_perf(False) == text
    for part in ("Network Layer Information Table", "ConvRelu", "WorkLoad(0/1/2)", "FLOAT16", "(1,3,64,64),(32,3,3,3)", "Operator Time Consuming Ranking Table"):
        assert part in text
    rows = [line.split() for line in text.splitlines() if re.match(r"\d+ +\w+Operator|\d+ +Conv", line)]
    assert [r[1] for r in rows] == ["InputOperator", "ConvRelu", "OutputOperator"]
    assert last_total(text) == sum(int(r[7]) for r in rows)
    assert "WorkLoad" not in made(model, "rk3562", perf_debug=True).eval_perf(is_print=False)


def test_toolkit1(model, capfd):
    result = made(model, "rk1808").eval_perf(None, "uint8", "nhwc", loop_cnt=3)
    assert result["total_time"] == sum(layer["time"] for layer in result["layers"].values())
    assert list(result["layers"]) == [str(i) for i in range(len(result["layers"]))]
    out = capfd.readouterr().out
    assert f"Total Time(us): {result['total_time']}\n" in out and "FPS(" in out and "Layer ID" in out


def test_memory(model, capfd):
    rknn = made(model, "rk3588", eval_mem=True)
    result = rknn.eval_memory()
    assert result["total_memory"] == result["weight_memory"] + result["internal_memory"] + result["other_memory"] == result["total_model_allocation"]
    assert result["weight_memory"] >= 32 * 27 * 2
    out = capfd.readouterr().out
    assert out.startswith("=" * 54 + "\n            Memory Profile Info Dump\n")
    for part in ("NPU model memory detail(bytes):\n    Weight Memory: ", "    Internal Tensor Memory: ", "    Other Memory: ", "    Total Memory: ",
                 "INFO: When evaluating memory usage, we need consider\nthe size of model, current model size is: "):
        assert part in out
    old = made(model, "rk1808", eval_mem=True).eval_memory(is_print=False)
    assert old["total_memory"]["maximum_allocation"] == old["system_memory"]["maximum_allocation"] + old["npu_memory"]["maximum_allocation"]


def test_what_is_missing_is_said(model, capfd):
    rknn = made(model, "rk3588")
    assert rknn.eval_memory() is None
    assert "When init runtime, parameter <eval_mem> should be set to True" in capfd.readouterr().err
    assert RKNN().eval_perf() is None
    assert "init_runtime" in capfd.readouterr().err
