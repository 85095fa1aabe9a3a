"""The libraries built for 64-bit and 32-bit ARM, run by qemu: the ABI of the headers, and the same bytes as on this machine in every form of the
kernels. `make test-cross` builds them first; without these builds the tests are skipped."""

import os
import shutil
import subprocess

import pytest
from library import BUILD, FOREIGN_NAMES, FORMER_NAMES, ROOT, build_model, exported, own_functions, published_functions, run

# preset: (emulator, folder of its C library)
PROCESSORS = {"aarch64": ("qemu-aarch64", "/usr/aarch64-linux-gnu"), "armhf": ("qemu-arm", "/usr/arm-linux-gnueabihf")}
# What the processors that qemu knows have of the forms of the kernels; programs for 32 bits have one.
FORMS = {
    ("aarch64", "max"): ("portable", "neon", "dotprod", "i8mm"),
    ("aarch64", "cortex-a76"): ("portable", "neon", "dotprod"),
    ("aarch64", "cortex-a72"): ("portable", "neon"),
    ("armhf", "max"): ("portable",),
}
# Programs of tests/capi that are called with a model and the value of every input byte, and print everything they get.
PROGRAMS = ("basic", "ways")
# Results of integer networks are the same whatever computes them; floats are compared in the portable form.
NETWORKS = {
    "int8": ("rk3588", True),
    "float16": ("rk3588", False),
    "small": ("rv1106", True),
    "detector": ("rk3588", True, "boxes"),
}


@pytest.fixture(scope="module", params=PROCESSORS)
def emulated(request):
    """A function that runs a program of the cross build."""
    emulator, libraries = PROCESSORS[request.param]
    folder = ROOT / "build" / request.param
    if not (folder / "librknnrt.so").exists() or not shutil.which(emulator):
        pytest.skip(f"needs {folder} and {emulator}: make test-cross")

    def call(program, *arguments, form="portable"):
        return run(emulator, "-L", libraries, folder / program, *arguments, env=os.environ | {"ORKNN_ISA": form})

    call.folder = folder
    call.forms = FORMS[request.param, "max"]
    return call


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("networks")
    return {name: build_model(folder / f"{name}.rknn", *how) for name, how in NETWORKS.items()}


def test_layout_of_the_headers(emulated):
    """The program's checks are made by the compiler; that it was built says that sizes, offsets and values are the published ones."""
    assert emulated("capi_abi_layout") == "35 functions\n"


@pytest.mark.parametrize("name", ["rknnrt", "rknnmrt"])
def test_exported_names(emulated, name):
    names = exported(emulated.folder / f"lib{name}.so")
    assert names - FORMER_NAMES - FOREIGN_NAMES == published_functions() | own_functions()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("network", NETWORKS)
def test_same_bytes_as_here(emulated, networks, program, network):
    here = run(BUILD / f"capi_{program}", networks[network], 100, env=os.environ | {"ORKNN_ISA": "portable"})
    is_float = network == "float16"
    for form in ("portable",) if is_float else emulated.forms:
        assert emulated(f"capi_{program}", networks[network], 100, form=form) == here, form
    assert "output 0" in here


def test_operator_of_a_program(emulated, networks):
    """The program's own GlobalAveragePool stands in for the built-in one: callbacks get the same values, the network gives the same bytes."""
    words = (networks["float16"], 100, "GlobalAveragePool")
    here = run(BUILD / "capi_custom", *words, env=os.environ | {"ORKNN_ISA": "portable"})
    assert emulated("capi_custom", *words) == here
    assert "computed 1 times" in here and "output 0" in here


@pytest.mark.parametrize(("preset", "model"), FORMS)
def test_choice_of_the_form(preset, model):
    """The form is chosen by what the processor says it has; the warning about one that nothing has lists all that are there."""
    emulator, libraries = PROCESSORS[preset]
    program = ROOT / "build" / preset / "orknn_sim_tests"
    if not program.exists() or not shutil.which(emulator):
        pytest.skip(f"needs {program} and {emulator}: make test-cross")
    done = subprocess.run(
        [emulator, "-L", libraries, "-cpu", model, program, "--gtest_filter=IntKernels.FormsOfMaps"],
        capture_output=True,
        text=True,
        env=os.environ | {"ORKNN_ISA": "none"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    forms = FORMS[preset, model]
    assert f"{forms[-1]} is used; expected one of {', '.join(forms)}\n" in done.stdout + done.stderr
