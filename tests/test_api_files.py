"""Files that the RKNN class reads and writes, the memory it takes, and several objects at once."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import picture
from library import SANITIZER
from rknn.api import RKNN


def test_a_loaded_rknn_is_kept(conv_model, make_onnx, build, tmp_path, monkeypatch):
    """Nothing that happens to the file between load_rknn and init_runtime changes what runs."""
    rknn = build(conv_model)
    expected = rknn.inference([picture((1, 8, 6, 3))])[0]
    monkeypatch.chdir(tmp_path)
    for change in ("nothing", "remove", "replace", "shorten", "chdir"):
        assert rknn.export_rknn("kept.rknn") == 0
        loaded = RKNN()
        assert loaded.load_rknn("kept.rknn") == 0
        if change == "remove":
            os.remove("kept.rknn")
        elif change == "replace":
            other = build(make_onnx([("Relu", ["x"], ["y"], {})], {"x": ("float32", [2])}, {"y": ("float32", [2])}, name="other"))
            assert other.export_rknn("kept.rknn") == 0
        elif change == "shorten":
            os.truncate("kept.rknn", 100)
        elif change == "chdir":
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.chdir(tmp_path / "elsewhere")
        assert loaded.init_runtime() == 0, change
        np.testing.assert_array_equal(loaded.inference([picture((1, 8, 6, 3))])[0], expected)
        loaded.release()


def test_a_source_model_may_vanish_before_build(conv_model, build, tmp_path):
    expected = build(conv_model).inference([picture((1, 8, 6, 3))])[0]
    copy = str(tmp_path / "copy.onnx")
    shutil.copy(conv_model, copy)
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(copy) == 0
    os.truncate(copy, 10)
    assert rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
    np.testing.assert_array_equal(rknn.inference([picture((1, 8, 6, 3))])[0], expected)


def test_exported_file_runs_and_is_reproducible(tmp_path, shapes_model, build):
    files = []
    for i, threads in enumerate(("1", "2")):
        path = tmp_path / f"{i}.rknn"
        code = (
            "import sys; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588', custom_string='hello')\n"
            "assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0 and r.export_rknn(sys.argv[2]) == 0"
        )
        subprocess.run(
            [sys.executable, "-c", code, str(shapes_model), str(path)],
            check=True,
            capture_output=True,
            env=dict(os.environ, ORKNN_THREADS=threads),
        )
        files.append(path.read_bytes())
    assert files[0] == files[1]
    image = picture((1, 64, 64, 3))
    rknn = RKNN()
    assert rknn.load_rknn(str(tmp_path / "0.rknn")) == 0 and rknn.init_runtime() == 0
    loaded = rknn.inference([image])[0]
    np.testing.assert_array_equal(loaded, build(shapes_model, float_dtype="float16").inference([image])[0])
    assert "RKNN VERSION:" in rknn.get_sdk_version()
    assert rknn.list_support_target_platform(str(tmp_path / "0.rknn"))["support_target_platform"] == ["RK3588"]
    assert rknn.list_support_target_platform()


def test_full_disk_leaves_nothing(tmp_path, shapes_model):
    """A file size limit stands for a full disk: the export fails, says so, and leaves neither the file nor a temporary."""
    code = (
        "import sys, resource, signal; from rknn.api import RKNN\n"
        "r = RKNN(); r.config(target_platform='rk3588'); assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "sys.exit(0 if r.export_rknn(sys.argv[2]) == -1 else 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(shapes_model), str(tmp_path / "x.rknn")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "cannot write" in done.stderr and list(tmp_path.glob("x.rknn*")) == []


@pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer keeps memory of its own")
def test_building_shares_the_weights(tmp_path, make_onnx):
    """Peak memory of load and build: at most twice the weights and 100 MB."""
    weight = np.random.default_rng(1).standard_normal((4096, 8192)).astype(np.float32)  # 128 MiB
    model = make_onnx(
        [("MatMul", ["x", "w"], ["y"], {})], {"x": ("float32", [1, 4096])}, {"y": ("float32", [1, 8192])}, {"w": weight}
    )
    code = (
        "import sys; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588')\n"
        "assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    peak = (
        int(subprocess.run([sys.executable, "-c", code, model], check=True, capture_output=True, text=True).stdout.split()[-1])
        * 1024
    )
    assert peak <= 2 * weight.nbytes + 100e6


@pytest.mark.parametrize("shift", range(4))
def test_reading_weights_takes_them_once(tmp_path, shift):
    """A frozen graph whose weights begin at any address: memory of at most 1.2 times the file while it is read."""

    def number(n):
        return bytes([n & 127 | 128]) + number(n >> 7) if n > 127 else bytes([n])

    def field(at, content):
        return number(at << 3 | 2) + number(len(content)) + content

    def shape(*dims):
        return b"".join(field(2, b"\x08" + number(d)) for d in dims)

    def attribute(name, value):
        return field(5, field(1, name) + field(2, value))

    def node(name, op, *rest):
        return field(1, field(1, name) + field(2, op) + b"".join(rest))

    rows, columns, kind, name = 2048, 8192, b"\x30\x01", b"x" * (shift + 1)
    tensor = b"\x08\x01" + field(2, shape(rows, columns)) + field(4, np.ones((rows, columns), np.float32).tobytes())  # 64 MiB
    model = tmp_path / "model.pb"
    model.write_bytes(
        node(name, b"Placeholder", attribute(b"dtype", kind), attribute(b"shape", field(7, shape(1, rows))))
        + node(b"w", b"Const", attribute(b"dtype", kind), attribute(b"value", field(8, tensor)))
        + node(b"y", b"MatMul", field(3, name), field(3, b"w"), attribute(b"T", kind))
    )
    code = (
        "import sys; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588')\n"
        "def now(key): return int(next(line for line in open('/proc/self/status') if line.startswith(key)).split()[1]) * 1024\n"
        "before = now('VmRSS'); open('/proc/self/clear_refs', 'w').write('5')\n"
        f"assert r.load_tensorflow(sys.argv[1], [{name.decode()!r}], [[1, {rows}]], ['y']) == 0\n"
        "print(now('VmHWM') - before)"
    )
    grown = int(
        subprocess.run([sys.executable, "-c", code, str(model)], check=True, capture_output=True, text=True).stdout.split()[-1]
    )
    assert grown <= 1.2 * model.stat().st_size


def test_large_models_show_how_far_they_are(tmp_path, make_onnx, monkeypatch):

    shown = {}

    def progress(log):
        return lambda stage, done, total: shown.setdefault(stage, []).append((done, total))

    monkeypatch.setattr("rknn.api.building.Progress", progress)
    weights = {f"w{i}": np.full((1024, 1024), i + 1, np.float32) for i in range(33)}  # 132 MiB
    nodes = [("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"], {}) for i in range(33)]
    model = make_onnx(nodes, {"x0": ("float32", [1, 1024])}, {"x33": ("float32", [1, 1024])}, weights)
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert (
        rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0 and rknn.export_rknn(str(tmp_path / "m.rknn")) == 0
    )
    for stage in ("Compiling", "Exporting"):
        done, totals = [d for d, _ in shown[stage]], {t for _, t in shown[stage]}
        assert len(totals) == 1 and done == sorted(done) and done[0] == 0 and done[-1] == totals.pop(), stage
        assert len(done) > 10, f"{stage}: {done}"


def test_verbose_file(tmp_path, conv_model):
    log = tmp_path / "log.txt"
    rknn = RKNN(verbose=True, verbose_file=str(log))
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(conv_model) == 0
    rknn.release()
    assert "rknn-toolkit2 version" in log.read_text()


def test_files_that_are_no_models_are_told_by_name(tmp_path, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    for name, content, words in (
        ("m.h5", b"\x89HDF\r\n\x1a\n", "the file is a model of keras, not of onnx. Hint: load it with load_keras"),
        ("m.weights", bytes(20), "the weights of a Darknet network"),
        ("m.cfg", b"[net]\nheight=1\n", "the file is a model of darknet, not of onnx. Hint: load it with load_darknet"),
        ("m.onnx", b"", "the file is empty"),
    ):
        (tmp_path / name).write_bytes(content)
        assert rknn.load_onnx(tmp_path / name) == -1
        assert words in capfd.readouterr().err, name
    assert rknn.load_tensorflow(tmp_path) == -1 and "this is a folder" in capfd.readouterr().err


@pytest.mark.parametrize(
    "name", ["ü ✓ 'quoted' %s {}.onnx", b"bytes\xff\xfe.onnx", "-o.onnx", "line\nbreak.onnx", "x" * 240 + ".onnx"]
)
def test_file_names_are_any_bytes(tmp_path, conv_model, name):
    name = os.fsdecode(name)
    source, out = tmp_path / name, tmp_path / (name[:-5] + ".rknn")
    source.write_bytes(open(conv_model, "rb").read())
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(os.fsencode(source)) == 0 and rknn.build(do_quantization=False) == 0
    assert rknn.export_rknn(out) == 0 and rknn.load_rknn(os.fsencode(out)) == 0 and rknn.init_runtime() == 0
    assert rknn.load_onnx(str(out) + ".missing") == -1 and rknn.export_rknn("") == -1 and rknn.load_rknn("") == -1


@pytest.mark.parametrize("form", [os.fsencode, os.fsdecode, pathlib.Path])
def test_every_path_is_any_bytes(tmp_path, monkeypatch, conv_model, capfd, form):
    """Lists of samples, the files of hybrid quantization and the folders of accuracy_analysis, in each form of a file name."""
    folder = os.path.join(os.fsencode(tmp_path), b"folder \xff\xfe")
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    named = lambda name: form(os.fsdecode(os.path.join(folder, name)))
    with open(named(b"x\xff.npy"), "wb") as file:
        np.save(file, np.linspace(-1, 1, 3 * 8 * 6, dtype=np.float32).reshape(1, 3, 8, 6))
    with open(named(b"list\xff.txt"), "wb") as file:
        file.write(b"x\xff.npy\n")
    shutil.copy(conv_model, named(b"m\xff.onnx"))
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(named(b"m\xff.onnx")) == 0
    assert rknn.build(do_quantization=True, dataset=named(b"list\xff.txt")) == 0
    for number, inputs in enumerate((named(b"list\xff.txt"), named(b"x\xff.npy"), [named(b"x\xff.npy")])):
        output = named(b"snapshot\xff%d" % number)
        assert rknn.accuracy_analysis(inputs, output_dir=output) == 0
        assert os.path.exists(os.path.join(os.fsdecode(output), "error_analysis.txt"))
    assert rknn.export_rknn(named(b"m\xff.rknn")) == 0
    assert rknn.fetch_rknn_model_config(named(b"m\xff.rknn"))["name"] == "m\\xff"
    assert rknn.hybrid_quantization_step1(dataset=named(b"list\xff.txt")) == 0
    files = [named(b"m\xff" + ending) for ending in (b".model", b".data", b".quantization.cfg")]
    for again in (
        lambda built: built.hybrid_quantization_step2(*files, dataset=named(b"list\xff.txt")),
        lambda built: built.direct_build(files[0], files[1]),
    ):
        built = RKNN()
        assert again(built) == 0 and built.export_rknn(named(b"again\xff.rknn")) == 0
    assert "Traceback" not in capfd.readouterr().err


def test_the_bytes_of_a_model_are_no_file_name(conv_model, capfd):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(open(conv_model, "rb").read()) == -1
    error = capfd.readouterr().err
    assert "not its contents" in error and "incompatible function arguments" not in error and len(error) < 2000


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    rknn = RKNN()
    assert rknn.load_rknn(tmp_path / "pipe") == -1


def test_objects_in_several_threads(tmp_path, make_onnx, capfd):
    """Each thread's lines reach its own log, and nobody waits for anybody for ever."""
    model = make_onnx(
        [("Conv", ["x", "w"], ["c"], {}), ("Relu", ["c"], ["y"], {})],
        {"x": ("float32", [1, 3, 8, 8])},
        {"y": ("float32", [1, 4, 6, 6])},
        {"w": np.ones((4, 3, 3, 3), np.float32)},
    )
    code = """
import sys, threading
from rknn.api import RKNN
def work(index):
    for _ in range(20):
        r = RKNN(verbose=True, verbose_file=f'{sys.argv[2]}/{index}.log')
        r.config(target_platform='rk3588', mean_values=[[index, 0, 0]], disable_rules=[f'rule_of_{index}'])
        assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0
        r.release()
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    subprocess.run([sys.executable, "-c", code, model, str(tmp_path)], check=True, capture_output=True, timeout=120)
    for index in range(4):
        text = (tmp_path / f"{index}.log").read_text()
        assert f"rule_of_{index}" in text and not any(f"rule_of_{other}" in text for other in range(4) if other != index)


@pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer keeps memory of its own")
def test_running_gives_the_pages_of_packed_weights_back(tmp_path, make_onnx):
    weight = np.random.default_rng(1).standard_normal((4096, 4096)).astype(np.float32)  # 64 MiB
    model = make_onnx(
        [("MatMul", ["x", "w"], ["y"], {})], {"x": ("float32", [1, 4096])}, {"y": ("float32", [1, 4096])}, {"w": weight}
    )
    code = (
        "import sys, numpy as np; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588', float_dtype='float32')\n"
        "assert r.load_onnx(sys.argv[1]) == 0 and r.build(do_quantization=False) == 0 and r.export_rknn(sys.argv[2]) == 0\n"
        "r.release(); r = RKNN(); assert r.load_rknn(sys.argv[2]) == 0 and r.init_runtime() == 0\n"
        "r.inference([np.ones((1, 4096), np.float32)])\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('RssFile')).split()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, model, str(tmp_path / "m.rknn")], check=True, capture_output=True, text=True
    )
    assert int(done.stdout.split()[-1]) * 1024 < weight.nbytes


def test_weights_in_several_files_and_described_ones(tmp_path, capfd):
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((4, 4)).astype(np.float32) for _ in range(3)]
    tensors = []
    for i, weight in enumerate(weights):
        with open(tmp_path / f"part{i % 2}", "ab") as file:
            place = dict(location=f"part{i % 2}", offset=file.tell(), length=weight.nbytes)
            file.write(weight.tobytes())
        tensors.append(
            TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=weight.shape, data_location=TensorProto.EXTERNAL)
        )
        for key, value in place.items():
            tensors[-1].external_data.add(key=key, value=str(value))

    def save(name):
        nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(3)]
        ports = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4])] for n in ("t0", "t3")]
        model = helper.make_model(helper.make_graph(nodes, "g", *ports, tensors), opset_imports=[helper.make_opsetid("", 17)])
        (tmp_path / name).write_bytes(model.SerializeToString())
        return str(tmp_path / name)

    def run(path):
        rknn = RKNN()
        rknn.config(target_platform="rk3588", float_dtype="float32")
        assert rknn.load_onnx(path) == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
        return rknn.inference([x])[0]

    x = rng.standard_normal((1, 4)).astype(np.float32)
    np.testing.assert_allclose(run(save("stored.onnx")), x @ weights[0] @ weights[1] @ weights[2], rtol=1e-5)
    for i, tensor in enumerate(tensors):
        del tensor.external_data[:]
        for key, value in dict(location="fill:normal", seed=i, scale=0.5).items():
            tensor.external_data.add(key=key, value=str(value))
    capfd.readouterr()
    drawn = save("net.onnx.structure")
    np.testing.assert_array_equal(run(drawn), run(drawn))
    assert "3 tensors have no weights" in capfd.readouterr().err


def test_lines_that_cannot_be_written_stop_nothing(tmp_path, conv_model, capfd):
    for path in (tmp_path, tmp_path / "no" / "folder.log", "/dev/full"):
        rknn = RKNN(verbose=True, verbose_file=path)
        rknn.config(target_platform="rk3588")
        assert rknn.load_onnx(conv_model) == 0 and rknn.build(do_quantization=False) == 0
        rknn.release()
        assert "verbose_file cannot be written" in capfd.readouterr().err
    code = (
        "import sys; from rknn.api import RKNN; r = RKNN(); r.config(target_platform='rk3588')\n"
        "print(r.load_onnx(sys.argv[1]), r.build(do_quantization=False), r.load_onnx('missing'))"
    )
    for redirection in ("2>/dev/full", "2>&-"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-c", code, conv_model],
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        assert done.stdout == "0 0 -1\n", redirection
