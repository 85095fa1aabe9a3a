"""accuracy_analysis, auto_hybrid and hybrid quantization through the Python API."""

import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest
from rknn.api import RKNN


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pictures(root):
    return sorted(map(str, (root / "examples" / "models" / "pictures").glob("shape_*.png")))[:4]


@pytest.fixture
def dataset(folder, pictures):
    (folder / "dataset.txt").write_text("\n".join(pictures))
    return "dataset.txt"


def loaded(model, **config):
    rknn = RKNN()
    rknn.config(**{"target_platform": "rk3588", **config})
    assert rknn.load_onnx(str(model)) == 0
    return rknn


# Equalization would mend the network below, and layers left in float.
AS_IT_IS = {"disable_rules": ["equalize_channels", "try_steps"]}


@pytest.fixture
def spread_model(make_onnx):
    """Two convolutions; the channels of the first differ 4000 times in size, so that 8 bits for all of them lose the small ones, which the second
    one makes large again."""
    rng = np.random.default_rng(3)
    sizes = np.geomspace(1, 4000, 8).astype(np.float32)
    first = rng.standard_normal((8, 3, 3, 3)).astype(np.float32) * sizes[:, None, None, None]
    second = rng.standard_normal((4, 8, 1, 1)).astype(np.float32) / sizes[None, :, None, None]
    return make_onnx(
        [
            ("Conv", ["x", "w1"], ["c1"], {"pads": [1, 1, 1, 1]}),
            ("Relu", ["c1"], ["r1"], {}),
            ("Conv", ["r1", "w2"], ["c2"], {}),
            ("Conv", ["c2", "w3"], ["y"], {}),
        ],
        {"x": ("float32", [1, 3, 16, 16])},
        {"y": ("float32", [1, 4, 16, 16])},
        {"w1": first, "w2": second, "w3": rng.standard_normal((4, 4, 1, 1)).astype(np.float32)},
        name="spread",
    )


@pytest.fixture
def noise(folder):
    rng = np.random.default_rng(5)
    for i in range(4):
        np.save(folder / f"{i}.npy", rng.standard_normal((1, 3, 16, 16)).astype(np.float32))
    (folder / "noise.txt").write_text("".join(f"{i}.npy\n" for i in range(4)))
    return "noise.txt"


def rows_of(text):
    """{tensor name: cells} of the report."""
    rows = {}
    for line in text.splitlines():
        if line.startswith("["):
            name, _, rest = line.partition("] ")[2].partition(" ")
            rows[name] = [tuple(c.split("|")) for c in []] if not rest.strip() else rest.split()
    return rows


def test_report_and_snapshot(folder, shapes_model, dataset, pictures, capfd):
    rknn = loaded(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])
    assert rknn.build(do_quantization=True, dataset=dataset) == 0
    capfd.readouterr()
    assert rknn.accuracy_analysis(inputs=[pictures[0]]) == 0
    out, err = capfd.readouterr()
    report = pathlib.Path("snapshot/error_analysis.txt").read_text()
    assert report.strip() == out.strip() and "\033" not in report
    assert "I The error analysis results save to: ./snapshot/error_analysis.txt" in err
    assert "W accuracy_analysis: The mapping of layer_name & file_name save to: ./snapshot/map_name_to_file.txt" in err
    assert "I AccuracyAnalysing : 100%" in err
    rows = rows_of(report)
    assert rows["image"] == ["1.00000", "|", "0.0"] * 2
    assert "[exDataConvert] image_int8" in report and "[Gemm] scores" in report
    assert float(rows["scores"][0]) > 0.99 and float(rows["scores"][3]) > 0.99
    assert [] in rows.values()  # a layer fused into the next one shows its name only
    golden, simulator = (np.genfromtxt(f"snapshot/{kind}/scores.txt") for kind in ("golden", "simulator"))
    assert golden.ndim == 1 and golden.shape == simulator.shape
    cosine = golden @ simulator / np.linalg.norm(golden) / np.linalg.norm(simulator)
    assert abs(cosine - float(rows["scores"][0])) < 1e-4
    # The simulator's values are those that inference gives.
    assert rknn.init_runtime() == 0
    from PIL import Image

    picture = np.asarray(Image.open(pictures[0]).convert("RGB"))[None]
    np.testing.assert_allclose(rknn.inference([picture])[0].ravel(), simulator, rtol=1e-5, atol=1e-6)
    names = dict(line.rsplit(None, 1) for line in pathlib.Path("snapshot/map_name_to_file.txt").read_text().splitlines())
    assert all(os.path.exists(f"snapshot/golden/{file}") for file in names.values()) and "image_int8" in {
        n.strip() for n in names
    }
    page = pathlib.Path("snapshot/error_analysis.html").read_text()
    assert "scores" in page and "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page


def test_golden_is_the_float_model(folder, shapes_model, dataset, pictures, build):
    rknn = loaded(shapes_model)
    assert rknn.build(do_quantization=True, dataset=dataset) == 0 and rknn.accuracy_analysis([pictures[1]]) == 0
    from PIL import Image

    exact = build(shapes_model).inference([np.asarray(Image.open(pictures[1]).convert("RGB"))[None]])[0]
    np.testing.assert_allclose(np.genfromtxt("snapshot/golden/scores.txt"), exact.ravel(), rtol=1e-4, atol=1e-4)


def test_single_shows_the_layer_that_loses(folder, spread_model, noise, capfd):
    """Only c1's own rounding is bad; later layers, fed with golden values, are fine."""
    rknn = loaded(spread_model, **AS_IT_IS)
    assert rknn.build(do_quantization=True, dataset=noise) == 0 and rknn.accuracy_analysis(["0.npy"]) == 0
    rows = rows_of(pathlib.Path("snapshot/error_analysis.txt").read_text())
    assert float(rows["y"][0]) < 0.97 < float(rows["y"][3])


def test_device_columns(folder, shapes_model, dataset, pictures):
    rknn = loaded(shapes_model)
    assert rknn.build(do_quantization=True, dataset=dataset) == 0
    assert rknn.accuracy_analysis([pictures[0]], target="rk3588") == 0
    report = pathlib.Path("snapshot/error_analysis.txt").read_text()
    assert "runtime_error" in report and "single_sim" in report
    cells = rows_of(report)["scores"]
    assert cells[0:3] == cells[6:9] and cells[9:] == ["1.00000", "|", "0.0"]
    assert len(os.listdir("snapshot/runtime")) == len(os.listdir("snapshot/golden"))


