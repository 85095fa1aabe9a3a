"""Calls that read a model: source models of every framework, and finished .rknn files."""

import numpy as np

from .. import _openrknn
from .log import Progress
from .model import Model, loading, path_of


def sizes_of(value):
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


class Loading(Model):
    """load_onnx() and its like, load_rknn()."""

    @loading
    def load_onnx(self, model, inputs=None, input_size_list=None, input_initial_val=None, outputs=None):
        """Reads an ONNX model. `inputs`/`outputs` crop it, `input_size_list` fixes shapes, `input_initial_val` makes inputs constant."""
        if inputs is not None or input_size_list is not None or outputs is not None:
            self._log.warn("load_onnx", "If you don't need to crop the model, don't set 'inputs'/'input_size_list'/'outputs'!")
        self._load("load_onnx", "onnx", model, inputs, input_size_list, outputs, initial=input_initial_val)

    @loading
    def load_tflite(self, model, input_is_nchw=False):
        """Reads a TFLite model, quantized or not."""
        self._load("load_tflite", "tflite", model, input_is_nchw=input_is_nchw)

    @loading
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
        """Reads a frozen GraphDef. By position, a truth value after `outputs` is Toolkit2's input_is_nchw; anything else begins
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
        sizes = sizes_of(input_size_list)
        if size_with_batch is not None and not size_with_batch and sizes is not None:
            sizes = [[1, *shape] for shape in sizes]
        if mean_values is not None or std_values is not None:
            self._normalize_like_toolkit1(mean_values, std_values)
        self._load("load_tensorflow", "tensorflow", tf_pb, inputs, sizes, outputs, input_is_nchw=input_is_nchw, feeds=feeds)

    @loading
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

    @loading
    def load_darknet(self, model, weight=None):
        """Reads a cfg and its weights; without `weight` the weights are random, for judging speed and memory."""
        self._load("load_darknet", "darknet", model, weights=weight)

    @loading
    def load_pytorch(self, model, input_size_list=None, inputs=None, outputs=None, convert_engine="torch"):
        """Reads a TorchScript file, traced or scripted, of any version, or an archive of torch.export (.pt2). `convert_engine` is
        Toolkit1's and has no effect."""
        self._load("load_pytorch", "pytorch", model, inputs, input_size_list, outputs)

    @loading
    def load_mxnet(self, symbol, params=None, input_size_list=None):
        """Reads a symbol file and its parameters; without `params` they are random, for judging speed and memory."""
        self._load("load_mxnet", "mxnet", symbol, None, input_size_list, weights=params)

    @loading
    def load_paddle(self, model, params=None, input_size_list=None, inputs=None, outputs=None):
        """Reads an inference model of PaddlePaddle: .pdmodel of Paddle 2 or .json of Paddle 3. Without `params` the .pdiparams of the same
        name is taken. The vendor's toolkit has no such call."""
        self._load("load_paddle", "paddle", model, inputs, input_size_list, outputs, weights=params)

    @loading
    def load_keras(self, model, convert_engine="Keras"):
        """Reads a whole model saved by Keras 2 or 3: .h5 or .keras. `convert_engine` is Toolkit1's and has no effect."""
        self._load("load_keras", "keras", model)

    @loading
    def load_rknn(self, path, load_model_in_npu=False):
        """Reads a finished .rknn; config() is not needed. With load_model_in_npu `path` is on the board that
        init_runtime connects to."""
        self._alive("load_rknn")
        path = path_of(path, "load_rknn")
        if self._builder is not None and not self._builder_used:
            self._log.warn("load_rknn", "The options of config have no effect on a finished model!")
        if load_model_in_npu:
            self._path_on_board = path
        else:
            loaded = _openrknn.LoadedModel.from_file(path)
            loaded.make_session(self._custom_ops)  # refuses a bad program here rather than in init_runtime
            self._loaded = loaded
        self._builder = None  # not before: a script may go on with another load_* after a failure

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
        sizes = sizes_of(sizes)
        if initial is not None:
            initial = [None if v is None else np.asarray(v, order="C") for v in initial]
            for i, value in enumerate(initial):
                if value is not None and value.dtype.kind not in "biuf":
                    raise ValueError(
                        f"The dtype {value.dtype} of entry {i} of input_initial_val is not supported, expect numbers!"
                    )
        self._builder_used = True
        builder.set_custom_ops(self._custom_ops)
        builder.load(
            framework,
            path_of(path, function),
            names(inputs),
            sizes,
            initial,
            names(outputs),
            [] if weights is None else [path_of(weights, function)],
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
