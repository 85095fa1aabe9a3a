"""Writes small models of PaddlePaddle into a folder, each with an input and what Paddle computes from it:

    python -m venv new && new/bin/pip install paddlepaddle
    python -m venv old && old/bin/pip install "paddlepaddle==2.6.2" "numpy<2" setuptools
    new/bin/python make.py FOLDER
    old/bin/python make.py FOLDER

Paddle 3 writes its own format (.json), Paddle 2 ProgramDesc (NAME_old.pdmodel), where the stack traces of operators are left out, and the
models of training with quantization, whose conversion fails in Paddle 3.3. Names of models after the folder make these alone."""

import os
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

OLD = paddle.__version__.startswith("2.")
FOLDER = sys.argv[1] if len(sys.argv) > 1 else "."
random = np.random.default_rng(1)


def floats(*dims, low=-1.0, high=1.0):
    return random.uniform(low, high, dims).astype(np.float32)


class Function(nn.Layer):
    """A function of tensors as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y=None, z=None, w=None):
        return self.function(*[x, y, z, w][: self.function.__code__.co_argcount])


class ResidualBlock(nn.Layer):
    """Of ResNet."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2D(3, 8, 3, stride=2, padding=1, bias_attr=False)
        self.norm1 = nn.BatchNorm2D(8)
        self.conv2 = nn.Conv2D(8, 8, 3, padding=1)
        self.norm2 = nn.BatchNorm2D(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.max_pool2d(x, 3, 2, 1)
        x = F.relu(x + self.norm2(self.conv2(x)))
        x = F.adaptive_avg_pool2d(x, 1)
        return F.softmax(self.fc(paddle.flatten(x, 1)))


class MobileBlock(nn.Layer):
    """Of MobileNetV3: depthwise, squeeze and excite, hard activations."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Conv2D(4, 8, 1)
        self.depthwise = nn.Conv2D(8, 8, 5, padding=2, groups=8)
        self.norm = nn.BatchNorm2D(8)
        self.squeeze = nn.Conv2D(8, 2, 1)
        self.excite = nn.Conv2D(2, 8, 1)
        self.project = nn.Conv2D(8, 4, 1)

    def forward(self, x):
        y = F.hardswish(self.norm(self.depthwise(F.hardswish(self.expand(x)))))
        s = F.adaptive_avg_pool2d(y, 1)
        s = F.hardsigmoid(self.excite(F.relu(self.squeeze(s))), slope=0.2, offset=0.5)
        return x + self.project(y * s)


class TextDetector(nn.Layer):
    """The neck and head of PP-OCR's detector: a feature pyramid, transposed convolutions."""

    def __init__(self):
        super().__init__()
        self.low, self.high = nn.Conv2D(3, 6, 3, stride=2, padding=1), nn.Conv2D(6, 6, 3, stride=2, padding=1)
        self.conv = nn.Conv2D(12, 4, 3, padding=1)
        self.up1, self.norm = nn.Conv2DTranspose(4, 4, 2, stride=2), nn.BatchNorm2D(4)
        self.up2 = nn.Conv2DTranspose(4, 1, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x):
        low = F.relu(self.low(x))
        high = F.upsample(F.relu(self.high(low)), scale_factor=2, mode="nearest", align_mode=1)
        x = self.conv(paddle.concat([low, high], axis=1))
        return F.sigmoid(self.up2(F.relu(self.norm(self.up1(x)))))


class TextRecognizer(nn.Layer):
    """The head of PP-OCR's recognizer: a picture as a sequence, recurrent layers, attention as of SVTR."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(3, 8, 3, stride=(2, 1), padding=1)
        self.lstm = nn.LSTM(8, 6, num_layers=2, direction="bidirectional")
        self.fc = nn.Linear(12, 7)

    def forward(self, x):
        x = F.avg_pool2d(F.silu(self.conv(x)), [4, 2], stride=[4, 2])
        x = paddle.transpose(paddle.squeeze(x, 2), [0, 2, 1])
        x, _ = self.lstm(x)
        return F.softmax(self.fc(x), axis=2)


class Attention(nn.Layer):
    """A block of ERNIE: embeddings, attention with a mask, GELU, layer normalization."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(16, 8)
        self.norm, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.grow, self.shrink = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, ids):
        mask = paddle.unsqueeze((ids == 0).astype("float32") * -1e4, [1, 2])
        places = paddle.cumsum(paddle.ones_like(ids), axis=-1) - 1
        x = self.norm(self.words(ids) + self.places(places))
        qkv = self.qkv(x).reshape([0, -1, 3, 2, 4]).transpose([2, 0, 3, 1, 4])
        q, k, v = qkv[0] * 0.5, qkv[1], qkv[2]
        weights = F.softmax(paddle.matmul(q, k, transpose_y=True) + mask, axis=-1)
        y = paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([0, -1, 8])
        x = self.norm2(x + self.out(y))
        return x + self.shrink(F.gelu(self.grow(x))), paddle.tanh(x[:, 0])