def test_without_folder(folder, shapes_model, dataset, pictures, capfd):
    rknn = loaded(shapes_model)
    assert rknn.build(do_quantization=True, dataset=dataset) == 0
    assert rknn.accuracy_analysis([pictures[0]], output_dir=None) == 0
    assert "simulator_error" in capfd.readouterr().out and not os.path.exists("snapshot")


def test_float16_overflow_is_found(folder, make_onnx, capfd):
    model = make_onnx(
        [("Mul", ["x", "k"], ["large"], {}), ("Sqrt", ["large"], ["y"], {})],
        {"x": ("float32", [1, 4])},
        {"y": ("float32", [1, 4])},
        {"k": np.array([60000.0], np.float32)},
    )
    np.save("x.npy", np.full((1, 4), 50, np.float32))
    rknn = loaded(model)
    assert rknn.build(do_quantization=False) == 0 and rknn.accuracy_analysis(["x.npy"]) == 0
    assert "s_inf" in capfd.readouterr().out
    assert "do not fit float16" in pathlib.Path("snapshot/error_analysis.html").read_text()


@pytest.mark.parametrize(
    "size, op, reason",
    [
        (1000, "Softmax", "Its input 'square' overflows float16 (65504) with values up to 1.6e+07. Mend 'square' first."),
        (1e-5, "Log", "larger epsilon"),
    ],
)
def test_advice_on_values_that_are_no_numbers(folder, make_onnx, openrknn, size, op, reason):
    model = make_onnx(
        [("Mul", ["x", "x"], ["square"], {}), (op, ["square"], ["y"], {})],
        {"x": ("float32", [1, 4])},
        {"y": ("float32", [1, 4])},
    )
    np.save("x.npy", np.array([[1, 2, 3, 4]], np.float32) * np.float32(size))
    report = json.loads(openrknn("analyse", model, "--input", "x.npy", "-t", "rk3588", "--json").stdout)
    last = report["layers"][-1]
    assert "not_a_number" in last["single"] and reason in last["suggestion"]


def test_advice_on_outliers_that_were_cut(folder, make_onnx, openrknn, noise):
    """What the quantizer cuts on purpose is no reason to calibrate with other samples."""
    model = make_onnx(
        [
            ("Conv", ["x", "w"], ["c"], {}),
            ("HardSwish", ["c"], ["h"], {}),
            ("Conv", ["h", "v"], ["y"], {"group": 3}),
        ],
        {"x": ("float32", [1, 3, 16, 16])},
        {"y": ("float32", [1, 3, 16, 16])},
        {
            "w": np.diag([400, 1, 1]).astype(np.float32).reshape(3, 3, 1, 1),
            "v": np.array([1e-6, 1, 1], np.float32).reshape(3, 1, 1, 1),
        },
    )
    report = json.loads(openrknn("analyse", model, "--dataset", noise, "--input", "0.npy", "-t", "rk3588", "--json").stdout)
    layers = {row["name"]: row for row in report["layers"]}
    assert "on purpose" in layers["h"]["suggestion"] and "more pictures" not in layers["h"]["suggestion"]
    assert layers["y"]["entire"]["cosine"] > 0.99
    steps = {row["step"]: row for row in report["steps"]}
    assert steps["clip_outliers"]["kept"] and steps["clip_outliers"]["loss_with"] < steps["clip_outliers"]["loss_without"]


def test_refusals(folder, shapes_model, dataset, pictures, make_onnx, capfd):
    rknn = loaded(shapes_model)
    assert rknn.accuracy_analysis([pictures[0]]) == -1 and "built model" in capfd.readouterr().err
    assert rknn.build(do_quantization=True, dataset=dataset) == 0
    assert rknn.accuracy_analysis(["missing.jpg"]) == -1 and "missing.jpg" in capfd.readouterr().err
    assert rknn.accuracy_analysis([pictures[0], pictures[1]]) == -1
    assert rknn.accuracy_analysis([pictures[0]], target="rv1106") == -1 and "does not run on rv1106" in capfd.readouterr().err
    quantized = make_onnx(
        [
            ("QuantizeLinear", ["x", "s", "z"], ["q"], {}),
            ("DequantizeLinear", ["q", "s", "z"], ["d"], {}),
            ("Relu", ["d"], ["y"], {}),
        ],
        {"x": ("float32", [1, 4])},
        {"y": ("float32", [1, 4])},
        {"s": np.float32(0.1), "z": np.uint8(128)},
        name="qdq",
    )
    np.save("x.npy", np.ones((1, 4), np.float32))
    rknn = loaded(quantized)
    assert rknn.build(do_quantization=False) == 0
    assert rknn.accuracy_analysis(["x.npy"]) == -1 and "already quantized" in capfd.readouterr().err


def test_toolkit1_form(folder, shapes_model, dataset, pictures):
    rknn = loaded(shapes_model, target_platform="rk1808")
    assert rknn.build(do_quantization=True, dataset=dataset) == 0
    (folder / "one.txt").write_text(pictures[0])
    assert rknn.accuracy_analysis("one.txt", "out", True, dump_file_type="npy") == 0
    lines = pathlib.Path("out/individual_qnt_error_analysis.txt").read_text().splitlines()
    name, *fields = lines[-1].split("\t")
    assert name.strip() == "scores" and [f.split("=")[0] for f in fields] == [
        "eculidean_norm",
        "cosine_norm",
        "eculidean",
        "cosine",
    ]
    values = dict((f.split("=")[0], float(f.split("=")[1])) for f in fields)
    assert abs(values["eculidean_norm"] - np.sqrt(2 - 2 * values["cosine_norm"])) < 2e-3
    for kind in ("fp32", "entire_qnt", "individual_qnt"):
        stored = [f for f in os.listdir(f"out/{kind}") if f.startswith("scores_")]
        assert len(stored) == 1 and "_out0_" in stored[0] and np.load(f"out/{kind}/{stored[0]}").dtype == np.float32
    assert rknn.accuracy_analysis("one.txt", "bare", False) == 0 and not any(
        f.endswith("analysis.txt") for f in os.listdir("bare")
    )


