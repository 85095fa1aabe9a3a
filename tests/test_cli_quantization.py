"""openrknn quantize, analyse and compare as a user types them."""

import json
import os

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


def test_every_instruction_set_builds_the_same_file(tmp_path, quantized, shapes_model, openrknn):
    common = ("quantize", shapes_model, "--dataset", tmp_path / "dataset.txt", "-t", "rk3588", *NORMALIZE)
    first = {"normal": quantized.read_bytes()}
    built = 0
    for algorithm in ("normal", "mmse", "kl_divergence", "adaround"):
        for isa in ("portable", "avx2", "avx512"):
            done = openrknn(*common, "-o", tmp_path / "isa.rknn", "--algorithm", algorithm, env=dict(os.environ, ORKNN_ISA=isa))
            assert done.returncode == 0, done.stderr
            if "is nothing this machine has" in done.stderr:
                continue
            bytes_ = (tmp_path / "isa.rknn").read_bytes()
            assert first.setdefault(algorithm, bytes_) == bytes_, f"{algorithm} with {isa}"
            built += 1
    assert built >= 4  # the portable form runs everywhere


def test_steps_are_listed_switchable_and_traced(tmp_path, quantized, shapes_model, openrknn):
    listed = [p for p in json.loads(openrknn("passes", "--json").stdout) if p["stage"] == "quantize"]
    optional = [p["name"] for p in listed if not p["required"]]
    assert set(optional) == {
        "expand_operators",
        "widen_layers",
        "fold_normalization",
        "try_steps",
        "equalize_channels",
        "clip_outliers",
        "correct_bias",
        "keep_small_values",
        "keep_stored_weights",
        "round_adaptively",
    }
    common = ("quantize", shapes_model, "--dataset", tmp_path / "dataset.txt", "-t", "rk3588", "--trace", *NORMALIZE)
    whole = openrknn(*common, "-o", tmp_path / "a.rknn", "--dump-after", "lower_to_integers")
    # Trials would find that the nearest integers do.
    rounded = openrknn(*common, "-o", tmp_path / "a.rknn", "--algorithm", "adaround", "--disable", "try_steps")
    assert whole.returncode == 0 and rounded.returncode == 0, whole.stderr + rounded.stderr
    for step in ("fuse_constant_arithmetic", "try_steps", "correct_bias", "lower_to_integers", "forget_constant_grids"):
        assert f" ms {step}: 1 run" in whole.stdout, step
    assert " ms round_adaptively: 1 run" in rounded.stdout and "round_adaptively: '" in rounded.stdout
    assert "correct_bias: '" in whole.stdout
    assert "after lower_to_integers:" in whole.stdout and '"int:Conv"(' in whole.stdout
    without = openrknn(*common, "-o", tmp_path / "b.rknn", *[a for step in optional for a in ("--disable", step)])
    assert without.returncode == 0 and not any(f"{step}: " in without.stdout for step in optional), without.stderr
    assert (tmp_path / "b.rknn").read_bytes() != quantized.read_bytes()
    for option in ("--stop-after", "--disable"):  # half of a network is no network
        refused = openrknn(*common, "-o", tmp_path / "c.rknn", option, "lower_to_integers")
        assert refused.returncode != 0 and "lower_to_integers" in refused.stderr


