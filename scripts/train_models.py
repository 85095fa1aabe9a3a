#!/usr/bin/env python3
"""Makes the bundled networks and their labelled pictures: examples/models/{shapes,boxes}.onnx, pictures/ and labels.

Renders synthetic pictures (coloured shapes on noisy backgrounds), trains a small classifier ("shapes", 64x64) and a small
one-stage detector with a YOLO-like head on two strides ("boxes", 128x128), exports both to ONNX with BatchNorm kept as its
own nodes, and writes test pictures with labels. Needs PyTorch, onnx and NumPy; users of OpenRKNN never run it.

  scripts/train_models.py [--steps N] [--only shapes|boxes]
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np

CLASSES = ["circle", "square", "triangle", "cross", "ring", "star", "diamond", "bars"]
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
ROOT = EXAMPLES / "models"
MEAN = STD = 127.5

sys.path.insert(0, str(EXAMPLES))
import pictures  # noqa: E402  (a module of the examples)

# ---- pictures


def shape_mask(kind, size, cx, cy, radius, angle):
    """Coverage (0..1) of one shape on a size x size canvas, anti-aliased over about one pixel."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    dx, dy = (x - cx) / radius, (y - cy) / radius
    u, v = dx * math.cos(angle) + dy * math.sin(angle), -dx * math.sin(angle) + dy * math.cos(angle)
    r = np.hypot(u, v)
    if kind == "circle":
        d = r - 0.9
    elif kind == "square":
        d = np.maximum(abs(u), abs(v)) - 0.75
    elif kind == "triangle":
        d = np.maximum(abs(u) * 0.866 + v * 0.5, -v) - 0.45
    elif kind == "cross":
        d = np.minimum(np.maximum(abs(u) - 0.9, abs(v) - 0.28), np.maximum(abs(v) - 0.9, abs(u) - 0.28))
    elif kind == "ring":
        d = abs(r - 0.72) - 0.2
    elif kind == "star":
        d = r - (0.55 + 0.38 * np.cos(5 * np.arctan2(v, u)))
    elif kind == "diamond":
        d = abs(u) * 1.5 + abs(v) - 0.92
    else:  # bars
        d = np.maximum(np.maximum(abs(u), abs(v)) - 0.85, 0.2 - abs(((u + 2) * 2.4) % 1.0 - 0.5))
    return np.clip(0.5 - d * radius, 0, 1)


def background(rng, size):
    low = rng.uniform(0, 255, (5, 5, 3)).astype(np.float32)
    grid = np.linspace(0, 3.999, size)
    i, f = grid.astype(int), (grid % 1)[:, None]
    rows = low[i] * (1 - f[..., None]) + low[i + 1] * f[..., None]
    image = rows[:, i] * (1 - f) + rows[:, i + 1] * f
    return image * rng.uniform(0.4, 1.0) + rng.normal(0, rng.uniform(2, 14), (size, size, 3))


def paint(rng, image, kind, cx, cy, radius):
    """Draws a shape whose colour stands out from what is below it; returns its box (x0, y0, x1, y1)."""
    size = image.shape[0]
    mask = shape_mask(kind, size, cx, cy, radius, rng.uniform(0, 2 * math.pi))
    inside = mask > 0.5
    below = image[inside].mean(0) if inside.any() else image.mean((0, 1))
    colour = rng.uniform(0, 255, 3)
    while np.abs(colour - below).sum() < 150:
        colour = rng.uniform(0, 255, 3)
    image[:] = image * (1 - mask[..., None]) + (colour + rng.normal(0, 5, image.shape)) * mask[..., None]
    rows, columns = np.where(inside.any(1))[0], np.where(inside.any(0))[0]
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


def classifier_picture(rng):
    size, label = 64, int(rng.integers(len(CLASSES)))
    image = background(rng, size)
    radius = rng.uniform(14, 27)
    paint(rng, image, CLASSES[label], *rng.uniform(radius, size - radius, 2), radius)
    return np.clip(image, 0, 255).astype(np.uint8), label


