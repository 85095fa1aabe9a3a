"""Shared fixtures: small ONNX models made on the fly, the bundled networks, and where the shared corpus would be."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
# A shell starts background jobs with Ctrl-C ignored, and programs that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_announcements(tmp_path_factory):
    """Tests do not see the servers that run on this machine."""
    os.environ["ORKNN_DEVICE_DIR"] = str(tmp_path_factory.mktemp("devices"))


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def shapes_model():
    return ROOT / "examples" / "models" / "shapes.onnx"


@pytest.fixture(scope="session")
def openrknn():
    """Runs the installed command line tool."""
    program = pathlib.Path(sys.executable).parent / "openrknn"

    def run(*args, **kwargs):
        return subprocess.run([str(program), *map(str, args)], capture_output=True, text=True, timeout=120, **kwargs)

    return run


@pytest.fixture(scope="session")
def corpus():
    path = ROOT.parent / "shared" / "corpus"
    if not (path / "check.py").exists():
        pytest.skip("the shared test corpus is not beside this checkout (../shared/corpus)")
    return path


@pytest.fixture
def make_onnx(tmp_path):
    """make_onnx(nodes, inputs, outputs, initializers={}, opset=17): writes a model; inputs/outputs are {name: (dtype, shape)}."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    types = {
        "float32": TensorProto.FLOAT,
        "float16": TensorProto.FLOAT16,
        "int64": TensorProto.INT64,
        "int32": TensorProto.INT32,
        "uint8": TensorProto.UINT8,
        "bool": TensorProto.BOOL,
        "float64": TensorProto.DOUBLE,
    }

    def make(nodes, inputs, outputs, initializers=None, opset=17, name="model"):
        nodes = [helper.make_node(op, i, o, name=f"{op}_{k}", **attrs) for k, (op, i, o, attrs) in enumerate(nodes)]
        values = lambda table: [helper.make_tensor_value_info(n, types[t], s) for n, (t, s) in table.items()]
        constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in (initializers or {}).items()]
        model = helper.make_model(
            helper.make_graph(nodes, "g", values(inputs), values(outputs), constants),
            opset_imports=[helper.make_opsetid("", opset)],
        )
        model.ir_version = 8
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path)
        return str(path)

    return make


@pytest.fixture
def build():
    """build(path, **config) -> a built RKNN object ready for inference; everything released at the end."""
    from rknn.api import RKNN

    made = []

    def run(path, load=None, **config):
        rknn = RKNN()
        made.append(rknn)
        rknn.config(**{"target_platform": "rk3588", "float_dtype": "float32", **config})
        assert rknn.load_onnx(str(path), **(load or {})) == 0
        assert rknn.build(do_quantization=False) == 0
        assert rknn.init_runtime() == 0
        return rknn

    yield run
    for rknn in made:
        rknn.release()


@pytest.fixture
def conv_model(make_onnx):
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    return make_onnx(
        [("Conv", ["x", "w"], ["c"], dict(pads=[1, 1, 1, 1])), ("Relu", ["c"], ["y"], {})],
        {"x": ("float32", [1, 3, 8, 6])},
        {"y": ("float32", [1, 4, 8, 6])},
        {"w": weight},
    )


def picture(shape=(1, 8, 6, 3)):
    return np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8)
