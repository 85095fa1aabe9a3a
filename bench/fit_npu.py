#!/usr/bin/env python3
"""Fits the speed constants of the chips to published speeds and reports what is left.

The features (steps of every layer: work, cycles, bytes, ...) come from our own binary, `openrknn profile --json`; the formula below is the one
of `compile::time_of`, and the script checks that both give the same milliseconds. A constant has a prior in log space (PRIOR, CHIPS), so that what the
published networks do not determine stays plausible; the loss is robust (Cauchy), so that networks the model does not understand do not bend
the constants. No network is treated by name.

  bench/fit_npu.py --anchors SPEEDS.csv --models FOLDER            report, leaving out whole networks and whole operator classes
  bench/fit_npu.py ... --write src/platform/speed.inc --document docs/npu_model.md                also store the constants and the table
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import re
import subprocess
import sys
import time

import numpy

RELEASE = "model_zoo_README_v2.3.2"
# Constants and their priors; per chip below where the chip is known to differ (clock, bus, CPU, generation).
PRIOR = dict(
    conv=0.87,
    pointwise=0.8,
    depthwise=1,
    half=0.5,
    stem=0.5,
    feature_gbs=10,
    weight_gbs=10,
    move_gbs=10,
    layer_us=5,
    table_per_cycle=1.7,
    pool_per_cycle=1.2,
    global_pool_per_cycle=1,
    softmax_ns=2,
    attention_ns=1,
    norm_ns=2,
    transpose_ns=1,
    reshape_ns=0.4,
    cpu_layer_us=60,
    cpu_ns=3,
    cpu_transpose_ns=1,
    cpu_mac_ns=1,
    space_to_batch_ns=2.5,
    narrow_ns=30,
    overlap=4,
)
CHIPS = {
    "rk3588": ("kSpeedWide", "RK3588_1core", {}),
    "rk3576": ("kSpeedNewer", "RK3576_1core", dict(table_per_cycle=4)),
    "rk3562": (
        "kSpeedMedium",
        "RK3562",
        dict(
            table_per_cycle=0.87,
            feature_gbs=5,
            weight_gbs=5,
            move_gbs=5,
            cpu_ns=6,
            cpu_mac_ns=2,
            cpu_transpose_ns=2,
            transpose_ns=1.5,
        ),
    ),
    "rk3566": (
        "kSpeedOld",
        "RK3566_RK3568",
        dict(
            table_per_cycle=0.7,
            feature_gbs=4,
            weight_gbs=3.3,
            move_gbs=4,
            softmax_ns=30,
            cpu_ns=8,
            cpu_mac_ns=2.5,
            conv=0.76,
            pointwise=0.5,
            cpu_transpose_ns=15,
            transpose_ns=2,
            space_to_batch_ns=8,
            narrow_ns=80,
        ),
    ),
    "rv1126": (
        "kSpeedCamera",
        "RV1126",
        dict(
            conv=0.4,
            pointwise=0.15,
            depthwise=0.5,
            half=0.02,
            feature_gbs=8,
            weight_gbs=5,
            move_gbs=3,
            table_per_cycle=2.4,
            softmax_ns=50,
            norm_ns=60,
            transpose_ns=5,
            cpu_transpose_ns=5,
            cpu_ns=2,
            cpu_layer_us=10,
            cpu_mac_ns=0.2,
            space_to_batch_ns=8,
        ),
    ),
    "rv1109": (
        "kSpeedCameraSlow",
        "RV1109",
        dict(
            conv=0.44,
            pointwise=0.16,
            depthwise=0.5,
            half=0.02,
            feature_gbs=6,
            weight_gbs=4,
            move_gbs=2,
            table_per_cycle=2.6,
            softmax_ns=70,
            norm_ns=60,
            transpose_ns=7,
            cpu_transpose_ns=7,
            cpu_ns=3,
            cpu_layer_us=10,
            cpu_mac_ns=0.3,
            space_to_batch_ns=8,
        ),
    ),
    "rk1808": (
        "kSpeedFirst",
        "RK1808",
        dict(
            conv=0.6,
            pointwise=0.14,
            depthwise=0.35,
            half=0.05,
            feature_gbs=7,
            weight_gbs=3,
            move_gbs=4,
            layer_us=40,
            table_per_cycle=10,
            softmax_ns=70,
            norm_ns=20,
            transpose_ns=7,
            cpu_transpose_ns=7,
            cpu_ns=2,
            cpu_layer_us=50,
            cpu_mac_ns=0.2,
            space_to_batch_ns=30,
        ),
    ),
}
KEYS = list(PRIOR)
LEAST = {key: value / 40 for key, value in PRIOR.items()} | dict(
    feature_gbs=1, weight_gbs=1, move_gbs=0.5, stem=0.2, pointwise=0.1, conv=0.2, layer_us=0.2, overlap=1.5, half=0.002
)
MOST = {key: value * 60 for key, value in PRIOR.items()} | dict(
    feature_gbs=34, weight_gbs=34, move_gbs=34, conv=1, pointwise=1.05, stem=1, depthwise=2, half=1.3, overlap=10
)
PRIOR_WIDTH, PRIOR_WEIGHT, ROBUST = (
    0.4,
    3e-4,
    0.04,
)  # of log constants; of the prior against one network; residual where the loss turns flat
WORKS = [
    "conv",
    "pointwise",
    "stem",
    "depthwise",
    "matmul",
    "move",
    "pool",
    "global_pool",
    "norm",
    "attention",
    "softmax",
    "transpose",
    "reshape",
    "space_to_batch",
    "narrow",
    "cpu_macs",
    "cpu_elements",
]

# Operator classes whose networks can be left out of a fit together: steps by work, "cpu" for those that are not on the NPU.
CLASSES = {
    "depthwise convolutions": ["depthwise"],
    "pools": ["pool"],
    "global means": ["global_pool"],
    "norms": ["norm"],
    "attention and softmax": ["attention", "softmax"],
    "layout changes of the NPU": ["transpose", "reshape"],
    "dilated depthwise": ["space_to_batch"],
    "short last axes": ["narrow"],
    "leftovers of CPU or shader": ["cpu"],
    "float16": ["half"],
}
SHARE = 0.03  # of the time, from which on a network belongs to a class


class Chip:
    """The steps of every network on one chip as columns, and the formula over them."""

    def __init__(self, name, clock_mhz, first_generation):
        self.name, self.clock, self.first_generation = name, clock_mhz, first_generation
        self.networks, self.published, self.told, self._rows, self._owner = [], [], [], [], []

    def add(self, network, dtype, microseconds, profile):
        index = len(self.networks)
        self.networks.append((network, dtype))
        self.published.append(microseconds)
        self.told.append(profile["latency_ms"] * 1e3)
        for layer in profile["layers"]:
            for s in layer["steps"]:
                self._owner.append(index)
                self._rows.append(
                    [
                        WORKS.index(s["work"]),
                        s["npu"],
                        s["half"],
                        s["cycles"],
                        s["bytes"],
                        s["weight_bytes"],
                        s["table_elements"],
                        s["elements"],
                        s["macs"],
                        s["least_cycles"],
                        s["serial"],
                        s["tasks"],
                    ]
                )

    def close(self):
        table = numpy.array(self._rows, float)
        self.owner = numpy.array(self._owner)
        self.work = table[:, 0].astype(int)
        self.npu, self.half = table[:, 1] > 0, table[:, 2] > 0
        self.cycles, self.bytes, self.weights, self.tables, self.elements, self.macs, self.least = table[:, 3:10].T
        self.serial, self.tasks = table[:, 10] > 0, table[:, 11]
        self.is_ = {name: self.work == i for i, name in enumerate(WORKS)}
        self.published, self.told = numpy.array(self.published), numpy.array(self.told)

    def predict(self, v):
        """Microseconds of every network."""
        return numpy.bincount(self.owner, self.step_times(v), len(self.networks))

    def shares(self, v):
        """By class: how much of each network's time its steps take."""
        times, sums = self.step_times(v), self.predict(v)
        result = {}
        for name, works in CLASSES.items():
            chosen = numpy.isin(self.work, [WORKS.index(w) for w in works if w in WORKS]) & self.npu
            if works == ["narrow"]:
                chosen = self.is_["narrow"]
            elif works == ["cpu"]:
                chosen = ~self.npu & ~self.is_["narrow"]
            elif works == ["half"]:
                chosen = self.half & self.npu
            result[name] = numpy.bincount(self.owner, numpy.where(chosen, times, 0), len(self.networks)) / sums
        return result

    def step_times(self, v):
        """The formula of compile::time_of on one core at the chip's own clocks."""
        of, clock, half = self.is_, self.clock, numpy.where(self.half, v["half"], 1.0)
        compute = numpy.zeros(len(self.work))
        fixed = v["layer_us"] * self.tasks

        def put(mask, values):
            compute[mask] = values[mask]

        conv_half = half if self.first_generation else 1.0
        put(of["conv"], self.cycles / (v["conv"] * conv_half * clock))
        put(of["stem"], self.cycles * v["stem"] / (v["conv"] * conv_half * clock))
        put(of["pointwise"] | of["matmul"], self.cycles / (v["pointwise"] * half * clock))
        put(of["depthwise"], self.cycles / (v["depthwise"] * clock))
        put(of["pool"], self.elements / (v["pool_per_cycle"] * clock))
        put(of["global_pool"], self.elements / (v["global_pool_per_cycle"] * clock))
        for work in ("norm", "attention", "softmax", "reshape", "space_to_batch"):
            put(of[work], self.elements * v[work + "_ns"] / 1e3)
        put(of["transpose"], self.elements * numpy.where(self.npu, v["transpose_ns"], v["cpu_transpose_ns"]) / 1e3)
        put(of["narrow"], self.elements * v["narrow_ns"] / 1e3)
        put(of["cpu_macs"], self.macs * v["cpu_mac_ns"] / 1e3)
        put(of["cpu_elements"], self.elements * v["cpu_ns"] / 1e3)
        fixed[of["softmax"] & ~self.npu] += v["cpu_layer_us"]
        fixed[(of["transpose"] & ~self.npu) | of["narrow"] | of["cpu_macs"] | of["cpu_elements"]] = v["cpu_layer_us"]
        fixed[of["reshape"]] *= 0.5
        fixed[of["space_to_batch"]] = 0
        moves = of["move"] | of["pool"] | of["global_pool"]
        weights = self.weights / v["weight_gbs"] / 1e3
        first = numpy.where(self.serial, weights, 0)
        traffic = self.bytes / numpy.where(moves, v["move_gbs"], v["feature_gbs"]) / 1e3 + weights - first
        # Times per element hold the traffic at the chip's own clocks.
        traffic[of["attention"] | of["softmax"] | of["transpose"] | of["reshape"] | of["space_to_batch"]] = 0
        table = self.tables * numpy.where(self.half, 2, 1) / (v["table_per_cycle"] * clock)
        p = v["overlap"]
        if self.first_generation:
            total = (compute**p + traffic**p) ** (1 / p) + table
        else:
            total = (compute**p + traffic**p + table**p) ** (1 / p)
        return numpy.maximum(total + first + fixed, self.least / clock)