class Encoder(nn.Layer):
    """Paddle's own transformer layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", normalize_before=True)

    def forward(self, x):
        return self.layer(x)


class DetectorHead(nn.Layer):
    """The head of PP-YOLOE and PicoDet: distances as a distribution, points of several sizes, boxes decoded."""

    def __init__(self):
        super().__init__()
        self.score, self.distance = nn.Conv2D(8, 3, 1), nn.Conv2D(8, 4 * 8, 1)
        self.project = paddle.arange(8, dtype="float32").reshape([1, 8, 1, 1])
        self.register_buffer("bins", self.project)

    def forward(self, a, b):
        scores, boxes, points, strides = [], [], [], []
        for x, stride in ((a, 8), (b, 16)):
            _, _, h, w = x.shape
            ys, xs = paddle.meshgrid((paddle.arange(h) + 0.5) * stride, (paddle.arange(w) + 0.5) * stride)
            points.append(paddle.stack([xs, ys], axis=-1).reshape([-1, 2]))
            strides.append(paddle.full([h * w, 1], stride, dtype="float32"))
            scores.append(F.sigmoid(self.score(x)).reshape([-1, 3, h * w]))
            d = self.distance(x).reshape([-1, 4, 8, h * w]).transpose([0, 2, 3, 1])
            boxes.append(F.conv2d(F.softmax(d, axis=1), self.bins).squeeze(1))
        points, strides = paddle.concat(points).astype("float32"), paddle.concat(strides)
        left_top, right_bottom = paddle.split(paddle.concat(boxes, axis=1) * strides, 2, axis=-1)
        return paddle.concat([points - left_top, points + right_bottom], axis=-1), paddle.concat(scores, axis=-1)


class Suppression(nn.Layer):
    """The end of PP-YOLOE and PicoDet."""

    def forward(self, boxes, scores):
        import paddle.vision.ops  # noqa: F401
        from paddle import _C_ops, in_dynamic_mode

        options = (0.3, 100, 20, 0.5, True, 1.0, -1)  # score, before, after, overlap, normalized, eta, background
        if in_dynamic_mode() or paddle.framework.in_pir_mode():
            out, index, count = _C_ops.multiclass_nms3(boxes, scores, None, *options)
            return out, count
        from paddle.base.layer_helper import LayerHelper

        helper = LayerHelper("multiclass_nms3")
        out = helper.create_variable_for_type_inference("float32")
        index = helper.create_variable_for_type_inference("int32")
        count = helper.create_variable_for_type_inference("int32")
        names = ("score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized", "nms_eta", "background_label")
        helper.append_op(
            type="multiclass_nms3",
            inputs={"BBoxes": boxes, "Scores": scores},
            outputs={"Out": out, "Index": index, "NmsRoisNum": count},
            attrs=dict(zip(names, options)),
        )
        return out, count


class Recurrent(nn.Layer):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y, state = self.layer(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


def yolo_box(x, size):
    return paddle.vision.ops.yolo_box(x, size, anchors=[10, 13, 16, 30], class_num=2, conf_thresh=0.1, downsample_ratio=8)


class PlanePadding(nn.Layer):
    """The operator of Paddle 1 in programs. Paddle 2 reads it and cannot run it: the results are those of the one that replaced it."""

    def forward(self, x):
        forms = [([1, 2, 0, 3], "constant"), ([1, 2, 2, 1], "reflect"), ([0, 1, 2, 3], "edge")]
        return tuple(self.pad(x, sides, mode) for sides, mode in forms)

    @staticmethod
    def pad(x, sides, mode):
        if paddle.in_dynamic_mode():
            return F.pad(x, [*sides[2:], *sides[:2]], mode.replace("edge", "replicate"), 0.5)
        from paddle.base.layer_helper import LayerHelper

        helper = LayerHelper("pad2d")
        out = helper.create_variable_for_type_inference("float32")
        options = {"paddings": sides, "mode": mode, "pad_value": 0.5, "data_format": "NCHW"}
        helper.append_op(type="pad2d", inputs={"X": x}, outputs={"Out": out}, attrs=options)
        return out


def regions(x, boxes, counts):
    align = paddle.vision.ops.roi_align
    return align(x, boxes, counts, 3, 0.5), align(x, boxes, counts, (2, 4), 0.5, sampling_ratio=2, aligned=False)


def priors(x, picture):
    place = lambda **more: paddle.vision.ops.prior_box(x, picture, [4.0, 8.0], aspect_ratios=[1.0, 2.0], **more)
    return (
        *place(max_sizes=[6.0, 10.0], flip=True, clip=True),
        *place(max_sizes=[6.0, 10.0], steps=[5.0, 6.0], min_max_aspect_ratios_order=True),
        *place(variance=[0.2, 0.2, 0.4, 0.4], offset=0.25),
    )


def coded_boxes(boxes, offsets, spread):
    code = paddle.vision.ops.box_coder
    own = boxes.squeeze(0)
    return (
        code(own, [0.1, 0.1, 0.2, 0.2], offsets, "decode_center_size"),
        code(own, spread, offsets, "decode_center_size", False),
        code(own[:3], spread[:3], offsets, "decode_center_size", axis=1),
        code(own, spread, own + 1, "encode_center_size"),
        code(own, [0.1, 0.1, 0.2, 0.2], own + 1, "encode_center_size", False),
    )


def decayed(boxes, scores):
    decay = paddle.vision.ops.matrix_nms
    return (
        *decay(boxes, scores, 0.2, 0.1, 20, 10, background_label=-1)[:2],
        *decay(
            boxes,
            scores,
            0.2,
            0.0,
            5,
            6,
            use_gaussian=True,
            gaussian_sigma=2.0,
            background_label=0,
            normalized=False,
            return_index=True,
        ),
    )


def assigned(x, y, z):
    a, b, c, d = x + 0, x + 0, x + 0, x + 0
    a[:, 1:3] = y
    b[0, :, ::2, -1] = 2.5
    c[:, :, 1] = z
    d[:, -1:, 4:1:-2] = 7
    return a, b, c, d


class Branches(nn.Layer):
    """One of two ways, each with weights of its own; nested."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Conv2D(4, 3, 3, padding=1), nn.Conv2D(4, 3, 1)

    def forward(self, x, limit):
        cond = paddle.static.nn.cond
        base = x * 2
        total = x.sum()
        a, b = cond(total > limit, lambda: (self.one(base), base.max()), lambda: (self.other(x), x.min()))
        c = cond(total < limit, lambda: cond(total < limit - 1, lambda: a + 1, lambda: a - b), lambda: F.relu(a))
        return a, b, c


