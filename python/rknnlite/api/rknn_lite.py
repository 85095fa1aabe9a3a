"""The RKNNLite class: what scripts on a board call. The board is this machine, whose chip is simulated unless it has the NPU, or the
device that the environment names (docs/devices.md)."""

import os
import traceback

import numpy as np
from rknn import _openrknn
from rknn.api import devices, platform_list
from rknn.api import inputs as model_inputs
from rknn.api.model import VERSION, Model, path_of, tolerant
from rknn.api.options import whole_number
from rknn.api.running import Running


class RKNNLite(Model):
    """One object = one model. Calls return 0, or -1 and log why; inference() returns None then."""

    NPU_CORE_AUTO, NPU_CORE_0, NPU_CORE_1, NPU_CORE_2 = (
        Running.NPU_CORE_AUTO,
        Running.NPU_CORE_0,
        Running.NPU_CORE_1,
        Running.NPU_CORE_2,
    )
    NPU_CORE_0_1, NPU_CORE_0_1_2, NPU_CORE_ALL = Running.NPU_CORE_0_1, Running.NPU_CORE_0_1_2, Running.NPU_CORE_ALL

    def __init__(self, verbose=False, verbose_file=None, **others):
        """`verbose` prints the table of layers at every run, as RKNN_LOG_LEVEL=4 does; `verbose_file` keeps a copy of the log."""
        super().__init__(verbose, verbose_file, **others)
        self._file = None  # what load_rknn read

    def _announce(self):
        self._log.line("W", f"rknn-toolkit-lite2 version: {VERSION}")

    def load_rknn(self, path, *others, **unused):
        """Reads the file; whether it is a model that runs here is init_runtime's to say. Further arguments are Lite1's and not
        needed."""
        try:
            self._alive("load_rknn")
            self._remark_unused("load_rknn", unused, "load_model_in_npu", legal=("path",))
            self._session = self._file = None
            path = path_of(path, "load_rknn")
            if not os.path.isfile(path):
                raise ValueError(f"Invalid RKNN model path: {path}")
            self._file = _openrknn.ModelFile.open(path)
            return 0
        except Exception as error:
            return self._failed("load rknn model", error)

    def init_runtime(
        self,
        core_mask=NPU_CORE_AUTO,
        target=None,
        device_id=None,
        async_mode=False,
        perf_debug=False,
        eval_mem=False,
        **others,
    ):
        """Prepares the model. `core_mask` is for chips of several cores. The other arguments are Lite1's; without `target` the
        board is the one that the model was made for, and a C program's rules say where it is. With async_mode every inference()
        returns the results of the one before, the first one zeros."""
        try:
            self._alive("init_runtime")
            if isinstance(core_mask, str) or core_mask is None:  # Lite1's first argument is the target
                core_mask, target = self.NPU_CORE_AUTO, core_mask if target is None else target
            core_mask = whole_number("core_mask", core_mask)
            self._remark_unused("init_runtime", others, "target_sub_class", "rknn2precompile")
            if self._file is None:
                raise ValueError("RKNN model is not loaded, call load_rknn first!")
            session = self._file.init()
            cores = session.cores_of_mask(core_mask)  # refuses cores the chip does not have, before a device hears of them
            if target:
                chip = devices.chip_of(target)
                session.check_runs_on(chip)
                address, why = devices.find(chip, device_id)
                if address is None:
                    devices.simulate_instead(chip, device_id, why, lambda text: self._log.line("W", text))
                else:
                    session.use_device(address, core_mask)
            else:
                session.use_device_of_environment(core_mask)
            self._report_level = _openrknn.environment_log_level(4 if self._log.verbose else 0)
            session.report_loading(self._report_level)
            self._session, self._cores = session, cores
            self._is_async, self._late = bool(async_mode), None
            return 0
        except Exception as error:
            return self._failed("init runtime", error)

    def inference(self, inputs, *positional, **options):
        """inference(inputs, data_format=None, inputs_pass_through=None): runs the model once; a list of float32 arrays. Pictures are
        NHWC unless `data_format` says otherwise. Lite1's order, with data_type in second place, is recognised."""
        try:
            data_format, pass_through = model_inputs.arguments(
                positional, options, lambda given, *known: self._remark_unused("inference", given, *known)
            )
            session = self._session  # another thread may release() meanwhile
            if session is None:
                raise ValueError("Runtime environment is not inited, please call init_runtime to init it first!")
            self._use_log()
            with self._running:
                prepared = self._prepare(session, inputs, data_format, pass_through)
                results = self._delayed(session.run(prepared, self._report_level, self._cores))
            return [np.asarray(result, dtype=np.float32) for result in results]
        except Exception as error:
            self._failed("inference", error)
            return None

    @tolerant
    def get_sdk_version(self):
        """The version block of the runtime, a device's when it runs there; needs init_runtime."""
        if self._session is None:
            self._log.line("E", "Runtime environment is not inited, please call init_runtime to init it first!")
            return None
        line, facts = "=" * 46, self._session.device_facts()
        library = _openrknn.library_version() if facts is None else facts["runtime_version"]
        driver = _openrknn.driver_version() if facts is None else f"{facts['server_version']} (rknn_server)"
        return f"{line}\nRKNN VERSION:\n  API: {library.partition(': ')[2]}\n  DRV: {driver}\n{line}"

    @tolerant
    def list_support_target_platform(self, rknn_model=None):
        """Prints and returns the platforms a .rknn runs on; without a path it prints all of them and returns None."""
        if not rknn_model:
            platform_list.print_families()
            return None
        try:
            return platform_list.print_platforms_of(path_of(rknn_model, "list_support_target_platform"))
        except (ValueError, RuntimeError) as error:
            self._log.line("E", str(error))
            return None

    @tolerant
    def list_devices(self):
        """Prints and returns the ids of devices in reach: (adb, ntb)."""
        return devices.list_devices(as_list=False)

    @tolerant
    def release(self):
        """Frees everything. Harmless at any time and more than once."""
        self._file = None
        super().release()

    def _prepare(self, session, inputs, data_format, pass_through):
        ports = session.inputs()
        arrays = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        pictures = [len(port["shape"]) == 4 for port in ports]
        if session.generation() != 1:  # the first generation's scripts feed pictures without a batch
            for index, (array, picture) in enumerate(zip(arrays, pictures)):
                if picture and np.ndim(array) != 4:
                    raise ValueError(f"The input[{index}] need 4dims input, but {np.ndim(array)}dims input buffer feed.")
        formats = [data_format or "nhwc"] * len(ports) if data_format is None or isinstance(data_format, str) else data_format
        for index, (layout, picture) in enumerate(zip(formats, pictures)):
            if picture and str(layout).lower() == "nchw":
                self._log.line(
                    "W",
                    f"The input[{index}] need NHWC data format, but NCHW set, "
                    "the data format and data buffer will be changed to NHWC.",
                )
        warn = lambda text: self._log.line("W", text)
        try:
            return model_inputs.prepare(session, inputs, formats, pass_through, warn)
        except ValueError as error:
            if len(session.shape_sets()) > 1:
                raise ValueError(f"Set input shape failed. error code: RKNN_ERR_FAIL\n{error}") from None
            raise

    def _failed(self, what, error):
        """The lines of a failed call: what was tried, where it stopped, and in the last ones why."""
        self._log.line("E", f"Catch exception when {what}!")
        self._log.line("E", "".join(traceback.format_exception(type(error), error, error.__traceback__)))
        return -1
