"""Operators of the user's own: in Python while a model is built and simulated, in C plug-ins while it runs."""

import pathlib
import shutil
import signal
import subprocess
import sys

import numpy as np
import onnx
import pytest
import rknn
from library import SANITIZER
from onnx import TensorProto, helper, numpy_helper
from rknn.api import RKNN
from rknn.api.custom_op import get_node_attr
from running_server import Server

PACKAGE = pathlib.Path(rknn.__file__).parent
SOURCES = pathlib.Path(__file__).parent / "capi" / "custom_op"
RNG = np.random.default_rng(7)
X = RNG.standard_normal((1, 3, 6, 5)).astype(np.float32)
BIAS = np.array([0.1, -0.2, 0.3, 0.4], np.float32)
WEIGHT = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)


class Affine:
    """x * alpha + bias: a constant input and attributes of every kind."""

    op_type = "cstAffine"

    def shape_infer(self, node, in_shapes, in_dtypes):
        assert isinstance(in_shapes, list) and isinstance(in_shapes[0], list) and in_dtypes[0] == np.float32
        return in_shapes.copy()[:1], in_dtypes.copy()[:1]

    def compute(self, node, inputs):
        alpha = np.float32(get_node_attr(node, "alpha"))
        return [inputs[0] * alpha + inputs[1].reshape(1, -1, 1, 1)]


class IndexOfMax:
    op_type = "cstIndexOfMax"

    def shape_infer(self, node, in_shapes, in_dtypes):
        n, _, h, w = in_shapes[0]
        return [[n, 1, h, w]], [np.int64]

    def compute(self, node, inputs):
        return [np.argmax(inputs[0], axis=1, keepdims=True)]


def save(path, nodes, outputs, initializers=None, opset=17, x_shape=X.shape):
    """A model with the input x; `outputs` is {name: type}, shapes are left to inference."""
    initializers = {"w": WEIGHT, "bias": BIAS} if initializers is None else initializers
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("test.ops", 1)])
    model.ir_version = 8
    onnx.save(model, path)
    return str(path)


CONV = helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1])
AFFINE = helper.make_node(
    "cstAffine", ["c", "bias"], ["a"], name="affine", domain="test.ops", alpha=1.7, sizes=[1, 2], scales=[0.5, 2.0], mode="fast"
)


@pytest.fixture
def model(tmp_path):
    """Convolution, an affine operator of a foreign domain, an activation; beside it an operator with an integer result."""
    nodes = [
        CONV,
        AFFINE,
        helper.make_node("Relu", ["a"], ["y"]),
        helper.make_node("cstIndexOfMax", ["c"], ["index"], name="index"),
    ]
    return save(tmp_path / "model.onnx", nodes, {"y": TensorProto.FLOAT, "index": TensorProto.INT64})


def built(path, *ops, quantize=False, tmp_path=None, load=None, **config):
    r = RKNN()
    r.config(target_platform="rk3588", **config)
    for op in ops:
        assert r.reg_custom_op(op) == 0
    assert r.load_onnx(path, **(load or {})) == 0
    if quantize:
        np.save(tmp_path / "sample.npy", X)
        (tmp_path / "dataset.txt").write_text(str(tmp_path / "sample.npy") + "\n")
    assert r.build(do_quantization=quantize, dataset=str(tmp_path / "dataset.txt") if quantize else None) == 0
    return r


