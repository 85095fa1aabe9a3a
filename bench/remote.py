#!/usr/bin/env python3
"""What an inference costs more on a device than in the process.

  bench/remote.py [--rounds 2000] [--check]

Starts rknn_server on this machine and runs two networks of one layer, of 8 and of 786,432 floats, in the process, over a Unix socket and over TCP. Rounds
alternate; each way is judged by its median and its fastest round. --check ends with 1 when the small network costs 150 us more over the
Unix socket (median).
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import rknn
from onnx import TensorProto, helper
from rknn.api import RKNN

LIMIT_US = 150


def network(folder, elements):
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, elements])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [info("x")], [info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = f"{folder}/{elements}.onnx"
    onnx.save(model, path)
    return path


def ready(path, **where):
    api = RKNN()
    api.config(target_platform="rk3588", float_dtype="float32")
    assert api.load_onnx(path) == 0 and api.build(do_quantization=False) == 0 and api.init_runtime(**where) == 0
    return api


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
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
        finally:
            server.terminate()
            server.wait()
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
