"""The RKNN class of Toolkit2: converts, builds, exports and runs models. Thin: the work is done by the native module."""

import atexit
import functools
import os
import sys
import tempfile
import threading

import numpy as np

from .. import _openrknn
from . import measure
from . import options as config_options
from .log import Log, Progress

VERSION = _openrknn.version()
INPUT_TYPES = ("float32", "float16", "int8", "uint8", "int16")  # names Toolkit1's `data_type` takes
_speaker = threading.local()  # .log: of the RKNN object whose call runs in this thread
atexit.register(_openrknn.set_log, None, 1)  # no Python log sink once the interpreter is going down


def _native_line(level, tag, line):
    log = getattr(_speaker, "log", None)
    if log is not None:
        log.core_line(level, tag, line)


def _guarded(method):
    """The failure contract of calls that return 0 or -1: problems are logged as E lines and become -1.

    With ORKNN_RAISE=1 in the environment they become ValueError instead, as in the vendor's newer releases.
    """

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # whatever a file or an argument provokes: the contract is -1 and a line that says why
            self._fail(method.__name__, str(error) or type(error).__name__)
            return -1
        return 0

    return call


def _path(value, function):
    if not isinstance(value, (str, bytes, os.PathLike)) or not os.fspath(value):
        raise ValueError(f"Invalid path {value!r} for {function}, expect a file name!")
    if "\0" in os.fsdecode(value):
        raise ValueError(
            f"Invalid path for {function}: a file name has no zero byte. Expect the name of the model's file, not its contents!"
        )
    return os.fsdecode(value)


def _is_layout(value):
    """'nchw', or a list of such names."""
    names = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple)) else []
    return bool(names) and all(isinstance(n, str) and n.lower() in ("nchw", "nhwc") for n in names)


def _is_type(value):
    """'uint8', or a list of such names."""
    names = value if isinstance(value, (list, tuple)) else [value]
    return bool(names) and all(isinstance(n, str) and n.lower() in INPUT_TYPES for n in names)


def _sizes(value):
    """input_size_list as lists of numbers: a single shape is a list of one, and a name or None leaves an extent open."""
    if value is None:
        return None
    wrong = ValueError(f"Invalid input_size_list {value!r}, expect a list of shapes like [[1,3,224,224]]!")
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise wrong
    shapes = list(value)
    if shapes and all(isinstance(v, (int, np.integer)) for v in shapes):
        shapes = [shapes]

    def extent(d):
        if d is None or isinstance(d, str):
            return -1
        if (
            isinstance(d, bool)
            or not isinstance(d, (int, np.integer))
            and not (isinstance(d, (float, np.floating)) and float(d).is_integer())
        ):
            raise wrong
        if abs(int(d)) >= 2**31:
            raise ValueError(f"Invalid extent {d} in input_size_list {value!r}, expect less than {2**31}!")
        return int(d)

    if any(isinstance(shape, (str, bytes)) or shape is not None and not hasattr(shape, "__iter__") for shape in shapes):
        raise wrong
    return [[extent(d) for d in (() if shape is None else shape)] for shape in shapes]


def _batch(value):
    """rknn_batch_size as a number; None and -1 mean one sample. Toolkit1's third argument of build is pre_compile, a truth value."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return 1
    if not isinstance(value, (int, np.integer)) or value < 1 and value != -1:
        raise ValueError(f"Invalid rknn_batch_size {value!r}, expect a number of samples!")
    return max(int(value), 1)


def _read_predef_file(path):
    """Values by placeholder name of Toolkit1's npz."""
    try:
        with np.load(path, allow_pickle=False) as values:
            return {name.replace("#", "/"): np.asarray(values[name], order="C") for name in values.files}
    except FileNotFoundError:
        raise ValueError(f"The predef_file {path!r} does not exist!") from None
    except Exception as error:
        raise ValueError(
            f"Invalid predef_file {path!r}, expect an .npz file with one array of numbers per placeholder ({error})!"
        ) from None


def _scalar(value, name):
    """Toolkit1 writes one number for all channels also as text ('127.5') or nested ([[128]])."""
    try:
        numbers = np.ravel(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) == 0 or not np.isfinite(numbers).all() or len(set(numbers)) != 1:
        raise ValueError(f"Invalid {name} {value!r} of load_tensorflow, expect one number for all channels!")
    return [[float(numbers[0])]]


def _fits(found, expected):
    """Same rank and extents; a negative expected extent is open."""
    return len(found) == len(expected) and all(e < 0 or f == e for f, e in zip(found, expected))


