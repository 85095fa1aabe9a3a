"""onnx_edit, rknn_convert, encryption and codegen: tools around model files."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from library import BUILD
from rknn.api import RKNN
from rknn.utils import onnx_edit


def run_float(path, inputs):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(str(path)) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    outputs = rknn.inference(inputs, data_format="nchw")
    rknn.release()
    return outputs


@pytest.fixture
def two_inputs(make_onnx):
    """y = x + w * cache, cache [1,4,6,8]."""
    return make_onnx(
        [("Mul", ["cache", "w"], ["m"], {}), ("Add", ["x", "m"], ["y"], {})],
        {"x": ("float32", [1, 4, 6, 8]), "cache": ("float32", [1, 4, 6, 8])},
        {"y": ("float32", [1, 4, 6, 8])},
        {"w": np.full((1, 4, 1, 1), 2, "float32")},
    )


def make_rknn(model, path, platform="rk3588", **config):
    rknn = RKNN()
    rknn.config(target_platform=platform, **config)
    assert rknn.load_onnx(str(model)) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.export_rknn(str(path)) == 0
    rknn.release()


# ---- onnx_edit


def test_onnx_edit_keeps_what_the_model_computes(two_inputs, tmp_path, capfd):
    random = np.random.default_rng(1)
    x, cache = (random.normal(size=(1, 4, 6, 8)).astype("float32") for _ in range(2))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "cache.npy", cache)
    (tmp_path / "list.txt").write_text("x.npy cache.npy\nx.npy cache.npy\n")
    edited = tmp_path / "edited.onnx"
    result = onnx_edit(
        model=two_inputs,
        export_path=edited,
        inputs_transform={"cache": "a,b,c,d->1,ad,b,c"},
        outputs_transform={"y": "a,b,c,d->1,ab,c,d"},
        dataset=str(tmp_path / "list.txt"),
    )
    assert result == 0
    log = capfd.readouterr().err
    assert "I For 'cache':'a,b,c,d->1,ad,b,c'" in log
    assert "I   Input:'cache' was reset as shape-[1, 8, 4, 6].(Origin shape is [1, 4, 6, 8])" in log
    assert "I   - Insert transpose op. [1, 8, 4, 6] transpose(0, 2, 3, 1) to [1, 4, 6, 8]." in log
    lines = (tmp_path / "dataset_for_edited.txt").read_text().split("\n")
    assert lines == ["x.npy cache_for_edited.npy"] * 2 + [""]
    moved = np.load(tmp_path / "cache_for_edited.npy")
    assert np.array_equal(moved, cache.transpose(0, 3, 1, 2).reshape(1, 8, 4, 6))
    found = run_float(edited, [x, moved])[0]
    assert np.array_equal(found.reshape(1, 4, 6, 8), run_float(two_inputs, [x, cache])[0])
    import onnx

    onnx.checker.check_model(onnx.load(edited), full_check=True)


def test_onnx_edit_raises_for_what_does_not_fit(two_inputs, tmp_path, capfd):
    for transform, words in (
        ({"x": "a,b->b,a"}, "another rank"),
        ({"nothing": "a->a"}, "no input 'nothing'"),
        ({"x": "a,b,c,d->a,b,c"}, "'d' is missing"),
        ({"x": 3}, "Invalid inputs_transform"),
    ):
        with pytest.raises(ValueError, match=words):
            onnx_edit(two_inputs, tmp_path / "none.onnx", inputs_transform=transform)
    assert not (tmp_path / "none.onnx").exists()
    with pytest.raises(ValueError, match="no such file|does not exist|cannot"):
        onnx_edit(tmp_path / "missing.onnx", tmp_path / "none.onnx")


def test_edit_command(two_inputs, tmp_path, openrknn):
    done = openrknn("edit", two_inputs, "-o", tmp_path / "e.onnx", "--transform-input", "x=a,bc,d,e[b=2]->a,b,d,e,c")
    assert done.returncode == 0, done.stderr
    assert "Input:'x' was reset as shape-[1, 2, 6, 8, 2]" in done.stdout
    assert openrknn("edit", two_inputs, "-o", tmp_path / "e.onnx", "--transform-input", "x").returncode == 1


# ---- rknn_convert


def convert(*words, **kwargs):
    command = [sys.executable, "-m", "rknn.api.rknn_convert", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **kwargs)


@pytest.fixture
def described(tmp_path, shapes_model):
    """A folder with a model, pictures and a yml file that quantizes it; returns the file."""
    from PIL import Image

    shutil.copy(shapes_model, tmp_path / "net.onnx")
    session = RKNN()
    session.config(target_platform="rk3588")
    assert session.load_onnx(str(shapes_model)) == 0 and session.build(do_quantization=False) == 0
    session.release()
    random = np.random.default_rng(2)
    for i in range(2):
        Image.fromarray(random.integers(0, 255, (32, 32, 3), "uint8")).save(tmp_path / f"{i}.png")
    (tmp_path / "dataset.txt").write_text("0.png\n1.png\n")
    (tmp_path / "model.yml").write_text(
        """models:
    name: small            # name of the result
    platform: onnx
    model_file_path: ./net.onnx
    quantize: true
    dataset: ./dataset.txt
    configs:
      quantized_dtype: asymmetric_quantized-8
      mean_values: [0, 0, 0]
      std_values: [255, 255, 255]
      quant_img_RGB2BGR: false
      quantized_algorithm: normal
      quantized_method: channel
