"""The openrknn command as a user types it."""

import json
import os
import re
import struct
import subprocess
import zipfile

import numpy as np
import pytest


@pytest.fixture
def converted(tmp_path, shapes_model, openrknn):
    path = tmp_path / "shapes.rknn"
    done = openrknn("convert", shapes_model, "-o", path, "-t", "rk3588")
    assert done.returncode == 0, done.stderr
    return path


def test_convert_run_info(tmp_path, converted, shapes_model, openrknn, build):
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", image)
    done = openrknn("run", converted, "--input", tmp_path / "x.npy", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    outputs = [p for p in tmp_path.glob("*.npy") if p.name != "x.npy"]
    assert len(outputs) == 1
    expected = build(shapes_model, float_dtype="float16").inference([image], data_format="nchw")[0]
    np.testing.assert_array_equal(np.load(outputs[0]), expected)
    info = openrknn("info", converted)
    assert info.returncode == 0 and "Conv" in info.stdout and "NPU" in info.stdout and "\033[" not in info.stdout
    as_json = json.loads(openrknn("info", converted, "--json").stdout)
    assert as_json["target_platform"] == "rk3588" and as_json["platforms"] == ["rk3588"]


def test_info_names_every_chip_of_the_list(tmp_path, shapes_model, openrknn, build):
    path = tmp_path / "listed.rknn"
    assert build(shapes_model, target_platform=["rk3566", "rk3568"]).export_rknn(str(path)) == 0
    assert re.search(r"^made for +rk3566, rk3568$", openrknn("info", path).stdout, re.MULTILINE)
    as_json = json.loads(openrknn("info", path, "--json").stdout)
    assert as_json["target_platform"] == "rk3566" and as_json["platforms"] == ["rk3566", "rk3568"]


def test_lists_and_directories(root, openrknn):
    assert "rk3588" in openrknn("platforms").stdout.lower()
    assert json.loads(openrknn("platforms", "--json").stdout)
    assert "Conv" in openrknn("ops").stdout and "fold_constants" in openrknn("passes").stdout
    assert json.loads(openrknn("ops", "--json").stdout) and json.loads(openrknn("passes", "--json").stdout)
    import pathlib

    assert (pathlib.Path(openrknn("--libdir").stdout.strip()) / "librknnrt.so").exists()
    assert (pathlib.Path(openrknn("--includedir").stdout.strip()) / "rknn_api.h").exists()


@pytest.fixture
def norm_model(make_onnx):
    """Identity, Conv, BatchNormalization and Relu: one layer after optimizing."""
    norm = {name: np.full(4, value, np.float32) for name, value in (("scale", 2), ("bias", 1), ("mean", 0.5), ("var", 1))}
    return make_onnx(
        [
            ("Identity", ["x"], ["i"], {}),
            ("Conv", ["i", "w"], ["c"], {}),
            ("BatchNormalization", ["c", *norm], ["n"], {}),
            ("Relu", ["n"], ["y"], {}),
        ],
        {"x": ("float32", [1, 3, 8, 8])},
        {"y": ("float32", [1, 4, 6, 6])},
        {"w": np.ones((4, 3, 3, 3), np.float32), **norm},
    )


def test_pass_switches(tmp_path, norm_model, openrknn):
    def convert(*args):
        done = openrknn("convert", norm_model, "-o", tmp_path / "a.rknn", "-t", "rk3588", "--json", *args)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        return [layer["type"] for layer in answer["model"]["programs"][0]["layers"]], [
            entry["pass"] for entry in answer.get("trace", [])
        ]

    layers, passes = convert("--trace")
    assert layers == ["ConvRelu"] and {"drop_identity", "fold_batch_norm"} <= set(passes)
    assert convert()[1] == []
    layers, passes = convert("--trace", "--disable", "fold_batch_norm,fuse_activation")  # a list, or the option several times
    assert "Conv" in layers and "ConvRelu" not in layers and "fold_batch_norm" not in passes and "drop_identity" in passes
    assert convert("--trace", "--disable", "fold_batch_norm", "--disable", "fuse_activation") == (layers, passes)
    layers, passes = convert("--trace", "--stop-after", "drop_identity")
    assert (
        "BatchNormalization" in layers
        and "Identity" not in layers
        and set(passes) <= {"fold_constants", "remove_dead_code", "inline_constant_if", "unroll_loops", "drop_identity"}
    )
    assert convert("--trace", "--max-rewrites", 0)[1] == [] and len(convert("--trace", "--max-rewrites", 1)[1]) == 1

    done = openrknn("convert", norm_model, "-o", tmp_path / "a.rknn", "-t", "rk3588", "--dump-after", "fold_batch_norm")
    assert done.returncode == 0 and "after fold_batch_norm:\ngraph " in done.stdout and "BatchNormalization(" not in done.stdout
    assert (
        convert("--dump-after", f"drop_identity={tmp_path / 'dump.ir'}")
        and "BatchNormalization(" in (tmp_path / "dump.ir").read_text()
    )
    done = openrknn(
        "convert", norm_model, "-o", tmp_path / "b.rknn", "-t", "rk3588", "--dump-after", "drop_identity=/nonexistent/dump"
    )
    assert done.returncode != 0 and done.stderr.count("/nonexistent/dump") == 1 and not (tmp_path / "b.rknn").exists(), (
        done.stderr
    )
    for switch in ("--stop-after", "--dump-after"):
        done = openrknn("convert", norm_model, "-o", tmp_path / "b.rknn", "-t", "rk3588", switch, "no_such_pass")
        assert done.returncode != 0 and "no_such_pass" in done.stderr and "fold_constants" in done.stderr


def test_messages_fit_what_was_typed(tmp_path, converted, shapes_model, openrknn):
    np.save(tmp_path / "picture.npy", np.zeros((1, 64, 64, 3), np.uint8))
    done = openrknn("run", converted, "--input", tmp_path / "picture.npy")
    assert done.returncode == 1 and "add --layout nhwc" in done.stderr, done.stderr
    assert openrknn("run", converted, "--input", tmp_path / "picture.npy", "--layout", "nhwc").returncode == 0
    done = openrknn("convert", shapes_model, "-o", tmp_path / "x.rknn", "-t", "rk3588", "--mean", "abc")
    assert "123.675,116.28,103.53" in done.stderr and "224" not in done.stderr, done.stderr
    done = openrknn("convert", shapes_model, "-o", tmp_path / "x.rknn", "-t", "rk3588", "--mean", "nan,nan,nan")
    assert done.stderr.count("expect finite numbers") == 1, done.stderr
    assert (
        " in the file, " in openrknn("info", converted).stdout and "as the NPU packs them" in openrknn("info", converted).stdout
    )


@pytest.mark.parametrize(
    "args",
    [
        ["convert", "missing.onnx", "-o", "x.rknn", "-t", "rk3588"],
        ["info", "missing.rknn"],
        ["run", "missing.rknn"],
        ["convert", "{model}", "-o", "/nonexistent/x.rknn", "-t", "rk3588"],
        ["convert", "{model}", "-o", "x.rknn", "-t", "rk0"],
    ],
)
def test_errors_go_to_stderr(tmp_path, shapes_model, openrknn, args):
    done = openrknn(*[a.format(model=shapes_model) for a in args], cwd=tmp_path)
    assert done.returncode in (1, 2) and done.stderr.strip() and list(tmp_path.iterdir()) == []


def write_mxnet(folder, op="Activation", weights=True):
    """A symbol of one fully connected layer and one more operator, with its parameters beside it."""
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "fc_weight", "inputs": []},
        {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
        {"op": op, "name": "last", "attrs": {"act_type": "relu"}, "inputs": [[2, 0, 0]]},
    ]
    symbol = folder / "net-symbol.json"
    symbol.write_text(
        json.dumps({"nodes": nodes, "arg_nodes": [0, 1], "heads": [[3, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})
    )
    if weights:
        array = struct.pack("<IiIqqiii", 0xF993FAC9, 0, 2, 2, 3, 1, 0, 0) + np.arange(6, dtype="<f4").tobytes()
        name = b"arg:fc_weight"
        (folder / "net-0001.params").write_bytes(
            struct.pack("<QQQ", 0x112, 0, 1) + array + struct.pack("<QQ", 1, len(name)) + name
        )
    return symbol


def test_format_is_recognized_and_weights_are_found(tmp_path, openrknn):
    symbol = write_mxnet(tmp_path)
    data = tmp_path / "x.npy"
    np.save(data, np.ones((1, 3), np.float32))
    done = openrknn(
        "convert", symbol, "-o", tmp_path / "net.rknn", "-t", "rk3588", "--float-dtype", "float32", "--input-size-list", "1,3"
    )
    assert done.returncode == 0, done.stderr
    assert "random" not in done.stderr and f"weights: {tmp_path / 'net-0001.params'}" in done.stderr, done.stderr
    done = openrknn("run", tmp_path / "net.rknn", "--input", data, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    output = next(p for p in tmp_path.glob("*.npy") if p != data)
    np.testing.assert_array_equal(np.load(output).ravel(), [3, 12])
    renamed = symbol.rename(tmp_path / "net.bin")  # the ending tells nothing, the bytes do
    done = openrknn("convert", renamed, "-o", tmp_path / "again.rknn", "-t", "rk3588", "--input-size-list", "1,3")
    assert done.returncode == 0 and "random" not in done.stderr, done.stderr


def write_pt2(folder):
    """An archive of torch.export: relu(x * w)."""
    tensor = lambda name: {"as_tensor": {"name": name}}
    node = lambda op, output, **inputs: {
        "target": f"torch.ops.aten.{op}",
        "outputs": [tensor(output)],
        "metadata": {},
        "inputs": [{"name": name, "arg": tensor(value), "kind": 1} for name, value in inputs.items()],
    }
    sizes = lambda *extents: [{"as_int": e} for e in extents]
    meta = lambda *extents: {
        "dtype": 7,
        "sizes": sizes(*extents),
        "strides": sizes(1),
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }
    graph = {
        "nodes": [node("mul.Tensor", "m", self="x", other="p_w"), node("relu.default", "y", self="m")],
        "tensor_values": {"x": meta(3)},
    }
    signature = {
        "input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}, {"user_input": {"arg": tensor("x")}}],
        "output_specs": [{"user_output": {"arg": tensor("y")}}],
    }
    path = folder / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "net/models/model.json",
            json.dumps({"graph_module": {"graph": graph, "signature": signature}, "torch_version": "2.9.0"}),
        )
        archive.writestr(
            "net/data/weights/model_weights_config.json",
            json.dumps({"config": {"w": {"path_name": "weight_0", "tensor_meta": meta(3)}}}),
        )
        archive.writestr("net/data/weights/weight_0", np.array([2, -1, 0.5], "<f4").tobytes())
    return path


def test_exported_program(tmp_path, openrknn):
    np.save(tmp_path / "x.npy", np.array([1, 2, 4], np.float32))
    model = write_pt2(tmp_path)
    done = openrknn("convert", model, "-o", tmp_path / "net.rknn", "-t", "rk3588")
    assert done.returncode == 0, done.stderr
    done = openrknn("run", tmp_path / "net.rknn", "--input", tmp_path / "x.npy", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(next(p for p in tmp_path.glob("*.npy") if p.name != "x.npy")).ravel(), [2, 0, 2])
    with zipfile.ZipFile(tmp_path / "bomb.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/models/model.json", " " * (1 << 26))
    done = openrknn("info", tmp_path / "bomb.pt2")
    assert done.returncode == 1 and "net/models/model.json" in done.stderr and "the archive entry is too large" in done.stderr, (
        done.stderr
    )
    source = json.loads(openrknn("info", model, "-t", "rk3588", "--json").stdout)["source"]
    assert (
        source["framework"] == "pytorch"
        and source["producer"] == "pytorch 2.9.0"
        and source["operators"] == {"Mul": 1, "Relu": 1}
    )


def test_weights_by_option_or_none(tmp_path, openrknn):
    symbol = write_mxnet(tmp_path)
    (tmp_path / "net-0001.params").rename(tmp_path / "elsewhere")
    done = openrknn(
        "convert",
        symbol,
        "-o",
        tmp_path / "a.rknn",
        "-t",
        "rk3588",
        "--input-size-list",
        "1,3",
        "--weights",
        tmp_path / "elsewhere",
    )
    assert done.returncode == 0 and "random" not in done.stderr, done.stderr
    done = openrknn("convert", symbol, "-o", tmp_path / "b.rknn", "-t", "rk3588", "--input-size-list", "1,3")
    assert done.returncode == 0 and "random" in done.stderr, done.stderr


def test_weights_of_other_models_are_left_alone(tmp_path, openrknn):
    symbol = write_mxnet(tmp_path)
    params = tmp_path / "net-0001.params"

    def convert(*args):
        done = openrknn("convert", symbol, "-o", tmp_path / "a.rknn", "-t", "rk3588", "--input-size-list", "1,3", *args)
        assert done.returncode == 0, done.stderr
        return done.stderr

    answer = convert("--weights", "none")
    assert "random" in answer and "weights: " + str(params) not in answer
    params = params.rename(tmp_path / "big-0001.params")
    answer = convert()
    assert "random" in answer and "big-0001" not in answer
    params = params.rename(tmp_path / "network-0001.params")  # begins alike, and is another word
    assert "random" in convert()
    params = params.rename(tmp_path / "my_net_final.params")  # the only one that holds the name
    answer = convert()
    assert "random" not in answer and answer.count(f"weights: {params}") == 1
    done = openrknn("info", symbol, "-t", "rk3588", "--input-size-list", "1,3")
    assert done.returncode == 0 and done.stderr.count("weights: ") == 1, done.stderr
    (tmp_path / "other.net.params").write_bytes(b"")  # two of them: nobody knows which
    assert "random" in convert()


def test_info_of_a_source_model(tmp_path, shapes_model, openrknn):
    symbol = write_mxnet(tmp_path)
    done = openrknn("info", symbol, "--input-size-list", "1,3")
    assert done.returncode == 0, done.stderr
    for part in ("mxnet 1.9.1", "net-0001.params", "data float32 [1,3]", "last_output float32 [1,2]", "Gemm x1", "Relu x1"):
        assert part in done.stdout, part
    source = json.loads(openrknn("info", shapes_model, "-t", "rk3588", "--json").stdout)["source"]
    assert source["framework"] == "onnx" and source["operators"]["Conv"] > 0 and source["unsupported"] == []


def test_info_tells_what_is_unsupported(tmp_path, openrknn):
    symbol = write_mxnet(tmp_path, op="NoSuchOperator")
    done = openrknn("info", symbol, "--input-size-list", "1,3")
    assert (
        done.returncode == 1
        and "node 'last' (NoSuchOperator): this operator is not supported" in done.stdout
        and done.stderr.strip()
    )
    report = json.loads(openrknn("info", symbol, "--input-size-list", "1,3", "--json").stdout)
    assert len(report["source"]["unsupported"]) == 1
    assert report["source"]["operators"] == {"FullyConnected": 1, "NoSuchOperator": 1}
    no_sizes = openrknn("info", write_mxnet(tmp_path), "--json")  # what is known without the input's shape
    assert (
        no_sizes.returncode == 1
        and "input_size_list" in no_sizes.stderr
        and json.loads(no_sizes.stdout)["source"]["framework"] == "mxnet"
    )
    (tmp_path / "noise").write_bytes(b"no model at all")
    done = openrknn("info", tmp_path / "noise")
    assert done.returncode == 1 and "no known model format" in done.stderr
    done = openrknn("info", symbol, "--input-size-list", "1" + "0" * 30)
    assert done.returncode == 1 and "a number of --input-size-list is too large" in done.stderr


def test_profile(tmp_path, shapes_model, openrknn):
    done = openrknn(
        "profile",
        shapes_model,
        "--platform",
        "all",
        "--json",
        tmp_path / "p.json",
        "--html",
        tmp_path / "p.html",
        "--trace",
        tmp_path / "p.trace",
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "p.json").read_text())
    assert {(r["platform"], r["cores"]) for r in rows} >= {("rk3588", 1), ("rk3588", 3), ("rk3576", 2), ("rk1808", 1)}
    assert all(r["fps"] is None or r["fps"] > 0 for r in rows) and all(
        key in rows[0] for key in ("dtype", "latency_ms", "weight_bytes", "internal_bytes", "layers")
    )
    assert "</html>" in (tmp_path / "p.html").read_text() and json.loads((tmp_path / "p.trace").read_text())["traceEvents"]
    one = json.loads(
        openrknn(
            "profile", shapes_model, "--platform", "rk3588", "--cores", 1, "--npu-mhz", 300, "--dtype", "fp16", "--json"
        ).stdout
    )
    assert len(one) == 1 and one[0]["dtype"] == "float16"
    for args, words in (
        (["--platform", "rk0"], "rk0"),
        (["--npu-mhz", "-5"], "NPU clock"),
        (["--npu-mhz", "0"], "NPU clock"),
        (["--ddr-mhz", "nan"], "DDR clock"),
        (["--ddr-mhz", "inf"], "DDR clock"),
        (["--platform", "rk3588", "--sparse", "50"], "no kernels for sparse weights"),
        (["--batch", "0"], "batch"),
        (["--platform", "rv1106", "--dtype", "fp16"], "no float16 convolution"),
        (["--dtype", "w3a3"], "w3a3"),
        (["--platform", "rk3576", "--cores", "3"], "2 NPU cores"),
    ):
        done = openrknn("profile", shapes_model, *args)
        assert done.returncode == 1 and words in done.stderr, (args, done.stderr)


def one_convolution(make_onnx, extent, name="model"):
    """The path of a model with one convolution on a picture."""
    return make_onnx(
        [("Conv", ["x", "w"], ["y"], {"kernel_shape": [3, 3]})],
        {"x": ("float32", [1, 3, extent, extent])},
        {"y": ("float32", None)},
        {"w": np.zeros((8, 3, 3, 3), np.float32)},
        name=name,
    )


def test_profile_of_other_input_sizes(tmp_path, make_onnx, openrknn):
    model = one_convolution(make_onnx, 64)

    def rows(*args):
        done = openrknn("profile", model, "--platform", "rk3562", *args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    sizes = rows("--input-size", "64,32x128,256")
    assert [r["input_size"] for r in sizes] == ["64", "32x128", "256"]
    assert sizes[0]["latency_ms"] == rows()[0]["latency_ms"] and "input_size" not in rows()[0]
    assert sizes[1]["layers"][0]["output_shape"] == "[1,8,30,126]" and sizes[2]["latency_ms"] > sizes[0]["latency_ms"]
    table = openrknn("profile", model, "--platform", "rk3562,rk3588", "--input-size", "64,256").stdout
    assert "platform, input" in table and "rk3562, 256" in table
    for args, words in (
        (["--input-size", "0"], "size of a picture"),
        (["--input-size", "12x"], "size of a picture"),
        (["--input-size", "64x64x64"], "size of a picture"),
        (["--input-size", "2"], "Conv"),
    ):
        done = openrknn("profile", model, *args)
        assert done.returncode == 1 and words in done.stderr, (args, done.stderr)
    assert openrknn("convert", model, "-o", tmp_path / "m.rknn", "-t", "rk3562").returncode == 0
    done = openrknn("profile", tmp_path / "m.rknn", "--input-size", "128")
    assert done.returncode == 1 and "built into a finished model" in done.stderr


def test_profile_of_two_models_on_a_chip(tmp_path, make_onnx, openrknn):
    small, large = one_convolution(make_onnx, 64, "small"), one_convolution(make_onnx, 512, "large")
    done = openrknn("profile", small, "--platform", "rk3588,rk3566", "--beside", large, "--json")
    assert done.returncode == 0, done.stderr
    chips = {r["platform"]: r["beside"] for r in json.loads(done.stdout)}
    three, one = chips["rk3588"], chips["rk3566"]
    assert one["own_cores"] is None and three["own_cores"]["second_fps"] <= three["alone"]["second_fps"]
    assert one["one_core"]["first_fps"] < one["alone"]["second_fps"] < one["alone"]["first_fps"]
    text = openrknn("profile", small, "--platform", "rk3588", "--beside", large).stdout
    assert "a core each" in text and "large" in text
    done = openrknn("profile", small, "--beside", tmp_path / "missing.onnx")
    assert done.returncode == 1 and "missing.onnx" in done.stderr


def test_profile_tells_what_has_no_effect(shapes_model, openrknn):
    done = openrknn("profile", shapes_model, "--platform", "rk3566", "--single-core", "--op-target", "nothing=cpu", "--json")
    assert "--single-core changes nothing on rk3566" in done.stderr and "op_target names 'nothing'" in done.stderr
    assert (
        "changes nothing"
        not in openrknn("profile", shapes_model, "--platform", "rk3588,rk3566", "--single-core", "--json").stderr
    )
    assert (
        "gpu, which rv1106 does not have"
        in openrknn("profile", shapes_model, "--platform", "rv1106", "--op-target", "Conv=gpu", "--json").stderr
    )


def test_profile_of_finished_models(tmp_path, shapes_model, openrknn):
    """A .rknn is judged on its chip in its type; other chips and types when asked for."""
    for dtype in ("float16", "float32"):
        assert (
            openrknn("convert", shapes_model, "-o", tmp_path / f"{dtype}.rknn", "-t", "rk3562", "--float-dtype", dtype).returncode
            == 0
        )

    def profile(model, *args):
        done = openrknn("profile", model, *args, "--json", "-")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    rows, _ = profile(tmp_path / "float16.rknn")
    assert [(r["platform"], r["dtype"]) for r in rows] == [("rk3562", "float16")]
    source, _ = profile(shapes_model, "--platform", "rk3562", "--dtype", "float16")
    assert rows[0]["fps"] == pytest.approx(source[0]["fps"], rel=0.01)
    assert len({r["platform"] for r in profile(tmp_path / "float16.rknn", "--platform", "all")[0]}) > 10
    retyped, _ = profile(tmp_path / "float16.rknn", "--dtype", "w8a8")
    source, _ = profile(shapes_model, "--platform", "rk3562")
    assert retyped[0]["fps"] == pytest.approx(source[0]["fps"], rel=0.02)
    exact, warning = profile(tmp_path / "float32.rknn")
    assert exact[0]["dtype"] == "float16" and "float32, which no chip computes" in warning


def test_profile_folds_batch_norm_without_weights(tmp_path, make_onnx, openrknn):
    import onnx

    c = 64
    norm = {name: np.ones(c, np.float32) for name in ("scale", "bias", "mean", "var")}
    path = make_onnx(
        [
            ("Conv", ["x", "w"], ["c"], dict(pads=[1, 1, 1, 1])),
            ("BatchNormalization", ["c", *norm], ["n"], {}),
            ("Relu", ["n"], ["y"], {}),
        ],
        {"x": ("float32", [1, 32, 32, 32])},
        {"y": ("float32", [1, c, 32, 32])},
        {"w": np.ones((c, 32, 3, 3), np.float32), **norm},
    )
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    layers = json.loads(openrknn("profile", path, "--platform", "rk3588", "--cores", 1, "--json", "-").stdout)[0]["layers"]
    assert [layer["type"] for layer in layers] == ["ConvRelu"]


def test_profile_without_weights(tmp_path, make_onnx, openrknn):
    import onnx

    path = make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 3, 32, 32])},
        {"y": ("float32", [1, 64, 30, 30])},
        {"w": np.ones((64, 3, 3, 3), np.float32)},
    )
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert openrknn("convert", path, "-o", tmp_path / "x.rknn", "-t", "rk3588").returncode != 0
    done = openrknn("profile", path)
    assert done.returncode == 0 and "no weights" in done.stderr and "rk3588" in done.stdout


