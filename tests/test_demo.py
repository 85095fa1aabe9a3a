"""The demo tells on the terminal why it failed; its log lines are in a file."""

import importlib.util
import sys

import pytest


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """The demo quiets the log of its process by this variable; other tests of this process need their log."""
    monkeypatch.setenv("RKNN_LOG_LEVEL", "0")


@pytest.fixture
def demo(root, tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("demo", root / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # restored whatever the demo does
    return module


def test_reasons_of_a_failure_reach_the_terminal(demo, tmp_path, monkeypatch, capsys):
    def broken():
        print("I a line nobody needs", "E load_onnx: no weights", sep="\n", file=sys.stderr)
        demo.must(-1, "load_onnx")

    monkeypatch.setattr(demo, "classifier", broken)
    assert demo.main() == 1
    shown = capsys.readouterr().err
    assert (
        "The demo failed: load_onnx failed" in shown and "load_onnx: no weights" in shown and str(tmp_path / "demo.log") in shown
    )
    assert "nobody needs" not in shown and "nobody needs" in (tmp_path / "demo.log").read_text()


def test_a_program_that_fails_is_quoted(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        demo, "classifier", lambda: demo.command(sys.executable, "-c", "import sys; sys.exit('no compiler here')")
    )
    assert demo.main() == 1 and "no compiler here" in capsys.readouterr().err


def test_a_mistake_of_the_demo_leaves_its_trace(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "classifier", lambda: [][1])
    assert demo.main() == 1 and "list index out of range" in capsys.readouterr().err
    assert "Traceback" in (tmp_path / "demo.log").read_text()