def test_integer_layers_get_the_tails_they_compute(tmp_path, make_onnx, openrknn):
    """A sum after an activation: a float convolution takes both, an integer one the activation alone."""
    rng = np.random.default_rng(2)
    model = make_onnx(
        [
            ("Conv", ["x", "w"], ["c"], {}),
            ("Relu", ["c"], ["r"], {}),
            ("Add", ["r", "x"], ["a"], {}),
            ("Relu", ["a"], ["y"], {}),
        ],
        {"x": ("float32", [1, 4, 8, 8])},
        {"y": ("float32", [1, 4, 8, 8])},
        {"w": rng.standard_normal((4, 4, 1, 1)).astype(np.float32)},
    )
    np.save(tmp_path / "x.npy", rng.standard_normal((1, 4, 8, 8)).astype(np.float32))
    (tmp_path / "samples.txt").write_text("x.npy\n")
    common = ("convert", model, "-t", "rk3588", "--trace", "-o", tmp_path / "m.rknn", "--dump-after", "forget_constant_grids")
    in_float = openrknn(*common)
    in_int8 = openrknn(*common, "--dataset", tmp_path / "samples.txt")
    assert in_float.returncode == 0 and in_int8.returncode == 0, in_float.stderr + in_int8.stderr
    assert "+ Relu() + Add(%x) + Relu()" in in_float.stdout
    dumped = in_int8.stdout[in_int8.stdout.index("after forget_constant_grids:") :]
    assert dumped.count('"int:Conv"(') == 1 and dumped.count('"int:Add"(') == 1 and "int:Table" not in dumped
    assert "/before" not in dumped


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


@pytest.fixture
def advice(tmp_path, make_onnx, openrknn):
    """advice(loud, *options): what is said of each layer when one of two calibration samples is `loud` times the analysed one.
    'even' and 'uneven' are convolutions; the weights of one channel of the latter are 400 times as large, its bias keeps it 0."""
    weights = np.random.default_rng(3).standard_normal((8, 3, 3, 3)).astype(np.float32)
    sizes = np.array([400] + [1] * 7, np.float32)
    model = make_onnx(
        [
            ("Conv", ["x", "w"], ["c1"], {}),
            ("Relu", ["c1"], ["even"], {}),
            ("Conv", ["x", "u", "b"], ["c2"], {}),
            ("Relu", ["c2"], ["uneven"], {}),
        ],
        {"x": ("float32", [1, 3, 16, 16])},
        {"even": ("float32", [1, 8, 14, 14]), "uneven": ("float32", [1, 8, 14, 14])},
        {"w": weights, "u": weights * sizes[:, None, None, None], "b": np.array([-1e5] + [0] * 7, np.float32)},
    )

    def of(loud, *options):
        rng = np.random.default_rng(5)
        for name, size in (("loud", loud), ("plain", 1)):
            np.save(tmp_path / f"{name}.npy", rng.standard_normal((1, 3, 16, 16)).astype(np.float32) * np.float32(size))
        (tmp_path / "samples.txt").write_text("loud.npy\nplain.npy\n")
        files = ("--dataset", tmp_path / "samples.txt", "--input", tmp_path / "plain.npy")
        done = openrknn("analyse", model, *files, "--json", *options)
        assert done.returncode == 0, done.stderr
        return {layer["name"]: layer.get("suggestion", "") for layer in json.loads(done.stdout)["layers"]}

    return of


def test_advice_on_weights(advice):
    said = advice(1, "-t", "rk3588", "--method", "layer")
    assert "differ by a factor of" in said["uneven"] and "quantized_method='channel'" in said["uneven"] and not said["even"]


def test_advice_on_samples_of_different_size(advice):
    said = advice(80, "-t", "rk3588", "--method", "layer")
    assert "outliers in the calibration samples, or use quantized_algorithm='mmse'" in said["x_int8"]
    assert said["even"].startswith("8 bits are too few") and "'even: float16'" in said["even"]
    assert "Mend 'x_int8' first" in said["x_float"]  # the same values for 'uneven', which stays in float
    said = advice(20000, "-t", "rv1106", "--dtype", "w16a16i")
    assert "outliers in the calibration samples" in said["x_int16"] and said["even"].startswith("16 bits are too few")