"""
    )
    return tmp_path / "model.yml"


def test_rknn_convert_makes_the_model_of_the_file(described, tmp_path, openrknn):
    out = tmp_path / "out"
    done = convert("-t", "rk3568", "-i", described, "-o", out)
    assert done.returncode == 0, done.stderr
    rknn = RKNN()
    facts = rknn.fetch_rknn_model_config(out / "small.rknn")
    assert facts["target_platform"] == ["rk3568"]
    # The command line tool makes the same file.
    done = openrknn("convert", "--yml", described, "-o", tmp_path / "native", "-t", "rk3568")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "native" / "small.rknn").read_bytes() == (out / "small.rknn").read_bytes()
    # So does a script with the same options.
    rknn.config(target_platform="rk3568", mean_values=[0, 0, 0], std_values=[255, 255, 255])
    assert rknn.load_onnx(str(tmp_path / "net.onnx")) == 0
    assert rknn.build(do_quantization=True, dataset=str(tmp_path / "dataset.txt")) == 0
    assert rknn.export_rknn(tmp_path / "script.rknn") == 0
    assert (tmp_path / "script.rknn").read_bytes() == (out / "small.rknn").read_bytes()


def test_rknn_convert_analyses(described, tmp_path):
    done = convert("-t", "rk3568", "-i", described, "-o", tmp_path / "out", "-a", tmp_path / "0.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "snapshot" / "error_analysis.txt").exists()


@pytest.mark.parametrize("words", (["-e"], ["-d", "-a", "0.png"], ["-d", "board-9"], ["-e", "-d"]))
def test_rknn_convert_needs_a_board_where_one_is_asked_for(described, tmp_path, words):
    done = convert("-t", "rk3568", "-i", described, "-o", tmp_path / "out", *words, cwd=tmp_path)
    assert done.returncode == 1 and "Connect to Device Failure (-1): there is no rk3568" in done.stderr
    assert "leave out -e and -d" in done.stderr and "Total Memory" not in done.stdout
    assert (tmp_path / "out" / "small.rknn").exists() and not (tmp_path / "out" / "snapshot").exists()


def test_rknn_convert_names_the_line_of_a_mistake(described, tmp_path, openrknn):
    text = described.read_text()
    for old, new, words in (
        ("platform: onnx", "platform: onix", "line 3: there is no framework 'onix'"),
        ("quantize: true", "quantize: maybe", "line 5: expected true or false"),
        ("    name: small", "   name: small", "line 3: the line is indented more"),
    ):
        described.write_text(text.replace(old, new))
        done = convert("-t", "rk3568", "-i", described, "-o", tmp_path / "out")
        assert done.returncode == 1 and words in done.stderr, done.stderr
    described.write_text(text.replace("quantized_algorithm", "quantised_algorithm"))
    done = convert("-t", "rk3568", "-i", described, "-o", tmp_path / "out")
    assert done.returncode == 1 and "did you mean 'quantized_algorithm'" in done.stderr
    done = openrknn("convert", "--yml", described, "-o", tmp_path / "out", "-t", "rk3568")
    assert done.returncode == 1 and "did you mean 'quantized_algorithm'" in done.stderr
    done = openrknn("convert", "--yml", described, "-o", tmp_path / "out", "--mean", "1,2,3")
    assert done.returncode == 1 and "no effect beside --yml" in done.stderr
    assert openrknn("convert", "-o", tmp_path / "x.rknn").returncode == 1


# ---- encryption


@pytest.fixture
def plain(make_onnx, tmp_path):
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [1, 8])}, {"y": ("float32", [1, 8])})
    make_rknn(model, tmp_path / "m.rknn")
    return tmp_path / "m.rknn"


def load_and_run(path):
    rknn = RKNN()
    if rknn.load_rknn(str(path)) != 0:
        return None
    assert rknn.init_runtime() == 0
    output = rknn.inference([np.arange(-4, 4, dtype="float32").reshape(1, 8)])[0]
    rknn.release()
    return output


@pytest.mark.parametrize("level", [1, 2, 3])
def test_encrypted_models_load_like_others(plain, level):
    rknn = RKNN()
    assert rknn.export_encrypted_rknn_model(str(plain), None, level) == 0
    secret = plain.with_name("m.crypt.rknn")
    data = secret.read_bytes()
    assert data[:8] == b"CYPTRKNN" and b"Relu" not in data
    assert np.array_equal(load_and_run(secret), load_and_run(plain))


def test_changed_encrypted_models_are_refused(plain, tmp_path, capfd):
    rknn = RKNN()
    secret = tmp_path / "s.rknn"
    assert rknn.export_encrypted_rknn_model(str(plain), str(secret), 1) == 0
    data = secret.read_bytes()
    for bad in (data[:-1], data[:100], data + b"\0", data[:200] + bytes([data[200] ^ 1]) + data[201:]):
        secret.write_bytes(bad)
        assert load_and_run(secret) is None
    assert "the encrypted model" in capfd.readouterr().err


def test_passphrase_is_needed(plain, tmp_path, monkeypatch, capfd):
    rknn = RKNN()
    secret = tmp_path / "s.rknn"
    assert rknn.export_encrypted_rknn_model(str(plain), str(secret), 1, passphrase="open sesame") == 0
    assert load_and_run(secret) is None
    assert "ORKNN_PASSPHRASE" in capfd.readouterr().err
    monkeypatch.setenv("ORKNN_PASSPHRASE", "open simsim")
    assert load_and_run(secret) is None
    monkeypatch.setenv("ORKNN_PASSPHRASE", "open sesame")
    assert load_and_run(secret) is not None


def test_encryption_is_refused_where_it_has_no_use(plain, make_onnx, tmp_path, capfd):
    rknn = RKNN()
    secret = tmp_path / "s.rknn"
    for level in (0, 4, 2**40, "1", True, None):
        assert rknn.export_encrypted_rknn_model(str(plain), str(secret), level) == -1
        assert f"Invalid crypt_level {level!r}, expect" in capfd.readouterr().err
    assert rknn.export_encrypted_rknn_model(str(plain), str(secret), 2**70) == -1
    assert "Invalid crypt_level 1180591620717411303424, expect a whole number that fits 64 bits!" in capfd.readouterr().err
    assert rknn.export_encrypted_rknn_model("missing.rknn", str(secret), 4) == -1
    assert "Invalid crypt_level 4, expect in [1, 2, 3]!" in capfd.readouterr().err
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [1, 3, 8, 8])}, {"y": ("float32", [1, 3, 8, 8])})
    make_rknn(model, tmp_path / "small.rknn", "rv1106")
    assert rknn.export_encrypted_rknn_model(tmp_path / "small.rknn", secret) == -1
    assert "opens no encrypted models" in capfd.readouterr().err
    assert not secret.exists()


def test_encrypt_command_and_c_program(plain, tmp_path, openrknn):
    done = openrknn("encrypt", plain, "--level", 2)
    assert done.returncode == 0, done.stderr
    secret = plain.with_name("m.crypt.rknn")
    assert "rk3588" in openrknn("info", secret).stdout
    if not BUILD.exists():
        pytest.skip(f"needs the C programs of the build in {BUILD}")
    outputs = [subprocess.run([BUILD / "capi_basic", path], capture_output=True, text=True).stdout for path in (plain, secret)]
    assert "output 0" in outputs[0] and outputs[0] == outputs[1]


# ---- codegen


def build_project(folder, openrknn):
    api = pathlib.Path(openrknn("--libdir").stdout.strip()).parent
    environment = dict(os.environ, LD_LIBRARY_PATH=str(api / "lib"))
    for command in (
        ["cmake", "-S", folder, "-B", folder / "build", f"-DRKNN_API_PATH={api}"],
        ["cmake", "--build", folder / "build"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def run(*words):
        program = [folder / "build" / "rknn_app_demo", *map(str, words)]
        done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=60)
        assert done.returncode != 0 or not [line for line in done.stderr.splitlines() if line.startswith("E ")], done.stderr
        return done

    return run


@pytest.fixture
def picture(tmp_path):
    from PIL import Image

    Image.fromarray(np.random.default_rng(2).integers(0, 255, (32, 32, 3), "uint8")).save(tmp_path / "p.png")
    return tmp_path / "p.png"


def test_generated_project_builds_and_agrees_with_the_simulator(shapes_model, picture, tmp_path, openrknn):
    rknn = RKNN()
    rknn.config(target_platform="rk3588", mean_values=[0, 0, 0], std_values=[255, 255, 255])
    assert rknn.load_onnx(str(shapes_model)) == 0
    assert rknn.build(do_quantization=True, dataset=[str(picture)]) == 0
    assert rknn.codegen(output_path=str(tmp_path / "app"), inputs=[str(picture)], overwrite=False) == 0
    run = build_project(tmp_path / "app", openrknn)
    done = run("-n", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ms per run" in done.stdout and "cosine 1.000000" in done.stdout
    # A wrong stored result is noticed.
    stored = tmp_path / "app" / "build" / "data" / "output_0.npy"
    np.save(stored, -np.load(stored))
    assert run().returncode == 1
    np.save(tmp_path / "wrong.npy", np.zeros((3, 3), "uint8"))
    done = run(tmp_path / "wrong.npy")
    assert done.returncode == 1 and "elements" in done.stderr
    assert run("-x").returncode == 2


def test_generated_project_without_inputs(make_onnx, tmp_path, openrknn):
    model = make_onnx(
        [("Relu", ["x"], ["y"], {}), ("Neg", ["i"], ["z"], {})],
        {"x": ("float32", [1, 8]), "i": ("float32", [2, 3])},
        {"y": ("float32", [1, 8]), "z": ("float32", [2, 3])},
    )
    make_rknn(model, tmp_path / "m.rknn")
    done = openrknn("codegen", tmp_path / "m.rknn", "-o", tmp_path / "app")
    assert done.returncode == 0, done.stderr
    done = build_project(tmp_path / "app", openrknn)()
    assert done.returncode == 0 and "output 1 'z':" in done.stdout and "cosine" not in done.stdout
    assert openrknn("codegen", tmp_path / "m.rknn", "-o", tmp_path / "app").returncode == 1


INTEGER_MODEL = dict(
    nodes=[
        ("Conv", ["p", "w"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Add", ["i", "one"], ["d"], {}),
        ("Greater", ["i", "one"], ["e"], {}),
        ("Not", ["f"], ["n"], {}),
    ],
    # 30 pixels: rows of bytes are padded in memory
    inputs={"p": ("float32", [1, 3, 16, 30]), "i": ("int64", [1, 10]), "f": ("bool", [1, 2, 4, 4])},
    outputs={
        "c": ("float32", [1, 4, 16, 30]),
        "d": ("int64", [1, 10]),
        "e": ("bool", [1, 10]),
        "n": ("bool", [1, 2, 4, 4]),
    },
)


@pytest.mark.parametrize("given", ["float32", "float16", "float64", "uint8", "int32"])
def test_generated_project_converts_numbers(make_onnx, given, tmp_path, openrknn):
    """Every type of array to inputs of real numbers, integers and flags; outputs of all three kinds."""
    random = np.random.default_rng(0)
    constants = {"w": random.normal(size=(4, 3, 3, 3)).astype("float32"), "one": np.array([1], "int64")}
    rknn = RKNN()
    means, stds = [[10, 20, 30], [0] * 10, [0, 0]], [[50, 60, 70], [1] * 10, [1, 1]]
    rknn.config(target_platform="rk3588", mean_values=means, std_values=stds)
    assert rknn.load_onnx(make_onnx(**INTEGER_MODEL, initializers=constants)) == 0 and rknn.build(do_quantization=False) == 0
    arrays = {
        "p": random.integers(0, 255, (1, 3, 16, 30)).astype(given),
        "i": np.arange(10).reshape(1, 10).astype(given),
        "f": (random.integers(0, 2, (1, 2, 4, 4)) == 1).astype("bool" if given == "float32" else given),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    files = [tmp_path / f"{name}.npy" for name in arrays]
    assert rknn.codegen(str(tmp_path / "app"), files) == 0
    run = build_project(tmp_path / "app", openrknn)
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "zero copy" in done.stdout and done.stdout.count("cosine 1.000000") == 4
    assert "output 1 'd': 1 2 3 4 5" in done.stdout and "output 2 'e': 0 0 1 1 1" in done.stdout


def test_generated_project_without_arrays_gives_integers_legal_values(make_onnx, tmp_path, openrknn):
    table = np.arange(6, dtype="float32").reshape(2, 3)
    model = make_onnx(
        [("Gather", ["table", "i"], ["y"], {})], {"i": ("int64", [4])}, {"y": ("float32", [4, 3])}, initializers={"table": table}
    )
    make_rknn(model, tmp_path / "m.rknn")
    assert openrknn("codegen", tmp_path / "m.rknn", "-o", tmp_path / "app").returncode == 0
    done = build_project(tmp_path / "app", openrknn)()
    assert done.returncode == 0 and "output 0 'y': 0 1 2 3 4" in done.stdout, done.stdout + done.stderr


def test_generated_project_with_an_output_of_open_extents(make_onnx, tmp_path, openrknn):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    model = make_onnx([("NonZero", ["x"], ["y"], {})], {"x": ("float32", [1, 4])}, {"y": ("int64", None)})
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0
    np.save(tmp_path / "x.npy", np.array([[0, 1, 0, 2]], "float32"))
    assert rknn.codegen(str(tmp_path / "app"), [tmp_path / "x.npy"]) == 0
    done = build_project(tmp_path / "app", openrknn)()
    assert done.returncode == 0 and "output 0 'y': 0 0 1 3 ... cosine 1.000000" in done.stdout, done.stdout + done.stderr


SETS = {
    "one": [[[1, 3, 16, 16]]],
    "sizes": [[[1, 3, 32, 32]], [[1, 3, 16, 16]]],
    "batches": [[[4, 3, 16, 16]], [[2, 3, 16, 16]], [[1, 3, 16, 16]]],
}


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS)
def test_codegen_takes_an_array_of_every_shape_set(make_onnx, sets, tmp_path, openrknn, capfd):
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32")
    model = make_onnx(
        [("Conv", ["x", "w"], ["y"], {})],
        {"x": ("float32", ["n", 3, "h", "w_"])},
        {"y": ("float32", None)},
        initializers={"w": weights},
    )
    rknn = RKNN()
    rknn.config(target_platform="rk3588", dynamic_input=sets)
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0
    for (shape,) in sets:
        np.save(tmp_path / "x.npy", np.random.default_rng(1).normal(size=shape).astype("float32"))
        assert rknn.codegen(str(tmp_path / "app"), [tmp_path / "x.npy"], overwrite=True) == 0
        assert list(np.load(tmp_path / "app" / "data" / "output_0.npy").shape) == [shape[0], 4, shape[2] - 2, shape[3] - 2]
        done = build_project(tmp_path / "app", openrknn)()
        assert done.returncode == 0 and "cosine 1.000000" in done.stdout, done.stdout + done.stderr
    info = (tmp_path / "app" / "src" / "model_info.h").read_text()
    assert " or ".join(str(shape).replace(" ", "") for (shape,) in sets) in info
    capfd.readouterr()
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 7, 7), "float32"))
    assert rknn.codegen(str(tmp_path / "app"), [tmp_path / "x.npy"], overwrite=True) == -1
    refused = capfd.readouterr().err
    assert "does not fit input 'x'" in refused and all(str(shape).replace(" ", "") in refused for (shape,) in sets)


def test_codegen_scales_pictures_to_the_largest_shape_set(make_onnx, picture, tmp_path):
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [1, 3, "h", "w"])}, {"y": ("float32", None)})
    rknn = RKNN()
    rknn.config(target_platform="rk3588", dynamic_input=[[[1, 3, 16, 16]], [[1, 3, 48, 48]]])
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0
    assert rknn.codegen(str(tmp_path / "app"), [picture]) == 0
    assert np.load(tmp_path / "app" / "data" / "input_0.npy").shape == (1, 48, 48, 3)
    assert rknn.codegen(str(tmp_path / "other"), [tmp_path / "gone.png"]) == -1


def test_codegen_leaves_folders_alone(plain, tmp_path, capfd):
    rknn = RKNN()
    assert rknn.load_rknn(str(plain)) == 0
    (tmp_path / "app").mkdir()
    assert rknn.codegen(str(tmp_path / "app")) == 0
    assert not list((tmp_path / "app").iterdir()) and "is left alone" in capfd.readouterr().err
    np.save(tmp_path / "x.npy", np.zeros((1, 8), "float32"))
    np.save(tmp_path / "bad.npy", np.zeros((1, 9), "float32"))
    assert rknn.codegen(str(tmp_path / "other"), [tmp_path / "bad.npy"]) == -1
    assert not (tmp_path / "other").exists()  # the next call would leave it alone
    assert rknn.codegen(str(tmp_path / "app"), [tmp_path / "x.npy", tmp_path / "x.npy"], True) == -1
    assert "one file per input" in capfd.readouterr().err
    assert rknn.codegen(str(tmp_path / "app"), [tmp_path / "x.npy"], True) == 0
    assert np.array_equal(np.load(tmp_path / "app" / "data" / "output_0.npy"), np.zeros((1, 8), "float32"))


def test_export_rknn_writes_the_older_demo(make_onnx, tmp_path):
    model = make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [1, 8])}, {"y": ("float32", [1, 8])})
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0
    assert rknn.export_rknn(str(tmp_path / "m.rknn"), cpp_gen_cfg=True) == 0
    assert (tmp_path / "rknn_deploy_demo" / "CMakeLists.txt").exists()


# ---- load_rknn(load_model_in_npu=True)


def test_models_on_a_board_need_its_target(plain, capfd):
    rknn = RKNN()
    assert rknn.load_rknn("/data/on_the_board.rknn", load_model_in_npu=True) == 0
    assert rknn.init_runtime() == -1
    assert "is on a board" in capfd.readouterr().err
    assert rknn.load_rknn(str(plain)) == 0
    assert rknn.init_runtime() == 0