def detector_picture(rng):
    size, boxes, labels = 128, [], []
    image = background(rng, size)
    for _ in range(int(rng.integers(1, 5))):
        label, radius = int(rng.integers(len(CLASSES))), math.exp(rng.uniform(math.log(9), math.log(36)))
        cx, cy = rng.uniform(radius, size - radius, 2)
        if any(max(abs(cx - (b[0] + b[2]) / 2), abs(cy - (b[1] + b[3]) / 2)) < radius + (b[2] - b[0]) / 2 for b in boxes):
            continue
        boxes.append(paint(rng, image, CLASSES[label], cx, cy, radius))
        labels.append(label)
    return np.clip(image, 0, 255).astype(np.uint8), boxes, labels


# ---- networks


def build_networks():
    import torch
    from torch import nn

    def block(cin, cout, k=3, s=1, groups=1, act=nn.SiLU):
        layers = [nn.Conv2d(cin, cout, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
        return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)

    class Residual(nn.Module):
        def __init__(self, c, act):
            super().__init__()
            self.a, self.b, self.act = block(c, c, act=act), block(c, c, act=None), act()

        def forward(self, x):
            return self.act(x + self.b(self.a(x)))

    class Depthwise(nn.Module):
        def __init__(self, cin, cout, s, act):
            super().__init__()
            self.dw, self.pw = block(cin, cin, 3, s, groups=cin, act=act), block(cin, cout, 1, act=act)

        def forward(self, x):
            return self.pw(self.dw(x))

    class Split(nn.Module):  # two branches joined by a concat
        def __init__(self, c, act):
            super().__init__()
            self.a, self.b, self.out = block(c, c // 2, 1, act=act), block(c, c // 2, 3, act=act), block(c, c, 1, act=act)

        def forward(self, x):
            return self.out(torch.cat([self.a(x), self.b(x)], 1))

    class Shapes(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                block(3, 16, 3, 2),
                Residual(16, nn.ReLU),
                block(16, 32, 3, 2),
                Split(32, nn.SiLU),
                Depthwise(32, 64, 2, nn.ReLU),
                Residual(64, nn.SiLU),
                Depthwise(64, 96, 2, nn.SiLU),
            )
            self.head = nn.Linear(96, len(CLASSES))

        def forward(self, x):
            return self.head(self.body(x).mean((2, 3)))

    class Boxes(nn.Module):
        """Per stride one map [1, 5 + classes, H, W]: x, y inside the cell, log size, objectness, class scores (raw)."""

        def __init__(self):
            super().__init__()
            outputs = 5 + len(CLASSES)
            self.stem = nn.Sequential(block(3, 16, 3, 2), block(16, 24, 3, 2), Residual(24, nn.ReLU))
            self.p8 = nn.Sequential(Depthwise(24, 48, 2, nn.SiLU), Split(48, nn.SiLU), Residual(48, nn.SiLU))
            self.p16 = nn.Sequential(block(48, 64, 3, 2), Split(64, nn.SiLU), Depthwise(64, 64, 1, nn.ReLU))
            self.up = nn.Upsample(scale_factor=2, mode="nearest")
            self.merge = block(48 + 64, 48, 1)
            self.head8 = nn.Sequential(Depthwise(48, 48, 1, nn.SiLU), nn.Conv2d(48, outputs, 1))
            self.head16 = nn.Sequential(Depthwise(64, 64, 1, nn.SiLU), nn.Conv2d(64, outputs, 1))

        def forward(self, x):
            p8 = self.p8(self.stem(x))
            p16 = self.p16(p8)
            return self.head8(self.merge(torch.cat([p8, self.up(p16)], 1))), self.head16(p16)

    return Shapes, Boxes


STRIDES, LIMIT = (8, 16), 40  # objects whose longer side is below LIMIT pixels belong to stride 8


def detector_loss(outputs, batch):
    import torch
    from torch.nn import functional as F

    total = 0
    for stride, out in zip(STRIDES, outputs):
        n, _, h, w = out.shape
        target = torch.zeros(n, h, w)
        index, boxes, classes = [], [], []
        for i, (_, bs, ls) in enumerate(batch):
            for (x0, y0, x1, y1), label in zip(bs, ls):
                if (max(x1 - x0, y1 - y0) < LIMIT) != (stride == STRIDES[0]):
                    continue
                gx, gy = (x0 + x1) / 2 / stride, (y0 + y1) / 2 / stride
                ix, iy = min(int(gx), w - 1), min(int(gy), h - 1)
                target[i, iy, ix] = 1
                index.append((i, iy, ix))
                boxes.append((gx - ix, gy - iy, math.log((x1 - x0) / stride), math.log((y1 - y0) / stride)))
                classes.append(label)
        total = total + F.binary_cross_entropy_with_logits(out[:, 4], target, reduction="sum", pos_weight=torch.tensor(4.0)) / n
        if index:
            cells = out[tuple(torch.tensor(index).T)[0], :, tuple(torch.tensor(index).T)[1], tuple(torch.tensor(index).T)[2]]
            want = torch.tensor(boxes)
            total = (
                total
                + (
                    F.l1_loss(torch.sigmoid(cells[:, :2]), want[:, :2], reduction="sum") * 2
                    + F.l1_loss(cells[:, 2:4], want[:, 2:], reduction="sum") * 2
                    + F.cross_entropy(cells[:, 5:], torch.tensor(classes), reduction="sum")
                )
                / n
            )
    return total


def train(model, make_batch, loss_of, steps, batch):
    import torch

    torch.manual_seed(7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    rng = np.random.default_rng(1)
    for step in range(steps):
        samples = [make_batch(rng) for _ in range(batch)]
        images = np.stack([s[0] for s in samples]).transpose(0, 3, 1, 2).astype(np.float32)
        loss = loss_of(model(torch.from_numpy((images - MEAN) / STD)), samples)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    return model.eval()


def export(model, size, path, outputs):
    import onnx
    import torch

    torch.onnx.export(
        model,
        torch.zeros(1, 3, size, size),
        str(path),
        input_names=["image"],
        output_names=outputs,
        opset_version=13,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        dynamo=False,
    )
    net = onnx.load(path)
    net.producer_name, net.producer_version, net.doc_string = "openrknn", "", ""
    for node in net.graph.node:
        node.doc_string = ""
    onnx.save(net, path)


def main():
    import torch
    from torch.nn import functional as F

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--only", choices=["shapes", "boxes"])
    args = parser.parse_args()
    Shapes, Boxes = build_networks()
    (ROOT / "pictures").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2024)  # test pictures: other seeds than training
    if args.only != "boxes":
        model = train(
            Shapes(), classifier_picture, lambda out, s: F.cross_entropy(out, torch.tensor([x[1] for x in s])), args.steps, 64
        )
        export(model, 64, ROOT / "shapes.onnx", ["scores"])
        rows = []
        for i in range(120):
            image, label = classifier_picture(rng)
            pictures.write_png(ROOT / "pictures" / f"shape_{i:03}.png", image)
            rows.append({"file": f"shape_{i:03}.png", "label": CLASSES[label]})
        (ROOT / "shapes.json").write_text(
            json.dumps({"classes": CLASSES, "mean": MEAN, "std": STD, "pictures": rows}, indent=1) + "\n"
        )
    if args.only != "shapes":
        rng = np.random.default_rng(2025)
        model = train(Boxes(), detector_picture, detector_loss, args.steps * 4 // 3, 32)
        export(model, 128, ROOT / "boxes.onnx", ["stride8", "stride16"])
        rows = []
        for i in range(40):
            image, boxes, labels = detector_picture(rng)
            pictures.write_png(ROOT / "pictures" / f"boxes_{i:03}.png", image)
            rows.append({"file": f"boxes_{i:03}.png", "boxes": boxes, "labels": [CLASSES[c] for c in labels]})
        (ROOT / "boxes.json").write_text(
            json.dumps({"classes": CLASSES, "mean": MEAN, "std": STD, "strides": STRIDES, "pictures": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
