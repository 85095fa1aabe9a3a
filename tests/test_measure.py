"""eval_perf and eval_memory: the text clients search, the dictionaries they read."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from rknn.api import RKNN


@pytest.fixture
def model(make_onnx):
    weight = np.random.default_rng(3).standard_normal((32, 3, 3, 3)).astype(np.float32)
    return make_onnx(
        [("Conv", ["x", "w"], ["c"], dict(pads=[1, 1, 1, 1])), ("Relu", ["c"], ["y"], {})],
        {"x": ("float32", [1, 3, 64, 64])},
        {"y": ("float32", [1, 32, 64, 64])},
        {"w": weight},
    )


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
    assert text.startswith(
        "CPU Current Frequency List:\n    - 2256000\nNPU Current Frequency List:\n    - 1000000000\nDDR Current Frequency List:\n    - 2112000000\n"
    )
    assert last_total(text) > 0
    assert "Network Layer" not in text
    assert (
        "\nThe times are simulated" in text and "\nThe times are simulated" in made(model, "rk3588", perf_debug=True).eval_perf()
    )


def test_layer_table(model, capfd):
    rknn = made(model, "rk3588", perf_debug=True)
    text = rknn.eval_perf(is_print=False)
    assert capfd.readouterr().out == ""
    assert rknn.eval_perf(False) == text
    for part in (
        "Network Layer Information Table",
        "ConvRelu",
        "WorkLoad(0/1/2)",
        "FLOAT16",
        "(1,3,64,64),(32,3,3,3)",
        "Operator Time Consuming Ranking Table",
    ):
        assert part in text
    rows = [line.split() for line in text.splitlines() if re.match(r"\d+ +\w+Operator|\d+ +Conv", line)]
    assert [r[1] for r in rows] == ["InputOperator", "ConvRelu", "OutputOperator"]
    assert last_total(text) == sum(int(r[7]) for r in rows)
    assert "WorkLoad" not in made(model, "rk3562", perf_debug=True).eval_perf(is_print=False)


def test_core_mask(model, capfd):
    """The mask decides the time and the shares; masks of other chips are refused."""
    one, three = (
        last_total(made(model, "rk3588", core_mask=mask).eval_perf(is_print=False))
        for mask in (RKNN.NPU_CORE_1, RKNN.NPU_CORE_0_1_2)
    )
    assert three < one
    assert "32.8%/32.8%/34.4%" in made(model, "rk3588", core_mask=RKNN.NPU_CORE_ALL, perf_debug=True).eval_perf(
        is_print=False
    )  # 21, 21 and 22 of 64 rows
    for platform, mask in (
        ("rk3576", RKNN.NPU_CORE_2),
        ("rk3576", RKNN.NPU_CORE_0_1_2),
        ("rk3566", RKNN.NPU_CORE_0),
        ("rk3566", RKNN.NPU_CORE_ALL),
        ("rk3588", 5),
        ("rk3588", -1),
        ("rk3588", 2**40),
        ("rk3588", 2**70),
        ("rk3588", "1"),
    ):
        rknn = RKNN()
        rknn.config(target_platform=platform)
        assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0
        assert rknn.init_runtime(core_mask=mask) == -1, (platform, mask)
        lines = capfd.readouterr().err
        assert "core_mask" in lines and "incompatible" not in lines
        assert rknn.init_runtime() == 0


def test_unknown_speed(model, capfd):
    """A chip whose clock nobody published: no invented times."""
    rknn = made(model, "rv1103b", eval_mem=True)
    assert "Total Time(us): Unknown\n" in rknn.eval_perf() and "FPS: Unknown" in rknn.eval_perf(is_print=False)
    assert "speed of rv1103b is not published" in capfd.readouterr().err
    assert "Total Operator Elapsed Per Frame Time(us): Unknown\n" in made(model, "rv1103b", perf_debug=True).eval_perf(
        is_print=False
    )
    assert rknn.eval_memory(is_print=False)["total_memory"] > 0


def test_chip_without_floats(model, capfd):
    """A float model for a chip that multiplies in integers only: no time instead of one for the reference kernels."""
    assert "Total Time(us): Unknown\n" in made(model, "rv1106").eval_perf()
    assert "rv1106 cannot compute" in capfd.readouterr().err


def test_toolkit1(model, capfd):
    result = made(model, "rk1808").eval_perf(None, "uint8", "nhwc", loop_cnt=3)
    assert result["total_time"] == sum(layer["time"] for layer in result["layers"].values())
    assert list(result["layers"]) == [str(i) for i in range(len(result["layers"]))]
    out = capfd.readouterr().out
    assert f"Total Time(us): {result['total_time']}\n" in out and "FPS(800MHz): " in out and "Layer ID" in out
    made(model, "rv1126").eval_perf()
    assert "I The times are simulated" in capfd.readouterr().err
    made(model, "rv1126").eval_perf()
    assert "FPS(934MHz): " in capfd.readouterr().out


def test_memory(model, capfd):
    rknn = made(model, "rk3588", eval_mem=True)
    result = rknn.eval_memory()
    assert (
        result["total_memory"]
        == result["weight_memory"] + result["internal_memory"] + result["other_memory"]
        == result["total_model_allocation"]
    )
    assert result["weight_memory"] >= 32 * 27 * 2
    out = capfd.readouterr().out
    assert out.startswith("=" * 54 + "\n            Memory Profile Info Dump\n")
    for part in (
        "NPU model memory detail(bytes):\n    Weight Memory: ",
        "    Internal Tensor Memory: ",
        "    Other Memory: ",
        "    Total Memory: ",
        "INFO: When evaluating memory usage, we need consider\nthe size of model, current model size is: ",
    ):
        assert part in out
    old = made(model, "rk1808", eval_mem=True).eval_memory(is_print=False)
    assert (
        old["total_memory"]["maximum_allocation"]
        == old["system_memory"]["maximum_allocation"] + old["npu_memory"]["maximum_allocation"]
    )


def test_the_size_of_the_file_is_known_without_writing_it(model, tmp_path):
    """eval_memory works where no file may get a single byte, and gives the size that export_rknn writes."""
    path = str(tmp_path / "m.rknn")
    code = (
        "import resource, signal, sys; from rknn.api import RKNN\n"
        "r = RKNN(); r.config(target_platform='rk1808')\n"
        "assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0 and r.init_runtime(eval_mem=True) == 0\n"
        "limit = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))\n"
        "size = r.eval_memory(is_print=False)['system_memory']['total_allocation']\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, limit)\n"
        "assert r.export_rknn(sys.argv[2]) == 0\n"
        "print(size)"
    )
    done = subprocess.run([sys.executable, "-c", code, model, path], check=True, capture_output=True, text=True)
    assert int(done.stdout) == os.path.getsize(path)


def test_what_is_missing_is_said(model, capfd):
    rknn = made(model, "rk3588")
    assert rknn.eval_memory() is None
    assert "When init runtime, parameter <eval_mem> should be set to True" in capfd.readouterr().err
    assert RKNN().eval_perf() is None
    assert "init_runtime" in capfd.readouterr().err


def test_toolkit1_table():
    """Rules, centred title, four columns, long names on several lines, total and speed at the end."""
    from rknn.api import reports

    name = "convolution.relu.pooling.layer2_2/" + "x" * 60
    result = reports.performance_dict({"layers": [("tensor.transpose_3", None, 72), (name, 4, 363)]})
    assert result == {
        "total_time": 435,
        "layers": {"0": {"name": "tensor.transpose_3", "time": 72}, "1": {"name": name, "time": 363, "uid": 4}},
    }
    lines = reports.performance_table(result, 800).splitlines()
    rule = "=" * 80
    assert [lines[0], lines[1].strip(), lines[2], lines[-1]] == [rule, "Performance", rule, rule]
    assert lines[3].split() == ["Layer", "ID", "Name", "Uid", "Time(us)"]
    assert lines[4].split() == ["0", "tensor.transpose_3", "72"]
    assert lines[5].split()[0] == "1" and lines[5].split()[-2:] == ["4", "363"]
    assert lines[5].split()[1] + lines[6].strip() == name
    assert lines[-3:-1] == ["Total Time(us): 435", "FPS(800MHz): 2298.85"]


def test_toolkit1_memory():
    from rknn.api import reports

    facts = dict(weight=4 << 20, internal=2 << 20, other=1 << 20, file=5 << 20)
    result = reports.memory_dict_toolkit1(facts)
    assert list(result) == ["system_memory", "npu_memory", "total_memory"]
    assert all(set(part) == {"maximum_allocation", "total_allocation"} for part in result.values())
    text = reports.memory_text(result, facts)
    for part in (
        "System memory:\n    maximum allocation : 5.00 MiB\n    total allocation   : 5.00 MiB\n",
        "NPU memory:\n    maximum allocation : 7.00 MiB\n",
        "Total memory:\n    maximum allocation : 12.00 MiB\n",
        "current model size is: 5.00 MiB",
    ):
        assert part in text


def test_shorter_weights(make_onnx, capfd):
    """sparse_infer and compress_weight count where the chip has them, and say so where it does not."""
    weight = np.random.default_rng(5).standard_normal((64, 64, 3, 3)).astype(np.float32)
    weight[:, ::2] = 0
    path = make_onnx(
        [("Conv", ["x", "w"], ["y"], dict(pads=[1, 1, 1, 1]))],
        {"x": ("float32", [1, 64, 40, 40])},
        {"y": ("float32", [1, 64, 40, 40])},
        {"w": weight},
    )

    def built(platform, **config):
        rknn = RKNN()
        rknn.config(target_platform=platform, **config)
        assert (
            rknn.load_onnx(path) == 0
            and rknn.build(do_quantization=False) == 0
            and rknn.init_runtime(perf_debug=True, eval_mem=True) == 0
        )
        return rknn

    dense, sparse = (built("rk3576", sparse_infer=on).eval_perf(is_print=False) for on in (False, True))
    assert "SparseRation" not in dense and "SparseRation" in sparse and "50%(IC)" in sparse
    assert last_total(sparse) < last_total(dense)
    plain, compressed = (built("rk3588", compress_weight=on).eval_memory(is_print=False)["weight_memory"] for on in (False, True))
    assert compressed < 0.6 * plain
    capfd.readouterr()
    built("rk3566", sparse_infer=True, compress_weight=True)
    log = capfd.readouterr().err
    assert "'sparse_infer' has no effect on rk3566" in log and "'compress_weight' has no effect on rk3566" in log
