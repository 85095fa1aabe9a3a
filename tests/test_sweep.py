"""openrknn sweep: one table whatever the number of workers, also when they die or the sweep is interrupted."""

import csv
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from rknn import sweep

OPENRKNN = pathlib.Path(sys.executable).parent / "openrknn"


@pytest.fixture
def models(conv_model, make_onnx):
    other = make_onnx([("Sigmoid", ["x"], ["y"], {})], {"x": ("float32", [1, 8])}, {"y": ("float32", [1, 8])}, name="other")
    return [conv_model, other]


@pytest.fixture
def pictures(tmp_path):
    """A list of 150 samples: three tasks."""
    numbers = np.random.default_rng(7)
    (tmp_path / "data").mkdir()
    names = [f"{i}.npy" for i in range(150)]
    for name in names:
        np.save(tmp_path / "data" / name, numbers.integers(0, 256, (1, 3, 8, 6)).astype(np.float32))
    (tmp_path / "data" / "list.txt").write_text("".join(name + "\n" for name in names))
    (tmp_path / "data" / "few.txt").write_text("".join(name + "\n" for name in names[:4]))
    return tmp_path / "data"


@pytest.fixture
def run(conv_model, pictures, tmp_path):
    """run(folder, options): (exit code, table) of two chips and two settings on 150 samples."""
    settings = ["half", f"int8=--dataset {pictures}/few.txt"]

    def go(folder, *words):
        arguments = [conv_model, "--platforms", "rk3588,rk3566", "--data", pictures / "list.txt", "-o", tmp_path / folder]
        code = sweep.main([*map(str, arguments), *words, "--settings", *settings])
        return code, (tmp_path / folder / "sweep.csv").read_text()

    return go


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(sweep, "_RUNNING", sweep._Children())


def test_the_table_does_not_depend_on_the_workers(run, tmp_path, monkeypatch):
    code, one = run("a", "--workers", "1")
    assert code == 0
    rows = list(csv.DictReader(one.splitlines()))
    places = [(r["model"], r["platform"], r["setting"]) for r in rows]
    assert places == [("model.onnx", chip, setting) for chip in ("rk3588", "rk3566") for setting in ("half", "int8")]
    for row in rows:
        assert row["status"] == "ok" and row["samples"] == "150" and float(row["predicted_us"]) > 0 and row["error"] == ""
        assert 0.98 < float(row["lowest_cosine"]) <= float(row["mean_cosine"]) <= 1 and int(row["weight_bytes"]) > 0
    assert float(rows[0]["mean_cosine"]) > float(rows[1]["mean_cosine"])
    monkeypatch.setattr(sweep, "_RUNNING", sweep._Children())
    assert run("b", "--workers", "3") == (0, one)
    assert "<td>rk3566</td>" in (tmp_path / "b" / "sweep.html").read_text()
    assert not list((tmp_path / "b").glob(".sweep-*"))


def test_only_what_is_new_is_done(run, tmp_path, monkeypatch, capsys):
    _, table = run("a")
    tasks = sorted((tmp_path / "a" / "tasks").iterdir())
    assert len(tasks) == 4 + 4 * 3
    done = []
    real = sweep.run_task
    monkeypatch.setattr(sweep, "run_task", lambda task, *more: done.append(task["kind"]) or real(task, *more))
    for damage in (lambda file: file.unlink(), lambda file: file.write_text("{ cut off")):
        monkeypatch.setattr(sweep, "_RUNNING", sweep._Children())
        done.clear()
        damage(tasks[0])
        assert run("a") == (0, table) and len(done) == 1
    monkeypatch.setattr(sweep, "_RUNNING", sweep._Children())
    done.clear()
    assert run("a") == (0, table) and done == []


class Killed(sweep._Children):
    """The first `count` native processes die by a signal."""

    def __init__(self, count):
        super().__init__()
        self.left = count

    def run(self, words, cwd):
        with self.lock:
            dies = self.left > 0
            self.left -= dies
        return super().run(["sh", "-c", "kill -9 $$"] if dies else words, cwd)


def test_workers_that_die_change_nothing(run):
    _, table = run("a")
    sweep._RUNNING = Killed(2)
    assert run("b", "--workers", "2") == (0, table) and sweep._RUNNING.left == 0


def test_a_worker_that_always_dies_is_an_error(run):
    sweep._RUNNING = Killed(1000)
    code, table = run("a", "--workers", "1")
    rows = list(csv.DictReader(table.splitlines()))
    assert code == 1 and all(r["status"] == "failed" and "the worker died 3 times" in r["error"] for r in rows)
    sweep._RUNNING = sweep._Children()
    code, table = run("a")  # the next sweep tries again
    assert code == 0 and "died" not in table


class Refused(sweep._Children):
    """Evaluations fail, as they do without space for their files."""

    def run(self, words, cwd):
        return super().run(["sh", "-c", "echo no space >&2; exit 1"] if "compare" in words else words, cwd)


def test_failed_evaluations_are_tried_again(run):
    sweep._RUNNING = Refused()
    code, table = run("a")
    rows = list(csv.DictReader(table.splitlines()))
    assert code == 1 and all(r["status"] == "failed" and "no space" in r["error"] for r in rows)
    sweep._RUNNING = sweep._Children()
    code, table = run("a")
    assert code == 0 and "no space" not in table


