"""Command streams for the real NPU as a user sees them: emit, run --engine registers, info, ORKNN_ENGINE."""

import json
import os
import platform

import numpy as np
import pytest


@pytest.fixture
def source(tmp_path, make_onnx):
    """A small network with every kind of layer that has a recipe, on pictures that are not square, and a list of samples."""
    rng = np.random.default_rng(5)
    weights = {
        "w0": rng.standard_normal((24, 3, 3, 3), np.float32) * 0.3,
        "w1": rng.standard_normal((24, 1, 3, 3), np.float32) * 0.5,
        "w2": rng.standard_normal((40, 24, 1, 1), np.float32) * 0.3,
        "w3": rng.standard_normal((40, 40, 3, 3), np.float32) * 0.1,
        "w4": rng.standard_normal((40, 11), np.float32) * 0.3,
    }
    weights |= {f"b{i}": rng.standard_normal(n).astype(np.float32) for i, n in enumerate((24, 24, 40, 40))}
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        ("Conv", ["x", "w0", "b0"], ["c0"], {"strides": [2, 2], **same}),
        ("Clip", ["c0", "zero", "six"], ["r0"], {}),
        ("Conv", ["r0", "w1", "b1"], ["c1"], {"group": 24, **same}),
        ("Relu", ["c1"], ["r1"], {}),
        ("Conv", ["r1", "w2", "b2"], ["c2"], {}),
        ("Conv", ["c2", "w3", "b3"], ["c3"], same),
        ("Add", ["c3", "c2"], ["a"], {}),
        ("Relu", ["a"], ["r"], {}),
        ("MaxPool", ["r"], ["m"], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("GlobalAveragePool", ["m"], ["g"], {}),
        ("Flatten", ["g"], ["f"], {}),
        ("MatMul", ["f", "w4"], ["y"], {}),
    ]
    limits = {"zero": np.float32(0), "six": np.float32(6)}
    model = make_onnx(nodes, {"x": ("float32", [1, 3, 37, 50])}, {"y": ("float32", [1, 11])}, weights | limits)
    samples = []
    for i in range(3):
        samples.append(tmp_path / f"sample_{i}.npy")
        np.save(samples[-1], rng.standard_normal((1, 3, 37, 50)).astype(np.float32))
    (tmp_path / "list.txt").write_text("\n".join(map(str, samples)))
    return model, samples[0]


@pytest.fixture
def network(tmp_path, source, openrknn):
    """The network in int8."""
    model, sample = source
    done = openrknn("quantize", model, "--dataset", tmp_path / "list.txt", "-o", tmp_path / "net.rknn", "-t", "rk3588")
    assert done.returncode == 0, done.stderr
    return tmp_path / "net.rknn", sample


@pytest.fixture
def float_network(tmp_path, source, openrknn):
    """The network in float16."""
    model, sample = source
    done = openrknn("convert", model, "-o", tmp_path / "float.rknn", "-t", "rk3588", "--registers")
    assert done.returncode == 0, done.stderr
    return tmp_path / "float.rknn", sample


