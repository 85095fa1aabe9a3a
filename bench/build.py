#!/usr/bin/env python3
"""What it takes to bring a network to int8, beside NNCF with OpenVINO, in one run on one machine.

  bench/build.py [--check] [--models DIR] [--rounds N] [--pictures 20] [NAME ...]
  bench/build.py --large 100 500 2000 [--check]

A build is: read the .onnx, optimize it, quantize it on the pictures, which are PNG files of the network's size. Importing Python packages is left out on both sides.
Each build has a process of its own; the two take turns, and the figures are medians over the rounds of the time that passed and of the processor's time. --check ends with 1
where ours takes more than a fifth of the time. Networks are those of bench/run.py.

--large: time and peak memory of networks with so many MB of weights, products and convolutions, to float16 and int8, files included. --check ends with 1 where the
peak is more than 300 MiB above the weights.
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


LARGE = """
import sys, time
from rknn.api import RKNN
path, quantizes, sample = sys.argv[1], sys.argv[2] == "int8", sys.argv[3]
begin = time.perf_counter()
rknn = RKNN()
rknn.config(target_platform='rk3588')
assert rknn.load_onnx(path) == 0 and rknn.build(do_quantization=quantizes, dataset=sample if quantizes else None) == 0
assert rknn.export_rknn(path + '.rknn') == 0
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(time.perf_counter() - begin, int(status['VmHWM'].split()[0]) / 1024)
"""
ROOM_MIB = 300


def make_large(folder, megabytes, kind):
    """A chain of layers with `megabytes` of weights in a file beside the model, and a list with one sample for it."""
    import numpy as np
    import onnx

    rng, width, layers = np.random.default_rng(0), 2048, max(1, round(megabytes * 1e6 / (2048 * 2048 * 4)))
    shape = [width, width] if kind == "products" else [width, width, 1, 1]
    nodes, weights, value = [], [], "x"
    with open(pathlib.Path(folder) / "weights", "wb") as file:
        for i in range(layers):
            data = (rng.standard_normal(shape, np.float32) / np.float32(width**0.5)).tobytes()
            weight = onnx.TensorProto(
                name=f"w{i}", data_type=onnx.TensorProto.FLOAT, dims=shape, data_location=onnx.TensorProto.EXTERNAL
            )
            for key, text in (("location", "weights"), ("offset", str(file.tell())), ("length", str(len(data)))):
                weight.external_data.add(key=key, value=text)
            file.write(data)
            weights.append(weight)
            operator = dict(op_type="Gemm", transB=1) if kind == "products" else dict(op_type="Conv")
            nodes.append(onnx.helper.make_node(inputs=[value, f"w{i}"], outputs=[f"y{i}"], **operator))
            nodes.append(onnx.helper.make_node("Relu", [f"y{i}"], [f"z{i}"]))
            value = f"z{i}"
    ends = [1, width] if kind == "products" else [1, width, 4, 4]
    ports = ([onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ends)] for name in ("x", value))
    graph = onnx.helper.make_graph(nodes, kind, *ports, weights)
    path = pathlib.Path(folder) / "large.onnx"
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)]).SerializeToString())
    np.save(pathlib.Path(folder) / "sample.npy", rng.standard_normal(ends, np.float32))
    (pathlib.Path(folder) / "samples.txt").write_text("sample.npy\n")
    return path


def large_networks(sizes):
    """Whether one needs more memory than it may."""
    missed = False
    for megabytes in sizes:
        for kind in ("products", "convolutions"):
            with tempfile.TemporaryDirectory() as folder:
                path = make_large(folder, megabytes, kind)
                weights = (path.parent / "weights").stat().st_size / 2**20
                for form in ("float16", "int8"):
                    command = [sys.executable, "-c", LARGE, str(path), form, str(path.parent / "samples.txt")]
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode != 0:
                        raise RuntimeError(done.stderr[-2000:])
                    wall, peak = map(float, done.stdout.split()[-2:])
                    missed |= peak > weights + ROOM_MIB
                    print(
                        f"{weights:6.0f} MiB of {kind:12} to {form:7} {wall:6.2f} s, peak {peak:5.0f} MiB (limit {weights + ROOM_MIB:.0f})",
                        flush=True,
                    )
    return missed


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
    parser.add_argument("--large", type=int, nargs="+", metavar="MB")
    options = parser.parse_args()
    cpu, isa = run.machine()
    print(f"Machine: {cpu}, {os.cpu_count()} cores, {isa}")
    if options.large:
        return int(large_networks(options.large) and options.check)
    programs = {"ours": OURS}
    if importlib.util.find_spec("nncf"):
        programs["NNCF"] = THEIRS
    else:
        print("nncf is not installed: our own times are shown alone")
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