def test_warnings_name_the_operators_of_the_model(tmp_path, make_onnx, openrknn):
    rng = np.random.default_rng(7)
    model = make_onnx(
        [
            ("Conv", ["x", "w"], ["c"], {}),
            ("Sigmoid", ["c"], ["s"], {}),
            ("Tanh", ["c"], ["t"], {}),
            ("Add", ["s", "t"], ["sum"], {}),
            ("Abs", ["sum"], ["y"], {}),
        ],
        {"x": ("float32", [1, 3, 16, 16])},
        {"y": ("float32", [1, 8, 14, 14])},
        {"w": rng.standard_normal((8, 3, 3, 3)).astype(np.float32)},
    )
    np.save(tmp_path / "x.npy", rng.standard_normal((1, 3, 16, 16)).astype(np.float32))
    (tmp_path / "samples.txt").write_text("x.npy\n")
    done = openrknn("quantize", model, "--dataset", tmp_path / "samples.txt", "-t", "rk3588", "-o", tmp_path / "abs.rknn")
    assert done.returncode == 0 and "int8" in done.stdout, done.stderr
    assert "The Op of 'Abs' ('Abs_4') is not on the operator list" in done.stderr and "int:" not in done.stderr


@pytest.fixture
def float_result(shapes_model, build):
    """float_result(file, bgr=False): what the float model makes of a picture."""
    from PIL import Image

    exact = build(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])

    def of(file, bgr=False):
        pixels = np.asarray(Image.open(file).convert("RGB"))[None]
        return exact.inference([np.ascontiguousarray(pixels[..., ::-1]) if bgr else pixels])[0]

    return of


def test_compare(tmp_path, quantized, pictures, shapes_model, openrknn, float_result):
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
    stored = tmp_path / "stored"
    stored.mkdir()
    for file in pictures.glob("*.png"):
        np.save(stored / f"{file.stem}.npy", float_result(file))
    same = json.loads(
        openrknn("compare", shapes_model, stored, "--images", pictures, "-t", "rk3588", "--json", *NORMALIZE).stdout
    )["outputs"][0]
    assert same["cosine"] > 0.999999 and same["same_top1"] == 3 and same["largest_difference"] < 1e-3
    (stored / f"{file.stem}.npy").unlink()
    gone = openrknn("compare", shapes_model, stored, "--images", pictures, "-t", "rk3588", *NORMALIZE)
    assert gone.returncode == 1 and file.stem in gone.stderr
    assert openrknn("compare", shapes_model, quantized, "-t", "rk3588").returncode == 1


def test_compare_pairs_results_with_whole_names_first(tmp_path, pictures, shapes_model, openrknn, float_result):
    from PIL import Image

    both, stored = tmp_path / "both", tmp_path / "stored"
    both.mkdir()
    stored.mkdir()
    for file, name in zip(sorted(pictures.glob("*.png")), ("a.png", "a.bmp")):
        Image.open(file).convert("RGB").save(both / name)
    compare = ("compare", shapes_model, stored, "--images", both, "-t", "rk3588", "--json", *NORMALIZE)
    np.save(stored / "a.npy", float_result(both / "a.png"))
    refused = openrknn(*compare)
    assert refused.returncode == 1 and all(name in refused.stderr + refused.stdout for name in ("a.png'", "a.bmp'"))
    np.save(stored / "a.bmp.npy", float_result(both / "a.bmp"))
    result = json.loads(openrknn(*compare).stdout)
    assert result["pictures"] == 2 and result["outputs"][0]["lowest_cosine"] > 0.999999


def test_compare_on_bgr(tmp_path, pictures, shapes_model, openrknn, float_result):
    stored = tmp_path / "stored"
    stored.mkdir()
    for file in pictures.glob("*.png"):
        np.save(stored / f"{file.stem}.npy", float_result(file, bgr=True))
    compare = ("compare", shapes_model, stored, "--images", pictures, "-t", "rk3588", "--json", *NORMALIZE)
    with_option, without = (json.loads(openrknn(*compare, *option).stdout)["outputs"][0] for option in (["--bgr"], []))
    assert with_option["largest_difference"] < 1e-3 < without["largest_difference"]