# ---- auto_hybrid


def test_auto_hybrid_leaves_few_layers_in_float(folder, spread_model, noise, capfd):
    x = np.load("3.npy")

    def cosine(rknn, exact):
        assert rknn.init_runtime() == 0
        got = rknn.inference([x], data_format="nchw")[0].ravel().astype(float)
        return got @ exact / np.linalg.norm(got) / np.linalg.norm(exact)

    exact = loaded(spread_model, float_dtype="float32")
    assert exact.build(do_quantization=False) == 0 and exact.init_runtime() == 0
    wanted = exact.inference([x], data_format="nchw")[0].ravel().astype(float)
    plain, equalized = loaded(spread_model, **AS_IT_IS), loaded(spread_model)
    assert plain.build(do_quantization=True, dataset=noise) == 0 and equalized.build(do_quantization=True, dataset=noise) == 0
    assert cosine(equalized, wanted) > 0.99
    hybrid = loaded(spread_model, auto_hybrid_cos_thresh=0.999, **AS_IT_IS)
    capfd.readouterr()
    assert hybrid.build(do_quantization=True, dataset=noise, auto_hybrid=True) == 0
    log = capfd.readouterr().err
    assert cosine(plain, wanted) < 0.97 and cosine(hybrid, wanted) > 0.999
    # So small a network gains nothing from integers beside float layers.
    assert "all 3 layers stay in float16" in log and "% of the multiplications" in log
    hybrid_ms, float_ms = (float(re.search(f"{what} ([0-9.]+) ms", log)[1]) for what in ("predicted", "all float16"))
    assert hybrid_ms <= float_ms


def test_auto_hybrid_in_float_altogether_is_the_float_model(folder, spread_model, noise, capfd):
    """Not with the weights that were fitted to integers."""
    x = np.load("3.npy")
    hybrid, floats = loaded(spread_model, auto_hybrid_cos_thresh=0.99999), loaded(spread_model)
    assert hybrid.build(do_quantization=True, dataset=noise, auto_hybrid=True) == 0
    assert "all 3 layers stay in float16" in capfd.readouterr().err
    assert floats.build(do_quantization=False) == 0
    results = [r.inference([x], data_format="nchw")[0] for r in (hybrid, floats) if r.init_runtime() == 0]
    np.testing.assert_array_equal(*results)


def test_auto_hybrid_keeps_what_is_faster_in_integers(folder, make_onnx, capfd):
    """Heavy layers that lose nothing, then two light ones that 8 bits ruin."""
    rng = np.random.default_rng(5)
    sizes = np.geomspace(1, 4000, 8).astype(np.float32)
    heavy = {f"w{i}": (rng.standard_normal((64, 3 if i == 0 else 64, 3, 3)) / 20).astype(np.float32) for i in range(8)}
    nodes = []
    for i in range(8):
        nodes.append(("Conv", ["x" if i == 0 else f"r{i - 1}", f"w{i}"], [f"c{i}"], {"pads": [1, 1, 1, 1]}))
        nodes.append(("Relu", [f"c{i}"], [f"r{i}"], {}))
    model = make_onnx(
        [*nodes, ("Conv", ["r7", "a"], ["s"], {}), ("HardSwish", ["s"], ["h"], {}), ("Conv", ["h", "b"], ["y"], {})],
        {"x": ("float32", [1, 3, 56, 56])},
        {"y": ("float32", [1, 8, 56, 56])},
        {
            **heavy,
            "a": (rng.standard_normal((8, 64, 1, 1)) / 8 * sizes.reshape(8, 1, 1, 1)).astype(np.float32),
            "b": (rng.standard_normal((8, 8, 1, 1)) / sizes.reshape(1, 8, 1, 1)).astype(np.float32),
        },
        name="heavy",
    )
    for i in range(6):
        np.save(f"{i}.npy", rng.standard_normal((1, 3, 56, 56)).astype(np.float32))
    pathlib.Path("list.txt").write_text("".join(f"{i}.npy\n" for i in range(6)))
    rknn = loaded(model, auto_hybrid_cos_thresh=0.98)
    assert rknn.build(do_quantization=True, dataset="list.txt", auto_hybrid=True) == 0
    log = capfd.readouterr().err
    kept, layers = map(int, re.search(r"auto_hybrid: (\d+) of (\d+) layers stay in float16", log).groups())
    hybrid_ms, float_ms = (float(re.search(f"{what} ([0-9.]+) ms", log)[1]) for what in ("predicted", "all float16"))
    assert 0 < kept < layers and hybrid_ms < float_ms
    assert rknn.accuracy_analysis(["0.npy"], output_dir=None) == 0
    table = capfd.readouterr().out
    assert "[exDataConvert]" in table and float(rows_of(table)["y"][0]) > 0.98


def test_auto_hybrid_holds_results_beyond_the_samples(folder, make_onnx):
    """Pixels of random signs cancel each other out in the samples, one of which reaches twice as far as the others; of one sign, they add up to more."""
    rng = np.random.default_rng(3)
    model = make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 64, 8, 8])},
        {"y": ("float32", [1, 2, 8, 8])},
        {"w": np.stack([np.ones((64, 1, 1)), np.linspace(0.5, 1, 64).reshape(64, 1, 1)]).astype(np.float32)},
    )
    for i in range(6):
        np.save(f"{i}.npy", ((2 if i == 2 else 1) * rng.uniform(-1, 1, (1, 64, 8, 8))).astype(np.float32))
    pathlib.Path("list.txt").write_text("".join(f"{i}.npy\n" for i in range(6)))
    x = rng.uniform(0.4, 2, (1, 64, 8, 8)).astype(np.float32)
    x[..., :4] *= 0.1  # an output of one value everywhere would keep its cosine when it is clipped
    wanted = np.stack([x.sum(1), (x * np.linspace(0.5, 1, 64).reshape(1, 64, 1, 1)).sum(1)], 1)

    def cosine(**options):
        rknn = loaded(model, auto_hybrid_cos_thresh=0.999)
        assert rknn.build(do_quantization=True, dataset="list.txt", **options) == 0 and rknn.init_runtime() == 0
        got = rknn.inference([x], data_format="nchw")[0]
        return (got * wanted).sum() / np.linalg.norm(got) / np.linalg.norm(wanted)

    assert cosine() < 0.999 <= cosine(auto_hybrid=True)


