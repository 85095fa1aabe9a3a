"""What every call of an RKNN object uses: the model's state, its log, and how failures are reported."""

import atexit
import difflib
import functools
import inspect
import os
import threading
import weakref

import numpy as np

from .. import _openrknn
from .log import Log

VERSION = _openrknn.version()
_speaker = threading.local()  # .log: of the RKNN object whose call runs in this thread
# Once the interpreter is going down: no Python log sink, and no other thread that comes back from a native call.
atexit.register(_openrknn.set_log, None, 1)
atexit.register(_openrknn.begin_interpreter_end)
_models = weakref.WeakSet()


def _after_fork():
    """In a forked child there are no other threads: a session that one of them was running stays half changed."""
    for model in list(_models):
        if model._running.locked():
            model._running = threading.Lock()
            model._session, model._lost_in_fork = None, True


os.register_at_fork(after_in_child=_after_fork)


def _native_line(level, tag, line):
    log = getattr(_speaker, "log", None)
    if log is not None:
        log.core_line(level, tag, line)


def tolerant(method):
    """A call that names keywords it does not know in W lines and goes on without them: they are misspelt, or of another release. A
    method with `**others` of its own decides itself."""
    parameters = inspect.signature(method).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return method
    names = [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        unknown = {name: kwargs.pop(name) for name in list(kwargs) if name not in names}
        if unknown:
            self._remark_unused(method.__name__, unknown, legal=names)
        return method(self, *args, **kwargs)

    return call


def guarded(method, forget=None):
    """The failure contract of calls that return 0 or -1: problems are logged as E lines and become -1.

    `forget` names a method that is called before anything is checked: what an earlier call made must not survive one that fails.
    With ORKNN_RAISE=1 in the environment they become ValueError instead, as in the vendor's newer releases.
    """
    unguarded = tolerant(method)

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            if forget is not None:
                getattr(self, forget)()
            unguarded(self, *args, **kwargs)
        except Exception as error:  # whatever a file or an argument provokes: the contract is -1 and a line that says why
            self._fail(method.__name__, str(error) or type(error).__name__)
            return -1
        return 0

    return call


loading = functools.partial(guarded, forget="_forget_model")
building = functools.partial(guarded, forget="_forget_build")


def path_of(value, function):
    """A file name in any form that Python takes (str, bytes, os.PathLike), as str that holds any bytes."""
    if not isinstance(value, (str, bytes, os.PathLike)) or not os.fspath(value):
        raise ValueError(f"Invalid path {value!r} for {function}, expect a file name!")
    if "\0" in os.fsdecode(value):
        raise ValueError(
            f"Invalid path for {function}: a file name has no zero byte. Expect the name of the model's file, not its contents!"
        )
    return os.fsdecode(value)


class Model:
    """State that the calls share: the builder or a finished model, the session that runs it, and the log."""

    def __init__(self, verbose=False, verbose_file=None, **others):
        self._log = Log(verbose, verbose_file)
        self._announce()
        self._builder = None  # building side: config, source graph, built model
        self._session = None  # running side
        self._loaded = None  # a finished model: load_rknn
        self._path_on_board = None  # of a finished model that is there: load_rknn(load_model_in_npu=True)
        self._remark_unused("__init__", others, legal=("verbose", "verbose_file"))
        self._perf_debug = self._eval_mem = False
        self._is_async = False  # inference() returns the results of the call before, which are kept here:
        self._late = None
        self._toolkit1 = False  # config() had a keyword that only Toolkit1 knows
        self._cores = 1  # that core_mask chose
        self._report_level = 0  # RKNN_LOG_LEVEL when the runtime was initialized
        self._builder_used = False  # a source model was loaded since config()
        self._released = False
        self._running = threading.Lock()  # one session, one run at a time
        self._lost_in_fork = False  # the session, see _after_fork
        _models.add(self)

    def _announce(self):
        self._log.info(f"rknn-toolkit2 version: {VERSION}")

    @tolerant
    def release(self):
        """Frees everything. Harmless at any time and more than once."""
        self._builder = self._session = self._loaded = None
        self._released = True
        self._log.close()

    def _delayed(self, results):
        """What inference() returns now: these results, or in async_mode those of the run before."""
        if not self._is_async:
            return results
        late, self._late = self._late, results
        return [np.zeros_like(array) for array in results] if late is None else late

    def _alive(self, function):
        if self._released:
            raise ValueError(f"{function} after release, create a new RKNN object!")
        self._use_log()

    def _need_session(self):
        session = self._session  # another thread may release() meanwhile
        if session is None and self._lost_in_fork:
            raise ValueError(
                "The model was running in another thread when this process was forked, call init_runtime in the child!"
            )
        if session is None:
            raise ValueError("The runtime is not initialized, call init_runtime first!")
        return session

    def _use_log(self):
        """Lines of the native side that this thread causes go to this object's log from here on."""
        _speaker.log = self._log
        _openrknn.set_log(_native_line, max(4 if Log.any_verbose() else 1, _openrknn.environment_log_level(0)))

    def _remark_unused(self, function, others, *known, legal=()):
        """Unknown keywords are most likely misspelt; `known` ones of other releases cause no warning. `legal`: other names that may have
        been meant."""
        for name in sorted(others.keys() - set(known)):
            meant = difflib.get_close_matches(name, [*known, *legal], n=1)
            hint = f", did you mean '{meant[0]}'?" if meant else "!"
            self._log.warn(function, f"The '{name}' is not known and is ignored{hint}")

    def _fail(self, function, text):
        if self._log.warnings:
            self._log.warn(function, f"===================== WARN({self._log.warnings}) =====================")
        self._log.error(function, text)
        if os.environ.get("ORKNN_RAISE") == "1":
            raise ValueError(text) from None

    def _forget_model(self):
        self._session = self._loaded = self._path_on_board = None
        if self._builder is not None:
            self._builder.forget_model()

    def _forget_build(self):
        if self._builder is not None:
            self._session = None
            self._builder.forget_build()

    def _need_builder(self, function):
        self._alive(function)
        if self._builder is None:
            if self._path_on_board is not None:
                raise ValueError(f"{function} needs a model in this machine: '{self._path_on_board}' is on the board!")
            if self._loaded is not None:
                raise ValueError(f"{function} needs a source model: what load_rknn read is finished and cannot be built again!")
            loads = function.startswith("load_")
            before = "" if loads else " and a loaded model" if function == "build" else ", a loaded model and build()"
            raise ValueError(f"{function} needs config(){before} first!")
        return self._builder
