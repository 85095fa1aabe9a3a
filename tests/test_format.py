"""Every source file is in the tree's format: `make format` brings it there."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = Path(sys.executable).parent


def sources(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: which files are sources is not known")
    return listed.stdout.split()


@pytest.mark.parametrize(
    ("tool", "arguments", "patterns"),
    [
        ("clang-format", ["--dry-run", "-Werror"], ["*.cpp", "*.h", "*.c"]),
        ("ruff", ["format", "--check"], ["*.py"]),
        ("ruff", ["check"], ["*.py"]),
    ],
    ids=["C++ layout", "Python layout", "Python lint"],
)
def test_sources_are_formatted(tool, arguments, patterns):
    if not (TOOLS / tool).exists():
        pytest.skip(f"{tool} is not installed beside {sys.executable}: `scripts/venv format` installs it")
    found = subprocess.run([TOOLS / tool, *arguments, *sources(*patterns)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"run `make format`:\n{(found.stdout + found.stderr)[-4000:]}"
