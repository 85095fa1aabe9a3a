"""Calls that make a .rknn of a loaded model: options, build, hybrid quantization."""

import os

import numpy as np

from .. import _openrknn
from . import options as config_options
from .log import Progress
from .model import Model, building, guarded, loading, path_of
from .samples import list_file


def batch_of(value):
    """rknn_batch_size as a number; None and -1 mean one sample. Toolkit1's third argument of build is pre_compile, a truth value."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return 1
    samples = config_options.whole_number("rknn_batch_size", value)
    return 1 if samples == -1 else samples


class Building(Model):
    """config(), build() and hybrid quantization."""

    def config(self, **kwargs):
        """Sets the build options (keywords only); see docs/python_api.md. Raises ValueError on an illegal one."""
        self._alive("config")
        try:
            options = config_options.convert(kwargs)
            self._use_log()
            self._builder = _openrknn.Builder.create(options, Progress(self._log))
            self._builder_used, self._options = False, options
            self._toolkit1 = self._builder.toolkit1
        except ValueError as error:
            self._log.error("config", str(error))
            raise
        self._session = None

    @building
    def build(
        self, do_quantization=True, dataset=None, rknn_batch_size=None, auto_hybrid=False, auto_hybrid_quant=False, **others
    ):
        """Optimizes and compiles the loaded model; with do_quantization to 8 bits, calibrated with the samples of `dataset`: the
        name of a file with one line per sample, or a list of samples (a file name, or one per input).
        rknn_batch_size multiplies the first extent of every input and output; calibration still takes single samples.
        auto_hybrid leaves the fewest layers in float16 that make every output reach config's auto_hybrid_cos_thresh."""
        self._remark_unused(
            "build", others, "pre_compile", legal=("do_quantization", "dataset", "rknn_batch_size", "auto_hybrid")
        )
        builder = self._need_builder("build")
        if others.get("pre_compile") or isinstance(rknn_batch_size, (bool, np.bool_)) and rknn_batch_size:
            self._log.info("pre_compile: every model is compiled for its chip, so is this one")
        do_quantization = config_options.flag("do_quantization", do_quantization)
        builder.set_batch(batch_of(rknn_batch_size))
        auto_hybrid = bool(auto_hybrid or auto_hybrid_quant)
        self._log.info("rknn building ...")
        wants_samples = do_quantization or auto_hybrid
        with list_file(dataset if wants_samples else None, "build", self._log) as samples:
            for line in builder.build(do_quantization, samples, auto_hybrid):
                self._log.info(line)
        self._log.info("rknn building done.")

    @building
    def hybrid_quantization_step1(
        self, dataset=None, rknn_batch_size=None, proposal=False, proposal_dataset_size=1, custom_hybrid=None
    ):
        """Calibrates and writes <name>.model, <name>.data and <name>.quantization.cfg into the current directory; the last one says
        which layers leave int8, for you to edit. `proposal` fills in the layers auto_hybrid would choose, `custom_hybrid` every layer
        between pairs of tensors."""
        builder = self._need_builder("hybrid_quantization_step1")
        builder.set_batch(batch_of(rknn_batch_size))
        proposal_samples = 1 if proposal_dataset_size is None else proposal_dataset_size
        proposal_samples = config_options.whole_number("proposal_dataset_size", proposal_samples)
        pairs = [custom_hybrid] if custom_hybrid and isinstance(custom_hybrid[0], str) else custom_hybrid or []
        if any(len(pair) != 2 or not all(isinstance(name, str) for name in pair) for pair in pairs):
            raise ValueError(f"Invalid custom_hybrid {custom_hybrid!r}, expect [[input_name, output_name], ...]!")
        with list_file(dataset, "hybrid_quantization_step1", self._log) as samples:
            files, summary = builder.hybrid_step1(samples, bool(proposal), proposal_samples, [tuple(pair) for pair in pairs])
        for line in summary:
            self._log.info(line)
        self._log.info(f"hybrid_quantization_step1 wrote {', '.join(os.path.normpath(file) for file in files)}")
        self._log.info(f"Edit {os.path.normpath(files[2])}, then call hybrid_quantization_step2.")

    @loading
    def hybrid_quantization_step2(self, model_input, data_input, model_quantization_cfg, dataset=None, pre_compile=False):
        """Builds the model from the files of step 1; config() and a loaded model are not needed. `dataset` only when the list of
        step 1 has moved; `pre_compile` is Toolkit1's and has no effect."""
        self._build_from_files("hybrid_quantization_step2", model_input, data_input, model_quantization_cfg, dataset)

    @loading
    def direct_build(self, model_input, data_input, model_quantize=None, pre_compile=False):
        """Toolkit1's name for building from files of step 1."""
        data = path_of(data_input, "direct_build")
        quantization = os.path.splitext(data)[0] + ".quantization.cfg" if model_quantize is None else model_quantize
        self._build_from_files("direct_build", model_input, data, quantization, None)

    def _build_from_files(self, function, model, data, quantization, dataset):
        self._alive(function)
        files = [path_of(file, function) for file in (model, data, quantization)]
        self._log.info("rknn building ...")
        with list_file(dataset, function, self._log) as samples:
            self._builder = _openrknn.Builder.hybrid_step2(*files, samples, Progress(self._log), self._custom_ops)
        self._builder_used = True
        self._log.info("rknn building done.")

    @guarded
    def export_rknn(self, export_path, cpp_gen_cfg=None):
        """Writes the built model. `cpp_gen_cfg` (older releases) asks for a C++ project rknn_deploy_demo beside it, as codegen() writes."""
        builder, path = self._need_builder("export_rknn"), path_of(export_path, "export_rknn")
        builder.export_rknn(path)
        if cpp_gen_cfg:
            builder.codegen(os.path.join(os.path.dirname(path), "rknn_deploy_demo"), [], True)
