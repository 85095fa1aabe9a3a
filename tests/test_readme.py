"""README.md: its sample runs as it is pasted, and what it points at exists."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text()


def test_sample_runs_as_pasted(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    [sample] = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    done = subprocess.run([sys.executable, "-c", sample], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^class [0-7]$", done.stdout, re.M), done.stdout
    assert (tmp_path / "shapes.rknn").stat().st_size > 0


def test_commands_run_as_pasted(tmp_path, openrknn):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    [commands] = re.findall(r"```sh\n(ls .*?)```", TEXT, re.S)
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-ec", commands], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "shapes.rknn").stat().st_size > 0 and "rk3588" in openrknn("info", tmp_path / "shapes.rknn").stdout


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert targets
    assert [t for t in targets if not (ROOT / t).exists()] == []


def test_one_screen():
    assert len(TEXT.splitlines()) < 75
