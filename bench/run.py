#!/usr/bin/env python3
"""Speed, memory and size of OpenRKNN beside ONNX Runtime, in one run on one machine. Prints a table; --json FILE keeps the figures.

  bench/run.py [--check] [--int8] [--peers ort,openvino] [--models DIR] [--peak GMAC/S] [--threads 1 2] [--repeat N] [--all | NAME ...]

Figures that have a limit are shown with it; --check ends with 1 when one is missed.

--int8 compares the quantized network with our own float32 and with ONNX Runtime's int8 (quantize_static, QDQ, per channel from opset 13 on), both calibrated on the
same two random samples: it is about time, not accuracy. With --peers the engines stay loaded, each in a process of its own, and take turns; the figures are medians over
all turns. Both forms are compared, with --int8 that one alone. OpenVINO gets the same QDQ network; where ORKNN_ISA limits ours to avx2 or avx512, oneDNN is limited alike. A peer that refuses a network is left out of its row.
With --peak, the int8 rate of one core (orknn_bench's peak_int8 comes near it), each row says what share of it the multiply-accumulates of models.csv reach. Networks are the weightless structures of the benchmark set (filled with its fill.py), looked for in ../shared/models; pass --models for
another folder of .onnx files. Every timing is the median of N runs in a process of its own.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import zipfile

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
def model_inputs(path):
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    known = {t.name for t in graph.initializer}
    dtype = lambda i: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type).name
    return [(i.name, [d.dim_value or 1 for d in i.type.tensor_type.shape.dim], dtype(i)) for i in graph.input if i.name not in known]
def samples(path, k):
    names = []
    for i, (_, shape, dtype) in enumerate(model_inputs(path)):
        names.append(f'{path}.{k}.{i}.npy'); np.save(names[-1], feed(np.random.default_rng(k), shape, dtype))
    return names
path, repeat, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
"""
OURS = (
    FEEDS
    + """
from rknn.api import RKNN
import rknn._openrknn as core
r = RKNN(); r.config(target_platform='rk3588', float_dtype='float32' if mode == 'int8' else mode)
dataset = None
if mode == 'int8':
    dataset = f'{path}.txt'
    with open(dataset, 'w') as lines: lines.writelines(' '.join(samples(path, k)) + '\\n' for k in range(2))
start = time.perf_counter(); assert r.load_onnx(path) == 0; assert r.build(do_quantization=mode == 'int8', dataset=dataset) == 0; build = time.perf_counter() - start
peak = int(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]) / 1024
out = f'{path}.{mode}.rknn'; assert r.export_rknn(out) == 0; r.release()
start = time.perf_counter(); s = core.LoadedModel.from_file(out).make_session(core.CustomOps()); load = time.perf_counter() - start
feeds = [(feed(rng, p['shape'], 'float32' if mode == 'int8' else p['dtype']), 'nchw', False) for p in s.inputs()]
np.savez(f'{path}.{mode}.npz', *s.run(feeds))
print(json.dumps(dict(ms=median_ms(lambda: s.run(feeds), repeat), build=build, peak=peak, load=1e3 * load, size=os.path.getsize(out) / 2**20)))
"""
)
THEIRS = (
    FEEDS
    + """
import onnxruntime as ort
o = ort.SessionOptions(); o.intra_op_num_threads = int(mode); o.inter_op_num_threads = 1
s = ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])
types = {'tensor(float)': 'float32', 'tensor(int64)': 'int64', 'tensor(int32)': 'int32', 'tensor(bool)': 'bool'}
feeds = {i.name: feed(rng, i.shape, types[i.type]) for i in s.get_inputs()}
np.savez(f'{path}.ort.npz', *s.run(None, feeds))
print(json.dumps(dict(ms=median_ms(lambda: s.run(None, feeds), repeat), version=ort.__version__)))
"""
)
THEIRS_INT8 = (
    FEEDS
    + """
import logging, onnxruntime as ort
from onnxruntime import quantization as q
logging.disable(logging.WARNING)
class Reader(q.CalibrationDataReader):
    def __init__(self): self.left = iter([dict(zip([n for n, *_ in model_inputs(path)], map(np.load, samples(path, k)))) for k in range(2)])
    def get_next(self): return next(self.left, None)
out = f'{path}.qdq.onnx'
if not os.path.exists(out):
    import onnx
    opset = next(o.version for o in onnx.load(path, load_external_data=False).opset_import if not o.domain)
    q.quantize_static(path, out, Reader(), quant_format=q.QuantFormat.QDQ, per_channel=opset >= 13, activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8)
o = ort.SessionOptions(); o.intra_op_num_threads = int(mode); o.inter_op_num_threads = 1
s = ort.InferenceSession(out, o, providers=['CPUExecutionProvider'])
feeds = {n: feed(rng, shape, dtype) for n, shape, dtype in model_inputs(path)}
print(json.dumps(dict(ms=median_ms(lambda: s.run(None, feeds), repeat), version=ort.__version__)))
"""
)


