"""`python -m rknn.api.rknn_convert -i model.yml -o folder -t rk3588`: converts the models that a yml file describes."""

import argparse
import os
import sys

from .. import _openrknn
from . import devices
from .log import Log
from .model import guarded
from .rknn import RKNN


class Converter(RKNN):
    """An RKNN object that is told what to do by one model of a yml file."""

    @guarded
    def load(self, model):
        files = model["other_files"]
        self._load(
            "load_" + model["framework"],
            model["framework"],
            model["path"],
            model["inputs"] or None,
            model["input_size_list"] or None,
            model["outputs"] or None,
            weights=files[0] if files else None,
        )

    def convert(self, model, platform, output):
        """True when the .rknn was written."""
        configs = {key: value for key, value in model["configs"].items() if value is not None}
        self.config(**{**configs, "target_platform": platform})
        return (
            self.load(model) == 0
            and self.build(do_quantization=model["do_quantization"], dataset=model["dataset"] or None) == 0
            and self.export_rknn(output) == 0
        )

    @guarded
    def require_board(self, target, device):
        """Figures of the simulator are none of a board: whoever asks for those gets an error where there is none."""
        devices.require(devices.chip_of(target), device, "leave out -e and -d")

    def analyse(self, inputs, folder, target, device):
        return self.accuracy_analysis(inputs=inputs.split(), output_dir=folder, target=target, device_id=device) == 0

    def evaluate(self, target, device):
        """Time and memory, measured on a board."""
        if self.init_runtime(target=target, device_id=device, perf_debug=self._log.verbose, eval_mem=True) != 0:
            return False
        return self.eval_perf() is not None and self.eval_memory() is not None


def _arguments(words):
    parser = argparse.ArgumentParser(prog="rknn-convert", description="Converts the models that a yml file describes to .rknn.")
    parser.add_argument("-i", "--input", required=True, metavar="FILE", help="yml file")
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="folder of the .rknn, which gets the model's name")
    parser.add_argument("-t", "--target", required=True, metavar="PLATFORM", help="chip to build for")
    parser.add_argument("-e", "--evaluate", action="store_true", help="measure time and memory on a connected board")
    parser.add_argument(
        "-a", "--accuracy", metavar="FILES", help="analyse the accuracy with these files, one per model input: 'x1.jpg x2.jpg'"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show more")
    parser.add_argument("-d", "--device", nargs="?", const="", metavar="ID", help="use the connected board, the one with this id")
    return parser.parse_args(words)


def _convert(model, options):
    rknn = Converter(verbose=options.verbose)
    try:
        name = os.fsdecode(model["name"])
        if not rknn.convert(model, options.target, os.path.join(options.output, name + ".rknn")):
            return False
        target, device = (None, None) if options.device is None else (options.target, options.device or None)
        if (options.evaluate or options.device is not None) and rknn.require_board(options.target, options.device) != 0:
            return False
        folder = os.path.join(options.output, "snapshot")
        if options.accuracy and not rknn.analyse(options.accuracy, folder, target, device):
            return False
        return not options.evaluate or rknn.evaluate(options.target, device)
    finally:
        rknn.release()


def main(words=None):
    options = _arguments(words)
    try:
        models = _openrknn.read_convert_file(options.input)
        os.makedirs(options.output, exist_ok=True)
    except (ValueError, OSError) as error:
        Log().error("rknn_convert", str(error))
        return 1
    for model in models:
        try:
            if not _convert(model, options):
                return 1
        except ValueError:  # config() has logged it
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
