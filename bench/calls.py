#!/usr/bin/env python3
"""What a call of the C library costs besides the computation: rknn_run of a model of one small layer.

  bench/calls.py [--check] [--rounds 20000] [--library librknnrt.so]

The model adds two vectors of 16 numbers, so its own computation takes well below a microsecond. Zero-copy: memory is bound once, a round is rknn_run.
Copying: rknn_inputs_set, rknn_run, rknn_outputs_get, rknn_outputs_release. Every round includes what ctypes adds per call, which is shown in its
own row (rknn_query of two numbers). Judged is the median. --check ends with 1 when a zero-copy round takes 20 us or more.
"""

import argparse
import ctypes as c
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_US = 20
NATIVE_INPUT_ATTR, NATIVE_OUTPUT_ATTR, IN_OUT_NUM = 8, 9, 0
FLOAT32 = 0


class Attr(c.Structure):
    _fields_ = [
        ("index", c.c_uint32),
        ("n_dims", c.c_uint32),
        ("dims", c.c_uint32 * 16),
        ("name", c.c_char * 256),
        ("n_elems", c.c_uint32),
        ("size", c.c_uint32),
        ("fmt", c.c_int),
        ("type", c.c_int),
        ("qnt_type", c.c_int),
        ("fl", c.c_int8),
        ("zp", c.c_int32),
        ("scale", c.c_float),
        ("w_stride", c.c_uint32),
        ("size_with_stride", c.c_uint32),
        ("pass_through", c.c_uint8),
        ("h_stride", c.c_uint32),
    ]


class Input(c.Structure):
    _fields_ = [
        ("index", c.c_uint32),
        ("buf", c.c_void_p),
        ("size", c.c_uint32),
        ("pass_through", c.c_uint8),
        ("type", c.c_int),
        ("fmt", c.c_int),
    ]


class Output(c.Structure):
    _fields_ = [
        ("want_float", c.c_uint8),
        ("is_prealloc", c.c_uint8),
        ("index", c.c_uint32),
        ("buf", c.c_void_p),
        ("size", c.c_uint32),
    ]


def make_model(path):
    import onnx
    from onnx import TensorProto, helper
    from rknn.api import RKNN

    vector = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [16])
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [vector("x")], [vector("y")])
    source = str(path) + ".onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source)
    rknn = RKNN()
    rknn.config(target_platform="rk3588", float_dtype="float32")
    assert rknn.load_onnx(source) == 0 and rknn.build(do_quantization=False) == 0 and rknn.export_rknn(str(path)) == 0
    rknn.release()


class Library:
    def __init__(self, path, model):
        self.lib = c.CDLL(str(path))
        self.lib.rknn_create_mem.restype = c.c_void_p
        self.lib.rknn_create_mem.argtypes = [c.c_uint64, c.c_uint32]
        self.lib.rknn_set_io_mem.argtypes = [c.c_uint64, c.c_void_p, c.POINTER(Attr)]
        self.lib.rknn_run.argtypes = [c.c_uint64, c.c_void_p]
        self.ctx = c.c_uint64()
        assert self.lib.rknn_init(c.byref(self.ctx), str(model).encode(), 0, 0, None) == 0

    def bind(self):
        for command in (NATIVE_INPUT_ATTR, NATIVE_OUTPUT_ATTR):
            attr = Attr()
            assert self.lib.rknn_query(self.ctx, command, c.byref(attr), c.sizeof(attr)) == 0
            attr.type = FLOAT32
            memory = self.lib.rknn_create_mem(self.ctx.value, attr.n_elems * 4)
            assert memory and self.lib.rknn_set_io_mem(self.ctx.value, memory, c.byref(attr)) == 0


def measure(call, rounds):
    for _ in range(min(rounds, 200)):
        call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        code = call()
        times.append(time.perf_counter_ns() - begin)
        assert code == 0
    return [t / 1000 for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--library", default=ROOT / "build" / "release" / "librknnrt.so")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "add.rknn"
        make_model(model)
        copying, bound = Library(options.library, model), Library(options.library, model)
    bound.bind()
    data = np.arange(16, dtype=np.float32)
    given = Input(buf=data.ctypes.data, size=data.nbytes, type=FLOAT32)
    number = (c.c_uint32 * 2)()

    def general():
        out = Output(want_float=1)
        lib, ctx = copying.lib, copying.ctx
        return (
            lib.rknn_inputs_set(ctx, 1, c.byref(given))
            or lib.rknn_run(ctx.value, None)
            or lib.rknn_outputs_get(ctx, 1, c.byref(out), None)
            or lib.rknn_outputs_release(ctx, 1, c.byref(out))
        )

    rows = {
        "one query": lambda: bound.lib.rknn_query(bound.ctx, IN_OUT_NUM, number, c.sizeof(number)),
        "zero-copy rknn_run": lambda: bound.lib.rknn_run(bound.ctx.value, None),
        "set, run, get, release": general,
    }
    print(f"{platform.processor() or platform.machine()}, {options.rounds} rounds, us per round")
    medians = {}
    for name, call in rows.items():
        times = measure(call, options.rounds)
        medians[name] = statistics.median(times)
        limit = f"  limit {LIMIT_US}" if name.startswith("zero-copy") else ""
        print(f"{name:24} median {medians[name]:7.2f}  fastest {min(times):7.2f}{limit}")
    return int(options.check and medians["zero-copy rknn_run"] >= LIMIT_US)


if __name__ == "__main__":
    sys.exit(main())