def test_an_interrupted_sweep_goes_on(models, pictures, tmp_path):
    """Ctrl-C ends the command and what it started; the second time only the rest is done."""
    words = [
        OPENRKNN,
        "sweep",
        models[0],
        "-t",
        "rk3588,rk3566",
        "--data",
        pictures / "list.txt",
        "-o",
        tmp_path / "a",
        "--workers",
        "1",
    ]
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert "sweep: 1/" in line, line
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130 and "continues from here" in process.stderr.read()
    assert not (tmp_path / "a" / "sweep.csv").exists() and list((tmp_path / "a" / "tasks").iterdir())
    done = subprocess.run([*map(str, words), "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [row["status"] for row in json.loads(done.stdout)] == ["ok", "ok"]
    assert "sweep: 1/" in done.stderr and "model.onnx rk3588 float: done" not in done.stderr


def test_what_cannot_be_built_is_a_row(models, tmp_path, openrknn, capsys):
    words = [*models, "--settings", "good", "bad=--float-dtype float8", "-o", tmp_path / "c"]
    done = openrknn("sweep", *words, "-t", "rk3588")
    rows = list(csv.DictReader((tmp_path / "c" / "sweep.csv").open()))
    assert done.returncode == 1 and [r["status"] for r in rows] == ["ok", "failed"] * 2 and "float8" in rows[1]["error"]
    assert rows[0]["mean_cosine"] == "" and "mean_cosine" not in done.stdout and "other.onnx" in done.stdout


@pytest.mark.parametrize(
    "words, text",
    [
        (["none.onnx", "-t", "rk3588"], "none.onnx"),
        (["MODEL", "-t", "rk9999"], "rk9999"),
        (["MODEL", "-t", "rk3588,"], "platform"),
        (["MODEL"], "--platforms"),
        (["MODEL", "-t", "rk3588", "--settings", "=--json"], "expect NAME"),
        (["MODEL", "-t", "rk3588", "--settings", "a=-t rk3566"], "sets -t"),
        (["MODEL", "-t", "rk3588", "--settings", "a=--dataset"], "needs a file"),
        (["MODEL", "-t", "rk3588", "--settings", "a=--dataset none.txt"], "none.txt"),
        (["MODEL", "-t", "rk3588", "--settings", "a", "a"], "name of its own"),
        (["MODEL", "-t", "rk3588", "--workers", "0"], "--workers"),
    ],
)
def test_mistakes_are_said(words, text, models, openrknn, tmp_path):
    done = openrknn("sweep", *(models[0] if w == "MODEL" else w for w in words), cwd=tmp_path)
    assert done.returncode in (1, 2) and text in done.stderr and "Traceback" not in done.stderr


def test_ray_is_optional(models, tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert sweep.main([models[0], "--platforms", "rk3588", "-o", str(tmp_path / "r"), "--ray", "auto"]) == 1
    assert "needs the package 'ray'" in capfd.readouterr().err


def test_what_is_no_ray_cluster_is_said_soon(models, tmp_path, monkeypatch, capfd):
    """A package 'ray' that waits without end, as Ray does where nobody, or something else, listens."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "__init__.py").write_text("import time\ndef init(**options):\n    time.sleep(1000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace())
    monkeypatch.setattr(sweep, "CLUSTER_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        for address, why in (
            ("127.0.0.1:1", "refused"),
            ("ray://127.0.0.1:1", "refused"),
            (f"127.0.0.1:{other.getsockname()[1]}", "within 1 s"),
            ("auto", "within 1 s"),
        ):
            assert sweep.main([models[0], "--platforms", "rk3588", "-o", str(tmp_path / "r"), "--ray", address]) == 1
            err = capfd.readouterr().err
            assert f"There is no Ray cluster at '{address}': " in err and why in err


def test_nodes_without_the_files_get_them(models, pictures, tmp_path, monkeypatch):
    """What runs on a node of a cluster, on paths that it does not have."""
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(get=lambda content: content))
    words = ["--dataset", str(pictures / "few.txt")]
    here = sweep.Combination(models[0], "rk3588", "int8", words, None, "1")
    task = dict(kind="build", model=here.model, platform="rk3588", words=[], list=here.list, files=here.files, compared=True)
    facts, files = sweep.run_task(task)
    away = lambda path: "/nowhere" + path
    elsewhere = dict(
        task,
        model=away(here.model),
        list=[[away(f) for f in sample] for sample in here.list],
        files=[away(f) for f in here.files],
    )
    paths = [*here.files, *(file for sample in here.list for file in sample)]
    contents = {away(path): (sweep.digest_of(path), pathlib.Path(path).read_bytes()) for path in paths}
    missing = {path: (digest, None) for path, (digest, _) in contents.items()}
    assert "only files are sent" in sweep._on_cluster(elsewhere, missing)[0]["error"]
    assert sweep._on_cluster(elsewhere, contents) == (facts, files) and facts["weight_bytes"] > 0 and len(files) == 2


def workers_of_ray():
    """Processes of tasks that are under way."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::_on_cluster"):
                yield int(folder.name)
        except OSError:
            pass


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the package 'ray' is not installed")
def test_ray_gives_the_same_table_when_a_worker_is_killed(run, models, pictures, tmp_path):
    import ray

    _, table = run("a")
    address = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR").address_info[
        "gcs_address"
    ]
    try:
        words = [sys.executable, "-m", "rknn.sweep", models[0], "--platforms", "rk3588,rk3566", "--data", pictures / "list.txt"]
        words += ["-o", tmp_path / "b", "--ray", address, "--settings", "half", f"int8=--dataset {pictures}/few.txt"]
        process = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lines = []  # Ray has its say, too
        while not lines or (lines[-1] and "sweep: 1/" not in lines[-1]):
            lines.append(process.stderr.readline())
        assert lines[-1], lines
        killed, end = [], time.monotonic() + 60
        while not killed and process.poll() is None and time.monotonic() < end:
            for worker in list(workers_of_ray())[:1]:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
        log = process.stderr.read()
        assert process.wait(300) == 0 and killed, log
        assert (tmp_path / "b" / "sweep.csv").read_text() == table
    finally:
        ray.shutdown()
