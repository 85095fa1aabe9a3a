"""Makes the layers of this folder: operands from a fixed seed, streams and results by `openrknn emit`.

Usage: python3 tests/data/npu/make.py build/release/openrknn
"""

import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def write_npy(path, descr, shape, values):
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    body = struct.pack(f"<{len(values)}{'b' if descr == '|i1' else 'i'}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)


def tensor(number, height, width, channels, zero_point, scale, file):
    return {
        "id": number,
        "height": height,
        "width": width,
        "channels": channels,
        "zero_point": zero_point,
        "scale": scale,
        "file": file,
    }


def convolution(folder, rng, depthwise, kernel, pads, inputs, outputs, per_channel=False):
    """One convolution on a picture of 5 rows and 7 columns."""
    height = 5 + pads[0] + pads[1] - kernel[0] + 1
    width = 7 + pads[2] + pads[3] - kernel[1] + 1
    taps = kernel[0] * kernel[1]
    layer = {
        "name": folder.name,
        "tensors": [
            tensor(0, 5, 7, inputs, 13, 0.02, "input.npy"),
            tensor(1, height, width, outputs, -20, 0.7, "output.npy"),
        ],
        "ops": [
            {
                "kind": "depthwise" if depthwise else "conv",
                "input": 0,
                "output": 1,
                "kernel": kernel,
                "stride": [1, 1],
                "pad_top_bottom_left_right": pads,
                "weights": "weights_0.npy",
                "bias": "bias_0.npy",
                "weights_zero_point": 0,
                "weights_scale": 0.011,
            }
        ],
    }
    if per_channel:
        factors = [rng.randint(4000, 16384) for _ in range(outputs)]
        layer["per_channel"] = {"channel_multipliers": factors, "channel_shift": 14, "activation": "relu"}
    shape = (1, *kernel, inputs) if depthwise else (outputs, *kernel, inputs)
    count = taps * inputs * (1 if depthwise else outputs)
    write_npy(folder / "weights_0.npy", "|i1", shape, [rng.randint(-127, 127) for _ in range(count)])
    write_npy(folder / "bias_0.npy", "<i4", (outputs,), [rng.randint(-3000, 3000) for _ in range(outputs)])
    write_npy(folder / "input.npy", "|i1", (5, 7, inputs), [rng.randint(-128, 127) for _ in range(35 * inputs)])
    return layer


def pooling(folder, rng):
    layer = {"kind": "pool", "method": "average", "dtype": "i8", "channels": 20, "in_height": 5, "in_width": 7}
    layer |= {"out_height": 2, "out_width": 3, "kernel": [2, 3], "stride": [2, 2], "pad": [0, 0, 0, 0]}
    write_npy(folder / "input.npy", "|i1", (20, 5, 7), [rng.randint(-128, 127) for _ in range(35 * 20)])
    return {"name": folder.name, "layer": layer, "tolerance": "exact"}


CASES = {
    "odd_channels": lambda f, r: convolution(f, r, False, [3, 3], [1, 1, 1, 1], 19, 21),
    "per_channel_relu": lambda f, r: convolution(f, r, False, [1, 1], [0, 0, 0, 0], 32, 40, per_channel=True),
    "depthwise_rectangle": lambda f, r: convolution(f, r, True, [3, 5], [1, 1, 2, 2], 24, 24),
    "average_pool": pooling,
}


def main(program):
    for number, (name, make) in enumerate(CASES.items()):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / name
            folder.mkdir()
            (folder / "layer.json").write_text(json.dumps(make(folder, random.Random(number)), indent=1))
            shutil.rmtree(HERE / name, ignore_errors=True)
            subprocess.run([program, "emit", str(folder), "-o", str(HERE / name)], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
