"""The installed C libraries: what they show, and that other builds find and use them through pkg-config and CMake."""

import os
import re
import subprocess

import numpy as np
import pytest
from library import BUILD, FOREIGN_NAMES, FORMER_NAMES, ROOT, build_model, exported, own_functions, published_functions, run
from rknn.api import RKNN

if not BUILD.exists():
    pytest.skip(f"needs the libraries of the build in {BUILD}", allow_module_level=True)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--component", "runtime", "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_model(tmp_path_factory.mktemp("model") / "rv1106.rknn", "rv1106", True)


@pytest.fixture(scope="module")
def expected(model):
    """What the test program prints when it is built with the tree."""
    return run(BUILD / "capi_basic", model, 100)


def pkg_config(prefix, *arguments):
    return run("pkg-config", *arguments, env=os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()


def compile_c(target, source, *flags):
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", target, source, *flags)
    return target


@pytest.mark.parametrize("name", ["rknnrt", "rknnmrt"])
def test_only_the_api_is_visible(prefix, name):
    library = prefix / "lib" / f"lib{name}.so"
    names = exported(library)
    assert published_functions() <= names
    assert names - published_functions() - FORMER_NAMES - FOREIGN_NAMES == own_functions()
    dynamic = run("readelf", "-d", library)
    assert re.findall(r"SONAME\).*\[(.*)\]", dynamic) == [f"lib{name}.so"]
    needed = set(re.findall(r"NEEDED\).*\[(\w[\w+-]*)", dynamic))
    assert needed <= {"libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64"}, "it must drop into an existing system"
    # People look for the version with `strings`.
    assert re.search(rb"lib%s version: \d+\.\d+\.\d+ \(" % name.encode(), library.read_bytes())


def test_pkg_config_shared(prefix, tmp_path, model, expected):
    flags = pkg_config(prefix, "--cflags", "--libs", "rknnrt")
    program = compile_c(tmp_path / "basic", ROOT / "tests/capi/basic.c", *flags)
    assert run(program, model, 100, env=os.environ | {"LD_LIBRARY_PATH": str(prefix / "lib")}) == expected
    assert pkg_config(prefix, "--modversion", "rknnrt") == re.findall(
        r"project\(openrknn VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()
    )


def test_pkg_config_static(prefix, tmp_path, model, expected):
    flags = pkg_config(prefix, "--static", "--cflags", "--libs", "rknnrt")
    flags = [f"-l:lib{flag[2:]}.a" if flag == "-lrknnrt" else flag for flag in flags]
    program = compile_c(tmp_path / "basic", ROOT / "tests/capi/basic.c", *flags)
    assert "librknnrt" not in run("readelf", "-d", program)
    assert run(program, model, 100) == expected


PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C CXX)
find_package(openrknn 0.1 REQUIRED)
foreach(library rknnrt rknnrt_static)
  add_executable(with_${library} ${SOURCE})
  target_link_libraries(with_${library} PRIVATE openrknn::${library})
endforeach()
add_executable(with_rknnmrt ${ABI})
target_link_libraries(with_rknnmrt PRIVATE openrknn::rknnmrt)
"""


def test_cmake_package(prefix, tmp_path, model, expected):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    sources = [f"-DSOURCE={ROOT}/tests/capi/basic.c", f"-DABI={ROOT}/tests/capi/abi_layout.c"]
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *sources)
    run("cmake", "--build", tmp_path / "build")
    for library in ("rknnrt", "rknnrt_static"):
        assert run(tmp_path / "build" / f"with_{library}", model, 100) == expected, library
    assert run(tmp_path / "build" / "with_rknnmrt") == "35 functions\n"


SMALL_CHIPS = r"""
#include <stdio.h>
#include <string.h>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"