def run(r, x=X):
    assert r.init_runtime() == 0
    return r.inference(inputs=[x], data_format="nchw")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Results of the model in float32."""
    import onnx.reference

    path = save(tmp_path_factory.mktemp("reference") / "conv.onnx", [CONV], {"c": TensorProto.FLOAT}, {"w": WEIGHT})
    c = onnx.reference.ReferenceEvaluator(path).run(None, {"x": X})[0]
    return np.maximum(c * np.float32(1.7) + BIAS.reshape(1, -1, 1, 1), 0), np.argmax(c, axis=1)[:, None]


@pytest.mark.parametrize("float_dtype, tolerance", [("float32", 1e-5), ("float16", 2e-2)])
def test_python_operators_compute_in_the_simulator(model, expected, float_dtype, tolerance):
    y, index = run(built(model, Affine(), IndexOfMax, float_dtype=float_dtype))
    want_y, want_index = expected
    assert np.allclose(y, want_y, atol=tolerance, rtol=tolerance)
    assert index.dtype == np.int64 and index.shape == want_index.shape
    assert (index == want_index).mean() > (0.99 if float_dtype == "float32" else 0.9)


def test_quantized_build_keeps_the_operator_in_float(model, expected, tmp_path):
    y, _ = run(built(model, Affine(), IndexOfMax(), quantize=True, tmp_path=tmp_path))
    want = expected[0]
    assert np.dot(y.ravel(), want.ravel()) / np.linalg.norm(y) / np.linalg.norm(want) > 0.995


def test_node_looks_like_one_of_onnx(model):
    seen = []

    class Curious(Affine):
        def compute(self, node, inputs):
            seen.append(node)
            return super().compute(node, inputs)

    run(built(model, Curious(), IndexOfMax()))
    node = seen[-1]
    assert (node.op_type, node.name, node.domain) == ("cstAffine", "affine", "test.ops")
    assert (node.input, node.output) == (["c", "bias"], ["a"])
    assert sorted(a.name for a in node.attribute) == ["alpha", "mode", "scales", "sizes"]
    for name, value in (("alpha", np.float32(1.7)), ("sizes", [1, 2]), ("scales", [0.5, 2.0]), ("mode", "fast"), ("none", None)):
        assert get_node_attr(node, name) == value
        assert get_node_attr(AFFINE, name) == value  # the same of a NodeProto
    assert isinstance(get_node_attr(node, "alpha"), float)


def test_constant_inputs_arrive_unrounded_in_a_float16_build(tmp_path):
    seen = []

    class Curious(Affine):
        def compute(self, node, inputs):
            seen.append([value.dtype for value in inputs] + [inputs[1].copy()])
            return super().compute(node, inputs)

    run(built(save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT}), Curious()))
    assert seen[-1][0] == seen[-1][1] == np.float32
    assert np.array_equal(seen[-1][2], BIAS)


def test_operator_of_constants_is_folded(tmp_path):
    nodes = [
        helper.make_node("cstAffine", ["k", "bias"], ["a"], alpha=2.0),
        helper.make_node("Add", ["x", "a"], ["y"]),
    ]
    k = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    path = save(tmp_path / "m.onnx", nodes, {"y": TensorProto.FLOAT}, {"k": k, "bias": BIAS}, x_shape=(1, 4, 2, 2))
    r = built(path, Affine(), float_dtype="float32")
    assert r.export_rknn(str(tmp_path / "m.rknn")) == 0
    x = np.ones((1, 4, 2, 2), np.float32)
    again = RKNN()
    assert again.load_rknn(str(tmp_path / "m.rknn")) == 0  # nothing of the operator is left
    assert np.allclose(run(again, x)[0], x + k * 2 + BIAS.reshape(1, -1, 1, 1))


def test_several_results_and_operators_without_float_inputs(tmp_path):
    class Split:
        op_type = "cstSplit"

        def shape_infer(self, node, in_shapes, in_dtypes):
            return [in_shapes[0], in_shapes[0][1:]], [np.dtype("float32"), "int32"]

        def compute(self, node, inputs):
            assert inputs[0].dtype == np.int64
            return inputs[0].astype(np.float64) / 2, inputs[0][0].astype(np.int8)  # converted to what shape_infer says

    nodes = [
        helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=1),
        helper.make_node("cstSplit", ["i"], ["half", "whole"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"half": TensorProto.FLOAT, "whole": TensorProto.INT32}, {})
    half, whole = run(built(path, Split()))
    index = np.argmax(X, axis=1)[:, None]
    assert np.array_equal(half, index / 2) and np.array_equal(whole, index[0]) and whole.dtype == np.int32


def test_standard_operator_stays_custom_with_standard_meaning(tmp_path, expected):
    class ArgMax:
        op_type = "ArgMax"

    nodes = [CONV, helper.make_node("ArgMax", ["c"], ["i"], name="arg", axis=-3)]
    path = save(tmp_path / "m.onnx", nodes, {"i": TensorProto.INT64}, {"w": WEIGHT})
    for op in (ArgMax, ArgMax()):
        r = built(path, op, float_dtype="float32")
        assert np.array_equal(run(r)[0], expected[1])
    assert r.export_rknn(str(tmp_path / "m.rknn")) == 0
    plain = RKNN()
    assert plain.load_rknn(str(tmp_path / "m.rknn")) == 0
    assert np.array_equal(run(plain)[0], expected[1])


def test_standard_operator_with_methods_is_the_users(tmp_path):
    class Relu:
        op_type = "Relu"

        def shape_infer(self, node, in_shapes, in_dtypes):
            return in_shapes, in_dtypes

        def compute(self, node, inputs):
            return [inputs[0] + 100]

    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"y": TensorProto.FLOAT}, {})
    assert np.allclose(run(built(path, Relu(), float_dtype="float32"))[0], X + 100)


def test_declared_operator_comes_before_a_function_of_the_model(tmp_path):
    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT})
    whole = onnx.load(path)
    body = [helper.make_node("Identity", ["c"], ["a"])]
    whole.functions.append(
        helper.make_function("test.ops", "cstAffine", ["c", "bias"], ["a"], body, [helper.make_opsetid("", 17)])
    )
    onnx.save(whole, path)
    conv = run(built(path, float_dtype="float32"))[0]
    affine = run(built(path, Affine(), float_dtype="float32"))[0]
    assert np.array_equal(affine, conv * np.float32(1.7) + BIAS.reshape(1, -1, 1, 1))


def test_later_operator_of_a_type_counts(tmp_path):
    class Other(Affine):
        def compute(self, node, inputs):
            return [inputs[0] * 0]

    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT})
    assert not run(built(path, Affine(), Other()))[0].any()


def test_dynamic_shapes(tmp_path):
    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT}, x_shape=[1, 3, "h", "w"])
    shapes = [[1, 3, 6, 5], [1, 3, 4, 8]]
    r = built(path, Affine(), dynamic_input=[[s] for s in shapes], float_dtype="float32")
    for shape in shapes:
        fixed = built(path, Affine(), load={"input_size_list": [shape]}, float_dtype="float32")
        x = RNG.standard_normal(shape).astype(np.float32)
        assert np.array_equal(run(r, x)[0], run(fixed, x)[0])


def test_batch(tmp_path):
    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT})
    r = built(path, Affine(), float_dtype="float32")
    single = run(r)[0]
    assert r.build(do_quantization=False, rknn_batch_size=2) == 0
    assert np.array_equal(run(r, np.concatenate([X, X]))[0], np.concatenate([single, single]))


def test_hybrid_quantization_and_accuracy_analysis(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("sample.npy", X)
    pathlib.Path("dataset.txt").write_text("sample.npy\n")
    r = RKNN()
    r.config(target_platform="rk3588")
    assert r.reg_custom_op(Affine()) == 0 and r.reg_custom_op(IndexOfMax()) == 0
    assert r.load_onnx(model) == 0
    assert r.hybrid_quantization_step1(dataset="dataset.txt") == 0
    second = RKNN()
    assert second.reg_custom_op(Affine()) == 0 and second.reg_custom_op(IndexOfMax()) == 0
    assert second.hybrid_quantization_step2("model.model", "model.data", "model.quantization.cfg") == 0
    whole = built(model, Affine(), IndexOfMax(), quantize=True, tmp_path=tmp_path)
    assert np.array_equal(run(second)[0], run(whole)[0])
    assert whole.accuracy_analysis(inputs=["sample.npy"], output_dir="snapshot") == 0
    table = pathlib.Path("snapshot/error_analysis.txt").read_text()
    assert "cstAffine" in table and "custom:" not in table


# --- what goes wrong


def failure(capfd, call, *words):
    capfd.readouterr()
    assert call() == -1
    text = "".join(capfd.readouterr())
    assert all(word in text for word in words), text


def test_registration_is_checked(capfd):
    r = RKNN()
    r.config(target_platform="rk3588")
    nothing = type("Nothing", (), {})
    unknown = type("Unknown", (), {"op_type": "cstUnknown"})
    halfway = type("Half", (), {"op_type": "cstHalf", "compute": lambda self, node, inputs: inputs})
    needs = type("Needs", (), {"op_type": "cstNeeds", "__init__": lambda self, size: None})
    for op, words in (
        (nothing(), ["op_type"]),
        (type("Number", (), {"op_type": 3}), ["op_type", "3"]),
        (None, ["op_type"]),
        (unknown, ["cstUnknown", "shape_infer"]),
        (halfway(), ["cstHalf", "shape_infer"]),
        (needs, ["size"]),
    ):
        failure(capfd, lambda op=op: r.reg_custom_op(op), "E reg_custom_op", *words)
    r.release()
    failure(capfd, lambda: r.reg_custom_op(Affine()), "release")


def test_standard_operator_that_becomes_others_is_refused(tmp_path, capfd):
    nodes = [helper.make_node("BatchNormalization", ["x", "p", "p", "p", "p"], ["y"], name="norm", spatial=0)]
    parameters = {"p": np.ones(X.shape[1:], np.float32)}
    path = save(tmp_path / "m.onnx", nodes, {"y": TensorProto.FLOAT}, parameters, opset=7)
    r = RKNN()
    r.config(target_platform="rk3588")
    assert r.load_onnx(path) == 0
    assert r.reg_custom_op(type("Norm", (), {"op_type": "BatchNormalization"})) == 0
    failure(capfd, lambda: r.load_onnx(path), "norm", "BatchNormalization", "shape_infer")


def test_undeclared_operator_is_refused_with_a_hint(model, capfd):
    r = RKNN()
    r.config(target_platform="rk3588")
    failure(capfd, lambda: r.load_onnx(model), "test.ops:cstAffine", "cstIndexOfMax", "reg_custom_op")
    assert r.reg_custom_op(Affine()) == 0
    failure(capfd, lambda: r.load_onnx(model), "cstIndexOfMax")


def test_registering_after_loading_says_so(model, capfd):
    r = built(model, Affine(), IndexOfMax())
    capfd.readouterr()
    assert r.reg_custom_op(Affine()) == 0
    assert "from now on" in "".join(capfd.readouterr())


BAD_SHAPES = {
    "raises": (lambda self, node, shapes, dtypes: 1 / 0, "ZeroDivisionError"),
    "no_pair": (lambda self, node, shapes, dtypes: shapes, "out_shapes"),
    "none": (lambda self, node, shapes, dtypes: None, "out_shapes"),
    "lengths": (lambda self, node, shapes, dtypes: ([shapes[0], shapes[0]], dtypes[:1]), "out_shapes"),
    "symbol": (lambda self, node, shapes, dtypes: ([["n", 3]], dtypes[:1]), "'n'"),
    "negative": (lambda self, node, shapes, dtypes: ([[-1, 3]], dtypes[:1]), "-1"),
    "too_few": (lambda self, node, shapes, dtypes: ([], []), "too few"),
    "type": (lambda self, node, shapes, dtypes: (shapes[:1], ["nonsense"]), "nonsense"),
    "complex": (lambda self, node, shapes, dtypes: (shapes[:1], [np.complex64]), "type"),
    "huge": (lambda self, node, shapes, dtypes: ([[2**40, 2**40]], dtypes[:1]), "shape"),
}


@pytest.mark.parametrize("case", BAD_SHAPES)
def test_bad_shape_infer(tmp_path, capfd, case):
    method, word = BAD_SHAPES[case]
    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT})
    r = RKNN()
    r.config(target_platform="rk3588")
    assert r.reg_custom_op(type("Bad", (Affine,), {"shape_infer": method})) == 0
    failure(capfd, lambda: r.load_onnx(path) or r.build(do_quantization=False), "affine", "cstAffine", word)


BAD_RESULTS = {
    "raises": (lambda self, node, inputs: inputs[7], "IndexError"),
    "none": (lambda self, node, inputs: None, "NoneType"),
    "too_few": (lambda self, node, inputs: [], "too few"),
    "shape": (lambda self, node, inputs: [inputs[0][:, :1]], "another shape"),
    "text": (lambda self, node, inputs: [np.array(["a"])], "numbers"),
}


@pytest.mark.parametrize("case", BAD_RESULTS)
def test_bad_compute(tmp_path, case):
    method, word = BAD_RESULTS[case]
    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT})
    r = built(path, type("Bad", (Affine,), {"compute": method}))
    with pytest.raises(ValueError, match="(?s)affine.*" + word):
        run(r)


def test_operator_without_compute_builds_but_does_not_run(tmp_path):
    class Shapes:
        op_type = "cstAffine"
        shape_infer = Affine.shape_infer

    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT})
    r = built(path, Shapes())
    with pytest.raises(ValueError, match="without compute"):
        run(r)


def test_open_shapes_are_refused(tmp_path, capfd):
    path = save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT}, x_shape=["n", 3, 6, 5])
    r = RKNN()
    r.config(target_platform="rk3588")
    assert r.reg_custom_op(Affine()) == 0
    sizes = [[-1, 3, 6, 5]]
    failure(capfd, lambda: r.load_onnx(path, input_size_list=sizes) or r.build(do_quantization=False), "cstAffine", "shape")


def test_operator_inside_of_a_loop_is_refused(tmp_path, capfd):
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("cstAffine", ["v", "bias"], ["v2"], name="inner", alpha=1.0),
            helper.make_node("Identity", ["go"], ["go2"]),
        ],
        "body",
        [value("n", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [1, 4, 2, 2])],
        [value("go2", TensorProto.BOOL, []), value("v2", TensorProto.FLOAT, [1, 4, 2, 2])],
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["trips"], to=TensorProto.INT64),
        helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=body),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"y": TensorProto.FLOAT}, {"bias": BIAS}, x_shape=(1, 4, 2, 2))
    r = RKNN()
    r.config(target_platform="rk3588")
    assert r.reg_custom_op(Affine()) == 0
    failure(capfd, lambda: r.load_onnx(path) or r.build(do_quantization=False), "cstAffine", "Loop")


# --- the same model through librknnrt.so


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(source, *options): the C source of tests/capi/custom_op as program or plug-in, linked with the package's library."""
    folder = tmp_path_factory.mktemp("compiled")

    def compile_(source, *options, name=None):
        target = folder / (name or source)
        if not target.exists():
            library = ["-L", PACKAGE / "lib", "-lrknnrt", f"-Wl,-rpath,{PACKAGE / 'lib'}"]
            command = ["gcc", "-std=c99", "-O1", "-ffp-contract=off", "-I", PACKAGE / "include", SOURCES / f"{source}.c"]
            subprocess.run([*command, "-o", target, *library, *options], check=True)
        return target

    return compile_