def fit(chip, prior, weights, iterations):
    """Levenberg-Marquardt on log constants with a robust loss and a Gaussian prior."""
    centre = numpy.log([prior[key] for key in KEYS])
    least, most = numpy.log([LEAST[key] for key in KEYS]), numpy.log([MOST[key] for key in KEYS])

    def residuals(theta):
        return numpy.log(chip.predict(dict(zip(KEYS, numpy.exp(theta)))) / chip.published)

    def loss(r, theta):
        return (weights * ROBUST**2 * numpy.log1p((r / ROBUST) ** 2)).sum() + PRIOR_WEIGHT * (
            ((theta - centre) / PRIOR_WIDTH) ** 2
        ).sum()

    theta = numpy.clip(centre, least, most)
    r, damping = residuals(theta), 1e-2
    best = loss(r, theta)
    for _ in range(iterations):
        slope = numpy.stack([(residuals(theta + 1e-3 * unit) - r) / 1e-3 for unit in numpy.eye(len(theta))], 1)
        w = weights / (1 + (r / ROBUST) ** 2)
        curvature = slope.T @ (slope * w[:, None]) + numpy.eye(len(theta)) * PRIOR_WEIGHT / PRIOR_WIDTH**2
        gradient = slope.T @ (w * r) + (theta - centre) * PRIOR_WEIGHT / PRIOR_WIDTH**2
        for _ in range(8):
            step = -numpy.linalg.solve(curvature + damping * numpy.diag(numpy.diag(curvature)), gradient)
            candidate = numpy.clip(theta + numpy.clip(step, -0.4, 0.4), least, most)
            r_new = residuals(candidate)
            if (new := loss(r_new, candidate)) < best:
                break
            damping *= 4
        else:
            break
        gain, theta, r, best, damping = best - new, candidate, r_new, new, max(damping / 5, 1e-6)
        if gain < 1e-7:
            break
    return dict(zip(KEYS, numpy.exp(theta))), r


