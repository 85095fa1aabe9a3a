"""Calibration samples as users give them: the name of a list file, or the samples themselves."""

import contextlib
import os
import tempfile

from .model import path_of


def _check_file(file, where, function):
    """Raises ValueError for what is not the name of one file."""
    if not isinstance(file, (str, bytes, os.PathLike)):
        raise ValueError(
            f"Invalid {where} for {function}: expect a file name, or a list with one per model input, found {type(file).__name__}; "
            "save arrays with numpy.save and give the names of their files!"
        )
    name = os.fsdecode(file)
    if "\n" in name or "\r" in name:
        raise ValueError(f"Invalid {where} {name!r} for {function}: a line break, expect one entry per sample!")
    if len(name.split()) > 1:
        raise ValueError(
            f"Invalid {where} {name!r} for {function}: a blank in a file name; files of one sample are a list {name.split()!r}, "
            "a file whose name has blanks needs another one!"
        )


def _line_of(sample, where, function):
    """One line of a list: the files of one sample, one per model input, as absolute paths."""
    files = sample if isinstance(sample, (list, tuple)) else [sample]
    for file in files:
        _check_file(file, where, function)
    paths = [os.path.abspath(path_of(file, function)) for file in files]
    for path in paths:
        if any(c.isspace() for c in path):
            raise ValueError(f"Invalid {where} for {function}: blanks in {path!r}, expect a folder and a name without!")
    return " ".join(paths) + "\n"


@contextlib.contextmanager
def list_file(dataset, function, log):
    """The path of a list for `dataset`: its own when it is a file name; else a temporary one, one line per sample, which texts call
    dataset[i]. Empty for None."""
    if dataset is None:
        yield ""
    elif not isinstance(dataset, (list, tuple)) and not isinstance(dataset, (str, bytes, os.PathLike)):
        raise ValueError(
            f"Invalid dataset for {function}: expect the name of a list file or a list of samples, found {type(dataset).__name__}!"
        )
    elif not isinstance(dataset, (list, tuple)):
        yield path_of(dataset, function)
    elif not dataset:
        raise ValueError(f"The dataset of {function} is an empty list, expect at least one sample!")
    else:
        lines = [_line_of(sample, f"dataset[{i}]", function) for i, sample in enumerate(dataset)]
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(lines)
            file.flush()
            with log.renaming(file.name, "dataset"):
                yield file.name