int main(int argc, char** argv) {
  rknn_context context = 0, copy = 0;
  rknn_matmul_ctx product = 0;
  rknn_input_output_num number;
  rknn_input input;
  rknn_output output;
  rknn_matmul_info info;
  rknn_matmul_io_attr attr;
  rknn_tensor_attr shape;
  memset(&input, 0, sizeof input);
  memset(&output, 0, sizeof output);
  memset(&info, 0, sizeof info);
  memset(&shape, 0, sizeof shape);
  if (argc < 2) return 2;
  printf("init %d\n", rknn_init(&context, argv[1], 0, 0, NULL));
  printf("number %d %u\n", rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number), number.n_input);
  printf("dup %d\n", rknn_dup_context(&context, &copy));
  printf("inputs %d\n", rknn_inputs_set(context, 1, &input));
  printf("run %d\n", rknn_run(context, NULL));
  printf("outputs %d\n", rknn_outputs_get(context, 1, &output, NULL));
  printf("release %d\n", rknn_outputs_release(context, 1, &output));
  printf("cores %d\n", rknn_set_core_mask(context, RKNN_NPU_CORE_0));
  printf("batch %d\n", rknn_set_batch_core_num(context, 1));
  printf("shapes %d\n", rknn_set_input_shapes(context, 1, &shape));
  printf("matmul %d\n", rknn_matmul_create(&product, &info, &attr));
  printf("custom %d\n", rknn_register_custom_ops(context, NULL, 0));
  printf("destroy %d\n", rknn_destroy(context));
  return 0;
}
"""


VIEWS = """
#include <stdio.h>
#include <string.h>

#include "rknn_api.h"

int main(int argc, char** argv) {
  rknn_context context = 0;
  rknn_tensor_attr general, native;
  const int code = argc < 2 ? 2 : rknn_init(&context, argv[1], 0, 0, NULL);
  if (code == 0) {
    general.index = native.index = 0;
    rknn_query(context, RKNN_QUERY_INPUT_ATTR, &general, sizeof general);
    rknn_query(context, RKNN_QUERY_NATIVE_INPUT_ATTR, &native, sizeof native);
    printf("n_dims %u same %d\\n", general.n_dims, memcmp(&general, &native, sizeof general) == 0);
    rknn_destroy(context);
  }
  return code == 0 ? 0 : -code;
}
"""


def test_the_small_chips_runtime_has_native_inputs_and_its_own_models(prefix, tmp_path, make_onnx):
    (tmp_path / "views.c").write_text(VIEWS)
    shape = ("float32", [1, 8, 4, 4])
    source = make_onnx([("Relu", ["x"], ["y"], {})], {"x": shape}, {"y": shape})
    np.save(tmp_path / "x.npy", np.ones(shape[1], np.float32))
    (tmp_path / "list.txt").write_text("x.npy\n")
    models = {}
    for chip in ("rv1106", "rk3588"):
        api = RKNN()
        api.config(target_platform=chip)
        assert api.load_onnx(source) == 0
        assert api.build(do_quantization=True, dataset=str(tmp_path / "list.txt")) == 0
        models[chip] = tmp_path / f"{chip}.rknn"
        assert api.export_rknn(str(models[chip])) == 0
        api.release()
    environment = os.environ | {"LD_LIBRARY_PATH": str(prefix / "lib")}
    for name, expected in (("rknnrt", "n_dims 4 same 0\n"), ("rknnmrt", "n_dims 5 same 1\n")):
        program = compile_c(tmp_path / name, tmp_path / "views.c", *pkg_config(prefix, "--cflags", "--libs", name))
        assert run(program, models["rv1106"], env=environment) == expected
        done = subprocess.run([program, models["rk3588"]], capture_output=True, text=True, env=environment)
        assert done.returncode == (0 if name == "rknnrt" else 13), done.stderr
        if name == "rknnmrt":
            assert "the model was made for rk3588, this is the runtime of the small chips (-13)" in done.stderr


def test_the_small_chips_runtime_has_no_copying_api(prefix, tmp_path, model):
    (tmp_path / "small.c").write_text(SMALL_CHIPS)
    refused = "dup inputs outputs release cores batch shapes matmul custom".split()
    for static in (False, True):
        flags = pkg_config(prefix, *(["--static"] if static else []), "--cflags", "--libs", "rknnmrt")
        if static:
            flags = [f"-l:lib{flag[2:]}.a" if flag == "-lrknnmrt" else flag for flag in flags]
        program = compile_c(tmp_path / f"small{static}", tmp_path / "small.c", *flags)
        done = subprocess.run(
            [program, model], capture_output=True, text=True, env=os.environ | {"LD_LIBRARY_PATH": str(prefix / "lib")}
        )
        assert done.returncode == 0, done.stderr
        codes = dict(line.split()[:2] for line in done.stdout.splitlines())
        assert {name for name, code in codes.items() if code == "-13"} == set(refused), done.stdout
        assert {name for name, code in codes.items() if code == "0"} == {"init", "number", "run", "destroy"}, done.stdout
        assert done.stderr.count("the small chips' runtime has the zero-copy API only (-13)") == len(refused)
