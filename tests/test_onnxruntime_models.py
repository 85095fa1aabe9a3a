"""Models of com.microsoft operators and of new opsets (tests/data/onnxruntime/make.py), against what ONNX Runtime or the onnx reference computed."""

import pathlib

import numpy as np
import pytest
from rknn.api import RKNN

MODELS = pathlib.Path(__file__).parent / "data" / "onnxruntime"
FILES = sorted(path.stem for path in MODELS.glob("*.onnx"))


REFUSED = {"ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}  # as docs/status.md says


def test_there_are_models():
    assert {"attention_past", "gqa_fixed_cache", "nbits_4_zero", "bitcast_26"} <= set(FILES)


def test_every_operator_of_the_newest_opset_is_known(tmp_path, capfd):
    onnx = pytest.importorskip("onnx")
    newest = {s.name: s for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    refused = set()
    for name, schema in newest.items():
        node = onnx.helper.make_node(name, ["x"] * schema.min_input, ["y"])
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
        graph = onnx.helper.make_graph([node], name, [x], [y])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version())])
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        rknn = RKNN()
        rknn.config(target_platform="rk3588")
        rknn.load_onnx(tmp_path / "m.onnx")
        rknn.release()
        if "operator is not supported" in capfd.readouterr().err:
            refused.add(name)
    assert len(newest) > 190
    assert refused == REFUSED


@pytest.mark.parametrize("name", FILES)
def test_outputs_are_those_of_onnx_runtime(name):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(MODELS / f"{name}.onnx") == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    stored = np.load(MODELS / f"{name}.npz")
    inputs = [stored[f"input_{i}"] for i in range(sum(key.startswith("input_") for key in stored.files))]
    found = rknn.inference(inputs, data_format=["nchw"] * len(inputs))
    expected = [stored[f"output_{i}"] for i in range(len(stored.files) - len(inputs))]
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    rknn.release()


def test_convolution_with_channels_last(tmp_path):
    """No runtime on a processor has NhwcConv: compared with Conv on the same numbers."""
    onnx = pytest.importorskip("onnx")
    random = np.random.default_rng(1)
    x, w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 6, 5, 4), (8, 2, 3, 3), (8,)))
    constants = [onnx.numpy_helper.from_array(v, n) for n, v in (("w", w), ("b", b))]
    options = dict(pads=[1, 0, 1, 0], strides=[2, 1], group=2, kernel_shape=[3, 3])
    results = []
    for op, domain, value in (("NhwcConv", "com.microsoft", x), ("Conv", "", x.transpose(0, 3, 1, 2))):
        node = onnx.helper.make_node(op, ["x", "w", "b"], ["y"], domain=domain, **options)
        graph = onnx.helper.make_graph(
            [node],
            "g",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, value.shape)],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            constants,
        )
        sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
        (tmp_path / "m.onnx").write_bytes(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())
        rknn = RKNN()
        rknn.config(target_platform="rk3588", float_dtype="float32")
        assert rknn.load_onnx(tmp_path / "m.onnx") == 0
        assert rknn.build(do_quantization=False) == 0
        assert rknn.init_runtime() == 0
        results.append(rknn.inference([np.ascontiguousarray(value)], data_format=["nchw"])[0])
        rknn.release()
    np.testing.assert_allclose(results[0], results[1].transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)