def test_auto_hybrid_uses_int16_where_the_chip_has_no_float(folder, spread_model, noise, capfd):
    x = np.load("3.npy")
    results = []
    for target, config in (
        ("rk3588", {"float_dtype": "float32"}),
        ("rv1106", AS_IT_IS),
        ("rv1106", {"auto_hybrid_cos_thresh": 0.999, **AS_IT_IS}),
    ):
        rknn = loaded(spread_model, target_platform=target, **config)
        hybrid = "auto_hybrid_cos_thresh" in config
        assert rknn.build(do_quantization=target == "rv1106", dataset=noise, auto_hybrid=hybrid) == 0 and rknn.init_runtime() == 0
        results.append(rknn.inference([x], data_format="nchw")[0].ravel().astype(float))
    cosines = [r @ results[0] / np.linalg.norm(r) / np.linalg.norm(results[0]) for r in results[1:]]
    assert cosines[0] < 0.97 and cosines[1] > 0.999
    log = capfd.readouterr().err
    assert "layers are computed in int16" in log and "float16" not in log and "runs on the CPU" not in log
    assert re.search(r"predicted [0-9.]+ ms on rv1106, all int8 [0-9.]+ ms, all int16 [0-9.]+ ms", log)
    step1 = loaded(spread_model, target_platform="rv1106", auto_hybrid_cos_thresh=0.999, **AS_IT_IS)
    assert step1.hybrid_quantization_step1(dataset=noise, proposal=True) == 0
    text = next(pathlib.Path().glob("*.quantization.cfg")).read_text()
    assert ": int16" in text.split("quantize_parameters")[0]


@pytest.mark.parametrize("samples", [4, 12])
def test_adaround_keeps_what_gains_on_samples_held_back(folder, spread_model, openrknn, samples):
    rng = np.random.default_rng(9)
    for i in range(samples):
        np.save(f"n{i}.npy", rng.standard_normal((1, 3, 16, 16)).astype(np.float32) * (1 + i % 3))
    pathlib.Path("n.txt").write_text("".join(f"n{i}.npy\n" for i in range(samples)))
    build = ("quantize", spread_model, "--dataset", "n.txt", "-t", "rk3588", "--trace")
    done = {a: openrknn(*build, "-o", f"{a}.rknn", "--algorithm", a) for a in ("normal", "adaround")}
    assert all(d.returncode == 0 for d in done.values()), done["adaround"].stderr
    tried = re.findall(
        r"try_steps: (ranges of mmse|round_adaptively) is (kept|left out): .* loses ([0-9.]+) with it, ([0-9.]+) without",
        done["adaround"].stdout,
    )
    assert [name for name, *_ in tried] == ["ranges of mmse", "round_adaptively"]
    for _, verdict, with_it, without in tried:
        assert verdict == "left out" or float(with_it) < float(without)
    same = pathlib.Path("normal.rknn").read_bytes() == pathlib.Path("adaround.rknn").read_bytes()
    assert same == all(verdict == "left out" for _, verdict, *_ in tried)


def test_auto_hybrid_uses_int16_where_it_is_faster_than_float16(folder, make_onnx, noise, capfd):
    rng = np.random.default_rng(4)
    sizes = np.geomspace(1, 200, 64).astype(np.float32)
    weights = {
        f"w{i}": rng.standard_normal(shape).astype(np.float32) / 10 for i, shape in enumerate([(64, 3, 3, 3), (64, 64, 3, 3)])
    }
    weights["w0"] *= sizes[:, None, None, None]
    weights["w1"] /= sizes[None, :, None, None]
    model = make_onnx(
        [("Conv", ["x", "w0"], ["c"], {"pads": [1, 1, 1, 1]}), ("Conv", ["c", "w1"], ["y"], {"pads": [1, 1, 1, 1]})],
        {"x": ("float32", [1, 3, 16, 16])},
        {"y": ("float32", [1, 64, 16, 16])},
        weights,
        name="wide",
    )
    x = np.load("3.npy")
    results = []
    for config in ({"float_dtype": "float32"}, {"auto_hybrid_cos_thresh": 0.999, **AS_IT_IS}):
        rknn = loaded(model, target_platform="rk1808", **config)
        hybrid = "auto_hybrid_cos_thresh" in config
        assert rknn.build(do_quantization=hybrid, dataset=noise, auto_hybrid=hybrid) == 0 and rknn.init_runtime() == 0
        results.append(rknn.inference([x], data_format="nchw")[0].ravel().astype(float))
    assert results[1] @ results[0] / np.linalg.norm(results[0]) / np.linalg.norm(results[1]) > 0.999
    log = capfd.readouterr().err
    assert "layers are computed in int16" in log and "stay in float16" not in log
    hybrid_ms, wide_ms = map(float, re.search(r"predicted ([0-9.]+) ms on rk1808, .*, all int16 ([0-9.]+) ms", log).groups())
    assert hybrid_ms <= wide_ms


def two_channels(make_onnx, name, function, size, read):
    """Two channels of which the first is `size` times as large between two convolutions; output y0 reads them by `read`, y1 the second one."""
    diagonal = lambda a, b: np.diag([a, b]).astype(np.float32).reshape(2, 2, 1, 1)
    return make_onnx(
        [
            ("Conv", ["x", "w1"], ["c1"], {}),
            (function, ["c1"], ["h"], {}),
            ("Conv", ["h", "w2"], ["c2"], {}),
            ("Relu", ["c2"], ["r"], {}),
            ("Conv", ["r", "w3"], ["y0"], {}),
            ("Conv", ["r", "w4"], ["y1"], {}),
        ],
        {"x": ("float32", [1, 2, 16, 16])},
        {"y0": ("float32", [1, 1, 16, 16]), "y1": ("float32", [1, 1, 16, 16])},
        {
            "w1": diagonal(size, 1),
            "w2": diagonal(1 / size, 1),
            "w3": np.float32([read]).reshape(1, 2, 1, 1),
            "w4": np.float32([[0, 1]]).reshape(1, 2, 1, 1),
        },
        name=name,
    )


