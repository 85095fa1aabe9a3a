"""Calls that judge a model: speed and memory, predicted for the chip it was made for, and accuracy."""

import functools
import os
import shutil
import sys

from . import devices, reports
from .model import Model, guarded, path_of, tolerant


def terminal_width():
    """Characters of a line of stdout, 0 when that is not a terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if is_terminal else 0


class Measuring(Model):
    """eval_perf(), eval_memory() and accuracy_analysis()."""

    def eval_perf(self, *args, is_print=True, **others):
        """Predicted speed: a text, with the layer table when init_runtime had perf_debug=True; a dict for Toolkit1 chips and scripts."""
        if args and isinstance(args[0], bool):  # Toolkit2: is_print comes first; Toolkit1: the inputs do, and are not needed
            is_print = args[0]
        self._remark_unused(
            "eval_perf", others, "inputs", "data_type", "data_format", "loop_cnt", "perf_debug", "fix_freq", legal=("is_print",)
        )
        facts = self._measure("eval_perf")
        if facts is None:
            return None
        if facts["total_us"] is None:
            self._log.warn("eval_perf", f"The times are unknown: {facts['why_no_time']}!")
        if self._is_toolkit1(facts):
            result = reports.performance_dict(facts)
            if is_print:
                print(reports.performance_table(result, facts["npu_mhz"]), end="")
                self._log.info(reports.SIMULATED)
            return result
        text = reports.performance_text(facts, self._perf_debug)
        if is_print:
            width = terminal_width()
            print(reports.fitted(text, width) if width else text, end="")
            if not self._perf_debug:
                self._log.info(reports.DETAIL_HINT)
        return text

    @tolerant
    def eval_memory(self, is_print=True):
        """Memory the model takes on the chip, as a dict; needs eval_mem=True in init_runtime."""
        facts = self._measure("eval_memory")
        if facts is None:
            return None
        if not self._eval_mem:
            self._fail("eval_memory", "When init runtime, parameter <eval_mem> should be set to True")
            return None
        facts["file"] = self._file_size()
        result = reports.memory_dict_toolkit1(facts) if self._is_toolkit1(facts) else reports.memory_dict(facts)
        if is_print:
            print(reports.memory_text(result, facts), end="")
        return result

    @guarded
    def accuracy_analysis(
        self, inputs, output_dir="./snapshot", *args, target=None, device_id=None, calc_qnt_error=True, dump_file_type="tensor"
    ):
        """Compares every layer of the built model with the float model on one sample and prints the table; with `output_dir` the
        values of all layers and an HTML report are stored there. `inputs`: one file per model input (jpg, png, bmp, npy), or the path
        of a text with one such line. Without names follow target and device_id, in Toolkit1 after calc_qnt_error and before
        dump_file_type."""
        rest = list(args)
        if rest and isinstance(rest[0], bool):
            calc_qnt_error = rest.pop(0)
        named = (target, device_id, dump_file_type)
        if len(rest) > len(named):
            raise ValueError(f"accuracy_analysis takes at most 6 arguments without names, found {2 + len(args)}!")
        target, device_id, dump_file_type = (*rest, *named[len(rest) :])
        builder = self._need_builder("accuracy_analysis")
        address = None
        if target:
            target = devices.chip_of(target)
            address, why = devices.find(target, device_id)
            if address is None:
                warn = functools.partial(self._log.warn, "accuracy_analysis")
                devices.simulate_instead(target, device_id, why, warn)
            else:
                self._log.info(f"The layers of the chip come from the device at {address}")
        if isinstance(inputs, (str, bytes, os.PathLike)):
            inputs = self._one_sample(path_of(inputs, "accuracy_analysis"))
        if not hasattr(inputs, "__iter__"):
            raise ValueError(f"Invalid inputs for accuracy_analysis, expect a list of files, one per input, found {inputs!r}!")
        inputs = [path_of(file, "accuracy_analysis") for file in inputs]
        if dump_file_type not in ("tensor", "npy"):
            raise ValueError(f"Invalid dump_file_type {dump_file_type!r}, expect in ['tensor', 'npy']!")
        folder = "" if output_dir is None else os.fsdecode(output_dir)
        table, renamed, toolkit1 = builder.accuracy_analysis(
            inputs, folder, target or "", address or "", bool(calc_qnt_error), dump_file_type == "npy", terminal_width()
        )
        if not toolkit1 or calc_qnt_error:
            print(table)
        if not folder:
            return
        if not toolkit1:
            self._log.info(f"The error analysis results save to: {folder}/error_analysis.txt")
            if renamed:
                self._log.warn(
                    "accuracy_analysis", f"The mapping of layer_name & file_name save to: {folder}/map_name_to_file.txt"
                )

    def _one_sample(self, path):
        """The files of the first line of a list; a picture or an array stands for itself."""
        if not path.lower().endswith(".txt"):
            return [path]
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:  # file names may be any bytes
            samples = [line.split() for line in lines if line.strip()]
        if not samples:
            raise ValueError(f"There is no valid data in the dataset: {path}. Please check it.")
        if len(samples) > 1:
            self._log.warn("accuracy_analysis", f"One sample is analysed, the first of {len(samples)} in '{path}'!")
        beside = lambda name: os.path.join(os.path.dirname(path), name)
        return [beside(name) if os.path.exists(beside(name)) else name for name in samples[0]]

    def _measure(self, function):
        if self._session is None:
            self._fail(function, "The runtime is not initialized, call init_runtime first!")
            return None
        return self._session.measure(self._cores)

    def _is_toolkit1(self, facts):
        """Whether results have Toolkit1's form: its chips, and scripts whose config() has its keywords."""
        return facts["generation"] == 1 or self._toolkit1 and self._loaded is None

    def _file_size(self):
        return self._builder.file_size() if self._loaded is None else self._loaded.file_size()
