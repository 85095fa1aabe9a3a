"""The `openrknn` command: hands over to the native program that is installed beside this file."""

import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).resolve().parent / "bin" / "openrknn"
    os.execv(program, [str(program), *sys.argv[1:]])