def noise_list(name, scales):
    """A list of samples of two channels, each with a deviation per channel."""
    rng = np.random.default_rng(3)
    for i, (a, b) in enumerate(scales):
        x = np.abs(rng.standard_normal((1, 2, 16, 16))) * np.array([a, b]).reshape(1, 2, 1, 1)
        np.save(f"{name}{i}.npy", x.astype(np.float32))
    pathlib.Path(f"{name}.txt").write_text("".join(f"{name}{i}.npy\n" for i in range(len(scales))))
    return f"{name}.txt"


def test_a_network_that_integers_ruin_keeps_layers_in_float(folder, make_onnx, capfd):
    model = two_channels(make_onnx, "ruined", "HardSwish", 3000.0, [1, 0])
    samples = noise_list("even", [(1, 1)] * 6)
    x = np.load("even5.npy")
    results = []
    for config in ({"float_dtype": "float32"}, {}, {"disable_rules": ["try_steps"]}):
        rknn = loaded(model, **config)
        assert rknn.build(do_quantization="float_dtype" not in config, dataset=samples) == 0 and rknn.init_runtime() == 0
        results.append([y.ravel().astype(float) for y in rknn.inference([x], data_format="nchw")])
    cosines = lambda found: [f @ e / np.linalg.norm(f) / np.linalg.norm(e) for f, e in zip(found, results[0])]
    log = capfd.readouterr().err
    assert "an output keeps a cosine of" in log and "stay in float16" in log
    assert all(c > 0.95 for c in cosines(results[1])) and not all(c > 0.9 for c in cosines(results[2]))


def test_the_worst_output_comes_first(folder, make_onnx, openrknn):
    """In the page, the text and the JSON; it is not the last layer here."""
    model = two_channels(make_onnx, "uneven", "HardSwish", 0.01, [1, 0])
    samples = noise_list("few", [(1, 1)] * 2)
    done = openrknn("analyse", model, "-t", "rk3588", "--dataset", samples, "--html", "page.html", "--json")
    report = json.loads(done.stdout)
    outputs = {row["name"]: row["entire"]["cosine"] for row in report["layers"] if row.get("output")}
    assert set(outputs) == {"y0", "y1"} and report["worst_output"]["name"] == min(outputs, key=outputs.get) == "y0"
    assert "the worst output, y0" in pathlib.Path("page.html").read_text()
    text = openrknn("analyse", model, "-t", "rk3588", "--dataset", samples).stdout
    assert f"worst output: y0, cosine {outputs['y0']:.5f}" in text


def test_errors_that_add_up_name_their_layers(folder, make_onnx, openrknn):
    rng = np.random.default_rng(8)
    nodes, weights = [], {}
    for i in range(300):
        weights[f"w{i}"] = np.linalg.qr(rng.standard_normal((16, 16)))[0].reshape(16, 16, 1, 1).astype(np.float32)
        nodes.append(("Conv", [f"y{i - 1}" if i else "x", f"w{i}"], [f"y{i}"], {}))
    model = make_onnx(nodes, {"x": ("float32", [1, 16, 8, 8])}, {"y299": ("float32", [1, 16, 8, 8])}, weights, name="deep")
    for i in range(2):
        np.save(f"{i}.npy", rng.standard_normal((1, 16, 8, 8)).astype(np.float32))
    pathlib.Path("list.txt").write_text("0.npy\n1.npy\n")
    # Nothing is merged at level 0.
    done = openrknn("analyse", model, "-t", "rk3588", "--dataset", "list.txt", "--optimization-level", "0", "--json")
    rows = json.loads(done.stdout)["layers"]
    named = [
        re.findall(r"'(\w+)' \((\S+)\)", row["suggestion"]) for row in rows if "add up, most of" in row.get("suggestion", "")
    ]
    assert named and len(named[-1]) == 3, done.stdout[-500:]
    alone = {row["name"]: row["single"]["cosine"] for row in rows if row.get("single")}
    assert all(f"{alone[name]:.5f}" == cosine for name, cosine in named[-1])
    assert alone[named[-1][0][0]] == min(list(alone.values())[:-1])


def test_a_step_that_hurts_other_samples_is_left_out(folder, make_onnx, openrknn):
    """Equalized on one half of the samples, the first channel of the other half leaves its range."""
    model = two_channels(make_onnx, "uneven", "Relu", 1.0, [1, 1])
    samples = noise_list("halves", [(0.25, 1)] * 4 + [(1, 1)] * 4)
    done = openrknn("analyse", model, "-t", "rk3588", "--dataset", samples)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("equalize_channels")]
    assert len(rows) == 1 and rows[0][-2:] == ["left", "out"] and float(rows[0][2]) < 0.95 * float(rows[0][1])
    rknn = loaded(model)
    assert rknn.build(do_quantization=True, dataset=samples) == 0 and rknn.export_rknn("built.rknn") == 0
    assert rknn.hybrid_quantization_step1(dataset=samples) == 0
    again = RKNN()
    assert again.hybrid_quantization_step2("uneven.model", "uneven.data", "uneven.quantization.cfg") == 0
    assert again.export_rknn("again.rknn") == 0
    assert pathlib.Path("again.rknn").read_bytes() == pathlib.Path("built.rknn").read_bytes()


def test_hybrid_files_judge_steps_on_all_samples(folder, make_onnx):
    """The first sample of each half speaks against correcting biases, all others for it."""
    weights = np.zeros((2, 64, 1, 1), np.float32)
    weights[:, 0] = 1
    weights[0, 1:] = 0.4 / 127  # rounded to 0
    model = make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", [1, 64, 4, 4])},
        {"y": ("float32", [1, 2, 4, 4])},
        {"w": weights},
        name="lost",
    )
    rng = np.random.default_rng(13)
    for i in range(8):
        np.save(f"s{i}.npy", ((1 if i % 4 else -1) * rng.uniform(0.9, 1, (1, 64, 4, 4))).astype(np.float32))
    pathlib.Path("s.txt").write_text("".join(f"s{i}.npy\n" for i in range(8)))
    rknn = loaded(model)
    assert rknn.build(do_quantization=True, dataset="s.txt") == 0 and rknn.export_rknn("built.rknn") == 0
    uncorrected = loaded(model, disable_rules=["correct_bias"])
    assert uncorrected.build(do_quantization=True, dataset="s.txt") == 0 and uncorrected.export_rknn("uncorrected.rknn") == 0
    assert rknn.hybrid_quantization_step1(dataset="s.txt") == 0
    again = RKNN()
    assert again.hybrid_quantization_step2("lost.model", "lost.data", "lost.quantization.cfg") == 0
    assert again.export_rknn("again.rknn") == 0
    built = pathlib.Path("built.rknn").read_bytes()
    assert built != pathlib.Path("uncorrected.rknn").read_bytes() and pathlib.Path("again.rknn").read_bytes() == built


