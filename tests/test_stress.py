"""Many threads on a few contexts, and contexts that come and go: C programs, with small counts. `make test-threads` runs them in full, with
libraries built with a sanitizer."""

import os
import re

import pytest
from library import BUILD, build_model, run
from running_server import Server

if not BUILD.exists():
    pytest.skip(f"needs the C programs of the build in {BUILD}", allow_module_level=True)

CALLS = int(os.environ.get("ORKNN_STRESS_CALLS", 100))  # of each of 16 threads
CYCLES = int(os.environ.get("ORKNN_STRESS_CYCLES", 200))  # of init and destroy
# Of a stress on a server: every call is one or more round trips.
CALLS_ON_A_DEVICE = max(CALLS // 10, 20)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_model(tmp_path_factory.mktemp("model") / "m.rknn", "rk3588", True)


def stress(model, calls, cycles, **environment):
    """Lines of the program, which ends with 1 when a result is wrong, a call failed or something grew."""
    lines = run(BUILD / "capi_stress", model, calls, cycles, env=os.environ | environment).splitlines()
    assert lines[0] == f"16 threads, 4 contexts, {calls} calls each: 0 wrong"
    assert re.match(rf"{cycles} cycles: 0 wrong; ", lines[1])
    print(*lines, sep="\n")


def test_many_threads_share_contexts(model):
    stress(model, CALLS, 0)


def test_many_threads_under_the_checker(model):
    """Under OPENRKNN_CHECK=1 every call is noted, and what was destroyed is kept for a while."""
    stress(model, CALLS_ON_A_DEVICE, 0, OPENRKNN_CHECK="1")


def test_contexts_leave_nothing_behind(model):
    stress(model, 0, CYCLES)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "unix:{}/s.sock"])
def test_many_threads_on_a_device(model, tmp_path, listen):
    server = Server("--no-announce", listen=listen.format(tmp_path))
    stress(model, CALLS_ON_A_DEVICE, 40, ORKNN_DEVICE=server.address)
    server.wait_for(lambda status: status["clients"] == [])
    assert server.status()["runs"] > 0
    assert server.kill(15) == 0


@pytest.mark.parametrize("program", ["basic", "ways"])
def test_every_way_to_run(model, program):
    assert "output 0" in run(BUILD / f"capi_{program}", model, 100)


@pytest.mark.skipif(BUILD.name.endswith("tsan"), reason="the thread sanitizer does not follow threads that a forked child starts")
def test_a_fork_during_the_first_use(model):
    assert run(BUILD / "capi_fork", model, 200) == "200 processes: 0 wrong\n"


def test_operators_of_a_program(tmp_path):
    model = build_model(tmp_path / "m.rknn", "rk3588", False)
    assert "output 0" in run(BUILD / "capi_custom", model, 100, "GlobalAveragePool")
