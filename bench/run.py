#!/usr/bin/env python3
"""Speed, memory and size of OpenRKNN beside ONNX Runtime, in one run on one machine. Prints a table; --json FILE keeps the figures.

  bench/run.py [--models DIR] [--threads 1 2] [--repeat N] [--all | NAME ...]

Networks are the weightless structures of the benchmark set (filled with its fill.py), looked for in ../shared/models; pass --models for
another folder of .onnx files. Every timing is the median of N runs in a process of its own.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = ["mobilenet_v2", "resnet50", "yolov8n", "vit_b_16"]

FEEDS = """
import sys, time, os, json, numpy as np
def feed(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype) if dtype.startswith('float') else np.zeros(shape, dtype)
def median_ms(call, repeat):
    call(); times = []
    for _ in range(repeat):
        start = time.perf_counter(); call(); times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[len(times) // 2]
path, repeat, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
"""
OURS = FEEDS + """
from rknn.api import RKNN
import rknn._openrknn as core
r = RKNN(); r.config(target_platform='rk3588', float_dtype=mode)
start = time.perf_counter(); assert r.load_onnx(path) == 0; assert r.build(do_quantization=False) == 0; build = time.perf_counter() - start
peak = int(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]) / 1024
out = f'{path}.{mode}.rknn'; assert r.export_rknn(out) == 0; r.release()
start = time.perf_counter(); s = core.Session.from_file(out); load = time.perf_counter() - start
feeds = [(feed(rng, p['shape'], p['dtype']), 'nchw', False) for p in s.inputs()]
np.savez(f'{path}.{mode}.npz', *s.run(feeds))
print(json.dumps(dict(ms=median_ms(lambda: s.run(feeds), repeat), build=build, peak=peak, load=1e3 * load, size=os.path.getsize(out) / 2**20)))
"""
THEIRS = FEEDS + """
import onnxruntime as ort
o = ort.SessionOptions(); o.intra_op_num_threads = int(mode); o.inter_op_num_threads = 1
s = ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])
types = {'tensor(float)': 'float32', 'tensor(int64)': 'int64', 'tensor(int32)': 'int32', 'tensor(bool)': 'bool'}
feeds = {i.name: feed(rng, i.shape, types[i.type]) for i in s.get_inputs()}
np.savez(f'{path}.ort.npz', *s.run(None, feeds))
print(json.dumps(dict(ms=median_ms(lambda: s.run(None, feeds), repeat), version=ort.__version__)))
"""


def run(code, *args, threads):
    env = dict(os.environ, ORKNN_THREADS=str(threads), RKNN_LOG_LEVEL="0")
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def cosine(path, ours):
    """Worst cosine over the outputs of our run (`ours`: float32 or float16) and ONNX Runtime's."""
    import numpy as np
    a, b = np.load(f"{path}.{ours}.npz"), np.load(f"{path}.ort.npz")
    worst = 1.0
    for key in b.files:
        x, y = a[key].astype(np.float64).ravel(), b[key].astype(np.float64).ravel()
        if x.any() or y.any():
            worst = min(worst, float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) + 1e-30)))
    return worst


def find(name, models, folder):
    """Path of the complete network, filled from its structure when there is only that; None when there is neither."""
    path, structure = models / f"{name}.onnx", models / f"{name}.onnx.structure"
    if path.exists():
        return path
    if not structure.exists():
        return None
    subprocess.run([sys.executable, models / "fill.py", structure, "-o", folder], check=True, capture_output=True)
    return pathlib.Path(folder) / f"{name}.onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=DEFAULT)
    parser.add_argument("--all", action="store_true", help="every network of the folder")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if args.all:
        args.names = sorted({p.name.split(".onnx")[0] for p in args.models.glob("*.onnx*")})
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "")
    isa = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "baseline"
    print(f"Machine: {cpu}, {os.cpu_count()} cores, {isa}")
    rows, version, failures = [], "", 0
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:  # one network at a time: filled, the whole set takes gigabytes
            path = find(name, args.models, folder)
            if path is None:
                print(f"{name}: no such network in {args.models}, skipped")
                continue
            for threads in args.threads:
                try:
                    ours = run(OURS, path, args.repeat, "float32", threads=threads)
                    theirs = run(THEIRS, path, args.repeat, threads, threads=threads)
                    half = run(OURS, path, max(3, args.repeat // 3), "float16", threads=threads)
                except RuntimeError as error:
                    failures += 1
                    print(f"{name:22} {threads} thread(s): failed\n{error}", flush=True)
                    continue
                version = theirs["version"]
                rows.append(dict(model=name, threads=threads, ours_ms=ours["ms"], ort_ms=theirs["ms"], ratio=ours["ms"] / theirs["ms"], fp16_ms=half["ms"],
                                 cosine=cosine(path, "float32"), fp16_cosine=cosine(path, "float16"), build_s=ours["build"], peak_mib=ours["peak"],
                                 weights_mib=path.stat().st_size / 2**20, load_ms=ours["load"], rknn_mib=ours["size"]))
                r = rows[-1]
                print(f"{name:22} {threads} thread(s): ours {r['ours_ms']:8.2f} ms, ORT {r['ort_ms']:8.2f} ms, ratio {r['ratio']:.2f}, fp16 {r['fp16_ms']:8.2f} ms, "
                      f"cosine {r['cosine']:.7f} (fp16 {r['fp16_cosine']:.5f}), build {r['build_s']:.2f} s, peak {r['peak_mib']:.0f} MiB "
                      f"(weights {r['weights_mib']:.0f}), load {r['load_ms']:.1f} ms, .rknn {r['rknn_mib']:.1f} MiB", flush=True)
    if not rows:
        return 1
    for threads in args.threads:
        ratios = [r["ratio"] for r in rows if r["threads"] == threads]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of ours / ONNX Runtime {version} at {threads} thread(s): {mean:.2f}")
    import rknn
    package = pathlib.Path(rknn.__file__).parent
    library = next(package.rglob("librknnrt.so"))
    seconds = []
    for statement in ("from rknn.api import RKNN", "import numpy"):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        seconds.append(time.perf_counter() - start)
    total = sum(f.stat().st_size for f in package.rglob("*") if f.is_file())
    print(f"import rknn.api {seconds[0]:.2f} s (NumPy alone {seconds[1]:.2f} s); librknnrt.so {library.stat().st_size / 2**20:.1f} MiB; "
          f"installed package {total / 2**20:.1f} MiB")
    if args.json:
        args.json.write_text(json.dumps(dict(machine=cpu, isa=isa, rows=rows), indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
