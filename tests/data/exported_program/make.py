"""Writes archives of torch.export into a folder, each with its inputs and what PyTorch computes from them:

pip install torch
python make.py FOLDER"""

import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


class Convolutions(nn.Module):
    """A residual block of a picture, with statistics that are not those of a new layer."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.classes = nn.Linear(8, 5)
        nn.init.uniform_(self.norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(self.norm.running_var, 0.5, 1.5)

    def forward(self, picture):
        x = F.relu(self.norm(self.conv(picture)))
        x = F.max_pool2d(x + F.hardswish(self.depthwise(x)), 2)
        return self.classes(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)).softmax(-1), x


class Recognizer(nn.Module):
    """Text lines of any width: reshapes that follow from sizes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.lstm = nn.LSTM(24, 5, batch_first=True, bidirectional=True)
        self.classes = nn.Linear(10, 7)

    def forward(self, line):
        x = F.avg_pool2d(F.silu(self.conv(line)), 2)
        batch, channels, height, width = x.shape
        x = x.permute(0, 3, 1, 2).reshape(batch, width, channels * height)
        return F.log_softmax(self.classes(self.lstm(x)[0]), -1)


class Decoder(nn.Module):
    """A step of a transformer: rotated queries and keys, grouped heads, a cache of a length that is left open."""

    def __init__(self, width=16, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.words = nn.Embedding(11, width)
        self.before, self.after = nn.RMSNorm(width), nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 24), nn.Linear(24, width)
        self.register_buffer("frequencies", 1.0 / 100 ** (torch.arange(0, self.size, 2) / self.size))

    def rotated(self, x, place):
        angles = place[:, None, :, None] * self.frequencies
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

    def forward(self, word, place, keys, values):
        x = self.words(word)
        h = self.before(x)
        split = lambda y, heads: y.view(y.shape[0], y.shape[1], heads, self.size).transpose(1, 2)
        q = self.rotated(split(self.query(h), self.heads), place)
        keys = torch.cat([keys, self.rotated(split(self.key(h), self.groups), place)], 2)
        values = torch.cat([values, split(self.value(h), self.groups)], 2)
        seen = F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x)))), keys, values


def store(name, module, example, dynamic_shapes=None, inputs=None):
    """`inputs`: those that are computed, where they are of other sizes than the example."""
    module.eval()
    torch.export.save(torch.export.export(module, example, dynamic_shapes=dynamic_shapes), FOLDER / f"{name}.pt2")
    inputs = inputs or example
    with torch.no_grad():
        outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    arrays = {f"input_{i}": x.numpy() for i, x in enumerate(inputs)}
    np.savez(FOLDER / f"{name}.npz", **arrays, **{f"output_{i}": y.numpy() for i, y in enumerate(outputs)})


torch.manual_seed(3)
store("convolutions", Convolutions(), (torch.randn(1, 3, 16, 16),))
width = Dim("width", min=4, max=64)
store("recognizer", Recognizer(), (torch.randn(1, 1, 8, 20),), {"line": {3: 2 * width}}, (torch.randn(1, 1, 8, 28),))
length = Dim("length", min=2, max=64)
step = lambda n: (torch.tensor([[7]]), torch.tensor([[n]]), torch.randn(1, 2, n, 4), torch.randn(1, 2, n, 4))
store("decoder", Decoder(), step(6), {"word": None, "place": None, "keys": {2: length}, "values": {2: length}}, step(9))
