"""Detectors with their ends inside, as torch exports them: suppression of boxes (what `yolo export nms=True` writes), and the best scores
without suppression (YOLOv10). Both exporters of torch; the results are those of torch.

python make.py FOLDER      (needs: pip install torch torchvision onnx onnxscript)"""

import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
CLASSES, MOST = 3, 10


class Backbone(nn.Module):
    """Boxes (left, top, right, bottom, in pixels) and scores [1, 4 + classes, places] of a picture [1, 3, 32, 32]."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.SiLU())
        self.boxes, self.scores = nn.Conv2d(8, 4, 1), nn.Conv2d(8, CLASSES, 1)
        nn.init.normal_(self.scores.weight, std=3.0)
        ys, xs = torch.meshgrid(torch.arange(8) * 4.0 + 2, torch.arange(8) * 4.0 + 2, indexing="ij")
        self.register_buffer("centres", torch.stack([xs, ys, xs, ys]).reshape(1, 4, 64))
        self.register_buffer("signs", torch.tensor([-1.0, -1, 1, 1]).reshape(1, 4, 1))

    def forward(self, x):
        x = self.conv(x)
        distances = F.softplus(self.boxes(x) * 2).flatten(2) * 6 + 2
        return torch.cat([self.centres + self.signs * distances, self.scores(x).sigmoid().flatten(2)], 1)


class Suppressed(nn.Module):
    """Rows of box, score and class of what survives, filled up with zeros."""

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()

    def forward(self, x):
        rows = self.backbone(x).transpose(-1, -2)
        boxes, scores = rows.split([4, CLASSES], -1)
        scores, classes = scores.max(-1)
        out = []
        for box, score, label in zip(boxes, scores, classes):
            mask = score > 0.4
            box, score, label = box[mask], score[mask], label[mask].to(box.dtype)
            apart = box + (label * 7680)[:, None]  # boxes of different classes never meet
            keep = torchvision.ops.nms(apart, score, 0.45)[:MOST]
            found = torch.cat([box[keep], score[keep][:, None], label[keep][:, None]], -1)
            out.append(F.pad(found, (0, 0, 0, MOST - found.shape[0])))
        return torch.stack(out)


class Best(nn.Module):
    """The best scores of all classes, as YOLOv10 ends."""

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()

    def forward(self, x):
        boxes, scores = self.backbone(x).transpose(-1, -2).split([4, CLASSES], -1)
        index = scores.amax(-1).topk(MOST)[1].unsqueeze(-1)
        boxes = boxes.gather(1, index.repeat(1, 1, 4))
        scores = scores.gather(1, index.repeat(1, 1, CLASSES))
        scores, index = scores.flatten(1).topk(MOST)
        picture = torch.arange(1)[..., None]
        return torch.cat([boxes[picture, index // CLASSES], scores[..., None], (index % CLASSES)[..., None].float()], -1)


def write(name, model, picture, dynamo):
    path = str(FOLDER / f"{name}.onnx")
    options = {"external_data": False} if dynamo else {"opset_version": 17}
    torch.onnx.export(model, (picture,), path, input_names=["images"], output_names=["output0"], dynamo=dynamo, **options)
    np.savez_compressed(FOLDER / f"{name}.npz", input_0=picture.numpy(), output_0=model(picture).detach().numpy())


torch.manual_seed(5)
for name, model in (("suppressed", Suppressed().eval()), ("best", Best().eval())):
    picture = torch.rand(1, 3, 32, 32)
    print(name, model(picture)[0, :3])
    write(name, model, picture, dynamo=False)
    if name == "best":  # the suppression has no form there without its length fixed
        write(name + "_dynamo", model, picture, dynamo=True)