def collect(options):
    """Runs the binary over every network that has published speeds and a structure."""
    structures = collections.defaultdict(list)
    with open(options.models / "models.csv") as file:
        for row in csv.DictReader(file):
            if row["stands_for"]:
                structures[row["stands_for"]].append(row["name"])
    published = collections.defaultdict(lambda: collections.defaultdict(list))  # a network may be published twice
    with open(options.anchors) as file:
        for row in csv.DictReader(file):
            # Figures over several runs of several graphs (real-time factors) say little about one graph.
            if row["source"].split(":")[0] == RELEASE and row["fps"] and row["model"] in structures:
                published[(row["model"], row["dtype"])][row["platform"]].append(float(row["fps"]))
    facts = {
        p["name"]: p
        for p in json.loads(
            subprocess.run([options.binary, "platforms", "--json"], capture_output=True, check=True, text=True).stdout
        )
    }
    chips = {name: Chip(name, facts[name]["npu_hz"] / 1e6, facts[name]["generation"] == 1) for name in CHIPS}
    for (network, dtype), speeds in published.items():
        command = [
            options.binary,
            "profile",
            str(options.models / (structures[network][0] + ".onnx.structure")),
            "--platform",
            ",".join(CHIPS),
            "--cores",
            "1",
            "--dtype",
            "w8a8" if dtype == "INT8" else "float16",
            "--json",
            "-",
        ]
        for profile in json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout):
            name = profile["platform"]
            for fps in speeds.get(CHIPS[name][1], []):
                chips[name].add(network, dtype, 1e6 / fps, profile)
    for chip in chips.values():
        chip.close()
    return chips