def test_streams_give_every_tensor_of_the_simulator(network, openrknn):
    model, sample = network
    done = openrknn("run", model, "--input", sample, "--verify", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["different"] == 0 and result["tensors"] >= 8 and result["unit"]


def test_both_engines_write_the_same_outputs(tmp_path, network, openrknn):
    model, sample = network
    outputs = {}
    for engine in ("simulator", "registers"):
        (tmp_path / engine).mkdir()
        done = openrknn("run", model, "--input", sample, "--engine", engine, "--out", tmp_path / engine)
        assert done.returncode == 0, done.stderr
        outputs[engine] = (tmp_path / engine / "output_0.npy").read_bytes()
    assert outputs["simulator"] == outputs["registers"]
    layers = json.loads(openrknn("run", model, "--engine", "registers", "--layers", "--json").stdout)["layers"]
    assert sum(layer["kernel"] == "command stream" for layer in layers) >= 6


def test_info_says_what_runs_as_streams_and_why_not(network, openrknn):
    model, _ = network
    streams = json.loads(openrknn("info", model, "--json").stdout)["streams"]
    assert streams["mac_share"] > 0.99 and streams["tasks"] >= 6
    for layer in streams["layers"]:
        assert layer["tasks"] > 0 or layer["reason"], layer
    text = openrknn("info", model).stdout
    assert "Command streams" in text and "not run on a board" in text


def test_float16_streams_give_the_simulator_up_to_the_order_of_additions(tmp_path, float_network, openrknn):
    model, sample = float_network
    done = openrknn("run", model, "--input", sample, "--verify", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["different"] == 0 and result["tensors"] >= 8 and "layers" not in result
    streams = json.loads(openrknn("info", model, "--json").stdout)["streams"]
    assert streams["mac_share"] > 0.99 and streams["stored_bytes"] > 0
    outputs = {}
    for engine in ("simulator", "registers"):
        (tmp_path / engine).mkdir()
        done = openrknn("run", model, "--input", sample, "--engine", engine, "--out", tmp_path / engine)
        assert done.returncode == 0, done.stderr
        outputs[engine] = np.load(tmp_path / engine / "output_0.npy")
    np.testing.assert_allclose(outputs["registers"], outputs["simulator"], rtol=0.01, atol=0.01)


def small_networks():
    """Families of layers: nodes, shape of x, shape of y, constants."""
    rng = np.random.default_rng(8)

    def numbers(*dims):
        return rng.standard_normal(dims, np.float32) * np.float32(0.3)

    same = {"pads": [1, 1, 1, 1]}
    constants = {"w0": numbers(64, 5, 3, 3), "w1": numbers(24, 32, 1, 1), "w2": numbers(24, 32, 1, 1)}
    constants |= {name: np.array([value]) for name, value in (("zero", 0), ("half", 32), ("all", 64), ("one", 1))}
    slices = [
        ("Conv", ["x", "w0"], ["c"], same),
        ("Slice", ["c", "zero", "half", "one"], ["left"], {}),
        ("Slice", ["c", "half", "all", "one"], ["right"], {}),
        ("Conv", ["left", "w1"], ["a"], {}),
        ("Conv", ["right", "w2"], ["b"], {}),
        ("Add", ["a", "b"], ["y"], {}),
    ]
    yield "slices", slices, [1, 5, 13, 22], [1, 24, 13, 22], constants
    groups = [("Conv", ["x", "w"], ["c"], {"group": 4, **same}), ("Relu", ["c"], ["y"], {})]
    yield "groups", groups, [1, 24, 10, 12], [1, 40, 10, 12], {"w": numbers(40, 6, 3, 3)}
    rows = [("MatMul", ["x", "w"], ["m"], {}), ("Add", ["m", "b"], ["y"], {})]
    yield "rows", rows, [1, 7, 48], [1, 7, 70], {"w": numbers(48, 70), "b": numbers(70)}
    functions = [
        ("Conv", ["x", "w0"], ["c"], {"group": 40, **same}),
        ("Sigmoid", ["c"], ["s"], {}),
        ("Conv", ["s", "w1"], ["d"], {}),
        ("HardSwish", ["d"], ["y"], {}),
    ]
    yield "functions", functions, [1, 40, 9, 14], [1, 12, 9, 14], {"w0": numbers(40, 1, 3, 3), "w1": numbers(12, 40, 1, 1)}
    join = [
        ("Conv", ["x", "w0"], ["a"], {}),
        ("Relu", ["a"], ["left"], {}),
        ("Conv", ["x", "w1"], ["b"], {}),
        ("Relu", ["b"], ["right"], {}),
        ("Concat", ["left", "right"], ["k"], {"axis": 1}),
        ("Conv", ["k", "w2"], ["y"], same),
    ]
    constants = {"w0": numbers(32, 16, 1, 1), "w1": numbers(40, 16, 1, 1), "w2": numbers(9, 72, 3, 3)}
    yield "join", join, [1, 16, 9, 31], [1, 9, 9, 31], constants


@pytest.mark.parametrize(
    "name, nodes, x, y, constants", list(small_networks()), ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_families_of_layers_run_as_streams(tmp_path, make_onnx, openrknn, precision, name, nodes, x, y, constants):
    model = make_onnx(nodes, {"x": ("float32", x)}, {"y": ("float32", y)}, constants)
    sample = tmp_path / "sample.npy"
    np.save(sample, np.random.default_rng(2).standard_normal(x).astype(np.float32))
    (tmp_path / "list.txt").write_text(str(sample))
    how = ("quantize", model, "--dataset", tmp_path / "list.txt") if precision == "int8" else ("convert", model)
    done = openrknn(*how, "-o", tmp_path / "m.rknn", "-t", "rk3588", "--registers")
    assert done.returncode == 0, done.stderr
    done = openrknn("run", tmp_path / "m.rknn", "--input", sample, "--verify", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["different"] == 0, done.stderr
    streams = json.loads(openrknn("info", tmp_path / "m.rknn", "--json").stdout)["streams"]
    assert streams["mac_share"] == 1
    moves = [layer for layer in streams["layers"] if layer["type"] in ("Slice", "Concat")]
    assert all("needs no task" in layer["reason"] for layer in moves) and len(moves) == (
        2 if name == "slices" else name == "join"
    )


def test_engines_are_compared_layer_by_layer(tmp_path, network, float_network, openrknn):
    for model in (network[0], float_network[0]):
        done = openrknn("compare", model, "--engines", "--dataset", tmp_path / "list.txt", "--json")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["different"] == 0
        assert sum(layer["stream"] for layer in result["layers"]) >= 6
        assert all(layer["beyond"] == 0 for layer in result["layers"])
    text = openrknn("compare", network[0], "--engines", "--dataset", tmp_path / "list.txt").stdout
    assert "stream" in text and "0 differ" in text
    wrong = openrknn("compare", network[0], network[0], "--engines", "--dataset", tmp_path / "list.txt")
    assert wrong.returncode == 1 and "--engines" in wrong.stderr


def test_info_says_how_tensors_lie_in_memory(network, openrknn):
    model, _ = network
    forms = json.loads(openrknn("info", model, "--json").stdout)["forms"]
    maps = [t for t in forms["tensors"] if t["form"] == "NC1HWC2"]
    assert maps and all(t["shape"].count(",") == 3 for t in maps)
    assert len(forms["conversions"]) < len(maps)
    names = {t["name"] for t in forms["tensors"]}
    assert all(c["to"] in ("rows", "NC1HWC2") for c in forms["conversions"])
    assert all(c["tensor"] in names for c in forms["conversions"] if c["to"] == "rows")
    text = openrknn("info", model).stdout
    assert "Forms in memory" in text and f"{len(forms['conversions'])} conversions" in text


def test_the_engine_is_chosen_by_the_environment(network, openrknn):
    model, _ = network
    layers = openrknn("run", model, "--layers", "--json", env=dict(os.environ, ORKNN_ENGINE="registers"))
    assert "command stream" in layers.stdout
    wrong = openrknn("run", model, env=dict(os.environ, ORKNN_ENGINE="board"))
    assert wrong.returncode == 1 and "simulator, registers or npu" in wrong.stderr


@pytest.mark.skipif(platform.machine() == "aarch64", reason="this may be a board")
def test_a_comparison_on_the_npu_needs_an_npu(tmp_path, network, openrknn):
    model, sample = network
    compare = ("compare", model, "--engines", "--dataset", tmp_path / "list.txt")
    npu = dict(os.environ, ORKNN_ENGINE="npu")
    for done in (
        openrknn("run", model, "--input", sample, "--engine", "npu"),
        openrknn("run", model, "--input", sample, "--engine", "npu", "--verify"),
        openrknn(*compare, env=npu),
    ):
        assert done.returncode == 1 and "no NPU" in done.stderr
    for engine in ("simulator", "registers"):
        done = openrknn("run", model, "--input", sample, "--engine", engine, "--verify")
        assert done.returncode == 0 and "computed by the chip model" in done.stdout


def test_calibration_measures_on_the_simulator(tmp_path, source, network, openrknn):
    model, _ = source
    for engine in ("registers", "npu"):
        again = tmp_path / f"{engine}.rknn"
        done = openrknn(
            *("quantize", model, "--dataset", tmp_path / "list.txt", "-o", again, "-t", "rk3588"),
            env=dict(os.environ, ORKNN_ENGINE=engine),
        )
        assert done.returncode == 0, done.stderr
        assert again.read_bytes() == network[0].read_bytes()


def test_other_chips_have_no_streams(tmp_path, make_onnx, openrknn):
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [1, 4, 4, 4])}, {"y": ("float32", [1, 4, 4, 4])})
    assert openrknn("convert", model, "-o", tmp_path / "m.rknn", "-t", "rv1106").returncode == 0
    done = openrknn("run", tmp_path / "m.rknn", "--engine", "registers")
    assert done.returncode == 1 and "registers" in done.stderr
    assert "streams" not in json.loads(openrknn("info", tmp_path / "m.rknn", "--json").stdout)


def test_emit_writes_a_folder_that_executes(tmp_path, root, openrknn):
    for layer in sorted((root / "tests" / "data" / "npu").iterdir()):
        if not layer.is_dir():
            continue
        done = openrknn("emit", layer, "-o", tmp_path / layer.name, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["tasks"] == 1
        again = openrknn("emit", tmp_path / layer.name, "--execute", "--json")
        assert again.returncode == 0 and json.loads(again.stdout)["different"] == 0
        assert "OPERATION_ENABLE" in openrknn("emit", tmp_path / layer.name, "--disassemble").stdout
    output = np.load(tmp_path / "odd_channels" / "output.npy")
    np.save(tmp_path / "odd_channels" / "output.npy", output + 1)
    wrong = openrknn("emit", tmp_path / "odd_channels", "-o", tmp_path / "again")
    assert wrong.returncode == 1 and "output.npy" in wrong.stderr


def test_files_hold_streams_unless_told_otherwise(network, tmp_path, openrknn):
    """By default all but the weights, with --registers these too in packed form, with --remove-streams nothing."""
    model, sample = network
    onnx = next(tmp_path.rglob("*.onnx"))
    sizes = {}
    for option in ("", "--registers", "--remove-streams"):
        options = ("--dataset", tmp_path / "list.txt", "-t", "rk3588", *([option] if option else []))
        for name in ("one.rknn", "two.rknn"):
            done = openrknn("quantize", onnx, "-o", tmp_path / name, *options)
            assert done.returncode == 0, done.stderr
        stored = (tmp_path / "one.rknn").read_bytes()
        assert stored == (tmp_path / "two.rknn").read_bytes()
        sizes[option] = len(stored)
        streams = json.loads(openrknn("info", tmp_path / "one.rknn", "--json").stdout)["streams"]
        assert streams["mac_share"] == 1 and streams["stores_weights"] == (option == "--registers")
        assert (streams["stored_bytes"] > streams["stream_bytes"]) == (option != "--remove-streams")
        assert (streams["stored_bytes"] > streams["stream_bytes"] + streams["packed_bytes"]) == (option == "--registers")
        done = openrknn("run", tmp_path / "one.rknn", "--input", sample, "--verify", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["different"] == 0, done.stderr
    assert (tmp_path / "net.rknn").stat().st_size == sizes[""]
    assert sizes["--remove-streams"] < sizes[""] < sizes["--registers"]
    refused = openrknn("quantize", onnx, "-o", tmp_path / "m.rknn", *options, "--registers")
    assert refused.returncode == 1 and "'remove_streams' leaves out" in refused.stderr


def test_board_test_says_that_it_did_not_run_on_a_board(tmp_path, openrknn):
    done = openrknn("board-test", "--chip-model", "-o", tmp_path / "report.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tmp_path / "report.txt").read_text()
    assert "not run on a board" in report and "depthwise 3x3" in report and "different" not in report
    families = json.loads(openrknn("board-test", "--chip-model", "--json").stdout)
    assert not families["run_on_a_board"] and len(families["families"]) >= 45
