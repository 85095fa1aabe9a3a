#!/usr/bin/env python3
"""What an inference costs more on a device than in the process, and how much eight clients get done together.

  bench/remote.py [--rounds 2000] [--seconds 5] [--check]

Starts rknn_server on this machine and runs two networks of one layer, of 8 and of 786,432 floats, in the process, over a Unix socket and over TCP. Rounds
alternate; each way is judged by its median and its fastest round. Then eight clients, each a process with a connection over the Unix socket, run a network of
twelve convolutions as often as they can, in alternation with eight threads of one process. --check ends with 1 when the small network costs
150 us more over the Unix socket (median), or the clients get less than 95 % of the threads' runs (sum of all periods). On a busy machine: `chrt -f 20 bench/remote.py`.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
import rknn
from onnx import TensorProto, helper, numpy_helper
from rknn.api import RKNN

LIMIT_US = 150
LIMIT_SHARE = 0.95
CLIENTS = 8
PERIODS = 5


def network(folder, elements):
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, elements])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [info("x")], [info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = f"{folder}/{elements}.onnx"
    onnx.save(model, path)
    return path


def convolutions(folder):
    """Twelve 3x3 convolutions of 32 channels on 64x64."""
    numbers = np.random.default_rng(2)
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 32, 64, 64])
    weights = [(numbers.standard_normal((32, 32, 3, 3)) / 17).astype(np.float32) for _ in range(12)]
    nodes = [helper.make_node("Conv", [f"t{i}", f"w{i}"], [f"t{i + 1}"], pads=[1, 1, 1, 1]) for i in range(12)]
    stored = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "g", [info("t0")], [info("t12")], stored)
    path = f"{folder}/convolutions.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def ready(path, **where):
    api = RKNN()
    api.config(target_platform="rk3588", float_dtype="float32")
    assert api.load_onnx(path) == 0 and api.build(do_quantization=False) == 0 and api.init_runtime(**where) == 0
    return api


class Threads:
    """Eight threads of this process, each with a context of its own; count() is what they get done in a while."""

    def __init__(self, path):
        self.apis = [ready(path) for _ in range(CLIENTS)]
        self.x = np.random.default_rng(3).standard_normal((1, 32, 64, 64), np.float32)

    def count(self, seconds):
        counts, end = [0] * CLIENTS, time.monotonic() + seconds

        def work(i):
            while time.monotonic() < end:
                self.apis[i].inference([self.x], data_format="nchw")
                counts[i] += 1

        threads = [threading.Thread(target=work, args=(i,)) for i in range(CLIENTS)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.monotonic() - begin)


class Clients:
    """The same with processes that use the server: told the seconds on their standard input, each prints what it did."""

    def __init__(self, path, address):
        words = [sys.executable, __file__, "--client", path, address]
        self.processes = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)
        ]
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"

    def count(self, seconds):
        for process in self.processes:
            print(seconds, file=process.stdin, flush=True)
        return sum(float(process.stdout.readline()) for process in self.processes)

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait()


def client(path, address):
    api = ready(path, target="rk3588", device_id=address)
    x = np.random.default_rng(3).standard_normal((1, 32, 64, 64), np.float32)
    print("ready", flush=True)
    for line in sys.stdin:
        begin, count = time.monotonic(), 0
        while time.monotonic() < begin + float(line):
            api.inference([x], data_format="nchw")
            count += 1
        print(count / (time.monotonic() - begin), flush=True)


def throughput(folder, address, seconds):
    """Runs per second of the threads and of the clients."""
    path = convolutions(folder)
    threads, clients = Threads(path), Clients(path, address)
    here = there = 0.0
    for side in (threads, clients):
        side.count(0.2)
    for _ in range(PERIODS):
        here += threads.count(seconds / PERIODS) / PERIODS
        there += clients.count(seconds / PERIODS) / PERIODS
    clients.close()
    for api in threads.apis:
        api.release()
    return here, there


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=5, help="of each side of the comparison of throughputs")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client(*options.client)
    program = pathlib.Path(rknn.__file__).parent / "bin" / "rknn_server"
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ORKNN_DEVICE_DIR"] = f"{folder}/devices"
        server = subprocess.Popen(
            [program, "--platform", "rk3588", "--listen", f"unix:{folder}/s", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        server.stdout.readline()
        unix, tcp = server.stdout.readline().split(" at ")[1].split()[:2]
        try:
            for elements, rounds in ((8, options.rounds), (786432, max(options.rounds // 20, 10))):
                path = network(folder, elements)
                ways = {
                    "in the process": ready(path),
                    "Unix socket": ready(path, target="rk3588", device_id=unix),
                    "TCP": ready(path, target="rk3588", device_id=tcp),
                }
                x = np.random.default_rng(1).standard_normal((1, elements), np.float32)
                times = {name: [] for name in ways}
                for _ in range(rounds):
                    for name, api in ways.items():
                        begin = time.perf_counter()
                        api.inference([x])
                        times[name].append(1e6 * (time.perf_counter() - begin))
                base = {f: f(times["in the process"]) for f in (statistics.median, min)}
                print(f"{elements} floats, {rounds} rounds")
                for name, us in times.items():
                    median, least = statistics.median(us), min(us)
                    print(
                        f"  {name:15} median {median:8.1f} us (+{median - base[statistics.median]:7.1f})   fastest {least:8.1f} us (+{least - base[min]:7.1f})"
                    )
                failed |= elements == 8 and statistics.median(times["Unix socket"]) - base[statistics.median] > LIMIT_US
                for api in ways.values():
                    api.release()
            here, there = throughput(folder, unix, options.seconds)
            print(f"{CLIENTS} at once: {here:.1f} runs/s in the process, {there:.1f} by clients ({100 * there / here:.1f} %)")
            failed |= there < LIMIT_SHARE * here
        finally:
            server.terminate()
            server.wait()
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
