"""openrknn quantize, analyse and compare as a user types them."""

import json

import numpy as np
import pytest


@pytest.fixture
def pictures(tmp_path, root):
    files = sorted((root / "examples" / "models" / "pictures").glob("shape_*.png"))[:6]
    (tmp_path / "dataset.txt").write_text("\n".join(map(str, files)))
    folder = tmp_path / "pictures"
    folder.mkdir()
    for file in files[:3]:
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


NORMALIZE = ("--mean", "127.5,127.5,127.5", "--std", "127.5,127.5,127.5")


@pytest.fixture
def quantized(tmp_path, pictures, shapes_model, openrknn):
    done = openrknn(
        "quantize", shapes_model, "--dataset", tmp_path / "dataset.txt", "-o", tmp_path / "int8.rknn", "-t", "rk3588", *NORMALIZE
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / "int8.rknn"


def test_quantize_is_convert_with_a_dataset(tmp_path, quantized, shapes_model, openrknn):
    again = openrknn(
        "convert",
        shapes_model,
        "--dataset",
        tmp_path / "dataset.txt",
        "-o",
        tmp_path / "same.rknn",
        "-t",
        "rk3588",
        "--json",
        *NORMALIZE,
    )
    assert again.returncode == 0 and (tmp_path / "same.rknn").read_bytes() == quantized.read_bytes()
    assert json.loads(again.stdout)["file_bytes"] == quantized.stat().st_size
    assert openrknn("quantize", shapes_model, "-o", tmp_path / "x.rknn").returncode == 2  # no dataset
    missing = openrknn("quantize", shapes_model, "--dataset", tmp_path / "gone.txt", "-o", tmp_path / "x.rknn", "-t", "rk3588")
    assert missing.returncode == 1 and "gone.txt" in missing.stderr and not (tmp_path / "x.rknn").exists()


def test_steps_are_listed_switchable_and_traced(tmp_path, quantized, shapes_model, openrknn):
    steps = [p["name"] for p in json.loads(openrknn("passes", "--json").stdout) if p["stage"] == "quantize"]
    assert {"fold_normalization", "equalize_channels", "correct_bias", "keep_small_values", "round_adaptively"} <= set(steps)
    common = ("quantize", shapes_model, "--dataset", tmp_path / "dataset.txt", "-t", "rk3588", "--trace", *NORMALIZE)
    whole = openrknn(*common, "-o", tmp_path / "a.rknn", "--algorithm", "adaround")
    assert whole.returncode == 0 and "correct_bias: " in whole.stdout and "round_adaptively: " in whole.stdout, (
        whole.stderr + whole.stdout
    )
    without = openrknn(*common, "-o", tmp_path / "b.rknn", *[a for step in steps for a in ("--disable", step)])
    assert without.returncode == 0 and not any(f"{step}: " in without.stdout for step in steps), without.stderr
    assert (tmp_path / "b.rknn").read_bytes() != quantized.read_bytes()
    assert (
        openrknn(*common, "-o", tmp_path / "c.rknn", "--stop-after", "correct_bias").returncode != 0
    )  # there is no graph between steps


def test_auto_hybrid(tmp_path, pictures, shapes_model, openrknn):
    done = openrknn(
        "quantize",
        shapes_model,
        "--dataset",
        tmp_path / "dataset.txt",
        "-o",
        tmp_path / "h.rknn",
        "-t",
        "rk3588",
        "--auto-hybrid",
        "0.99999",
        *NORMALIZE,
    )
    assert done.returncode == 0 and "stay in float16" in done.stdout and "predicted" in done.stdout


def test_analyse(tmp_path, pictures, shapes_model, openrknn):
    common = ("--dataset", tmp_path / "dataset.txt", "-t", "rk3588", *NORMALIZE)
    done = openrknn("analyse", shapes_model, *common, "--html", tmp_path / "page.html", "--snapshot", tmp_path / "snapshot")
    assert done.returncode == 0, done.stderr
    assert "simulator_error" in done.stdout and "[Gemm] scores" in done.stdout and "\033" not in done.stdout
    assert "histogram" in (tmp_path / "page.html").read_text() and (tmp_path / "snapshot" / "golden" / "scores.txt").exists()
    picture = next(pictures.glob("*.png"))
    report = json.loads(openrknn("analyse", shapes_model, *common, "--input", picture, "--json").stdout)
    last = report["layers"][-1]
    assert last["name"] == "scores" and last["entire"]["cosine"] > 0.99 and last["dtype"] == "int8"
    assert openrknn("analyse", shapes_model, "-t", "rk3588").returncode == 1


def test_compare(tmp_path, quantized, pictures, shapes_model, openrknn, build):
    done = openrknn("compare", shapes_model, quantized, "--images", pictures, "-t", "rk3588", *NORMALIZE)
    assert done.returncode == 0, done.stderr
    assert "scores" in done.stdout and "3/3" in done.stdout
    result = json.loads(
        openrknn(
            "compare", shapes_model, quantized, "--dataset", tmp_path / "dataset.txt", "-t", "rk3588", "--json", *NORMALIZE
        ).stdout
    )
    output = result["outputs"][0]
    assert result["pictures"] == 6 and 0.99 < output["lowest_cosine"] <= output["cosine"] < 1 and output["largest_difference"] > 0
    # Against results stored by another program.
    from PIL import Image

    stored = tmp_path / "stored"
    stored.mkdir()
    exact = build(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])
    for file in pictures.glob("*.png"):
        np.save(stored / f"{file.stem}.npy", exact.inference([np.asarray(Image.open(file).convert("RGB"))[None]])[0])
    same = json.loads(
        openrknn("compare", shapes_model, stored, "--images", pictures, "-t", "rk3588", "--json", *NORMALIZE).stdout
    )["outputs"][0]
    assert same["cosine"] > 0.999999 and same["same_top1"] == 3 and same["largest_difference"] < 1e-3
    (stored / f"{file.stem}.npy").unlink()
    gone = openrknn("compare", shapes_model, stored, "--images", pictures, "-t", "rk3588", *NORMALIZE)
    assert gone.returncode == 1 and file.stem in gone.stderr
    assert openrknn("compare", shapes_model, quantized, "-t", "rk3588").returncode == 1