def test_errors_as_json(tmp_path, shapes_model, converted, openrknn):
    (tmp_path / "noise").write_bytes(b"no model at all")
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for args in (
        ["info", "missing.onnx"],
        ["info", "pipe"],
        ["run", "pipe"],
        ["convert", "pipe", "-o", "x.rknn"],
        ["profile", "pipe"],
        ["info", "noise"],
        ["info", "empty"],
        ["info", "."],
        ["info", "missing.rknn"],
        ["run", "missing.rknn"],
        ["run", "noise"],
        ["convert", "noise", "-o", "x.rknn"],
        ["convert", shapes_model, "-o", "/nonexistent/x.rknn"],
        ["profile", "noise"],
        ["profile", shapes_model, "--platform", "rk0"],
        ["convert", shapes_model],
        ["info"],
        ["nonsense"],
    ):
        done = openrknn(*args, "--json", cwd=tmp_path)
        assert done.returncode in (1, 2) and done.stderr.strip(), args
        error = json.loads(done.stdout)["error"]
        assert error["code"] and error["message"], args
    assert (
        openrknn("profile", "noise", "--json", tmp_path / "p.json", cwd=tmp_path).stdout == ""
        and not (tmp_path / "p.json").exists()
    )


def test_a_full_disk_is_noticed(converted, openrknn):
    with open("/dev/full", "w") as full:
        for args in (
            ["--help"],
            ["--version"],
            ["convert", "--help"],
            ["platforms"],
            ["info", converted],
            ["info", converted, "--json"],
            ["--libdir"],
        ):
            done = subprocess.run(
                [openrknn("--version").args[0], *map(str, args)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
            )
            assert done.returncode == 1 and "could not be written" in done.stderr, args


def test_a_finished_model_says_which_options_it_ignores(converted, openrknn):
    done = openrknn("run", converted, "-O", 0, "--float-dtype", "float32", "-t", "rk3566")
    assert done.returncode == 0 and all(
        name in done.stderr for name in ("--optimization-level", "--float-dtype", "--target-platform")
    ), done.stderr
    assert "no effect" not in openrknn("run", converted).stderr
    done = openrknn("profile", converted, "-t", "rk3588", "--outputs", "y")
    assert "no effect on it: --outputs" in done.stderr and "target-platform" not in done.stderr, done.stderr


def test_batch_and_shape_sets(openrknn, shapes_model, tmp_path):
    done = openrknn("convert", shapes_model, "-t", "rk3588", "-o", tmp_path / "b.rknn", "--batch-size", 3, "--json")
    assert done.returncode == 0, done.stderr
    [program] = json.loads(done.stdout)["model"]["programs"]
    assert "[3,3," in json.dumps(program).replace(" ", "")
    done = openrknn(
        "convert",
        shapes_model,
        "-t",
        "rk3588",
        "-o",
        tmp_path / "d.rknn",
        "--dynamic-input",
        "1,3,64,64",
        "--dynamic-input",
        "1,3,96,96",
        "--json",
    )
    assert done.returncode == 0 and len(json.loads(done.stdout)["model"]["programs"]) == 2, done.stderr
    for wrong in (["--batch-size", 0], ["--dynamic-input", "1,3,0,64"], ["--dynamic-input", "1,3,64,64;1"]):
        done = openrknn("convert", shapes_model, "-t", "rk3588", "-o", tmp_path / "x.rknn", *wrong, "--json")
        assert done.returncode != 0 and "error" in json.loads(done.stdout) and not (tmp_path / "x.rknn").exists()


def test_every_command_tells_errors_as_json(openrknn, shapes_model):
    for arguments in (
        ["compare", shapes_model, shapes_model],
        ["analyse", shapes_model],
        ["run", shapes_model, "-i", "missing.npy"],
        ["info", "missing"],
        ["convert"],
    ):
        done = openrknn(*arguments, "--json")
        assert done.returncode != 0 and json.loads(done.stdout)["error"]["message"], arguments


def test_the_docs_name_every_op_beyond_onnx(root, openrknn):
    import onnx

    standard = {schema.name for schema in onnx.defs.get_all_schemas()}
    text = (root / "docs" / "ir.md").read_text()
    missing = [
        op["name"]
        for op in json.loads(openrknn("ops", "--json").stdout)
        if op["name"] not in standard and f"`{op['name']}`" not in text
    ]
    assert not missing