# An engine that stays loaded: every line it reads is a number of runs, whose times in ms it prints.
TURNS = """
def take_turns(call):
    call(); print(json.dumps([]), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter(); call(); times.append(1e3 * (time.perf_counter() - start))
        print(json.dumps(times), flush=True)
"""
ENGINES = {
    "ours": FEEDS
    + TURNS
    + """
import rknn._openrknn as core
s = core.LoadedModel.from_file(f'{path}.{sys.argv[4]}.rknn').make_session(core.CustomOps())
feeds = [(feed(rng, p['shape'], 'float32' if sys.argv[4] == 'int8' else p['dtype']), 'nchw', False) for p in s.inputs()]
take_turns(lambda: s.run(feeds))
""",
    "ort": FEEDS
    + TURNS
    + """
import onnxruntime as ort
o = ort.SessionOptions(); o.intra_op_num_threads = int(mode); o.inter_op_num_threads = 1
s = ort.InferenceSession(path + ('.qdq.onnx' if sys.argv[4] == 'int8' else ''), o, providers=['CPUExecutionProvider'])
types = {'tensor(float)': 'float32', 'tensor(int64)': 'int64', 'tensor(int32)': 'int32', 'tensor(bool)': 'bool'}
feeds = {i.name: feed(rng, i.shape, types[i.type]) for i in s.get_inputs()}
take_turns(lambda: s.run(None, feeds))
""",
    "openvino": FEEDS
    + TURNS
    + """
import openvino as ov
core = ov.Core()
# Left alone it computes float32 networks in bfloat16 where the machine has it.
settings = {} if sys.argv[4] == 'int8' else {'INFERENCE_PRECISION_HINT': 'f32'}
settings.update({'INFERENCE_NUM_THREADS': int(mode), 'PERFORMANCE_HINT': 'LATENCY', 'NUM_STREAMS': 1})
c = core.compile_model(core.read_model(path + ('.qdq.onnx' if sys.argv[4] == 'int8' else '')), 'CPU', settings)
r = c.create_infer_request()
feeds = {i.get_any_name(): feed(rng, list(i.get_shape()), i.get_element_type().to_dtype().name) for i in c.inputs}
take_turns(lambda: r.infer(feeds))
""",
}
ONEDNN_LIMITS = {"avx2": "AVX2", "avx512": "AVX512_CORE"}


