"""Threads, forks and the end of the interpreter: nothing hangs, crashes or speaks up unasked."""

import os
import subprocess
import sys

import pytest

PREPARE = """
import os, signal, sys, threading, time
import numpy as np
from rknn.api import RKNN
model, x = sys.argv[1], [np.zeros((1, 64, 64, 3), np.uint8)]
def built():
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0 and rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
    return rknn
"""

# What a daemon thread is inside of while the interpreter ends.
LAST_WORK = {
    "build": "while True: built()",
    "inference": "rknn = built(); started.set()\n    while True: rknn.inference(x)",
    "quantization": """rknn = RKNN(); rknn.config(target_platform="rk3588"); rknn.load_onnx(model); started.set()
    while True: rknn.build(do_quantization=True, dataset=[sys.argv[2]] * 4)""",
}


def run(code, *arguments, **more):
    environment = {**os.environ, "ORKNN_THREADS": "4", **more}
    return subprocess.run(
        [sys.executable, "-c", PREPARE + code, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=environment
    )


def complaints(done):
    """Lines of stderr that are not the log's."""
    return [line for line in done.stderr.splitlines() if not line.startswith(("I ", "W ", "D "))]


@pytest.mark.parametrize("work", LAST_WORK)
def test_a_daemon_thread_does_not_disturb_the_end(work, shapes_model):
    code = f"""
started = threading.Event()
def work():
    {LAST_WORK[work]}
threading.Thread(target=work, daemon=True).start()
started.wait(float(sys.argv[3]))
time.sleep(float(sys.argv[3]))
"""
    picture = shapes_model.parent / "pictures" / "shape_000.png"
    for delay in (0.0, 0.05, 0.11, 0.3, 0.7):
        done = run(code, shapes_model, picture, delay)
        assert (done.returncode, complaints(done)) == (0, [])


def test_the_exit_code_survives_a_daemon_thread(shapes_model):
    code = """
rknn = built()
def work():
    while True: rknn.inference(x)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
sys.exit(7)
"""
    assert run(code, shapes_model).returncode == 7


# A child that hangs is ended by the alarm. It writes R when the model ran, E when it was refused with a reason, and ends with "ok"
# when another model of its own works.
FORK = """
rknn, stop = built(), False
rknn.inference(x)
def work():
    while not stop: rknn.inference(x)
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.05)
def use():
    try:
        rknn.inference(x)
        word = "R"
    except ValueError as error:
        word = "E" if "when this process was forked, call init_runtime" in str(error) else str(error)
    assert rknn.init_runtime() == 0
    rknn.inference(x)
    return word
for _ in range(20):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        print(use(), flush=True)
        sys.exit(0)
    code = os.waitpid(child, 0)[1]
    if code: print("child ended with", code, flush=True)
stop = True
thread.join()
rknn.inference(x)
print("ok")
"""


def test_a_child_forked_during_inference_never_hangs(shapes_model):
    done = run(FORK, shapes_model)
    assert done.returncode == 0, done.stderr
    *words, last = done.stdout.split()
    assert last == "ok" and len(words) == 20 and set(words) <= {"R", "E"}
    assert "E" in words, "no fork happened during an inference"
