#!/usr/bin/env python3
"""What it takes to bring a network to int8, beside NNCF with OpenVINO, in one run on one machine.

  bench/build.py [--check] [--models DIR] [--rounds N] [--pictures 20] [NAME ...]

A build is: read the .onnx, optimize it, quantize it on the pictures, which are PNG files of the network's size. Importing Python packages is left out on both sides.
Each build has a process of its own; the two take turns, and the figures are medians over the rounds of the time that passed and of the processor's time. --check ends with 1
where ours takes more than a fifth of the time. Networks are those of bench/run.py.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import run

LIMIT = 0.2
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
CLOCK = """
import json, sys, time
path, pictures, mean, std = sys.argv[1], sys.argv[2:-1], *json.loads(sys.argv[-1])
def clock(): return time.perf_counter(), time.process_time()
def report(begin): print(json.dumps([b - a for a, b in zip(begin, clock())]))
"""
OURS = (
    CLOCK
    + """
from rknn.api import RKNN
begin = clock()
rknn = RKNN()
rknn.config(target_platform='rk3588', mean_values=[mean], std_values=[std])
assert rknn.load_onnx(path) == 0 and rknn.build(do_quantization=True, dataset=pictures) == 0
report(begin)
"""
)
THEIRS = (
    CLOCK
    + """
import nncf, numpy as np, openvino
from PIL import Image
def normalized(picture):
    pixels = np.asarray(Image.open(picture).convert('RGB'), np.float32)
    return ((pixels - np.array(mean, np.float32)) / np.array(std, np.float32)).transpose(2, 0, 1)[None]
begin = clock()
nncf.quantize(openvino.Core().read_model(path), nncf.Dataset(pictures, normalized), subset_size=len(pictures))
report(begin)
"""
)


def make_pictures(folder, count, shape):
    """Coarse colours with noise over them: values of all sizes, and edges."""
    import numpy as np
    from PIL import Image

    _, channels, height, width = shape
    if channels != 3:
        raise SystemExit(f"pictures have 3 channels, the network's input has {channels}")
    paths, rng = [], np.random.default_rng(0)
    for i in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (14, 14, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
        noisy = np.asarray(coarse, np.float32) + rng.normal(0, 12, (height, width, 3))
        paths.append(str(pathlib.Path(folder) / f"{i:02}.png"))
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(paths[-1])
    return paths


def input_shape(path):
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    known = {t.name for t in graph.initializer}
    value = next(i for i in graph.input if i.name not in known)
    return [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]


def seconds(code, path, pictures):
    command = [sys.executable, "-c", code, str(path), *pictures, json.dumps([MEAN, STD])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["mobilenet_v2", "resnet50"])
    parser.add_argument("--models", type=pathlib.Path, default=run.ROOT.parent / "shared" / "models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    programs = {"ours": OURS}
    if importlib.util.find_spec("nncf"):
        programs["NNCF"] = THEIRS
    else:
        print("nncf is not installed: our own times are shown alone")
    cpu, isa = run.machine()
    print(f"Machine: {cpu}, {os.cpu_count()} cores, {isa}")
    missed = False
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            path = run.find(name, options.models, folder)
            if path is None:
                print(f"{name}: no such network in {options.models}, skipped")
                continue
            pictures = make_pictures(folder, options.pictures, input_shape(path))
            rounds = {side: [] for side in programs}
            for _ in range(options.rounds):
                for side, code in programs.items():
                    rounds[side].append(seconds(code, path, pictures))
        medians = {side: [statistics.median(r[i] for r in times) for i in (0, 1)] for side, times in rounds.items()}
        text = ", ".join(f"{side} {wall:.2f} s (processor {cpu:.2f} s)" for side, (wall, cpu) in medians.items())
        if "NNCF" in medians:
            ratios = [a / b for a, b in zip(medians["ours"], medians["NNCF"])]
            missed |= ratios[0] > LIMIT
            text += f": {ratios[0]:.2f} of its time (limit {LIMIT}), {ratios[1]:.2f} of its processor time"
        print(f"{name:16} {text}", flush=True)
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())
