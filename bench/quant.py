#!/usr/bin/env python3
"""Quantization quality beside other quantizers: runs the tasks of a corpus' quant_check.py and writes the table in docs/quantization.md.

  bench/quant.py --corpus FOLDER [--net NAME ...] [--algorithms normal kl_divergence mmse adaround] [--results FILE.json] [--table]

Results are kept in FILE.json (default: out/quant.json) and merged, so networks can be measured one at a time; --table only writes the table.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quantization.md"
BEGIN, END = "<!-- table: bench/quant.py -->", "<!-- end of table -->"

# What other quantizers reach on the same pictures, from the corpus' QUANT.md: ONNX Runtime 1.31.1 MinMax and NNCF 3.4.0 (its default).
OTHERS = {
    "mobilenetv2_features": (("0.9642", ""), ("0.9825", "")),
    "doc_orientation": (("0.9597", "18/20"), ("0.9918", "18/20")),
    "ppocr_cls": (("0.9997", "20/20"), ("1.0000", "20/20")),
    "ppocrv4_rec": (("0.9448", "6/20"), ("0.9695", "15/20")),
    "ppocrv4_det": (("0.9622", "0.908"), ("0.9869", "0.961")),
    "centerface": (("0.9865 0.9940 0.8966 0.9960", ""), ("0.9973 0.9985 0.9727 0.9991", "")),
    "ultraface_rfb320": (("1.0000 1.0000", "0.905"), ("1.0000 1.0000", "0.952")),
    "blazeface_front": (("0.9989 0.9759 0.9979 0.9944", ""), ("0.9992 0.9828 0.9985 0.9925", "")),
    "nanodet": (("0.9892 0.9929 0.9958 0.9965 0.9972 0.9985", "0.948"), ("", "")),
}
METRIC = {
    "doc_orientation": "top-1",
    "ppocr_cls": "top-1",
    "ppocrv4_rec": "same text",
    "ppocrv4_det": "mask IoU",
    "ultraface_rfb320": "box F1",
    "nanodet": "box F1",
}
POOLED = {"centerface"}


def figures(name, result):
    """Cosines and task metric as text."""
    if "error" in result:
        return "failed", ""
    cosines = " ".join(f"{v:.4f}" for v in result["pooled" if name in POOLED else "cos"])
    metric = (
        result.get("top1")
        or result.get("same_text")
        or result.get("mask_iou")
        or result.get("boxes", "").removeprefix("F1 ").split(" ")[0]
    )
    return cosines, str(metric)


def table(results, algorithms):
    head = ["network", "metric", "ONNX Runtime", "NNCF"] + [f"`{a}`" for a in algorithms] + ["build s"]
    rows = [head, ["---"] * len(head)]
    for name, others in OTHERS.items():
        cell = lambda pair: " / ".join(v for v in pair if v) or "-"
        mine = [figures(name, results[a][name]) if name in results.get(a, {}) else ("", "") for a in algorithms]
        seconds = " / ".join(f"{results[a][name].get('build_s', 0):.0f}" for a in algorithms if name in results.get(a, {}))
        rows.append([name, METRIC.get(name, "-")] + [cell(p) for p in (*others, *mine)] + [seconds])
    return "\n".join("| " + " | ".join(r) + " |" for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--net", nargs="*", default=[])
    parser.add_argument("--algorithms", nargs="*", default=["normal", "kl_divergence", "mmse", "adaround"])
    parser.add_argument("--results", default=str(ROOT / "out" / "quant.json"))
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    store = pathlib.Path(args.results)
    results = json.loads(store.read_text()) if store.exists() else {}
    for algorithm in () if args.table else args.algorithms:
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "out.json")
            command = [sys.executable, os.path.join(args.corpus, "quant_check.py"), "--algorithm", algorithm, "--json", out]
            if args.net:
                command += ["--net", *args.net]
            subprocess.run(command, check=True)
            results.setdefault(algorithm, {}).update(json.loads(pathlib.Path(out).read_text()))
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(results, indent=1))
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table(results, args.algorithms) + "\n" + END + rest.split(END)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
