"""The benchmark's judgement: what it measures is a matter of the machine, what it makes of the figures is not."""

import importlib.util
import math

import numpy as np
import pytest


@pytest.fixture
def bench(root):
    spec = importlib.util.spec_from_file_location("bench_run", root / "bench" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_cosine_that_is_no_number_is_not_hidden(bench):
    good, bad = np.ones(3, np.float32), np.array([1, np.nan, 1], np.float32)
    assert bench.worst_cosine([good, good], [good, -good]) == pytest.approx(-1)
    for ours in ([bad, good], [good, bad]):
        assert math.isnan(bench.worst_cosine(ours, [good, good]))


def test_missed_limits_are_kept(bench):
    limits = bench.Limits()
    assert "MISSED" not in limits.below("a", 2.0, 2) and "MISSED" not in limits.above("b", 1.0, 0.99999)
    assert not limits.missed
    assert (
        "MISSED" in limits.below("time", 2.1, 2, " x")
        and "MISSED" in limits.above("cosine", math.nan, 0.99999)
        and "MISSED" in limits.below("nan", math.nan, 1)
    )
    assert len(limits.missed) == 3 and limits.missed[0] == "time: 2.1 (limit 2 x)"


def test_the_wheel_is_measured(bench, tmp_path):
    (tmp_path / "package" / "__pycache__").mkdir(parents=True)
    (tmp_path / "package" / "a.bin").write_bytes(np.random.default_rng(0).bytes(1 << 20))
    (tmp_path / "package" / "__pycache__" / "b.pyc").write_bytes(np.random.default_rng(1).bytes(1 << 20))
    assert bench.wheel_mib(tmp_path / "package") == pytest.approx(1, abs=0.01)