def test_auto_hybrid_without_need(folder, shapes_model, dataset, capfd):
    rknn = loaded(shapes_model, auto_hybrid_cos_thresh=0.9)
    assert rknn.build(do_quantization=True, dataset=dataset, auto_hybrid=True) == 0
    assert "layers are integer ones" in capfd.readouterr().err


def test_auto_hybrid_of_a_float_build(folder, shapes_model, dataset, make_onnx, capfd):
    rknn = loaded(shapes_model)
    assert rknn.build(do_quantization=False, auto_hybrid=True) == -1 and "needs a dataset" in capfd.readouterr().err
    assert rknn.build(do_quantization=False, dataset=dataset, auto_hybrid=True) == 0
    assert "fit float16" in capfd.readouterr().err
    # Values up to some millions inside the network, small ones outside.
    rng = np.random.default_rng(7)
    large = make_onnx(
        [("Conv", ["x", "w1"], ["big"], {}), ("Conv", ["big", "w2"], ["y"], {})],
        {"x": ("float32", [1, 3, 16, 16])},
        {"y": ("float32", [1, 4, 16, 16])},
        {
            "w1": rng.standard_normal((8, 3, 1, 1)).astype(np.float32) * 1e6,
            "w2": rng.standard_normal((4, 8, 1, 1)).astype(np.float32) * 1e-6,
        },
        name="large",
    )
    x = rng.standard_normal((1, 3, 16, 16)).astype(np.float32)
    np.save("x.npy", x)
    pathlib.Path("large.txt").write_text("x.npy")
    results = []
    for config, hybrid in (({"float_dtype": "float32"}, False), ({}, False), ({}, True)):
        rknn = loaded(large, **config)
        assert rknn.build(do_quantization=False, dataset="large.txt", auto_hybrid=hybrid) == 0 and rknn.init_runtime() == 0
        results.append(rknn.inference([x], data_format="nchw")[0].ravel())
    assert "2 layer(s) hold values beyond float16 and are computed in 16-bit integers: big, y" in capfd.readouterr().err
    exact, plain, hybrid = results
    assert not np.isfinite(plain).all() and np.abs(hybrid - exact).max() < 1e-2 * np.abs(exact).max()
    with pytest.raises(ValueError):
        loaded(shapes_model, auto_hybrid_cos_thresh="high")
    with pytest.raises(ValueError):
        loaded(shapes_model, auto_hybrid_cos_thresh=1.5)


# ---- hybrid quantization in two steps


def test_hybrid_steps(folder, shapes_model, dataset, pictures, capfd):
    rknn = loaded(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])
    assert rknn.hybrid_quantization_step1(dataset=dataset) == 0
    rknn.release()
    assert {"shapes.model", "shapes.data", "shapes.quantization.cfg"} <= set(os.listdir("."))
    text = pathlib.Path("shapes.quantization.cfg").read_text()
    assert text.startswith(
        "custom_quantize_layers: {}\nquantize_parameters:\n    image_int8:\n        qtype: asymmetric_quantized\n"
    )
    assert "    scores:\n" in text and ".weight:\n        qtype: asymmetric_quantized\n        qmethod: channel\n" in text
    files = ("shapes.model", "shapes.data", "shapes.quantization.cfg")
    from PIL import Image

    picture = np.asarray(Image.open(pictures[0]).convert("RGB"))[None]

    def result(rknn):
        assert rknn.init_runtime() == 0
        return rknn.inference([picture])[0]

    # Without an edit step 2 gives what build() gives; a fresh object knows the configuration from the files.
    unedited = RKNN()
    assert unedited.hybrid_quantization_step2(*files) == 0
    plain = loaded(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])
    assert plain.build(do_quantization=True, dataset=dataset) == 0
    np.testing.assert_array_equal(result(unedited), result(plain))
    # One layer in float16.
    pathlib.Path(files[2]).write_text(text.replace("custom_quantize_layers: {}", "custom_quantize_layers:\n    scores: float16"))
    edited = RKNN()
    assert edited.hybrid_quantization_step2(model_input=files[0], data_input=files[1], model_quantization_cfg=files[2]) == 0
    assert edited.export_rknn("hybrid.rknn") == 0
    assert not np.array_equal(result(edited), result(plain))
    assert edited.accuracy_analysis([pictures[0]], output_dir=None) == 0
    report = capfd.readouterr().out
    assert "[exDataConvert] /ReduceMean_output_0_float" in report
    # Another range.
    at = text.index("    scores:\n")
    changed = text[:at] + text[at:].replace("max:\n        - ", "max:\n        - 9", 1)
    pathlib.Path(files[2]).write_text(changed)
    wider = RKNN()
    assert wider.hybrid_quantization_step2(*files) == 0
    assert np.abs(np.diff(np.unique(result(wider)))).min() > 5 * np.abs(np.diff(np.unique(result(plain)))).min()


def test_hybrid_steps_keep_every_platform_of_the_list(folder, shapes_model, dataset):
    rknn = loaded(shapes_model, target_platform=["rk3566", "rk3568"])
    assert rknn.hybrid_quantization_step1(dataset=dataset) == 0
    files = ("shapes.model", "shapes.data", "shapes.quantization.cfg")
    fresh = RKNN()
    assert fresh.hybrid_quantization_step2(*files) == 0 and fresh.export_rknn("listed.rknn") == 0
    assert RKNN().fetch_rknn_model_config("listed.rknn")["target_platform"] == ["rk3566", "rk3568"]