def order_statistics(x):
    numbers = paddle.log(x)  # negative values have none
    return (
        *paddle.kthvalue(x, 2, axis=1),
        *paddle.kthvalue(x, 3, axis=0),
        paddle.nanmedian(numbers),
        paddle.nanmedian(numbers, axis=1, keepdim=True),
        paddle.nanmedian(numbers, axis=0),
        paddle.median(x, axis=1),
        paddle.quantile(x, 0.3, axis=1),
        paddle.lgamma(x),
        paddle.digamma(x + 2),
        paddle.erfinv(x),
    )


def repeated(x, count):
    """A loop whose number of rounds depends on an input."""
    start = paddle.zeros([1], "int32")
    value, rounds = x + 1, start
    rounds, value = paddle.static.nn.while_loop(
        lambda i, v: paddle.less_than(i, count), lambda i, v: (i + 1, F.relu(v * 0.5 + x)), [rounds, value]
    )
    return value, rounds


x4 = floats(1, 4, 6, 6)
ids = np.array([[3, 5, 0, 7], [1, 0, 0, 0]], np.int64)
boxes = np.sort(floats(1, 12, 2, 2, low=0, high=20), axis=2).reshape(1, 12, 4)

NETWORKS = {
    "residual": (ResidualBlock, [floats(1, 3, 16, 16)]),
    "mobile": (MobileBlock, [x4]),
    "text_detector": (TextDetector, [floats(1, 3, 16, 24)]),
    "text_recognizer": (TextRecognizer, [floats(1, 3, 8, 20)]),
    "attention": (Attention, [ids]),
    "encoder": (Encoder, [floats(1, 5, 8)]),
    "detector_head": (DetectorHead, [floats(1, 8, 4, 4), floats(1, 8, 2, 2)]),
    "suppression": (Suppression, [boxes, floats(1, 3, 12, low=0)]),
    "yolo_box": (lambda: Function(yolo_box), [floats(1, 14, 3, 4, low=-2, high=2), np.array([[24, 32]], np.int32)]),
    "gru": (lambda: Recurrent(nn.GRU(4, 3)), [floats(2, 5, 4)]),
    "lstm": (lambda: Recurrent(nn.LSTM(4, 3)), [floats(2, 5, 4)]),
    "simple_rnn": (lambda: Recurrent(nn.SimpleRNN(4, 3)), [floats(2, 5, 4)]),
    "convolutions": (
        lambda: Function(
            lambda x, w, v, t: (
                F.conv2d(x, w, padding="SAME", stride=2, dilation=1),
                F.conv2d(x, w, padding=[[0, 0], [0, 0], [1, 0], [2, 1]]),
                F.conv2d(x, v, padding="VALID", groups=2),
                F.conv2d_transpose(x, t, stride=2, padding=1, groups=2, output_size=[12, 12]),
                F.conv1d(x[:, :, 0], w[:, :, 0], padding=1),
            )
        ),
        [x4, floats(5, 4, 3, 3), floats(6, 2, 2, 2), floats(4, 3, 3, 3)],
    ),
    "pooling": (
        lambda: Function(
            lambda x: (
                F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
                F.avg_pool2d(x, 3, 2, 1, exclusive=False),
                F.avg_pool2d(x, 3, 2, 1, exclusive=True, ceil_mode=True),
                F.avg_pool2d(x, 2, padding="SAME", stride=4),
                F.adaptive_avg_pool2d(x, [4, 3]),
                F.adaptive_max_pool2d(x, 2),
                F.max_pool2d(x, 2, return_mask=True)[1],
            )
        ),
        [x4],
    ),
    "normalization": (
        lambda: Function(
            lambda x, s, b: (
                F.instance_norm(x, weight=s, bias=b),
                F.group_norm(x, 2, weight=s, bias=b),
                F.normalize(x, axis=1),
                F.local_response_norm(x, 3),
                F.layer_norm(x, [6, 6]),
                paddle.norm(x, p=2, axis=-1),
                paddle.norm(x, p=1, axis=1, keepdim=True),
            )
        ),
        [x4, floats(4), floats(4)],
    ),
    "activations": (
        lambda: Function(
            lambda x: (
                F.relu6(x * 8),
                F.leaky_relu(x, 0.1),
                F.elu(x, 0.7),
                F.selu(x),
                F.celu(x, 0.8),
                F.gelu(x, True),
                F.silu(x),
                F.swish(x),
                F.mish(x),
                F.hardtanh(x, -0.5, 0.6),
                F.softplus(x * 9, 2, 9),
                F.softsign(x),
                F.softshrink(x, 0.3),
                F.hardshrink(x, 0.3),
                F.tanhshrink(x),
                F.thresholded_relu(x, 0.2),
                F.log_sigmoid(x),
                F.log_softmax(x, 1),
                F.maxout(x, 2),
                paddle.stanh(x),
                paddle.clip(x, -0.3, 0.4),
                paddle.scale(x, 2, 1, False),
                F.prelu(x, paddle.full([4], 0.3)),
                F.glu(x, 1),
            )
        ),
        [x4],
    ),  # fmt: skip
    "functions": (
        lambda: Function(
            lambda x, y, p: (
                paddle.abs(x),
                paddle.acos(x),
                paddle.asin(x),
                paddle.atan(x),
                paddle.ceil(x * 3),
                paddle.cos(x),
                paddle.cosh(x),
                paddle.erf(x),
                paddle.exp(x),
                paddle.expm1(x),
                paddle.floor(x * 3),
                paddle.log(p),
                paddle.log10(p),
                paddle.log1p(p),
                paddle.log2(p),
                paddle.reciprocal(p),
                paddle.round(x * 5),
                paddle.rsqrt(p),
                paddle.sign(x),
                paddle.sin(x),
                paddle.sinh(x),
                paddle.sqrt(p),
                paddle.square(x),
                paddle.tan(x),
                paddle.acosh(p + 1),
                paddle.asinh(x),
                paddle.atanh(x * 0.9),
                paddle.trunc(x * 3),
                x + y,
                x - y,
                x * y,
                x / p,
                paddle.pow(p, 2.5),
                paddle.pow(p, y),
                paddle.maximum(x, y),
                paddle.minimum(x, y),
                paddle.remainder(x, y),
                paddle.floor_divide(x, y),
                paddle.fmax(x, y),
                paddle.fmin(x, y),
                paddle.atan2(x, y),
                paddle.add_n([x, y, p]),
                paddle.lerp(x, y, 0.25),
                -x,
                1.0 - x,
                2.0 / p,
            )
        ),
        [floats(3, 4), floats(3, 4), floats(3, 4, low=0.1)],
    ),  # fmt: skip
    "comparisons": (
        lambda: Function(
            lambda x, y: [
                paddle.cast(v, "float32")
                for v in (
                    x == y,
                    x != y,
                    x < y,
                    x <= y,
                    x > y,
                    x >= y,
                    paddle.logical_and(x > 0, y > 0),
                    paddle.logical_or(x > 0, y > 0),
                    paddle.logical_xor(x > 0, y > 0),
                    paddle.logical_not(x > 0),
                    paddle.isnan(x),
                    paddle.isinf(x),
                    paddle.isfinite(x),
                    paddle.where(x > y, x, y),
                    paddle.any(x > 0, axis=1),
                    paddle.all(x > -0.9, axis=1),
                )
            ]
        ),
        [np.float32([[0.5, -1, 0, 2], [1, 1, -3, 0]]), np.float32([[0.5, 1, 0, -2], [1, 0, -3, 1]])],
    ),  # fmt: skip
    "reductions": (
        lambda: Function(
            lambda x: (
                paddle.sum(x),
                paddle.sum(x, axis=[1, 2], keepdim=True),
                paddle.mean(x, axis=-1),
                paddle.max(x, axis=1),
                paddle.min(x, axis=[2, 3]),
                paddle.prod(x, axis=-1),
                paddle.logsumexp(x, axis=1),
                paddle.argmax(x, axis=1),
                paddle.argmin(x, axis=-1, keepdim=True),
                paddle.argmax(x),
                paddle.cumsum(x, axis=2),
                paddle.std(x, axis=1),
                paddle.var(x, axis=1),
                paddle.mean(x),
                *paddle.topk(x, 2, axis=1),
                *paddle.topk(x, 2, largest=False),
                paddle.sort(x, axis=-1, descending=True),
                paddle.argsort(x, axis=1),
                paddle.amax(x, axis=1),
                paddle.cumprod(x, 3),
            )
        ),
        [x4],
    ),  # fmt: skip
    "shapes": (
        lambda: Function(
            lambda x: (
                paddle.reshape(x, [0, 2, -1, 6]),
                paddle.transpose(x, [0, 2, 3, 1]),
                paddle.squeeze(x[:, :1], 1),
                paddle.unsqueeze(x, [0, 3]),
                paddle.flatten(x, 1, 2),
                *paddle.split(x, [1, -1], axis=1),
                *paddle.split(x, 3, axis=2),
                paddle.stack([x, x * 2], 1),
                *paddle.unstack(x, 1)[:2],
                *paddle.unbind(x, 1)[2:],
                x[:, 1:3, ::2, -4:-1],
                x[:, :, -1],
                x[:, 0, ..., 1],
                paddle.expand(x[:, :, :1], [-1, -1, 3, -1]),
                paddle.tile(x, [1, 2, 1, 1]),
                paddle.roll(x, 2, 3),
                paddle.flip(x, [2]),
                F.pixel_shuffle(x, 2),
                F.channel_shuffle(x, 2),
                F.pixel_unshuffle(x, 2),
                paddle.expand_as(x[:, :1], x),
                paddle.tril(x),
                paddle.triu(x, 1),
                F.pad(x, [1, 2, 0, 1], value=0.5),
                F.pad(x, [1, 2, 0, 1], "reflect"),
                F.pad(x, [1, 2, 0, 1], "replicate"),
                F.pad(x, [0, 0, 1, 0, 0, 2, 1, 1]),
                paddle.shape(x),
                paddle.zeros_like(x),
                paddle.full_like(x, 3),
                paddle.strided_slice(x, [2, 3], [5, 0], [0, 6], [-2, 3]),
                F.unfold(x, 2, 2),
                paddle.concat([x, x], axis=-1),
                paddle.moveaxis(x, 1, 3),
                paddle.repeat_interleave(x, 2, axis=1),
                paddle.diff(x),
            )
        ),
        [x4],
    ),  # fmt: skip
    "indexing": (
        lambda: Function(
            lambda x, i: (
                paddle.gather(x, i, axis=1),
                paddle.index_select(x, i, axis=1),
                paddle.gather_nd(x, paddle.stack([i * 0, i], 1)),
                paddle.take_along_axis(x, paddle.reshape(i, [1, 3]), axis=1, broadcast=False),
                F.one_hot(i, 5),
                paddle.put_along_axis(x, paddle.reshape(i, [1, 3]), paddle.to_tensor([[5.0, 6.0, 7.0]]), 1, broadcast=False),
                paddle.scatter(paddle.transpose(x, [1, 0]), i, paddle.ones([3, 2])),
                paddle.scatter_nd_add(paddle.transpose(x, [1, 0]), paddle.unsqueeze(i, 1), paddle.ones([3, 2])),
                paddle.arange(0, 6, 2).astype("float32") * x[0, :3],
                paddle.linspace(0, 1, 5),
                paddle.eye(3, 4),
                paddle.nn.functional.embedding(i, paddle.transpose(x, [1, 0])),
                paddle.index_sample(x, paddle.stack([i, i], 0)),
                paddle.masked_fill(x, x > 0, 2.0),
                paddle.nonzero(x > 0),
            )
        ),
        [floats(2, 5), np.array([3, 0, 2], np.int64)],
    ),  # fmt: skip
    "matrices": (
        lambda: Function(
            lambda a, b, v: (
                paddle.matmul(a, b),
                paddle.matmul(a, a, transpose_y=True),
                paddle.matmul(a, a, transpose_x=True),
                paddle.bmm(a, b),
                paddle.mv(a[0], v),
                paddle.dot(v, v),
                paddle.addmm(a[0] @ b[0], a[0], b[0], 0.5, 2),
                paddle.einsum("bij,bjk->bik", a, b),
                paddle.matmul(a, v),
                paddle.outer(v, v),
                paddle.t(a[0]),
            )
        ),
        [floats(2, 3, 4), floats(2, 4, 5), floats(4)],
    ),  # fmt: skip
    "resizing": (
        lambda: Function(
            lambda x, grid: (
                F.interpolate(x, [9, 11], mode="bilinear"),
                F.interpolate(x, [9, 11], mode="bilinear", align_corners=True),
                F.interpolate(x, [9, 11], mode="bilinear", align_mode=1),
                F.interpolate(x, [9, 11], mode="nearest"),
                F.interpolate(x, scale_factor=2, mode="nearest"),
                F.interpolate(x, scale_factor=[1.5, 2], mode="bilinear"),
                F.interpolate(x, [9, 11], mode="bicubic"),
                F.interpolate(x, paddle.shape(grid)[1:3], mode="nearest"),
                F.grid_sample(x, grid),
                F.grid_sample(x, grid, "nearest", "border", False),
                F.affine_grid(paddle.to_tensor([[[1.0, 0.2, 0.1], [0.0, 0.8, 0.3]]]), [1, 4, 3, 5]),
            )
        ),
        [x4, floats(1, 5, 7, 2)],
    ),  # fmt: skip
    "regions": (
        lambda: Function(regions),
        [
            floats(2, 3, 8, 9),
            np.array([[0, 0, 9, 9], [3.5, 2, 15, 12.5], [1, 4, 30, 40]], np.float32),
            np.array([2, 1], np.int32),
        ],
    ),
    "priors": (lambda: Function(priors), [floats(1, 2, 3, 4), floats(1, 3, 20, 24)]),
    "coded_boxes": (lambda: Function(coded_boxes), [boxes, floats(3, 12, 4), floats(12, 4, low=0.1)]),
    "matrix_nms": (lambda: Function(decayed), [boxes, floats(1, 3, 12, low=0)]),
    "assigned": (lambda: Function(assigned), [x4, floats(1, 2, 6, 6), floats(1, 4, 6)]),
    "plane_padding": (PlanePadding, [x4]),
    "branches": (Branches, [x4, np.array([0.5], np.float32)]),
    "repeated": (lambda: Function(repeated), [x4, np.array([3], np.int32)]),
    "order_statistics": (lambda: Function(order_statistics), [floats(3, 6, low=-0.5)]),
}