def error(r):
    return abs(math.exp(-r) - 1)


def quantiles(values):
    return f"{100 * numpy.median(values):.1f} % / {100 * numpy.quantile(values, 0.9):.1f} %" if len(values) else "-"


def ordered_pairs(rows, group, key):
    """Share of pairs in the right order among those that differ by more than 10 %, and their number."""
    right = total = 0
    groups = collections.defaultdict(list)
    for row in rows:
        groups[group(row)].append(row)
    for members in groups.values():
        for i, a in enumerate(members):
            for b in members[:i]:
                if abs(math.log(a["published"] / b["published"])) > math.log(1.1):
                    total += 1
                    right += (a["published"] > b["published"]) == (a[key] > b[key])
    return right / max(total, 1), total


def kind_of(row):
    """What a network does, with what all of its kind have in common."""
    if row["dtype"] != "INT8":
        return "float16: " + ("transformers" if "encoder" in row["task"] or row["task"] == "translation" else row["task"])
    return "int8: " + ("segmentation" if "seg" in row["task"] else "detection" if "detect" in row["task"] else row["task"])


def report(rows):
    """Markdown: a summary, errors by family and chip, and every network."""
    second = [r for r in rows if r["chip"].startswith("rk35")]
    groups = [
        ("generation 2, int8", [r for r in second if r["dtype"] == "INT8"]),
        ("generation 2, float16", [r for r in second if r["dtype"] != "INT8"]),
        ("generation 1", [r for r in rows if not r["chip"].startswith("rk35")]),
        ("all", rows),
    ]
    text = "| rows | number | error, median / 90th percentile | the same for networks left out of the fit |\n|---|---|---|---|\n"
    for name, members in groups:
        text += f"| {name} | {len(members)} | {quantiles([error(r['residual']) for r in members])} | {quantiles([error(r['left_out']) for r in members])} |\n"
    for name, group in (
        ("chips for a network", lambda r: (r["network"], r["dtype"])),
        ("networks on a chip", lambda r: r["chip"]),
    ):
        text += f"\nOrder of {name}, pairs that differ by more than 10 %: "
        text += (
            ", ".join(
                f"{100 * share:.1f} % of {total} right{what}"
                for what, (share, total) in (
                    ("", ordered_pairs(rows, group, "predicted")),
                    (" when left out", ordered_pairs(rows, group, "unseen")),
                )
            )
            + ".\n"
        )
    chips = list(CHIPS)
    text += "\nMedian error by kind of network and chip when the network is left out of the fit, and the largest in brackets.\n\n"
    text += "| kind | " + " | ".join(chips) + " |\n|---|" + "---|" * len(chips) + "\n"
    for kind in dict.fromkeys(kind_of(r) for r in rows):
        cells = []
        for chip in chips:
            errors = [error(r["left_out"]) for r in rows if kind_of(r) == kind and r["chip"] == chip]
            cells.append(f"{100 * numpy.median(errors):.0f} % ({100 * max(errors):.0f} %)" if errors else "")
        text += f"| {kind} | " + " | ".join(cells) + " |\n"
    text += (
        "\nPredicted / published speed; in brackets when the network is left out of the fit.\n\n| network | type | "
        + " | ".join(chips)
        + " |\n|---|---|"
        + "---|" * len(chips)
        + "\n"
    )
    for network, dtype in dict.fromkeys((r["network"], r["dtype"]) for r in rows):
        cells = []
        for chip in chips:
            cells.append(
                ", ".join(
                    f"{math.exp(-r['residual']):.2f} ({math.exp(-r['left_out']):.2f})"
                    for r in rows
                    if r["network"] == network and r["dtype"] == dtype and r["chip"] == chip
                )
            )
        text += f"| {network} | {dtype.lower()} | " + " | ".join(cells) + " |\n"
    return text


