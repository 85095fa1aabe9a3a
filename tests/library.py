"""What tests of the C libraries share: where they are built, what they export, models to run them on, structures of
their calls."""

import ctypes
import os
import pathlib
import re
import subprocess

import rknn
from rknn.api import RKNN

ROOT = pathlib.Path(__file__).resolve().parent.parent
# `make test-threads` gives the folder of a build with a sanitizer; its C programs and its server are then tested.
OTHER_BUILD = os.environ.get("ORKNN_TEST_BUILD")
BUILD = ROOT / (OTHER_BUILD or "build/release")
SERVER = (BUILD if OTHER_BUILD else pathlib.Path(rknn.__file__).parent / "bin") / "rknn_server"
MODELS = ROOT / "examples" / "models"

# What a build with a sanitizer needs in every program that loads it (`scripts/test sanitized`).
SANITIZER = {
    name: os.environ[name]
    for name in ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "PYTHONPATH")
    if "asan" in os.environ.get("LD_PRELOAD", "") and name in os.environ
}

# Names of earlier releases that old programs may still be linked with.
FORMER_NAMES = {"rknn_destory_mem", "rknn_matmul_create_dyn_shape"}
# What plug-ins for a GPU expect to find beside the API: on boards the driver's library has it.
FOREIGN_NAMES = {"clImportMemoryARM"}


def run(*command, **options):
    """Standard output of a command that has to succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def published_functions():
    """The functions of the vendor's headers, from the list that the layout program was made with."""
    names = set(re.findall(r'\{"(\w+)", \(any_function\)', (ROOT / "tests" / "capi" / "abi_layout.c").read_text()))
    assert len(names) == 35
    return names


def own_functions():
    return set(re.findall(r"\b(orknn_\w+)\(", (ROOT / "include" / "openrknn.h").read_text()))


def exported(library):
    """Names that a shared library defines for others, of any processor."""
    names = set()
    for line in run("readelf", "--dyn-syms", "--wide", library).splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(":").isdigit() and columns[4] in ("GLOBAL", "WEAK") and columns[6] != "UND":
            names.add(columns[7])
    return names


def build_model(path, platform, quantize, network="shapes"):
    """One of the bundled networks as a .rknn: the classifier of 64 x 64 pictures, "shapes", or the detector, "boxes"."""
    api = RKNN()
    api.config(target_platform=platform, mean_values=[[127.5] * 3], std_values=[[127.5] * 3])
    assert api.load_onnx(str(MODELS / f"{network}.onnx")) == 0
    pictures = sorted(str(p) for p in (MODELS / "pictures").glob("shape_*.png" if network == "shapes" else "boxes_*.png"))[:10]
    assert api.build(do_quantization=quantize, dataset=pictures if quantize else None) == 0
    assert api.export_rknn(os.fspath(path)) == 0
    api.release()
    return path


# --- structures of rknn_api.h
class TensorAttr(ctypes.Structure):
    _fields_ = [
        ("index", ctypes.c_uint32),
        ("n_dims", ctypes.c_uint32),
        ("dims", ctypes.c_uint32 * 16),
        ("name", ctypes.c_char * 256),
        ("n_elems", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("fmt", ctypes.c_int),
        ("type", ctypes.c_int),
        ("qnt_type", ctypes.c_int),
        ("fl", ctypes.c_int8),
        ("zp", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("w_stride", ctypes.c_uint32),
        ("size_with_stride", ctypes.c_uint32),
        ("pass_through", ctypes.c_uint8),
        ("h_stride", ctypes.c_uint32),
    ]


class Input(ctypes.Structure):
    _fields_ = [
        ("index", ctypes.c_uint32),
        ("buf", ctypes.c_void_p),
        ("size", ctypes.c_uint32),
        ("pass_through", ctypes.c_uint8),
        ("type", ctypes.c_int),
        ("fmt", ctypes.c_int),
    ]


class Output(ctypes.Structure):
    _fields_ = [
        ("want_float", ctypes.c_uint8),
        ("is_prealloc", ctypes.c_uint8),
        ("index", ctypes.c_uint32),
        ("buf", ctypes.c_void_p),
        ("size", ctypes.c_uint32),
    ]
