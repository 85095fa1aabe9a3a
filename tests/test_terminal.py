"""What reaches a terminal: lines that fit, and no control characters but the program's own."""

import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rknn.api import RKNN
from rknn.api.reports import fitted

PROGRAM = pathlib.Path(sys.executable).parent / "openrknn"
LONG = "backbone/stage_4/residual_block_2/convolution_with_a_long_name/output"
ESCAPE = "\x1b[31mred\nE build: all is lost\u202e"
CONTROL = re.compile("[\x1b\u202e]|^E build: all is lost", re.MULTILINE)


def save_model(path, name):
    """Two layers whose names and ports all have `name` in them."""
    weights = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32), name + "/w")
    nodes = [
        helper.make_node("Conv", [name, name + "/w"], [name + "/c"], name=name + "_conv"),
        helper.make_node("Sigmoid", [name + "/c"], [name + "/y"], name=name + "_act"),
    ]
    port = lambda tail, shape: helper.make_tensor_value_info(name + tail, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [port("", [1, 3, 16, 16])], [port("/y", None)], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    save_model(folder / "long.onnx", LONG)
    save_model(folder / "escape.onnx", ESCAPE)
    samples = [np.random.default_rng(i).random((1, 3, 16, 16), np.float32) for i in range(2)]
    for i, sample in enumerate(samples):
        np.save(folder / f"{i}.npy", sample)
    (folder / "list.txt").write_text("0.npy\n1.npy\n")
    (folder / "samples").mkdir()
    np.save(folder / "samples" / "0.npy", samples[0])
    return folder


def on_terminal(*arguments, columns=80):
    """What the program writes to a terminal of so many columns."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=its, stderr=subprocess.PIPE)
    os.close(its)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # its side is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait() == 0, process.stderr.read()
    return text.decode().replace("\r\n", "\n")


TABLES = [
    "platforms",
    "passes",
    "ops",
    "info {m} -t rk3588",
    "info {m} -t rk3588 --brief",
    "profile {m}",
    "profile {m} --platform rk3588",
]


@pytest.mark.parametrize(
    "arguments",
    [
        *TABLES,
        "run {m} -t rk3588 --layers",
        "compare {m} {m} --images {f}/samples",
        "analyse {m} -t rk3588 --dataset {f}/list.txt",
    ],
)
def test_lines_fit_the_terminal(arguments, folder, openrknn):
    words = arguments.format(m=folder / "long.onnx", f=folder).split()
    text = on_terminal(*words)
    assert max(map(len, text.splitlines())) <= 80
    piped = openrknn(*words).stdout
    if "{m}" in arguments and "profile" not in arguments:
        assert "…" in text and "…" not in piped and LONG in piped


COMMANDS = [
    "info {m} -t rk3588",
    "convert {m} -o {f}/e.rknn -t rk3588 --trace",
    "quantize {m} -o {f}/e.rknn -t rk3588 --dataset {f}/list.txt",
    "analyse {m} -t rk3588 --dataset {f}/list.txt",
    "compare {m} {m} --images {f}/samples",
    "run {m} -t rk3588 --layers",
    "profile {m} --platform rk3588 --layers",
    "profile {m}",
    "convert {m} -o {f}/e.rknn -t rk3588 --dump-after drop_identity",
    "run {m} -t rk3588 --input {f}/list.txt",
    "convert {m} -o {f}/e.rknn -t rk3588 --outputs nothing",
    "convert {m} -o {f}/e.rknn -t rk3588 --op-target nothing=cpu",
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_names_cannot_control_the_terminal(arguments, folder):
    words = arguments.format(m=folder / "escape.onnx", f=folder).split()
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    assert not CONTROL.search(done.stdout) and not CONTROL.search(done.stderr)


def test_names_in_python_cannot_control_the_terminal(folder, capfd):
    rknn = RKNN(verbose=True)
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(folder / "escape.onnx")) == 0
    assert rknn.build(do_quantization=True, dataset=str(folder / "list.txt")) == 0
    assert rknn.init_runtime(perf_debug=True, eval_mem=True) == 0
    rknn.eval_perf()
    rknn.eval_memory()
    assert rknn.accuracy_analysis([str(folder / "0.npy")], output_dir=None) == 0
    assert rknn.export_rknn(str(folder / "escape.rknn")) == 0
    assert rknn.load_onnx(str(folder / "escape.onnx"), outputs=[ESCAPE + "/nothing"]) == -1
    assert rknn.load_onnx(str(folder / "escape.onnx"), outputs=[ESCAPE + "/c"]) == 0, "the model's own name"
    assert rknn.load_rknn(str(folder / "escape.rknn")) == 0 and rknn.init_runtime() == 0
    with pytest.raises(ValueError) as problem:
        rknn.inference(["a.png"])
    assert "red" in str(problem.value)
    for text in (str(problem.value), *capfd.readouterr()):
        assert not CONTROL.search(text)


def test_performance_fits_the_terminal(folder):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(folder / "long.onnx")) == 0 and rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime(perf_debug=True) == 0
    text = rknn.eval_perf(is_print=False)
    assert max(map(len, text.splitlines())) > 150, "programs read the whole table"
    for width in (80, 120):
        lines = fitted(text, width).splitlines()
        assert max(map(len, lines)) <= width
        assert any("…" in line for line in lines) and any(line.startswith("(no room for: ") for line in lines)
        assert sum("NPU" in line for line in lines) >= 2, "the layers"
    assert fitted(text, 300) == text


def test_a_closed_stdout_is_an_error():
    done = subprocess.run(["bash", "-c", f"{PROGRAM} ops >&-"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "the output could not be written" in done.stderr


NOBODY_READS = """
import rknn.api.log as log
log.PATIENCE = 0.2
for i in range(5000):
    log.write_stderr(f"W line {i} of many that nobody reads\\n")
print("done", flush=True)
input()
log.write_stderr("W again\\n")
"""


def test_a_full_pipe_stops_no_program():
    words = [sys.executable, "-c", NOBODY_READS]
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "done\n"
    before = os.read(program.stderr.fileno(), 1 << 20)
    assert before.startswith(b"W line 0 of many")
    assert program.communicate("\n")[1].endswith(" log lines were left out: they were not read in time.\nW again\n")


@pytest.mark.parametrize("command", ["", *"convert quantize analyse compare run info profile platforms passes ops".split()])
def test_help_has_examples_and_defaults(command, openrknn):
    whole = openrknn(*command.split(), "--help").stdout
    assert max(map(len, whole.splitlines())) <= 80
    text = re.sub(r"(?<!:)( \\)?\n +", " ", whole)  # as if nothing were wrapped
    assert "Examples:\n  openrknn " + command in text
    if command in ("convert", "quantize", "analyse", "run", "info", "profile", "compare"):
        assert "rk3566 by default" in text and "onnx, " in text and "tflite" in text
        assert "in [0 - 3]=3" in text, "the default level"
