#!/usr/bin/env python3
"""Speed of the matmul API beside oneDNN, in one run on one machine.

  bench/matmul.py [--check] [--size 1024] [--threads 1 2] [--rounds 50] [--cpu] [--library librknnrt.so] [--onednn libdnnl.so]

Products of size^3, int8 to int32 and float16 to float32. Ours: binding a new A and running, B bound before, in plain and in native layouts.
oneDNN: its matmul with B in the layout it asks for, reordered before. Where oneDNN has no float16 product but reference loops (processors
without such instructions), its float32 product stands in, with A widened beforehand and outside of the measurement: that favours oneDNN, because ours
widens A in every round. Rounds of all contestants alternate; each is judged by its fastest round, because anything else on the machine only makes a
round slower. Between its products oneDNN's threads sleep (OMP_WAIT_POLICY=passive): waiting busily they would keep cores from ours. --cpu counts processor time instead: for one thread on a machine that is busy. --check ends with 1 where we are slower than oneDNN. oneDNN is looked for as the system's library (Debian: libdnnl2 or libdnnl3).
"""

import argparse
import ctypes as c
import ctypes.util
import os
import pathlib
import platform
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
INT8, HALF = 2, 1  # RKNN_INT8_MM_INT8_TO_INT32, RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32


class Attr(c.Structure):
    _fields_ = [
        ("name", c.c_char * 256),
        ("n_dims", c.c_uint32),
        ("dims", c.c_uint32 * 16),
        ("size", c.c_uint32),
        ("type", c.c_int),
    ]


class IoAttr(c.Structure):
    _fields_ = [("A", Attr), ("B", Attr), ("C", Attr)]


class Info(c.Structure):
    _fields_ = [
        *((n, c.c_int32) for n in ("M", "K", "N", "type")),
        *((n, c.c_int16) for n in ("B_layout", "B_quant_type", "AC_layout", "AC_quant_type")),
        ("iommu_domain_id", c.c_int32),
        ("group_size", c.c_int16),
        ("reserved", c.c_int8 * 34),
    ]


class Mem(c.Structure):
    _fields_ = [
        ("virt_addr", c.c_void_p),
        ("phys_addr", c.c_uint64),
        ("fd", c.c_int32),
        ("offset", c.c_int32),
        ("size", c.c_uint32),
        ("flags", c.c_uint32),
        ("priv_data", c.c_void_p),
    ]


def plain_c(mem, attr, native):
    """C as a matrix, whatever its layout."""
    dtype = np.int32 if attr.type == 6 else np.float32
    flat = np.frombuffer((c.c_char * attr.size).from_address(mem.contents.virt_addr), dtype)
    if not native:
        return flat.reshape(attr.dims[0], attr.dims[1])
    return flat.reshape(*attr.dims[:3]).transpose(1, 0, 2).reshape(attr.dims[1], -1)


class Ours:
    def __init__(self, library, threads, kind, a, b, native):
        lib = c.CDLL(str(library))
        lib.rknn_create_mem.restype = c.POINTER(Mem)
        lib.rknn_create_mem.argtypes = [c.c_uint64, c.c_uint32]
        lib.rknn_matmul_set_io_mem.argtypes = [c.c_uint64, c.POINTER(Mem), c.POINTER(Attr)]
        lib.rknn_matmul_run.argtypes = [c.c_uint64]
        assert lib.orknn_set_thread_count(threads) == 0
        self.lib, self.ctx, self.io, self.native = lib, c.c_uint64(), IoAttr(), native
        size = a.shape[0]
        info = Info(M=size, K=a.shape[1], N=b.shape[1], type=kind, B_layout=native, AC_layout=native)
        assert lib.rknn_matmul_create(c.byref(self.ctx), c.byref(info), c.byref(self.io)) == 0
        self.a, self.b, self.c = (lib.rknn_create_mem(self.ctx, attr.size) for attr in (self.io.A, self.io.B, self.io.C))
        if native:
            block = self.io.A.dims[2]
            a = np.ascontiguousarray(a.reshape(size, -1, block).transpose(1, 0, 2))
            to = c.c_void_p(self.b.contents.virt_addr)
            assert lib.rknn_B_normal_layout_to_native_layout(b.ctypes.data_as(c.c_void_p), to, info.K, info.N, c.byref(info)) == 0
        else:
            c.memmove(self.b.contents.virt_addr, b.ctypes.data, b.nbytes)
        c.memmove(self.a.contents.virt_addr, a.ctypes.data, a.nbytes)
        for mem, attr in ((self.a, self.io.A), (self.b, self.io.B), (self.c, self.io.C)):
            assert lib.rknn_matmul_set_io_mem(self.ctx, mem, attr) == 0

    def run(self):
        if not self.native:  # a new A is bound; a native one is read where it is
            assert self.lib.rknn_matmul_set_io_mem(self.ctx, self.a, self.io.A) == 0
        assert self.lib.rknn_matmul_run(self.ctx) == 0

    def result(self):
        return plain_c(self.c, self.io.C, self.native)


