"""The shared corpus, judged by its own check.py, when it is there."""

import json
import subprocess
import sys

import pytest


# The last number is the share of cases that float16 may get wrong: a sort of nearly equal scores and a deep network of random weights
# are more than a hundredth of the small MXNet set.
@pytest.mark.parametrize(
    "framework, least, float16_share",
    [("onnx", 700, 0.01), ("mxnet", 79, 0.03), ("tflite", 103, 0.01), ("tensorflow", 108, 0.01)],
)
@pytest.mark.parametrize("mode", ["float32", "rknn", "fp16"])
def test_corpus(corpus, tmp_path, mode, framework, least, float16_share):
    report = tmp_path / "report.json"
    subprocess.run(
        [sys.executable, corpus / "check.py", "--framework", framework, "--mode", mode, "--json", report], timeout=1500
    )
    rows = json.loads(report.read_text())
    core = [r for r in rows if r["kind"] != "extra"]
    bad = [r for r in core if r["verdict"] not in ("pass", "ran")]
    defects = [r for r in rows if r["verdict"] in ("wrong", "crash", "timeout")]
    listing = "\n".join(f"{r['verdict']} {r['case']}: {r['why']}" for r in bad + [d for d in defects if d not in bad])
    assert len(core) >= least
    if mode == "fp16":
        assert not [r for r in core if r["verdict"] in ("refused", "crash", "timeout")], listing
        assert len(bad) <= float16_share * len(core), listing
    else:
        assert not bad and not defects, listing