def test_hybrid_custom_and_proposal(folder, spread_model, noise):
    rknn = loaded(spread_model, auto_hybrid_cos_thresh=0.999)
    assert rknn.hybrid_quantization_step1(dataset=noise, custom_hybrid=[["x", "c2"]]) == 0
    assert (
        pathlib.Path("spread.quantization.cfg")
        .read_text()
        .startswith("custom_quantize_layers:\n    r1: float16\n    c2: float16\nquantize_parameters:\n")
    )
    assert rknn.hybrid_quantization_step2("spread.model", "spread.data", "spread.quantization.cfg") == 0
    rknn = loaded(spread_model, auto_hybrid_cos_thresh=0.999)
    assert rknn.hybrid_quantization_step1(dataset=noise, proposal=True, proposal_dataset_size=2) == 0
    assert (
        pathlib.Path("spread.quantization.cfg")
        .read_text()
        .startswith("custom_quantize_layers:\n    r1: float16\n    c2: float16\n")
    )
    assert rknn.hybrid_quantization_step1(dataset=noise, custom_hybrid=[["nothing", "c2"]]) == -1


def test_hybrid_refusals(folder, shapes_model, dataset, capfd):
    rknn = loaded(shapes_model)
    assert rknn.hybrid_quantization_step1() == -1 and "quantization needs a dataset" in capfd.readouterr().err
    for count, words in (
        ("x", "'x', expect a whole number!"),
        (2.7, "2.7, expect a whole number!"),
        (10**30, f"{10**30}, expect a whole number that fits 64 bits!"),
        (-5, "-5, expect a number of samples!"),
        (0, "0, expect a number of samples!"),
    ):
        assert rknn.hybrid_quantization_step1(dataset=dataset, proposal=True, proposal_dataset_size=count) == -1
        assert f"Invalid proposal_dataset_size {words}" in capfd.readouterr().err
    assert rknn.hybrid_quantization_step1(dataset=dataset) == 0
    text = pathlib.Path("shapes.quantization.cfg").read_text()
    files = ("shapes.model", "shapes.data", "shapes.quantization.cfg")
    for layers, words in (
        ("image: float16", "Invalid operands name 'image' in custom_quantize_layers!"),
        ("image: float16", "inputs, conversions and constants are not layers"),
        ("image_int8: float16", "inputs, conversions and constants are not layers"),
        ("scores: int5", "Invalid type 'int5'"),
        ("nothing: float16", "Invalid operands name 'nothing'"),
        ("nothing: float16", "as listed under quantize_parameters"),
    ):
        pathlib.Path(files[2]).write_text(text.replace("custom_quantize_layers: {}", "custom_quantize_layers:\n    " + layers))
        assert RKNN().hybrid_quantization_step2(*files) == -1
        assert words in capfd.readouterr().err
    pathlib.Path(files[2]).write_text(text)
    data = json.loads(pathlib.Path(files[1]).read_text())
    for damaged in (
        "",
        "{",
        "[]",
        "{}",
        json.dumps({**data, "config": {"target_platform": "rv9999"}}),
        json.dumps({**data, "quantization": "nonsense"}),
    ):
        pathlib.Path(files[1]).write_text(damaged)
        assert RKNN().hybrid_quantization_step2(*files) == -1
    for harmless in (
        {"dataset": "gone.txt"},
        {"means": 5},
        {"means": {"image": ["x"]}},
        {"rounded": {"scores": {"shape": [1 << 40], "integers": "00"}}},
        {"rounded": {"scores": {"shape": [1], "integers": "00", "scale": [1], "bias_shift": [1, 2, 3]}}},
    ):
        pathlib.Path(files[1]).write_text(json.dumps({**data, **harmless}))
        assert RKNN().hybrid_quantization_step2(*files) == 0


def test_hybrid_needs_a_float_source(folder, make_onnx, capfd):
    model = make_onnx(
        [("QuantizeLinear", ["x", "s", "z"], ["q"], {}), ("DequantizeLinear", ["q", "s", "z"], ["y"], {})],
        {"x": ("float32", [1, 3, 8, 8])},
        {"y": ("float32", [1, 3, 8, 8])},
        {"s": np.float32(0.1), "z": np.uint8(0)},
    )
    np.save("x.npy", np.ones((1, 3, 8, 8), np.float32))
    pathlib.Path("list.txt").write_text("x.npy\n")
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0 and rknn.hybrid_quantization_step1(dataset="list.txt") == -1
    assert "the model is quantized already" in capfd.readouterr().err and not list(pathlib.Path(".").glob("*.data"))


@pytest.mark.parametrize("algorithm", ["normal", "mmse", "adaround"])
def test_hybrid_step2_needs_no_pictures(folder, shapes_model, pictures, algorithm):
    """Ranges, weights and biases come from the files of step 1."""
    list_of_copies = pathlib.Path("copies.txt")
    shutil.copy(pictures[0], "copy.png")
    list_of_copies.write_text("copy.png\n")
    rknn = loaded(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3], quantized_algorithm=algorithm)
    assert rknn.build(do_quantization=True, dataset=str(list_of_copies)) == 0 and rknn.export_rknn("built.rknn") == 0
    assert rknn.hybrid_quantization_step1(dataset=str(list_of_copies)) == 0
    os.remove("copy.png")
    list_of_copies.unlink()
    again = RKNN()
    assert (
        again.hybrid_quantization_step2("shapes.model", "shapes.data", "shapes.quantization.cfg") == 0
        and again.export_rknn("hybrid.rknn") == 0
    )
    assert pathlib.Path("hybrid.rknn").read_bytes() == pathlib.Path("built.rknn").read_bytes()


def edited(text, tensor, field, value):
    at = text.index("\n    " + tensor + ":\n")
    at = text.index(field + ":\n        - ", at) + len(field + ":\n        - ")
    return text[:at] + str(value) + text[text.index("\n", at) :]


