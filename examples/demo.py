#!/usr/bin/env python3
"""The whole flow on the bundled networks: convert, quantize, export, run through the Python API and through a C program, compare.

Prints tables of what came out and leaves pictures with the results drawn in in out/.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pictures
from rknn.api import RKNN

HERE = pathlib.Path(__file__).resolve().parent
MODELS, OUT = HERE / "models", HERE.parent / "out"
COLOUR = sys.stdout.isatty()


def title(text):
    print(f"\n\033[1m{text}\033[0m" if COLOUR else f"\n{text}")


def table(header, rows):
    widths = [max(len(str(row[i])) for row in [header] + rows) for i in range(len(header))]
    line = lambda row: (
        "  " + "  ".join(str(v).ljust(w) if i == 0 else str(v).rjust(w) for i, (v, w) in enumerate(zip(row, widths)))
    )
    print(line(header), "  " + "  ".join("-" * w for w in widths), *map(line, rows), sep="\n")


class Failed(Exception):
    """Something the demo needs did not work; the text says what."""


def must(code, what):
    if code != 0:
        raise Failed(f"{what} failed")


def command(*args):
    """Standard output of a program; what it says when it fails goes on the terminal."""
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{pathlib.Path(str(args[0])).name} ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


CALIBRATION = 20  # pictures that ranges are taken from; answers are counted on the others


def convert(name, dtype, info):
    """Builds a bundled network, writes out/<name>.<dtype>.rknn; returns its path and the seconds it took."""
    start = time.perf_counter()
    rknn = RKNN()
    options = dict(float_dtype=dtype) if dtype != "int8" else {}
    rknn.config(target_platform="rk3588", mean_values=[[info["mean"]] * 3], std_values=[[info["std"]] * 3], **options)
    must(rknn.load_onnx(str(MODELS / f"{name}.onnx")), "load_onnx")
    dataset = OUT / f"{name}.txt"
    dataset.write_text("".join(f"{MODELS / 'pictures' / row['file']}\n" for row in info["pictures"][:CALIBRATION]))
    must(rknn.build(do_quantization=dtype == "int8", dataset=str(dataset) if dtype == "int8" else None), "build")
    path = OUT / f"{name}.{dtype}.rknn"
    must(rknn.export_rknn(str(path)), "export_rknn")
    rknn.release()
    return path, time.perf_counter() - start


def open_model(path):
    rknn = RKNN()
    must(rknn.load_rknn(str(path)), "load_rknn")
    must(rknn.init_runtime(), "init_runtime")
    return rknn


def run_all(rknn, images):
    """Outputs per picture and the mean milliseconds per picture."""
    rknn.inference([images[0][None]], data_format="nhwc")
    start = time.perf_counter()
    outputs = [rknn.inference([image[None]], data_format="nhwc") for image in images]
    return outputs, 1e3 * (time.perf_counter() - start) / len(images)


def cosine(a, b):
    a, b = (np.concatenate([v.ravel() for v in x]).astype(np.float64) for x in (a, b))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def build_c_program():
    binary = OUT / "classify"
    directory = lambda flag: command(pathlib.Path(sys.executable).parent / "openrknn", flag).strip()
    lib = directory("--libdir")
    command(
        "cc",
        "-O2",
        "-o",
        binary,
        HERE / "c" / "classify.c",
        f"-I{directory('--includedir')}",
        f"-L{lib}",
        "-lrknnrt",
        f"-Wl,-rpath,{lib}",
    )
    return binary


def classifier():
    info = json.loads((MODELS / "shapes.json").read_text())
    images = [pictures.read_png(MODELS / "pictures" / row["file"]) for row in info["pictures"][CALIBRATION:]]
    truth = [info["classes"].index(row["label"]) for row in info["pictures"][CALIBRATION:]]
    title(
        f"1. Classifier: {len(info['classes'])} shapes, {len(images)} labelled pictures of 64x64; int8 calibrated on {CALIBRATION} others"
    )
    results, rows = {}, []
    for dtype in ("float32", "float16", "int8"):
        path, seconds = convert("shapes", dtype, info)
        rknn = open_model(path)
        results[dtype], ms = run_all(rknn, images)
        rknn.release()
        best = [int(np.argmax(out[0])) for out in results[dtype]]
        same = np.mean([b == int(np.argmax(out[0])) for b, out in zip(best, results["float32"])])
        rows.append(
            [
                f"Python API, {dtype}",
                f"{np.mean(np.equal(best, truth)):.1%}",
                f"{same:.1%}",
                f"{np.mean([cosine(a, b) for a, b in zip(results[dtype], results['float32'])]):.6f}",
                f"{ms:.2f}",
                f"{path.stat().st_size / 1024:.0f}",
                f"{seconds:.2f}",
            ]
        )
    for i, image in enumerate(images):
        pictures.write_ppm(OUT / "ppm" / f"{i:03}.ppm", image)
    files = [OUT / "ppm" / f"{i:03}.ppm" for i in range(len(images))]
    lines = command(build_c_program(), OUT / "shapes.float16.rknn", *files).splitlines()
    answers = [line.split() for line in lines if not line.startswith("memory")]
    best = [int(a[1]) for a in answers]
    same = np.mean([b == int(np.argmax(out[0])) for b, out in zip(best, results["float32"])])
    rows.append(
        [
            "C program, float16",
            f"{np.mean(np.equal(best, truth)):.1%}",
            f"{same:.1%}",
            "",
            f"{np.mean([float(a[3]) for a in answers[1:]]):.2f}",
            "",
            "",
        ]
    )
    table(["run", "right answers", "same as float32", "cosine", "ms/picture", "file KiB", "convert s"], rows)
    bytes_equal = all(np.float32(a[2]) == out[0].max() for a, out in zip(answers, results["float16"]))
    weight, internal = map(int, lines[-1].split()[1:])
    print(
        f"  C and Python scores {'are identical' if bytes_equal else 'DIFFER'}; memory on the device: weights as the NPU packs them {weight / 1024:.0f} KiB, "
        f"activations {internal / 1024:.0f} KiB"
    )
    sheet = np.concatenate(
        [
            np.concatenate(
                [
                    pictures.draw_text(
                        pictures.enlarge(images[r * 6 + c], 2),
                        0,
                        0,
                        info["classes"][best[r * 6 + c]],
                        (90, 230, 90) if best[r * 6 + c] == truth[r * 6 + c] else (240, 80, 80),
                        1 + (c >= 0),
                    )
                    for c in range(6)
                ],
                1,
            )
            for r in range(4)
        ]
    )
    pictures.write_png(OUT / "shapes.png", sheet)
    return bytes_equal


def decode(outputs, strides, threshold=0.5):
    """Boxes (x0, y0, x1, y1), scores and classes of one picture from the per-stride maps, after non-maximum suppression."""
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    found = []
    for stride, out in zip(strides, outputs):
        for y, x in np.argwhere(sigmoid(out[0, 4]) > threshold):
            cell = out[0, :, y, x]
            cx, cy = (x + sigmoid(cell[0])) * stride, (y + sigmoid(cell[1])) * stride
            w, h = np.exp(cell[2:4]) * stride
            found.append((float(sigmoid(cell[4])), int(np.argmax(cell[5:])), [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]))
    kept = []
    for item in sorted(found, key=lambda f: -f[0]):
        if all(overlap(item[2], other[2]) < 0.45 for other in kept):
            kept.append(item)
    return kept


def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h)


def mean_average_precision(found, labelled, classes):
    """Mean over classes of the area under precision against recall; a box is right with an overlap of at least 0.5."""
    scores = []
    for label, name in enumerate(classes):
        truth = [[box for box, own in zip(row["boxes"], row["labels"]) if own == name] for row in labelled]
        total = sum(map(len, truth))
        if total == 0:
            continue
        ranked = sorted(
            ((score, i, box) for i, boxes in enumerate(found) for score, own, box in boxes if own == label), key=lambda f: -f[0]
        )
        right = []
        for _, i, box in ranked:
            match = max(truth[i], key=lambda t: overlap(t, box), default=None)
            right.append(match is not None and overlap(match, box) >= 0.5)
            if right[-1]:
                truth[i].remove(match)
        hits = np.cumsum(right)
        precision = hits / np.arange(1, len(right) + 1)
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        scores.append(float(np.sum(envelope[np.array(right, bool)])) / total)
    return float(np.mean(scores))


def detector():
    info = json.loads((MODELS / "boxes.json").read_text())
    labelled = info["pictures"][CALIBRATION:]
    images = [pictures.read_png(MODELS / "pictures" / row["file"]) for row in labelled]
    title(
        f"2. Detector: {len(images)} labelled pictures of 128x128, outputs on strides {info['strides']}; int8 calibrated on {CALIBRATION} others"
    )
    reference, rows = None, []
    for dtype in ("float32", "float16", "int8"):
        path, seconds = convert("boxes", dtype, info)
        rknn = open_model(path)
        outputs, ms = run_all(rknn, images)
        rknn.release()
        reference = reference or outputs
        hits = wrong = total = 0
        for row, out in zip(labelled, outputs):
            left = list(zip(row["boxes"], row["labels"]))
            total += len(left)
            for _, label, box in decode(out, info["strides"]):
                match = next((t for t in left if t[1] == info["classes"][label] and overlap(t[0], box) > 0.5), None)
                hits, wrong = hits + (match is not None), wrong + (match is None)
                if match:
                    left.remove(match)
        found = [decode(out, info["strides"], 0.05) for out in outputs]
        rows.append(
            [
                f"Python API, {dtype}",
                f"{mean_average_precision(found, labelled, info['classes']):.1%}",
                f"{hits}/{total}",
                wrong,
                f"{np.mean([cosine(a, b) for a, b in zip(outputs, reference)]):.6f}",
                f"{ms:.2f}",
                f"{path.stat().st_size / 1024:.0f}",
                f"{seconds:.2f}",
            ]
        )
    table(["run", "mAP50", "objects found", "wrong boxes", "cosine", "ms/picture", "file KiB", "convert s"], rows)
    tiles = []
    for image, out in zip(images[:6], outputs):
        canvas = pictures.enlarge(image, 3)
        for score, label, box in decode(out, info["strides"]):
            pictures.draw_box(canvas, [3 * v for v in box], pictures.PALETTE[label], f"{info['classes'][label]} {score:.0%}")
        tiles.append(canvas)
    pictures.write_png(OUT / "boxes.png", np.concatenate([np.concatenate(tiles[:3], 1), np.concatenate(tiles[3:], 1)]))


def main():
    (OUT / "ppm").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("RKNN_LOG_LEVEL", "0")
    terminal, log = sys.stderr, OUT / "demo.log"
    sys.stderr = open(log, "w")  # the toolkit's log lines; the tables stay readable
    try:
        identical = classifier()
        detector()
    except Exception as error:
        if not isinstance(error, Failed):
            traceback.print_exc()
        sys.stderr.close()
        sys.stderr = terminal
        reasons = [line[2:] for line in log.read_text().splitlines() if line.startswith("E ")]
        print(
            f"\nThe demo failed: {error or type(error).__name__}",
            *reasons[-5:],
            f"The whole log: {log}",
            sep="\n  ",
            file=terminal,
        )
        return 1
    print(
        f"\n  Pictures with the results drawn in: {OUT / 'shapes.png'}, {OUT / 'boxes.png'}; toolkit log: {OUT / 'demo.log'}\n"
        f"  Look inside: openrknn info {OUT / 'shapes.float16.rknn'}   or open the file in Netron"
    )
    return 0 if identical else 1


if __name__ == "__main__":
    sys.exit(main())
