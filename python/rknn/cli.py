"""The commands of the wheel: they hand over to the native programs that are installed beside this file."""

import os
import pathlib
import sys


def _run(name):
    program = pathlib.Path(__file__).resolve().parent / "bin" / name
    os.execv(program, [str(program), *sys.argv[1:]])


def main():
    os.environ["ORKNN_PYTHON"] = sys.executable  # for the command that is spread by Python
    _run("openrknn")


def server():
    _run("rknn_server")