def specs_of(inputs):
    names = ["x", "y", "z", "w"]
    dims = lambda a: list(a.shape)
    return [paddle.static.InputSpec(dims(a), str(a.dtype), n) for a, n in zip(inputs, names)]


def randomize_statistics(layer):
    for name, buffer in layer.named_buffers():
        if name.endswith("_mean") or name.endswith("_variance"):
            buffer.set_value(paddle.to_tensor(floats(*buffer.shape, low=0.2)))


def without_traces(path):
    """Operators of Paddle 2 carry the stack of Python that made them: most of the file."""
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    with open(path, "rb") as file:
        program.ParseFromString(file.read())
    for block in program.blocks:
        for op in block.ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    with open(path, "wb") as file:
        file.write(program.SerializeToString())


def finish(base, inputs, results):
    if OLD:
        without_traces(base + ".pdmodel")
        if os.path.exists(base + ".pdiparams.info"):
            os.remove(base + ".pdiparams.info")
    arrays = {f"input_{i}": a for i, a in enumerate(inputs)} | {f"output_{i}": r for i, r in enumerate(results)}
    np.savez_compressed(base + ".npz", **arrays)


def write(name, make, inputs):
    paddle.seed(7)
    layer = make()
    layer.eval()
    randomize_statistics(layer)
    base = os.path.join(FOLDER, name + ("_old" if OLD else ""))
    paddle.jit.save(layer, base, input_spec=specs_of(inputs))
    results = layer(*[paddle.to_tensor(a) for a in inputs])
    results = results if isinstance(results, (tuple, list)) else [results]
    finish(base, inputs, [r.numpy() for r in results])