class Engine:
    """A process that runs one network when it is asked to."""

    def __init__(self, name, path, threads, form):
        limit = ONEDNN_LIMITS.get(os.environ.get("ORKNN_ISA", ""))
        env = dict(os.environ, ORKNN_THREADS=str(threads), RKNN_LOG_LEVEL="0", **({"ONEDNN_MAX_CPU_ISA": limit} if limit else {}))
        command = [sys.executable, "-c", ENGINES[name], str(path), "0", str(threads), form]
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.times = []
        self._read()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("["):
                self.times += json.loads(line)
                return
        raise RuntimeError(self.process.stderr.read()[-2000:])

    def turn(self, runs):
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        self._read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def median(self):
        return sorted(self.times)[len(self.times) // 2]


def macs_of(name, models):
    """Multiply-accumulates by the list beside the networks; None where it does not name this one."""
    table = models / "models.csv"
    if not table.exists():
        return None
    with open(table, newline="") as lines:
        row = next((r for r in csv.DictReader(lines) if next(iter(r.values())).split(".onnx")[0] == name), None)
    return 1e9 * float(row["gmacs"]) if row else None


def compare_peers(name, path, peers, threads, repeat, form, peak_rate=None):
    """`peak_rate`: multiply-accumulates of the network over those of all threads in a millisecond, if known."""
    run(OURS, path, 1, form, threads=threads)
    if form == "int8":
        run(THEIRS_INT8, path, 1, threads, threads=threads)
    engines = {}
    try:
        engines["ours"] = Engine("ours", path, threads, form)
        for peer in peers:
            try:
                engines[peer] = Engine(peer, path, threads, form)
            except RuntimeError as error:
                print(f"{name:22} {form:7} {peer} does not run it: {str(error).strip().splitlines()[-1]}", flush=True)
        for _ in range(5):
            for engine in engines.values():
                engine.turn(max(1, repeat // 5))
    finally:
        for engine in engines.values():
            engine.close()
    row = dict(model=name, form=form, threads=threads, **{f"{engine}_ms": e.median() for engine, e in engines.items()})
    peers = [peer for peer in peers if peer in engines]
    if not peers:
        raise RuntimeError("no peer runs it")
    row["ratio"] = min(row[f"{peer}_ms"] for peer in peers) / row["ours_ms"]
    if peak_rate:
        row["share_of_peak"] = peak_rate / row["ours_ms"]
    print(
        f"{name:22} {form:7} {threads} thread(s): ours {row['ours_ms']:8.2f} ms, "
        + ", ".join(f"{peer} {row[f'{peer}_ms']:8.2f} ms" for peer in peers)
        + f"; best peer / ours {row['ratio']:.2f}"
        + (f"; {100 * row['share_of_peak']:.0f} % of the peak" if peak_rate else ""),
        flush=True,
    )
    return row


def run(code, *args, threads):
    env = dict(os.environ, ORKNN_THREADS=str(threads), RKNN_LOG_LEVEL="0")
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def worst_cosine(ours, theirs):
    """The smallest cosine over pairs of outputs; NaN when one is not a number."""
    import numpy as np

    worst = 1.0
    for x, y in zip(ours, theirs):
        x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
        if x.any() or y.any():
            value = float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) + 1e-30))
            worst = value if math.isnan(value) or value < worst else worst
        if math.isnan(worst):
            return worst
    return worst


def cosine(path, ours):
    """Worst cosine over the outputs of our run (`ours`: float32 or float16) and ONNX Runtime's."""
    import numpy as np

    a, b = np.load(f"{path}.{ours}.npz"), np.load(f"{path}.ort.npz")
    return worst_cosine([a[key] for key in b.files], [b[key] for key in b.files])


class Limits:
    """Figures that must not leave their limit. NaN leaves every limit."""

    def __init__(self):
        self.missed = []

    def below(self, what, value, limit, unit=""):
        return self._judge(what, value, f"limit {limit:g}{unit}", value <= limit)

    def above(self, what, value, limit, unit=""):
        return self._judge(what, value, f"at least {limit:g}{unit}", value >= limit)

    def _judge(self, what, value, limit, holds):
        if not holds:
            self.missed.append(f"{what}: {value:g} ({limit})")
        return f"({limit}{'' if holds else ', MISSED'})"


