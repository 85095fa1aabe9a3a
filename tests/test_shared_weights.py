"""Two sizes of one network that share weights: config(remove_weight=True), then RKNN_FLAG_SHARE_WEIGHT_MEM of the C library."""

import ctypes

import numpy as np
import pytest
from library import BUILD, Input, Output
from rknn.api import RKNN

SHARE_WEIGHT_MEM = 0x20


class Extend(ctypes.Structure):
    _fields_ = [
        ("ctx", ctypes.c_uint64),
        ("real_model_offset", ctypes.c_int32),
        ("real_model_size", ctypes.c_uint32),
        ("model_buffer_fd", ctypes.c_int32),
        ("model_buffer_flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint8 * 112),
    ]


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(str(BUILD / "librknnrt.so"))


def start(library, path, flags=0, donor=None):
    context = ctypes.c_uint64()
    extend = Extend(ctx=donor.value) if donor else None
    code = library.rknn_init(ctypes.byref(context), str(path).encode(), 0, flags, ctypes.byref(extend) if extend else None)
    return code, context


def infer(library, context, picture):
    data = np.ascontiguousarray(picture)
    given = Input(buf=data.ctypes.data, size=data.nbytes, type=3, fmt=1)
    assert library.rknn_inputs_set(context, 1, ctypes.byref(given)) == 0
    assert library.rknn_run(context, None) == 0
    out = Output(want_float=1)
    assert library.rknn_outputs_get(context, 1, ctypes.byref(out), None) == 0
    values = np.frombuffer(ctypes.string_at(out.buf, out.size), np.float32).copy()
    assert library.rknn_outputs_release(context, 1, ctypes.byref(out)) == 0
    return values


def export(source, path, size, quantize, dataset, **options):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", mean_values=[[127.5] * 3], std_values=[[127.5] * 3], **options)
    assert rknn.load_onnx(source, inputs=["x"], input_size_list=[[1, 3, size, size]]) == 0
    assert rknn.build(do_quantization=quantize, dataset=dataset) == 0
    assert rknn.init_runtime() == 0, "before it is exported, the model has its weights"
    assert rknn.export_rknn(str(path)) == 0
    rknn.release()
    return path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    files = {}
    for size in (16, 24):
        path = folder / f"{size}.npy"
        np.save(path, np.random.default_rng(size).integers(0, 256, (1, size, size, 3)).astype(np.uint8))
        files[size] = folder / f"{size}.txt"
        files[size].write_text(f"{path}\n")
    return files


@pytest.mark.parametrize("quantize", [False, True])
def test_the_second_model_uses_the_weights_of_the_first(library, make_onnx, tmp_path, dataset, quantize):
    rng = np.random.default_rng(5)
    weights = {"w": (64, 3, 3, 3), "v": (64, 64, 3, 3)}
    source = make_onnx(
        [("Conv", ["x", "w"], ["a"], dict(pads=[1] * 4)), ("Relu", ["a"], ["r"], {}), ("Conv", ["r", "v"], ["y"], {})],
        {"x": ("float32", [1, 3, "height", "width"])},
        {"y": ("float32", [1, 64, "rows", "columns"])},
        {name: rng.standard_normal(shape).astype(np.float32) * 0.1 for name, shape in weights.items()},
    )
    # At the highest level the weights of a quantized model depend on its calibration.
    full = export(source, tmp_path / "full.rknn", 16, quantize, str(dataset[16]), optimization_level=2)
    other = export(source, tmp_path / "other.rknn", 24, quantize, str(dataset[24]), optimization_level=2)
    slave = export(source, tmp_path / "slave.rknn", 24, quantize, str(dataset[24]), optimization_level=2, remove_weight=True)
    assert slave.stat().st_size < other.stat().st_size - 30_000

    picture = rng.integers(0, 256, (1, 24, 24, 3)).astype(np.uint8)
    code, alone = start(library, other)
    assert code == 0
    code, donor = start(library, full)
    assert code == 0
    assert start(library, slave)[0] == -6
    code, shared = start(library, slave, SHARE_WEIGHT_MEM, donor)
    assert code == 0
    assert np.array_equal(infer(library, shared, picture), infer(library, alone, picture))
    for context in (donor, shared, alone):
        assert library.rknn_destroy(context) == 0

    # The build without weights takes no step that lets them depend on its calibration, whatever the level.
    default = export(source, tmp_path / "default.rknn", 24, quantize, str(dataset[24]), remove_weight=True)
    code, donor = start(library, full)
    assert code == 0
    code, shared = start(library, default, SHARE_WEIGHT_MEM, donor)
    assert code == 0
    for context in (donor, shared):
        assert library.rknn_destroy(context) == 0


def test_weights_that_calibration_changed_are_refused(library, make_onnx, tmp_path, dataset, capfd):
    rng = np.random.default_rng(5)
    channels = np.logspace(-2, 0, 64, dtype=np.float32).reshape(64, 1, 1, 1)  # so unequal that they are equalized
    source = make_onnx(
        [("Conv", ["x", "w"], ["a"], dict(pads=[1] * 4)), ("Relu", ["a"], ["r"], {}), ("Conv", ["r", "v"], ["y"], {})],
        {"x": ("float32", [1, 3, "height", "width"])},
        {"y": ("float32", [1, 64, "rows", "columns"])},
        {
            "w": rng.standard_normal((64, 3, 3, 3)).astype(np.float32) * channels,
            "v": rng.standard_normal((64, 64, 3, 3)).astype(np.float32) / channels.reshape(1, 64, 1, 1),
        },
    )
    full = export(source, tmp_path / "full.rknn", 16, True, str(dataset[16]))
    slave = export(source, tmp_path / "slave.rknn", 24, True, str(dataset[24]), remove_weight=True)
    code, donor = start(library, full)
    assert code == 0
    capfd.readouterr()
    assert start(library, slave, SHARE_WEIGHT_MEM, donor)[0] == -6
    assert "optimization_level=2" in "".join(capfd.readouterr())
    assert library.rknn_destroy(donor) == 0


def test_what_does_not_run_says_why(make_onnx, tmp_path, capfd):
    source = make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 3, 8, 8])},
        {"y": ("float32", [1, 4, 6, 6])},
        {"w": np.ones((4, 3, 3, 3), np.float32)},
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588", remove_weight=True)
    assert rknn.load_onnx(source) == 0 and rknn.build(do_quantization=False) == 0
    path = tmp_path / "slave.rknn"
    assert rknn.export_rknn(str(path)) == 0
    capfd.readouterr()
    assert RKNN().load_rknn(str(path)) != 0
    assert "RKNN_FLAG_SHARE_WEIGHT_MEM" in "".join(capfd.readouterr())