def class_table(rows):
    """Markdown: errors of the networks of each operator class, when all take part, when the network and when the class is left out."""
    text = f"| networks with more than {100 * SHARE:.0f} % of their time in | rows | error, median / 90th percentile | network left out | class left out |\n"
    text += "|---|---|---|---|---|\n"
    for name in CLASSES:
        members = [r for r in rows if name in r["classes"]]
        if not members:
            continue
        cells = [quantiles([error(r[key]) for r in members]) for key in ("residual", "left_out")]
        cells.append(quantiles([error(r["classes"][name]) for r in members]))
        text += f"| {name} | {len(members)} | " + " | ".join(cells) + " |\n"
    everyone = [error(v) for r in rows for v in r["classes"].values()]
    return text + f"\nAll classes left out one after the other: {quantiles(everyone)} over {len(everyone)} rows.\n"


def constants_table(fitted):
    text = "| constant | " + " | ".join(fitted) + " |\n|---|" + "---|" * len(fitted) + "\n"
    for key in KEYS:
        text += f"| `{key}` | " + " | ".join(f"{v[key]:.3g}" for v in fitted.values()) + " |\n"
    return text


def speed_inc(fitted):
    text = "// Written by bench/fit_npu.py from published speeds; docs/npu_model.md tells how well they reproduce them.\n"
    for name, v in fitted.items():
        pairs = ", ".join(
            f".{key} = {v[key]:.5g}"
            for key in [
                "conv",
                "pointwise",
                "depthwise",
                "half",
                "stem",
                "feature_gbs",
                "weight_gbs",
                "move_gbs",
                "layer_us",
                "table_per_cycle",
                "pool_per_cycle",
                "global_pool_per_cycle",
                "softmax_ns",
                "attention_ns",
                "norm_ns",
                "transpose_ns",
                "reshape_ns",
                "cpu_layer_us",
                "cpu_ns",
                "cpu_transpose_ns",
                "cpu_mac_ns",
                "space_to_batch_ns",
                "narrow_ns",
                "overlap",
            ]
        )
        line = f"constexpr SpeedModel {CHIPS[name][0]}{{.source = SpeedModel::Source::Fitted, {pairs}}};"
        text += re.sub(r"(.{100,150}?), ", r"\1,\n    ", line) + "\n"
    return text