class Quantized(nn.Layer):
    """What training with quantization is tried on."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2D(3, 6, 3, padding=1), nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(F.relu(self.conv(x)), 1).flatten(1))


def write_separately():
    """A file per parameter, as Paddle 1 saves by default."""
    paddle.seed(7)
    layer = Quantized()
    layer.eval()
    x = floats(1, 3, 8, 8)
    folder = os.path.join(FOLDER, "separate")
    base = os.path.join(folder, "model")
    paddle.jit.save(layer, base, input_spec=specs_of([x]))
    paddle.enable_static()
    runner = paddle.static.Executor()
    program, names, outputs = paddle.static.load_inference_model(base, runner)
    results = runner.run(program, feed={names[0]: x}, fetch_list=outputs)
    paddle.static.io.save_vars(runner, folder, program, predicate=lambda v: v.persistable and v.name not in ("feed", "fetch"))
    paddle.disable_static()
    finish(base, [x], results)
    os.rename(base + ".pdmodel", os.path.join(folder, "__model__"))
    os.remove(base + ".pdiparams")


def train(layer):
    layer.train()
    for _ in range(5):
        layer(paddle.to_tensor(floats(4, 3, 8, 8)))
    layer.eval()


def write_quantized():
    """The four forms that Paddle 2 has: QuantConfig, and the older class with its weights per tensor, per channel and as integers."""
    from paddle.quantization import QAT, ImperativeQuantAware, QuantConfig
    from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

    x = floats(1, 3, 8, 8)
    specs = specs_of([x])
    paddle.seed(7)
    quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    method = QAT(QuantConfig(activation=quanter, weight=quanter))
    layer = method.quantize(Quantized())
    train(layer)
    layer = method.convert(layer)
    layer.eval()
    base = os.path.join(FOLDER, "qat_config_old")
    paddle.jit.save(layer, base, input_spec=specs)
    finish(base, [x], [layer(paddle.to_tensor(x)).numpy()])
    for form, weights, as_integers in (
        ("tensor", "abs_max", False),
        ("channels", "channel_wise_abs_max", False),
        ("integers", "channel_wise_abs_max", True),
    ):
        method = ImperativeQuantAware(
            weight_quantize_type=weights, activation_quantize_type="moving_average_abs_max", onnx_format=as_integers
        )
        layer = Quantized()
        method.quantize(layer)
        train(layer)
        base = os.path.join(FOLDER, f"qat_{form}_old")
        method.save_quantized_model(layer, base, input_spec=specs)
        paddle.enable_static()
        runner = paddle.static.Executor()
        program, names, outputs = paddle.static.load_inference_model(base, runner)
        results = runner.run(program, feed={names[0]: x}, fetch_list=outputs)
        paddle.disable_static()
        finish(base, [x], results)


def main():
    for name in sys.argv[2:] or list(NETWORKS):
        if name == ("normalization" if OLD else "plane_padding"):
            continue  # no group_norm there, no pad2d here
        write(name, *NETWORKS[name])
    if OLD and not sys.argv[2:]:
        write_quantized()
        write_separately()


if __name__ == "__main__":
    main()
