"""The shared corpus, judged by its own check.py, when it is there."""
import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("mode", ["float32", "rknn", "fp16"])
def test_onnx_corpus(corpus, tmp_path, mode):
    report = tmp_path / "report.json"
    subprocess.run([sys.executable, corpus / "check.py", "--framework", "onnx", "--mode", mode, "--json", report], timeout=1500)
    rows = json.loads(report.read_text())
    core = [r for r in rows if r["kind"] != "extra"]
    bad = [r for r in core if r["verdict"] not in ("pass", "ran")]
    defects = [r for r in rows if r["verdict"] in ("wrong", "crash", "timeout")]
    listing = "\n".join(f"{r['verdict']} {r['case']}: {r['why']}" for r in bad + [d for d in defects if d not in bad])
    assert len(core) > 700
    if mode == "fp16":
        assert not [r for r in core if r["verdict"] in ("refused", "crash", "timeout")], listing
        assert len(bad) <= 0.01 * len(core), listing
    else:
        assert not bad and not defects, listing