def wheel_mib(package):
    """Size of the wheel the package came from: its files, packed as a wheel packs them."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as wheel:
            for path in sorted(package.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    wheel.write(path, path.relative_to(package.parent))
        return file.seek(0, os.SEEK_END) / 2**20


def find(name, models, folder):
    """Path of the complete network, filled from its structure when there is only that; None when there is neither."""
    path, structure = models / f"{name}.onnx", models / f"{name}.onnx.structure"
    if path.exists():
        return path
    if not structure.exists():
        return None
    subprocess.run([sys.executable, models / "fill.py", structure, "-o", folder], check=True, capture_output=True)
    return pathlib.Path(folder) / f"{name}.onnx"


def compare_int8(name, path, threads, repeat):
    float32 = run(OURS, path, repeat, "float32", threads=threads)
    int8 = run(OURS, path, repeat, "int8", threads=threads)
    theirs = run(THEIRS_INT8, path, repeat, threads, threads=threads)
    print(
        f"{name:22} {threads} thread(s): int8 {int8['ms']:8.2f} ms, float32 {float32['ms']:8.2f} ms ({float32['ms'] / int8['ms']:.2f} x), "
        f"ORT {theirs['version']} int8 {theirs['ms']:8.2f} ms ({theirs['ms'] / int8['ms']:.2f} x), .rknn {int8['size']:.1f} MiB",
        flush=True,
    )
    return dict(
        model=name,
        threads=threads,
        int8_ms=int8["ms"],
        float32_ms=float32["ms"],
        ort_int8_ms=theirs["ms"],
        build_s=int8["build"],
        rknn_mib=int8["size"],
    )


def load_limit(limits, name, row):
    """50 ms for a file of 100 MB; smaller ones have the same, larger ones in proportion."""
    return limits.below(f"{name} load", row["load_ms"], 50 * max(1, row["rknn_mib"] * 2**20 / 100e6), " ms")


def machine():
    """Name of the processor, and the widest of its vector instructions that we use."""
    cpu = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine()
    )
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "")
    isa = (
        "AVX-512 VNNI"
        if "avx512_vnni" in flags
        else "AVX-512"
        if "avx512f" in flags
        else "AVX2"
        if "avx2" in flags
        else "baseline"
    )
    return cpu, isa


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=DEFAULT)
    parser.add_argument("--all", action="store_true", help="every network of the folder")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--int8", action="store_true", help="int8 beside float32 and ONNX Runtime int8")
    parser.add_argument(
        "--peers",
        help="peers that take turns with ours, of ort and openvino, separated by commas; float32 and int8, with --int8 that alone",
    )
    parser.add_argument(
        "--peak", type=float, help="GMAC/s of one core in int8: rows of --peers --int8 say what share of it is reached"
    )
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="end with 1 when a limit is missed")
    args = parser.parse_args()
    if args.all:
        args.names = sorted({p.name.split(".onnx")[0] for p in args.models.glob("*.onnx*")})
    cpu, isa = machine()
    print(f"Machine: {cpu}, {os.cpu_count()} cores, {isa}")
    rows, version, failures, limits = [], "", 0, Limits()
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:  # one network at a time: filled, the whole set takes gigabytes
            path = find(name, args.models, folder)
            if path is None:
                print(f"{name}: no such network in {args.models}, skipped")
                continue
            for threads in args.threads:
                try:
                    if args.peers:
                        for form in ["int8"] if args.int8 else ["float32", "int8"]:
                            macs = macs_of(name, args.models) if args.peak and form == "int8" else None
                            rate = macs / (1e6 * args.peak * threads) if macs else None
                            rows.append(compare_peers(name, path, args.peers.split(","), threads, args.repeat, form, rate))
                        continue
                    if args.int8:
                        rows.append(compare_int8(name, path, threads, args.repeat))
                        continue
                    ours = run(OURS, path, args.repeat, "float32", threads=threads)
                    theirs = run(THEIRS, path, args.repeat, threads, threads=threads)
                    half = run(OURS, path, max(3, args.repeat // 3), "float16", threads=threads)
                except RuntimeError as error:
                    failures += 1
                    print(f"{name:22} {threads} thread(s): failed\n{error}", flush=True)
                    continue
                version = theirs["version"]
                rows.append(
                    dict(
                        model=name,
                        threads=threads,
                        ours_ms=ours["ms"],
                        ort_ms=theirs["ms"],
                        ratio=ours["ms"] / theirs["ms"],
                        fp16_ms=half["ms"],
                        cosine=cosine(path, "float32"),
                        fp16_cosine=cosine(path, "float16"),
                        build_s=ours["build"],
                        peak_mib=ours["peak"],
                        weights_mib=path.stat().st_size / 2**20,
                        load_ms=ours["load"],
                        rknn_mib=ours["size"],
                    )
                )
                r = rows[-1]
                print(
                    f"{name:22} {threads} thread(s): ours {r['ours_ms']:8.2f} ms, ORT {r['ort_ms']:8.2f} ms, ratio {r['ratio']:.2f}, fp16 {r['fp16_ms']:8.2f} ms, "
                    f"cosine {r['cosine']:.7f} {limits.above(name + ' cosine', r['cosine'], 0.99999)} (fp16 {r['fp16_cosine']:.5f}), "
                    f"build {r['build_s']:.2f} s, peak {r['peak_mib']:.0f} MiB {limits.below(name + ' peak', r['peak_mib'], 2 * r['weights_mib'] + 100e6 / 2**20, ' MiB')} "
                    f"(weights {r['weights_mib']:.0f}), load {r['load_ms']:.1f} ms {load_limit(limits, name, r)}, .rknn {r['rknn_mib']:.1f} MiB",
                    flush=True,
                )
    if not rows:
        return 1
    if args.int8 or args.peers:
        for threads, form in [(t, f) for t in args.threads for f in ("float32", "int8")] if args.peers else []:
            ratios = [r["ratio"] for r in rows if r["threads"] == threads and r["form"] == form]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                print(f"geometric mean of best peer / ours, {form} at {threads} thread(s): {mean:.2f}, lowest {min(ratios):.2f}")
        if args.json:
            args.json.write_text(json.dumps(dict(machine=cpu, isa=isa, rows=rows), indent=1))
        return 1 if failures else 0
    for threads in args.threads:
        ratios = [r["ratio"] for r in rows if r["threads"] == threads]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"geometric mean of ours / ONNX Runtime {version} at {threads} thread(s): {mean:.2f} {limits.below(f'time beside ONNX Runtime at {threads} thread(s)', mean, 2, ' x')}"
        )
    import rknn

    package = pathlib.Path(rknn.__file__).parent
    library = next(package.rglob("librknnrt.so"))
    seconds = []
    for statement in ("from rknn.api import RKNN", "import numpy"):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        seconds.append(time.perf_counter() - start)
    total = sum(f.stat().st_size for f in package.rglob("*") if f.is_file()) / 2**20
    wheel, library_mib, most = wheel_mib(package), library.stat().st_size / 2**20, 15e6 / 2**20
    print(
        f"import rknn.api {seconds[0]:.2f} s {limits.below('import', seconds[0], 0.3, ' s')} (NumPy alone {seconds[1]:.2f} s); librknnrt.so {library_mib:.1f} MiB "
        f"{limits.below('librknnrt.so', library_mib, most, ' MiB')}; wheel {wheel:.1f} MiB {limits.below('wheel', wheel, most, ' MiB')}; installed package {total:.1f} MiB"
    )
    if args.json:
        args.json.write_text(
            json.dumps(
                dict(
                    machine=cpu,
                    isa=isa,
                    rows=rows,
                    wheel_mib=wheel,
                    library_mib=library_mib,
                    import_s=seconds[0],
                    missed=limits.missed,
                ),
                indent=1,
            )
        )
    for text in limits.missed:
        print(f"limit missed: {text}")
    return 1 if failures or args.check and limits.missed else 0


if __name__ == "__main__":
    sys.exit(main())