def put_between(path, marker, text):
    content = path.read_text()
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    head, rest = content.split(begin)
    path.write_text(head + begin + "\n" + text + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--anchors", type=pathlib.Path, required=True, help="perf-anchors.csv")
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder of structures with models.csv")
    parser.add_argument("--binary", default=str(root / "build/release/openrknn"))
    parser.add_argument("--write", type=pathlib.Path, help="store the constants here")
    parser.add_argument("--document", type=pathlib.Path, help="refresh the generated tables of this document")
    parser.add_argument("--no-cross-validation", action="store_true")
    parser.add_argument("--iterations", type=int, default=25)
    options = parser.parse_args()
    began = time.time()
    chips = collect(options)
    print(f"features of {sum(len(c.networks) for c in chips.values())} rows in {time.time() - began:.1f} s", file=sys.stderr)
    rows, fitted = [], {}
    with open(options.models / "models.csv") as file:
        tasks = {row["stands_for"]: row["task"] for row in csv.DictReader(file) if row["stands_for"]}
    for name, chip in chips.items():
        prior = PRIOR | CHIPS[name][2]
        everyone = numpy.array(
            [1 / chip.networks.count(n) for n in chip.networks]
        )  # a network counts once, however often it is published
        fitted[name], residual = fit(chip, prior, everyone, 60)
        left_out = residual.copy()
        if not options.no_cross_validation:
            for i in range(len(chip.networks)):
                left_out[i] = fit(
                    chip,
                    prior,
                    numpy.where([n[0] == chip.networks[i][0] for n in chip.networks], 0.0, everyone),
                    options.iterations,
                )[1][i]
        classes = [{} for _ in chip.networks]
        if not options.no_cross_validation:
            for class_name, share in chip.shares(fitted[name]).items():
                members = share > SHARE
                if members.any():
                    unseen = fit(chip, prior, numpy.where(members, 0.0, everyone), options.iterations)[1]
                    for i in numpy.flatnonzero(members):
                        classes[i][class_name] = unseen[i]
        for i, (network, dtype) in enumerate(chip.networks):
            fps = 1e6 / chip.published[i]
            rows.append(
                dict(
                    chip=name,
                    network=network,
                    dtype=dtype,
                    task=tasks[network],
                    published=fps,
                    residual=residual[i],
                    left_out=left_out[i],
                    classes=classes[i],
                    predicted=fps * math.exp(-residual[i]),
                    unseen=fps * math.exp(-left_out[i]),
                )
            )
        print(f"{name}: {time.time() - began:.0f} s", file=sys.stderr)
    print(report(rows))
    print(class_table(rows))
    print(constants_table(fitted))
    # Does the program hold these constants, and compute the same from them?
    worst = max(numpy.abs(numpy.log(chips[name].predict(fitted[name]) / chips[name].told)).max() for name in chips)
    print(
        f"largest difference between these constants and the ones the binary was built with: {100 * worst:.2f} %", file=sys.stderr
    )
    if options.write:
        options.write.write_text(speed_inc(fitted))
    if options.document:
        put_between(options.document, "errors", "\n" + report(rows) + "\n")
        put_between(options.document, "classes", "\n" + class_table(rows) + "\n")
        put_between(options.document, "constants", "\n" + constants_table(fitted) + "\n")


if __name__ == "__main__":
    main()
