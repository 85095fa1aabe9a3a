"""Calibration samples as users give them: the name of a list file, or the samples themselves."""

import contextlib
import os
import tempfile

from .model import path_of


def _line_of(sample, function):
    """One line of a list: the files of one sample, one per model input, as absolute paths."""
    files = sample if isinstance(sample, (list, tuple)) else [sample]
    paths = [os.path.abspath(path_of(file, function)) for file in files]
    for path in paths:
        if any(c.isspace() for c in path):
            raise ValueError(f"Invalid dataset entry {path!r} for {function}: blanks separate the files of a sample, rename it!")
    return " ".join(paths) + "\n"


@contextlib.contextmanager
def list_file(dataset, function, log):
    """The path of a list for `dataset`: its own when it is a file name; else a temporary one, one line per sample, which texts call
    dataset[i]. Empty for None."""
    if dataset is None:
        yield ""
    elif not isinstance(dataset, (list, tuple)):
        yield path_of(dataset, function)
    elif not dataset:
        raise ValueError(f"The dataset of {function} is an empty list, expect at least one sample!")
    else:
        lines = [_line_of(sample, function) for sample in dataset]
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(lines)
            file.flush()
            with log.renaming(file.name, "dataset"):
                yield file.name
