"""The openrknn command as a user types it."""
import json

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
    assert as_json["target_platform"] == "rk3588"


def test_lists_and_directories(root, openrknn):
    assert "rk3588" in openrknn("platforms").stdout.lower()
    assert json.loads(openrknn("platforms", "--json").stdout)
    assert "Conv" in openrknn("ops").stdout and "fold_constants" in openrknn("passes").stdout
    assert json.loads(openrknn("ops", "--json").stdout) and json.loads(openrknn("passes", "--json").stdout)
    import pathlib
    assert (pathlib.Path(openrknn("--libdir").stdout.strip()) / "librknnrt.so").exists()
    assert (pathlib.Path(openrknn("--includedir").stdout.strip()) / "rknn_api.h").exists()


def test_pass_switches(tmp_path, shapes_model, openrknn):
    done = openrknn("convert", shapes_model, "-o", tmp_path / "a.rknn", "-t", "rk3588", "--disable", "no_such_pass")
    assert done.returncode != 0 and "no_such_pass" in done.stderr and "fold_constants" in done.stderr
    done = openrknn("convert", shapes_model, "-o", tmp_path / "a.rknn", "-t", "rk3588", "--trace", "--disable", "fold_batch_norm")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("args", [["convert", "missing.onnx", "-o", "x.rknn", "-t", "rk3588"], ["info", "missing.rknn"], ["run", "missing.rknn"],
                                  ["convert", "{model}", "-o", "/nonexistent/x.rknn", "-t", "rk3588"], ["convert", "{model}", "-o", "x.rknn", "-t", "rk0"]])
def test_errors_go_to_stderr(tmp_path, shapes_model, openrknn, args):
    done = openrknn(*[a.format(model=shapes_model) for a in args], cwd=tmp_path)
    assert done.returncode in (1, 2) and done.stderr.strip() and list(tmp_path.iterdir()) == []