def _read_as(port, layout):
    """The shape an array for `port` has in `layout`, which is 'nhwc' unless stated and matters to 4-D inputs only."""
    shape = list(port["shape"])
    if len(shape) != 4:
        return shape
    nchw = shape if port["layout"] != "nhwc" else [shape[0], shape[3], shape[1], shape[2]]
    return nchw if str(layout).lower() == "nchw" else [nchw[0], nchw[2], nchw[3], nchw[1]]


def _fits_port(shape, port, layout):
    """Whether an array of this shape is for `port`; a missing batch of one is added later."""
    expected = _read_as(port, layout)
    return _fits(shape, expected) or len(expected) == 4 and expected[0] == 1 and _fits(shape, expected[1:])


class RKNN:
    """One object = one model. Every call that can fail returns 0 or -1 and logs why; config() raises ValueError."""

    NPU_CORE_AUTO, NPU_CORE_0, NPU_CORE_1, NPU_CORE_2 = 0, 1, 2, 4
    NPU_CORE_0_1, NPU_CORE_0_1_2, NPU_CORE_ALL = 3, 7, 0xFFFF

    def __init__(self, verbose=False, verbose_file=None):
        self._log = Log(verbose, verbose_file)
        self._log.info(f"rknn-toolkit2 version: {VERSION}")
        self._builder = None  # building side: config, source graph, built model
        self._session = None  # running side
        self._loaded = None  # a finished model: load_rknn
        self._perf_debug = self._eval_mem = False
        self._cores = 1  # that core_mask chose
        self._builder_used = False  # a source model was loaded since config()
        self._released = False
        self._running = threading.Lock()  # one session, one run at a time

    # ---- building

    def config(self, **kwargs):
        """Sets the build options (keywords only); see docs/python_api.md. Raises ValueError on an illegal one."""
        self._alive("config")
        try:
            options = config_options.convert(kwargs, lambda text: self._log.warn("config", text))
            self._use_log()
            self._builder = _openrknn.Builder.create(options, Progress(self._log))
            self._builder_used, self._options = False, options
        except ValueError as error:
            self._log.error("config", str(error))
            raise
        self._session = None

    @_guarded
    def load_onnx(self, model, inputs=None, input_size_list=None, input_initial_val=None, outputs=None):
        """Reads an ONNX model. `inputs`/`outputs` crop it, `input_size_list` fixes shapes, `input_initial_val` makes inputs constant."""
        if inputs is not None or input_size_list is not None or outputs is not None:
            self._log.warn("load_onnx", "If you don't need to crop the model, don't set 'inputs'/'input_size_list'/'outputs'!")
        self._load("load_onnx", "onnx", model, inputs, input_size_list, outputs, initial=input_initial_val)

    @_guarded
    def load_tflite(self, model, input_is_nchw=False):
        """Reads a TFLite model, quantized or not."""
        self._load("load_tflite", "tflite", model, input_is_nchw=input_is_nchw)

    @_guarded
    def load_tensorflow(
        self,
        tf_pb,
        inputs=None,
        input_size_list=None,
        outputs=None,
        *positional,
        input_is_nchw=False,
        predef_file=None,
        mean_values=None,
        std_values=None,
        size_with_batch=None,
    ):
        """Reads a frozen GraphDef. By position, a truth value behind `outputs` is Toolkit2's input_is_nchw; anything else begins
        Toolkit1's predef_file, mean_values, std_values, size_with_batch: an npz with values of control placeholders ('#' stands for
        '/' in a name), and normalization that takes the place of config()'s."""
        if len(positional) == 1 and isinstance(positional[0], (bool, np.bool_)):
            input_is_nchw, positional = positional[0], ()
        if len(positional) > 4:
            raise ValueError(f"load_tensorflow takes at most 8 arguments by position, found {len(positional) + 4}!")
        predef_file, mean_values, std_values, size_with_batch = (
            positional + (predef_file, mean_values, std_values, size_with_batch)[len(positional) :]
        )
        feeds = {} if predef_file is None else _read_predef_file(predef_file)
        sizes = _sizes(input_size_list)
        if size_with_batch is not None and not size_with_batch and sizes is not None:
            sizes = [[1, *shape] for shape in sizes]
        if mean_values is not None or std_values is not None:
            self._normalize_like_toolkit1(mean_values, std_values)
        self._load("load_tensorflow", "tensorflow", tf_pb, inputs, sizes, outputs, input_is_nchw=input_is_nchw, feeds=feeds)

    @_guarded
    def load_caffe(self, model, *positional, proto=None, blobs=None, input_name=None):
        """Reads a prototxt and its weights; without `blobs` the weights are random, for judging speed and memory. Toolkit1's second
        argument, proto='caffe' or 'lstm_caffe', is accepted and not needed."""
        rest = list(positional)
        if rest and rest[0] in ("caffe", "lstm_caffe"):
            proto = rest.pop(0)
        if len(rest) > 2:
            raise ValueError(f"load_caffe takes model, blobs and input_name, found {len(positional) + 1} arguments!")
        blobs = rest.pop(0) if rest else blobs
        input_name = rest.pop(0) if rest else input_name
        if proto not in (None, "caffe", "lstm_caffe"):
            raise ValueError(f"Invalid proto {proto!r}, expect in ['caffe', 'lstm_caffe']!")
        self._load("load_caffe", "caffe", model, input_name, weights=blobs)

    @_guarded
    def load_darknet(self, model, weight=None):
        """Reads a cfg and its weights; without `weight` the weights are random, for judging speed and memory."""
        self._load("load_darknet", "darknet", model, weights=weight)

    @_guarded
    def load_pytorch(self, model, input_size_list=None, inputs=None, outputs=None, convert_engine="torch"):
        """Reads a TorchScript file, traced or scripted, of any version, or an archive of torch.export (.pt2). `convert_engine` is
        Toolkit1's and has no effect."""
        self._load("load_pytorch", "pytorch", model, inputs, input_size_list, outputs)

    @_guarded
    def load_mxnet(self, symbol, params=None, input_size_list=None):
        """Reads a symbol file and its parameters; without `params` they are random, for judging speed and memory."""
        self._load("load_mxnet", "mxnet", symbol, None, input_size_list, weights=params)

    @_guarded
    def build(
        self, do_quantization=True, dataset=None, rknn_batch_size=None, auto_hybrid=False, auto_hybrid_quant=False, **others
    ):
        """Optimizes and compiles the loaded model; with do_quantization to 8 bits, calibrated with the files listed in `dataset`.
        rknn_batch_size multiplies the first extent of every input and output; calibration still takes single samples.
        auto_hybrid leaves the fewest layers in float16 that make every output reach config's auto_hybrid_cos_thresh."""
        builder = self._need_builder("build")
        self._remark_unused("build", others, "pre_compile")
        builder.set_batch(_batch(rknn_batch_size))
        auto_hybrid = bool(auto_hybrid or auto_hybrid_quant)
        self._session = None
        self._log.info("rknn building ...")
        wants_samples = do_quantization or auto_hybrid
        for line in builder.build(
            bool(do_quantization), _path(dataset, "build") if wants_samples and dataset is not None else "", auto_hybrid
        ):
            self._log.info(line)
        self._session = None
        self._log.info("rknn building done.")

    @_guarded
    def hybrid_quantization_step1(
        self, dataset=None, rknn_batch_size=None, proposal=False, proposal_dataset_size=1, custom_hybrid=None, **_
    ):
        """Calibrates and writes <name>.model, <name>.data and <name>.quantization.cfg into the current directory; the last one says
        which layers leave int8, for you to edit. `proposal` fills in the layers auto_hybrid would choose, `custom_hybrid` every layer
        between pairs of tensors."""
        builder = self._need_builder("hybrid_quantization_step1")
        builder.set_batch(_batch(rknn_batch_size))
        if dataset is None:
            raise ValueError("hybrid_quantization_step1 needs a dataset!")
        pairs = [custom_hybrid] if custom_hybrid and isinstance(custom_hybrid[0], str) else custom_hybrid or []
        if any(len(pair) != 2 or not all(isinstance(name, str) for name in pair) for pair in pairs):
            raise ValueError(f"Invalid custom_hybrid {custom_hybrid!r}, expect [[input_name, output_name], ...]!")
        self._session = None
        files, summary = builder.hybrid_step1(
            os.fspath(dataset), bool(proposal), max(int(proposal_dataset_size or 1), 1), [tuple(pair) for pair in pairs]
        )
        for line in summary:
            self._log.info(line)
        self._log.info(f"hybrid_quantization_step1 wrote {', '.join(os.path.normpath(file) for file in files)}")
        self._log.info(f"Edit {os.path.normpath(files[2])}, then call hybrid_quantization_step2.")

    @_guarded
    def hybrid_quantization_step2(self, model_input, data_input, model_quantization_cfg, dataset=None, pre_compile=False, **_):
        """Builds the model from the files of step 1; config() and a loaded model are not needed. `dataset` only when the list of
        step 1 has moved; `pre_compile` is Toolkit1's and has no effect."""
        self._alive("hybrid_quantization_step2")
        self._session, self._loaded = None, None
        self._builder, self._builder_used = None, True
        self._log.info("rknn building ...")
        self._builder = _openrknn.Builder.hybrid_step2(
            _path(model_input, "hybrid_quantization_step2"),
            _path(data_input, "hybrid_quantization_step2"),
            _path(model_quantization_cfg, "hybrid_quantization_step2"),
            "" if dataset is None else os.fspath(dataset),
            Progress(self._log),
        )
        self._log.info("rknn building done.")

    def direct_build(self, model_input, data_input, model_quantize=None, pre_compile=False, **_):
        """Toolkit1's name for building from files of step 1."""
        quantization = (
            os.path.splitext(os.fspath(data_input))[0] + ".quantization.cfg" if model_quantize is None else model_quantize
        )
        return self.hybrid_quantization_step2(model_input, data_input, quantization)

    @_guarded
    def export_rknn(self, export_path, **_):
        """Writes the built model."""
        self._need_builder("export_rknn").export_rknn(_path(export_path, "export_rknn"))

    @_guarded
    def load_rknn(self, path, load_model_in_npu=False, **others):
        """Reads a finished .rknn; config() is not needed. The simulator can run it."""
        self._alive("load_rknn")
        self._remark_unused("load_rknn", others)
        if load_model_in_npu:
            raise ValueError("load_model_in_npu needs a connected board, which is not available yet!")
        path = _path(path, "load_rknn")
        self._session = self._loaded = None
        if self._builder is not None and not self._builder_used:
            self._log.warn("load_rknn", "The options of config have no effect on a finished model!")
        self._builder = None
        loaded = _openrknn.LoadedModel.from_file(path)
        loaded.make_session()  # refuses a bad program here rather than in init_runtime
        self._loaded = loaded

    # ---- running

    @_guarded
    def init_runtime(
        self,
        target=None,
        target_sub_class=None,
        device_id=None,
        perf_debug=False,
        eval_mem=False,
        async_mode=False,
        core_mask=NPU_CORE_AUTO,
        fallback_prior_device="cpu",
        rknn2precompile=False,
    ):
        """Prepares the model for inference() on the simulator (target=None)."""
        self._alive("init_runtime")
        if target is not None:
            raise ValueError(
                f"Connect to Device Failure (-1): target '{target}' needs a connected board, which is not available yet; "
                "leave target unset to run on the simulator"
            )
        legal = [
            self.NPU_CORE_AUTO,
            self.NPU_CORE_0,
            self.NPU_CORE_1,
            self.NPU_CORE_2,
            self.NPU_CORE_0_1,
            self.NPU_CORE_0_1_2,
            self.NPU_CORE_ALL,
        ]
        if core_mask not in legal:
            raise ValueError(f"Invalid core_mask {core_mask!r}, expect in {legal}!")
        if fallback_prior_device not in ("cpu", "gpu"):
            raise ValueError(f"Invalid fallback_prior_device {fallback_prior_device!r}, expect in ['cpu', 'gpu']!")
        self._log.info("Target is None, use simulator!")
        if async_mode:
            self._log.warn("init_runtime", "The 'async_mode' has no effect, every inference returns its own results!")
        if self._loaded is not None:
            session = self._loaded.make_session()
        else:
            session = self._need_builder("init_runtime").make_session()
        self._cores = session.cores_of_mask(core_mask)  # refuses cores the chip does not have
        self._perf_debug, self._eval_mem = bool(perf_debug), bool(eval_mem)
        self._session = session

    def inference(self, inputs, *positional, **options):
        """inference(inputs, data_format=None, inputs_pass_through=None, get_frame_id=False): runs the model once; returns a list of arrays.
        Raises ValueError when the inputs do not fit. Toolkit1's order, with data_type in second place, is recognised; arrays know their type."""
        try:
            session = self._session  # another thread may release() meanwhile
            if session is None:
                raise ValueError("The runtime is not initialized, call init_runtime first!")
            self._use_log()
            data_format, inputs_pass_through = self._inference_options(positional, options)
            with self._running:
                return session.run(self._prepare_inputs(session, inputs, data_format, inputs_pass_through))
        except (ValueError, RuntimeError, TypeError, MemoryError) as error:
            self._fail("inference", str(error) or type(error).__name__)
            raise ValueError(str(error) or type(error).__name__) from None

    # ---- measuring: predicted for the chip the model was made for

    def eval_perf(self, *args, is_print=True, **others):
        """Predicted speed: a text, with the layer table when init_runtime had perf_debug=True; a dict for Toolkit1 chips."""
        if args and isinstance(args[0], bool):  # Toolkit2: is_print comes first; Toolkit1: the inputs do, and are not needed
            is_print = args[0]
        self._remark_unused("eval_perf", others, "inputs", "data_type", "data_format", "loop_cnt", "perf_debug", "fix_freq")
        facts = self._measure("eval_perf")
        if facts is None:
            return None
        if facts["total_us"] is None:
            self._log.warn("eval_perf", f"The times are unknown: {facts['why_no_time']}!")
        if facts["generation"] == 1:
            result = measure.performance_dict(facts)
            if is_print:
                print(measure.performance_table(result, facts["npu_mhz"]), end="")
            return result
        text = measure.performance_text(facts, self._perf_debug)
        if is_print:
            print(text, end="")
            if not self._perf_debug:
                self._log.info(measure.DETAIL_HINT)
        return text

    def eval_memory(self, is_print=True, **others):
        """Memory the model takes on the chip, as a dict; needs eval_mem=True in init_runtime."""
        self._remark_unused("eval_memory", others)
        facts = self._measure("eval_memory")
        if facts is None:
            return None
        if not self._eval_mem:
            self._fail("eval_memory", "When init runtime, parameter <eval_mem> should be set to True")
            return None
        facts["file"] = self._file_size()
        result = measure.memory_dict_toolkit1(facts) if facts["generation"] == 1 else measure.memory_dict(facts)
        if is_print:
            print(measure.memory_text(result, facts), end="")
        return result

    # ---- judging accuracy

    @_guarded
    def accuracy_analysis(
        self, inputs, output_dir="./snapshot", *args, target=None, device_id=None, calc_qnt_error=True, dump_file_type="tensor"
    ):
        """Compares every layer of the built model with the float model on one sample and prints the table; with `output_dir` the
        values of all layers and an HTML report are stored there. `inputs`: one file per model input (jpg, png, bmp, npy), or the path
        of a text with one such line. Toolkit1's third argument is calc_qnt_error."""
        rest = list(args)
        if rest and isinstance(rest[0], bool):
            calc_qnt_error = rest.pop(0)
        target = rest.pop(0) if rest else target
        builder = self._need_builder("accuracy_analysis")
        if isinstance(inputs, (str, os.PathLike)):
            inputs = self._one_sample(os.fspath(inputs))
        inputs = [os.fspath(file) for file in inputs]
        if dump_file_type not in ("tensor", "npy"):
            raise ValueError(f"Invalid dump_file_type {dump_file_type!r}, expect in ['tensor', 'npy']!")
        folder = "" if output_dir is None else os.fspath(output_dir)
        plain, coloured, renamed, toolkit1 = builder.accuracy_analysis(
            inputs, folder, "" if target is None else str(target).lower(), bool(calc_qnt_error), dump_file_type == "npy"
        )
        if not toolkit1 or calc_qnt_error:
            print(coloured if sys.stdout.isatty() else plain)
        if not folder:
            return
        if not toolkit1:
            self._log.info(f"The error analysis results save to: {folder}/error_analysis.txt")
            if renamed:
                self._log.warn(
                    "accuracy_analysis", f"The mapping of layer_name & file_name save to: {folder}/map_name_to_file.txt"
                )

    @staticmethod
    def _one_sample(path):
        """The files of a list of one line; a picture or an array stands for itself."""
        if not path.lower().endswith(".txt"):
            return [path]
        with open(path, encoding="utf-8") as lines:
            samples = [line.split() for line in lines if line.strip()]
        if len(samples) != 1:
            raise ValueError(f"accuracy_analysis takes one sample, found {len(samples)} lines in '{path}'!")
        beside = lambda name: os.path.join(os.path.dirname(path), name)
        return [beside(name) if os.path.exists(beside(name)) else name for name in samples[0]]

    def _measure(self, function):
        if self._session is None:
            self._fail(function, "The runtime is not initialized, call init_runtime first!")
            return None
        return self._session.measure(self._cores)

    def _file_size(self):
        if self._loaded is not None:
            return self._loaded.file_size()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.rknn")
            self._builder.export_rknn(path)
            return os.path.getsize(path)

    # ---- known by name, not available yet

    def _unavailable(name):
        def call(self, *args, **kwargs):
            self._fail(name, f"{name} is not available yet!")
            return -1

        call.__name__, call.__doc__ = name, "Not available yet: logs an E line and returns -1."
        return call

    for _name in ("load_keras", "export_encrypted_rknn_model", "reg_custom_op", "codegen"):
        locals()[_name] = _unavailable(_name)
    del _name, _unavailable

    def list_devices(self):
        """Connected boards as (adb, ntb); boards are not available yet, so there are none."""
        self._log.warn("list_devices", "Connected boards are not available yet, use the simulator!")
        return [], []

    # ---- Toolkit1's own calls

    @_guarded
    def export_rknn_precompile_model(self, export_path=None, **_):
        """Writes the built or loaded model as it is: every model is compiled for its chip already."""
        self._alive("export_rknn_precompile_model")
        path = _path(export_path, "export_rknn_precompile_model")
        if self._loaded is not None:
            self._loaded.write(path)
        else:
            self._need_builder("export_rknn_precompile_model").export_rknn(path)

    @_guarded
    def export_rknn_sync_model(self, input_model=None, sync_uids=None, output_model=None):
        """Stores the layers behind which to yield in a model (itself without `output_model`). They are kept, fetch_rknn_model_config()
        shows them; the simulator never has to yield."""
        self._alive("export_rknn_sync_model")
        source = _path(input_model, "export_rknn_sync_model")
        uids = [] if sync_uids is None else list(sync_uids)
        if not all(isinstance(uid, (int, np.integer)) and not isinstance(uid, bool) and 0 <= uid < 2**32 for uid in uids):
            raise ValueError(f"Invalid sync_uids {sync_uids!r}, expect a list of numbers!")
        _openrknn.set_sync_uids(
            source, source if output_model is None else _path(output_model, "export_rknn_sync_model"), [int(uid) for uid in uids]
        )

    def register_op(self, op_path):
        """Compiled Toolkit1 operators cannot be used; a model that needs one is refused when it is loaded."""
        self._log.warn("register_op", f"Compiled operators ({op_path}) cannot be used, a model that needs one will be refused!")

    def fetch_rknn_model_config(self, model_path):
        """What a .rknn says about itself, as a dict; None when it cannot be read."""
        try:
            return _openrknn.model_config(_path(model_path, "fetch_rknn_model_config"))
        except (ValueError, RuntimeError) as error:
            self._fail("fetch_rknn_model_config", str(error))
            return None

    def load_firmware(self, fw_dir=None):
        """There is no compute stick to load firmware into: -1."""
        self._log.warn("load_firmware", "There is no device that takes firmware, nothing is loaded!")
        return -1

    # ---- information

    def get_sdk_version(self):
        """The version block of the simulator; needs init_runtime."""
        if self._session is None:
            self._fail("get_sdk_version", "The runtime is not initialized, call init_runtime first!")
            return None
        line = "=" * 46
        return (
            f"{line}\nRKNN VERSION:\n  API: {VERSION} (openrknn)\n  DRV: rknn_server: {VERSION} (simulator)\n"
            f"  DRV: rknnrt: {VERSION} (openrknn)\n{line}"
        )

    def list_support_target_platform(self, rknn_model=None):
        """Prints and returns the platforms a .rknn runs on, or all of them without a path."""
        stars = "*" * 50
        if rknn_model is None:
            families = _openrknn.platform_families()
            print(stars, "All RKNN Toolkit supported target platforms:", sep="\n")
            for index, (_, members) in enumerate(families.items(), 1):
                print(f"    chip family {index}: {','.join(m.upper() for m in members)}")
            print(stars)
            return families
        try:
            filled, supported = _openrknn.platforms_of(_path(rknn_model, "list_support_target_platform"))
        except (ValueError, RuntimeError) as error:
            self._fail("list_support_target_platform", str(error))
            return None
        supported = [name.upper() for name in supported]
        print(
            stars,
            f"Target platforms filled in RKNN model:         {[filled]}",
            f"Target platforms supported by this RKNN model: {supported}",
            stars,
            sep="\n",
        )
        return {"filled_target_platform": [filled], "support_target_platform": supported}

    def release(self):
        """Frees everything. Harmless at any time and more than once."""
        self._builder = self._session = self._loaded = None
        self._released = True
        self._log.close()

    # ---- inside

    def _alive(self, function):
        if self._released:
            raise ValueError(f"{function} after release, create a new RKNN object!")
        self._use_log()

    def _use_log(self):
        """Lines of the native side that this thread causes go to this object's log from here on."""
        _speaker.log = self._log
        _openrknn.set_log(_native_line, 4 if Log.any_verbose() else 1)

    def _remark_unused(self, function, others, *known):
        """Keywords nobody knows are most likely misspelt; `known` ones of other releases pass without a word."""
        for name in sorted(others.keys() - set(known)):
            self._log.warn(function, f"The '{name}' is not known and is ignored!")

    def _inference_options(self, positional, options):
        """(data_format, inputs_pass_through) from the arguments behind the inputs, in the order of either toolkit."""
        names = ["data_format", "inputs_pass_through", "get_frame_id"]
        if positional and _is_type(positional[0]) or len(positional) > 1 and positional[0] is None and _is_layout(positional[1]):
            names.insert(0, "data_type")
        if len(positional) > len(names):
            raise ValueError(f"Too many arguments for inference, expect inputs and {', '.join(names)}!")
        given = dict(zip(names, positional))
        twice = given.keys() & options.keys()
        if twice:
            raise ValueError(f"The '{min(twice)}' of inference is given twice!")
        given.update(options)
        data_type = given.get("data_type")
        if data_type is not None and not _is_type(data_type):
            raise ValueError(f"Invalid data_type {data_type!r}, expect in {list(INPUT_TYPES)}!")
        self._remark_unused("inference", given, "data_type", "outputs", *names)
        return given.get("data_format"), given.get("inputs_pass_through")

    def _fail(self, function, text):
        if self._log.warnings:
            self._log.warn(function, f"===================== WARN({self._log.warnings}) =====================")
        self._log.error(function, text)
        if os.environ.get("ORKNN_RAISE") == "1":
            raise ValueError(text) from None

    def _need_builder(self, function):
        self._alive(function)
        if self._builder is None:
            if self._loaded is not None:
                raise ValueError(f"{function} needs a source model: what load_rknn read is finished and cannot be built again!")
            raise ValueError(
                f"{function} needs config() first!"
                if function.startswith("load_")
                else f"{function} needs config(), a loaded source model and, except for build, build() first!"
            )
        return self._builder

    def _load(
        self,
        function,
        framework,
        path,
        inputs=None,
        sizes=None,
        outputs=None,
        initial=None,
        weights=None,
        input_is_nchw=False,
        feeds=None,
    ):
        builder = self._need_builder(function)
        names = lambda value: None if value is None else [value] if isinstance(value, str) else [str(v) for v in value]
        sizes = _sizes(sizes)
        if initial is not None:
            initial = [None if v is None else np.asarray(v, order="C") for v in initial]
            for i, value in enumerate(initial):
                if value is not None and value.dtype.kind not in "biuf":
                    raise ValueError(
                        f"The dtype {value.dtype} of entry {i} of input_initial_val is not supported, expect numbers!"
                    )
        self._session, self._loaded, self._builder_used = None, None, True
        builder.load(
            framework,
            _path(path, function),
            names(inputs),
            sizes,
            initial,
            names(outputs),
            [] if weights is None else [_path(weights, function)],
            bool(input_is_nchw),
            feeds or {},
        )

    def _normalize_like_toolkit1(self, mean_values, std_values):
        """One number for every channel each; they take the place of config()'s."""
        self._need_builder("load_tensorflow")
        options = dict(self._options, one_value_for_all_channels=True)
        if mean_values is not None:
            options["mean_values"] = _scalar(mean_values, "mean_values")
        if std_values is not None:
            options["std_values"] = _scalar(std_values, "std_values")
        self._builder = _openrknn.Builder.create(options, Progress(self._log))

    def _prepare_inputs(self, session, inputs, data_format, pass_through):
        """(array, layout, pass_through) per model input, by the rules for arrays of any dtype, rank and stride."""
        if inputs is None:
            raise ValueError("The inputs are None!")
        if isinstance(inputs, (str, bytes, dict)):
            raise ValueError(
                f"Invalid inputs of type {type(inputs).__name__}, expect a list of ndarray, one per input of the model!"
            )
        if isinstance(inputs, np.ndarray) or not hasattr(inputs, "__iter__"):
            inputs = [inputs]
        inputs = list(inputs)
        ports = session.inputs()
        if len(inputs) != len(ports):
            raise ValueError(
                f"The number of inputs is wrong, expect {len(ports)} ({', '.join(p['name'] for p in ports)}), found {len(inputs)}!"
            )
        if data_format is not None and not isinstance(data_format, (str, list, tuple)):
            raise ValueError(f"Invalid data_format {data_format!r}, expect 'nchw' or 'nhwc', or a list of them!")
        if pass_through is not None and (
            not isinstance(pass_through, (list, tuple, np.ndarray)) or any(v not in (0, 1) for v in pass_through)
        ):
            raise ValueError(f"Invalid inputs_pass_through {pass_through!r}, expect a list of 0 and 1!")
        formats = [data_format] * len(ports) if data_format is None or isinstance(data_format, str) else list(data_format)
        if len(formats) != len(ports):
            raise ValueError(f"The length of data_format is wrong, expect {len(ports)}, found {len(formats)}!")
        flags = [0] * len(ports) if pass_through is None else [int(bool(v)) for v in pass_through]
        if len(flags) != len(ports):
            raise ValueError(f"The length of inputs_pass_through is wrong, expect {len(ports)}, found {len(flags)}!")
        sets = session.shape_sets()
        if len(sets) > 1:
            shapes = [np.shape(array) for array in inputs]
            chosen = [i for i, s in enumerate(sets) if all(_fits_port(*item) for item in zip(shapes, s, formats))]
            if not chosen:
                legal = ", ".join(str([_read_as(port, layout) for port, layout in zip(s, formats)]) for s in sets)
                raise ValueError(
                    f"The input(ndarray) shapes {[list(shape) for shape in shapes]} are wrong, expect those of one set of dynamic_input: {legal}!"
                )
            session.choose_program(chosen[0])
            ports = sets[chosen[0]]
        if data_format is None and any(len(p["shape"]) == 4 for p in ports):
            self._log.warn("inference", "The 'data_format' is not set, and its default value is 'nhwc'!")
        return [self._prepare_input(*item) for item in zip(inputs, ports, formats, flags)]

    def _prepare_input(self, array, port, layout, pass_through):
        array = np.asarray(array)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"The dtype {array.dtype} of input '{port['name']}' is not supported, expect numbers!")
        if array.dtype.itemsize > 8:
            array = array.astype(np.float64)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        shape = list(port["shape"])
        layout = "nhwc" if layout is None else str(layout).lower()
        if layout not in ("nchw", "nhwc"):
            raise ValueError(f"Invalid data_format '{layout}', expect 'nchw' or 'nhwc'!")
        if len(shape) == 4:
            wanted = _read_as(port, layout)
            if array.ndim == 3 and (array.size == np.prod(wanted) or _fits(array.shape, wanted[1:])):
                if _fits(array.shape, wanted[1:]):
                    expanded = (1,) + array.shape
                    self._log.warn(
                        "inference",
                        f"The dims of input(ndarray) shape {array.shape} is wrong, expect dims is 4! "
                        f"Try expand dims to {expanded}!",
                    )
                else:  # Toolkit1: pictures of a batch stacked along H
                    expanded = tuple(wanted)
                array = array.reshape(expanded)
            n, c, h, w = wanted
            if (
                layout == "nchw"
                and array.ndim == 4
                and array.shape[0] == n
                and array.size == np.prod(wanted)
                and array.shape not in ((n, c, h, w), (n, h, w, c), (n, c, w, h), (n, w, h, c))
            ):  # the last three are mistakes, not flat views
                # As in the C API, where only the number of elements counts: a network that flattens its input does not mind.
                self._log.warn(
                    "inference",
                    f"The input(ndarray) shape {array.shape} is wrong, expect 'nchw' like {tuple(wanted)}! "
                    "Its elements are taken in order!",
                )
                array = array.reshape(wanted)
            if not _fits(array.shape, wanted):
                raise ValueError(f"The input(ndarray) shape {array.shape} is wrong, expect '{layout}' like {tuple(wanted)}!")
        elif not _fits(array.shape, shape):
            if [d for d in array.shape if d != 1] != [d for d in shape if d != 1]:
                raise ValueError(
                    f"The input(ndarray) shape {array.shape} is wrong, expect {tuple(shape)} for input '{port['name']}'!"
                )
            array = array.reshape(shape)
        return np.asarray(array, order="C"), layout, bool(pass_through)