@pytest.fixture
def plugins(compiled, tmp_path):
    """plugins(*sources): a folder with these plug-ins."""

    def make(*sources, options=()):
        folder = tmp_path / "plugins"
        folder.mkdir(exist_ok=True)
        for source in sources:
            name = f"librkcst_{source}.so"
            shutil.copy(compiled(source, "-shared", "-fPIC", *options, name=name), folder / name)
        return folder

    return make


def run_in_c(compiled, path, folder, tmp_path, **environment):
    """Results of the C program, or its printed text when it fails."""
    X.tofile(tmp_path / "x.bin")
    environment = {"OPENRKNN_OP_PLUGINS": str(folder), "RKNN_LOG_LEVEL": "2", "PATH": "/usr/bin:/bin", **SANITIZER, **environment}
    command = [compiled("run_model"), path, tmp_path / "out", tmp_path / "x.bin"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done
    if done.returncode == 1:
        return done.stdout + done.stderr
    files = sorted(tmp_path.glob("out*.bin"))
    return [np.fromfile(file, np.float32) for file in files], done.stderr


@pytest.mark.parametrize("quantize", [False, True])
def test_plugins_give_the_bytes_of_python(model, compiled, plugins, tmp_path, quantize):
    r = built(model, Affine(), IndexOfMax(), quantize=quantize, tmp_path=tmp_path)
    path = tmp_path / "m.rknn"
    assert r.export_rknn(str(path)) == 0
    found, log = run_in_c(compiled, path, plugins("affine_plugin", "index_plugin"), tmp_path)
    for value, want in zip(found, run(r), strict=True):
        assert np.array_equal(value, want.astype(np.float32).ravel())
    assert "cstAffine" in log and "librkcst_affine_plugin.so" in log


def test_python_uses_plugins_for_a_finished_model(model, plugins, tmp_path):
    r = built(model, Affine(), IndexOfMax())
    assert r.export_rknn(str(tmp_path / "m.rknn")) == 0
    np.save(tmp_path / "x.npy", X)
    script = (
        "import sys, numpy as np; from rknn.api import RKNN; r = RKNN()\n"
        "assert r.load_rknn(sys.argv[1]) == 0 and r.init_runtime() == 0\n"
        "np.savez(sys.argv[3], *r.inference(inputs=[np.load(sys.argv[2])], data_format='nchw'))\n"
    )
    folder = plugins("affine_plugin", "index_plugin")
    command = [sys.executable, "-c", script, tmp_path / "m.rknn", tmp_path / "x.npy", tmp_path / "y.npz"]
    subprocess.run(command, env={"OPENRKNN_OP_PLUGINS": str(folder), **SANITIZER}, check=True, timeout=120)
    for value, want in zip(np.load(tmp_path / "y.npz").values(), run(r), strict=True):
        assert np.array_equal(value, want)


def test_a_device_uses_the_plugins_of_its_environment(model, plugins, tmp_path):
    """The client knows nothing of the operators."""
    r = built(model, Affine(), IndexOfMax())
    assert r.export_rknn(str(tmp_path / "m.rknn")) == 0
    folder = plugins("affine_plugin", "index_plugin")
    address = f"unix:{tmp_path}/s.sock"
    words = [PACKAGE / "bin" / "rknn_server", "--platform", "rk3588", "--listen", address, "--no-announce"]
    server = subprocess.Popen(words, env={"OPENRKNN_OP_PLUGINS": str(folder), **SANITIZER}, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() and server.stdout.readline()
        device = RKNN()
        assert device.load_rknn(str(tmp_path / "m.rknn")) == 0 and device.init_runtime("rk3588", device_id=address) == 0
        found = device.inference(inputs=[X], data_format="nchw")
        for value, want in zip(found, run(r), strict=True):
            assert np.array_equal(value, want)
        device.release()
        np.save(tmp_path / "x.npy", X)
        assert r.accuracy_analysis([str(tmp_path / "x.npy")], str(tmp_path / "snapshot"), "rk3588", address) == 0
        assert list((tmp_path / "snapshot" / "runtime").iterdir())
    finally:
        server.terminate()
        assert server.wait(30) == 0


def test_a_device_without_plugins_says_what_it_lacks(model, tmp_path, monkeypatch):
    """Operators that Python computes do not go to the device with the model."""
    monkeypatch.setenv("ORKNN_DEVICE_DIR", str(tmp_path / "devices"))
    server = Server()
    try:
        api = built(model, Affine(), IndexOfMax())
        assert api.init_runtime("rk3588", device_id=server.address) == 0
        with pytest.raises(ValueError, match="is not registered; looked for a plug-in .* the device needs a plug-in for them"):
            api.inference(inputs=[X], data_format="nchw")
        api.release()
    finally:
        assert server.kill(signal.SIGTERM) == 0


def test_command_line_uses_plugins(model, plugins, tmp_path, openrknn):
    r = built(model, Affine(), IndexOfMax())
    assert r.export_rknn(str(tmp_path / "m.rknn")) == 0
    np.save(tmp_path / "x.npy", X)
    command = ["run", tmp_path / "m.rknn", "--input", tmp_path / "x.npy"]
    folder = plugins("affine_plugin", "index_plugin")
    done = openrknn(*command, env={"OPENRKNN_OP_PLUGINS": str(folder), **SANITIZER})
    assert done.returncode == 0 and "index" in done.stdout, done
    refused = openrknn(*command)
    assert refused.returncode != 0 and "is not registered" in refused.stderr, refused


def test_missing_operator_is_named_with_what_was_looked_for(model, compiled, plugins, tmp_path):
    path = tmp_path / "m.rknn"
    assert built(model, Affine(), IndexOfMax()).export_rknn(str(path)) == 0
    folder = plugins("index_plugin")
    text = run_in_c(compiled, path, folder, tmp_path)
    for word in (
        "rknn_run: -1:",
        "'cstAffine'",
        "librkcst_*.so",
        str(folder),
        "librkcst_index_plugin.so",
        "/usr/lib/rknpu/op_plugins",
    ):
        assert word in text, text
    assert "(no such folder)" in run_in_c(compiled, path, tmp_path / "nowhere", tmp_path)


def test_unusable_plugins_are_warned_of(model, compiled, plugins, tmp_path):
    path = tmp_path / "m.rknn"
    assert built(model, Affine(), IndexOfMax()).export_rknn(str(path)) == 0
    folder = plugins("affine_plugin", "index_plugin")
    (folder / "librkcst_text.so").write_text("no library")
    (folder / "other.so").write_text("not looked at")
    shutil.copy(PACKAGE / "lib" / "librknnrt.so", folder / "librkcst_no_entry.so")
    results, log = run_in_c(compiled, path, folder, tmp_path)
    assert len(results) == 2
    assert "librkcst_text.so' is not used" in log and "librkcst_no_entry.so' is not used: it has no function" in log
    assert "other.so" not in log


OPENCL = "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"


def test_gpu_plugin_gives_the_bytes_of_python(tmp_path, compiled, plugins):
    if not pathlib.Path(OPENCL).exists():
        pytest.skip("there is no OpenCL library (Debian: ocl-icd-libopencl1)")
    path = tmp_path / "m.rknn"
    r = built(save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT}), Affine())
    assert r.export_rknn(str(path)) == 0
    folder = plugins("gpu_plugin", options=[OPENCL])
    found = run_in_c(compiled, path, folder, tmp_path, HOME=str(tmp_path))
    if isinstance(found, str) and "has no device" in found:
        pytest.skip("OpenCL has no device on this machine (Debian: pocl-opencl-icd)")
    assert not isinstance(found, str), found
    assert np.array_equal(found[0][0], run(r)[0].ravel())


def test_gpu_plugin_without_opencl_says_what_is_missing(tmp_path, compiled, plugins):
    if not pathlib.Path(OPENCL).exists():
        pytest.skip("the plug-in itself needs an OpenCL library (Debian: ocl-icd-libopencl1)")
    path = tmp_path / "m.rknn"
    r = built(save(tmp_path / "m.onnx", [CONV, AFFINE], {"a": TensorProto.FLOAT}), Affine())
    assert r.export_rknn(str(path)) == 0
    text = run_in_c(compiled, path, plugins("gpu_plugin", options=[OPENCL]), tmp_path, OPENRKNN_OPENCL="/nowhere/libOpenCL.so")
    for word in ("needs OpenCL", "/nowhere/libOpenCL.so", "'cstAffine' is not registered"):
        assert word in text, text