class ExecArg(c.Structure):
    _fields_ = [("arg", c.c_int), ("memory", c.c_void_p)]


class OneDnn:
    """A matmul primitive through the C API of versions 2 and 3."""

    F16, F32, S32, S8 = 1, 3, 4, 5
    ANY, AB = 1, 3
    TYPES = {np.dtype(np.float16): F16, np.dtype(np.float32): F32, np.dtype(np.int32): S32, np.dtype(np.int8): S8}

    def __init__(self, lib, a, b, result):
        self.lib, self.keep = lib, [a, b]
        self.major = lib.dnnl_version().contents.major
        self.engine, self.stream = c.c_void_p(), c.c_void_p()
        self.do("dnnl_engine_create", c.byref(self.engine), 1, c.c_size_t(0))
        self.do("dnnl_stream_create", c.byref(self.stream), self.engine, 1)
        self.c = np.zeros((a.shape[0], b.shape[1]), result)
        any_b = self.describe(b, self.ANY)
        descs = self.describe(a, self.AB), any_b, None, self.describe(self.c, self.AB)
        self.pd = c.c_void_p()
        if self.major == 2:
            op = c.create_string_buffer(1 << 15)
            self.do("dnnl_matmul_desc_init", op, *descs)
            self.do("dnnl_primitive_desc_create", c.byref(self.pd), op, None, self.engine, None)
        else:
            self.do("dnnl_matmul_primitive_desc_create", c.byref(self.pd), self.engine, *descs, None)
        name = c.c_char_p()
        self.do("dnnl_primitive_desc_query", self.pd, 8, 0, c.byref(name))
        self.implementation = name.value.decode()
        self.primitive = self.create(self.pd)
        lib.dnnl_primitive_desc_query_md.restype = c.c_void_p
        packed = c.c_void_p(lib.dnnl_primitive_desc_query_md(self.pd, 131, 0))
        weights = self.memory(packed, c.c_void_p(-1))
        reorder = c.c_void_p()
        plain = self.describe(b, self.AB)
        self.do("dnnl_reorder_primitive_desc_create", c.byref(reorder), plain, self.engine, packed, self.engine, None)
        self.execute(self.create(reorder), {1: self.memory(plain, b.ctypes.data_as(c.c_void_p)), 17: weights})
        self.arguments = {
            1: self.memory(descs[0], a.ctypes.data_as(c.c_void_p)),
            33: weights,
            17: self.memory(descs[3], self.c.ctypes.data_as(c.c_void_p)),
        }

    def do(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def describe(self, array, tag):
        dims = (c.c_int64 * 12)(*array.shape)
        if self.major == 2:
            desc = c.create_string_buffer(4096)
            self.do("dnnl_memory_desc_init_by_tag", desc, 2, dims, self.TYPES[array.dtype], tag)
            return desc
        desc = c.c_void_p()
        self.do("dnnl_memory_desc_create_with_tag", c.byref(desc), 2, dims, self.TYPES[array.dtype], tag)
        return desc

    def create(self, pd):
        primitive = c.c_void_p()
        self.do("dnnl_primitive_create", c.byref(primitive), pd)
        return primitive

    def memory(self, desc, data):
        memory = c.c_void_p()
        self.do("dnnl_memory_create", c.byref(memory), desc, self.engine, data)
        return memory

    def execute(self, primitive, arguments):
        args = (ExecArg * len(arguments))(*(ExecArg(k, m) for k, m in arguments.items()))
        self.do("dnnl_primitive_execute", primitive, self.stream, len(arguments), args)
        self.do("dnnl_stream_wait", self.stream)

    def run(self):
        self.execute(self.primitive, self.arguments)

    def result(self):
        return self.c


class Version(c.Structure):
    _fields_ = [("major", c.c_int), ("minor", c.c_int), ("patch", c.c_int)]


def find_onednn(path):
    """The library, or None."""
    for name in (path, ctypes.util.find_library("dnnl"), "libdnnl.so.3", "libdnnl.so.2"):
        try:
            lib = c.CDLL(name) if name else None
        except OSError:
            continue
        if lib is not None:
            lib.dnnl_version.restype = c.POINTER(Version)
            return lib
    return None


def onednn_product(lib, kind, a, b):
    """Its product, and what to call it. Reference loops are no contestant."""
    if kind == INT8:
        return OneDnn(lib, a, b, np.int32), "oneDNN int8"
    try:
        half = OneDnn(lib, a, b, np.float32)
        if "ref" not in half.implementation:
            return half, "oneDNN float16"
    except RuntimeError:
        pass
    return OneDnn(lib, a.astype(np.float32), b.astype(np.float32), np.float32), "oneDNN float32"


def fastest(contestants, rounds, clock):
    """Milliseconds of each one's fastest round."""
    best = [float("inf")] * len(contestants)
    for _ in range(rounds):
        for i, contestant in enumerate(contestants):
            start = clock()
            contestant.run()
            best[i] = min(best[i], 1e3 * (clock() - start))
    return best


def operands(kind, size):
    rng = np.random.default_rng(0)
    if kind == INT8:
        return (rng.integers(-128, 128, (size, size), np.int8) for _ in range(2))
    return (rng.uniform(-1, 1, (size, size)).astype(np.float16) for _ in range(2))


def agree(ours, theirs):
    if ours.dtype == np.int32:
        return np.array_equal(ours, theirs)
    return np.allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def machine():
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names)} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--library", default=ROOT / "build/release/librknnrt.so")
    parser.add_argument("--onednn")
    options = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the library is loaded
    peer = find_onednn(options.onednn)
    version = peer.dnnl_version().contents if peer else None
    name = f"{version.major}.{version.minor}.{version.patch}" if peer else "is missing"
    print(f"# {machine()}; oneDNN {name}; {options.size}^3, fastest of {options.rounds} rounds")
    slower = []
    for threads in options.threads:
        if peer:
            c.CDLL("libgomp.so.1").omp_set_num_threads(threads)
        for kind in (INT8, HALF):
            a, b = operands(kind, options.size)
            label = "int8" if kind == INT8 else "float16"
            ours = [Ours(options.library, threads, kind, a, b, native) for native in (0, 1)]
            theirs, name = onednn_product(peer, kind, a, b) if peer else (None, "")
            times = fastest(
                [*ours, *([theirs] if peer else [])], options.rounds, time.process_time if options.cpu else time.perf_counter
            )
            for layout, contestant, ms in zip(("plain", "native"), ours, times):
                line = f"{label:8} {layout:7} {threads} threads  ours {ms:7.2f} ms  {2e-6 * options.size**3 / ms:6.0f} GOP/s"
                if peer:
                    if not agree(contestant.result(), theirs.result()):
                        sys.exit(f"{label} {layout}: the results differ")
                    line += f"   {name} {times[-1]:7.2f} ms ({theirs.implementation})   {times[-1] / ms:5.2f} x its speed"
                    if times[-1] < ms:
                        slower.append(f"{label} {layout}, {threads} threads")
                print(line, flush=True)
    if options.check and (slower or not peer):
        sys.exit("slower than oneDNN: " + "; ".join(slower) if peer else "oneDNN is missing")


if __name__ == "__main__":
    main()