def test_hybrid_step2_takes_what_the_user_writes(folder, shapes_model, dataset, pictures, capfd):
    rknn = loaded(shapes_model, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])
    assert rknn.hybrid_quantization_step1(dataset=dataset) == 0
    files = ("shapes.model", "shapes.data", "shapes.quantization.cfg")
    text = pathlib.Path(files[2]).read_text()
    assert ".bias:\n        qtype: asymmetric_quantized\n        qmethod: channel\n        dtype: int32\n" in text

    def step(result):  # between neighbouring values of the output
        values = np.unique(result)
        return np.diff(values).min()

    def built(changed):
        pathlib.Path(files[2]).write_text(changed)
        rknn = RKNN()
        assert rknn.hybrid_quantization_step2(*files) == 0 and rknn.init_runtime() == 0
        from PIL import Image

        return rknn.inference([np.asarray(Image.open(pictures[0]).convert("RGB"))[None]])[0]

    assert step(built(edited(edited(text, "scores", "min", -256.0), "scores", "max", 254.0))) == pytest.approx(2)
    assert step(built(edited(edited(text, "scores", "scale", 0.5), "scores", "zero_point", 3))) == pytest.approx(0.5)
    capfd.readouterr()
    plain, weights = built(text), built(edited(text, text.split(".weight:\n")[0].split("    ")[-1] + ".weight", "scale", 0.125))
    np.testing.assert_array_equal(plain, weights)
    assert "follow from their values, the change has no effect" in capfd.readouterr().err
    for damage in (edited(text, "scores", "max", -1e9), edited(text, "scores", "scale", -1)):
        pathlib.Path(files[2]).write_text(damage)
        assert RKNN().hybrid_quantization_step2(*files) == -1


def test_hybrid_int16_layers(folder, spread_model, noise, capfd):
    """On chips that compute in 16 bits beside 8."""
    rknn = loaded(spread_model, target_platform="rv1106", **AS_IT_IS)
    assert rknn.hybrid_quantization_step1(dataset=noise, custom_hybrid=[["x", "c2"]]) == 0
    files = ("spread.model", "spread.data", "spread.quantization.cfg")
    text = pathlib.Path(files[2]).read_text()
    assert text.startswith("custom_quantize_layers:\n    r1: int16\n    c2: int16\n"), "the chip has no float16"
    x = np.load(pathlib.Path(noise).read_text().split()[0])
    results = {}
    for name, changed in (("int8", text.replace(": int16", ": int8")), ("int16", text)):
        pathlib.Path(files[2]).write_text(changed)
        rknn = RKNN()
        assert rknn.hybrid_quantization_step2(*files) == 0 and rknn.export_rknn(name + ".rknn") == 0 and rknn.init_runtime() == 0
        results[name] = rknn.inference([x], data_format="nchw")[0]
    exact = loaded(spread_model, float_dtype="float32")
    assert exact.build(do_quantization=False) == 0 and exact.init_runtime() == 0
    wanted = exact.inference([x], data_format="nchw")[0]
    assert np.abs(results["int16"] - wanted).max() < 0.5 * np.abs(results["int8"] - wanted).max()
    again = RKNN()
    assert again.load_rknn("int16.rknn") == 0 and again.init_runtime() == 0
    np.testing.assert_array_equal(again.inference([x], data_format="nchw")[0], results["int16"])
    rknn = loaded(spread_model)
    assert rknn.hybrid_quantization_step1(dataset=noise) == 0
    pathlib.Path(files[2]).write_text(
        pathlib.Path(files[2]).read_text().replace("custom_quantize_layers: {}", "custom_quantize_layers:\n    c2: int16")
    )
    capfd.readouterr()
    assert RKNN().hybrid_quantization_step2(*files) == -1
    assert "'c2': rk3588 has no layers in int16" in capfd.readouterr().err


def test_hybrid_int16_layers_of_toolkit1(folder, shapes_model, dataset, pictures):
    rknn = loaded(shapes_model, target_platform="rk1808")
    assert rknn.hybrid_quantization_step1(dataset) == 0
    stem = next(f for f in os.listdir(".") if f.endswith(".quantization.cfg"))[: -len(".quantization.cfg")]
    text = pathlib.Path(stem + ".quantization.cfg").read_text()
    pathlib.Path(stem + ".quantization.cfg").write_text(
        text.replace("customized_quantize_layers: {}", "customized_quantize_layers:\n    scores_19: dynamic_fixed_point-i16")
    )
    assert (
        rknn.hybrid_quantization_step2(stem + ".json", stem + ".data", stem + ".quantization.cfg") == 0
        and rknn.init_runtime() == 0
    )
    from PIL import Image

    result = rknn.inference([np.asarray(Image.open(pictures[0]).convert("RGB"))[None]])[0]
    assert np.array_equal(result * 1024, np.round(result * 1024)) and not np.array_equal(result, np.round(result)), (
        "a fine grid of a power of two"
    )


def test_hybrid_of_small_weights(folder, shapes_model, dataset):
    """w4a16: a layer in float16 keeps its weights as they are; gdq needs the samples again."""
    for algorithm in ("normal", "gdq"):
        rknn = loaded(shapes_model, target_platform="rk3576", quantized_dtype="w4a16", quantized_algorithm=algorithm)
        assert rknn.hybrid_quantization_step1(dataset=dataset) == 0
        assert RKNN().hybrid_quantization_step2("shapes.model", "shapes.data", "shapes.quantization.cfg") == 0
        text = pathlib.Path("shapes.quantization.cfg").read_text()
        pathlib.Path("shapes.quantization.cfg").write_text(
            text.replace("custom_quantize_layers: {}", "custom_quantize_layers:\n    scores: float16")
        )
        assert RKNN().hybrid_quantization_step2("shapes.model", "shapes.data", "shapes.quantization.cfg") == 0


def test_hybrid_toolkit1_names(folder, shapes_model, dataset):
    rknn = loaded(shapes_model, target_platform="rk1808")
    assert rknn.hybrid_quantization_step1(dataset) == 0
    stem = next(f for f in os.listdir(".") if f.endswith(".quantization.cfg"))[: -len(".quantization.cfg")]
    text = pathlib.Path(stem + ".quantization.cfg").read_text()
    assert text.startswith("%YAML 1.2\n---\n") and "customized_quantize_layers: {}" in text and ":weight'" in text
    assert ":bias'" in text and "qtype: i32" in text
    pathlib.Path(stem + ".quantization.cfg").write_text(
        text.replace("customized_quantize_layers: {}", "customized_quantize_layers:\n    scores_19: float32")
    )
    assert rknn.hybrid_quantization_step2(stem + ".json", stem + ".data", stem + ".quantization.cfg", dataset, False) == 0
    assert rknn.direct_build(stem + ".json", stem + ".data") == 0
