"""Calls that run a model on the simulator."""

import functools

from .. import _openrknn
from . import devices
from . import inputs as model_inputs
from .model import Model, guarded, tolerant
from .options import whole_number


def _after_target(positional, *defaults):
    """device_id, perf_debug, eval_mem and async_mode of init_runtime that were given without names. Toolkit1's order is known by what
    follows its target_sub_class: another name, or None."""
    is_toolkit1 = positional[0] is None or (len(positional) > 1 and not isinstance(positional[1], (bool, int)))
    given = positional[1:] if is_toolkit1 else positional
    if len(given) > len(defaults):
        raise ValueError(f"init_runtime takes at most {len(defaults) + 1} arguments without names, found {len(positional) + 1}!")
    return (*given, *defaults[len(given) :])


class Running(Model):
    """init_runtime() and inference()."""

    NPU_CORE_AUTO, NPU_CORE_0, NPU_CORE_1, NPU_CORE_2 = 0, 1, 2, 4
    NPU_CORE_0_1, NPU_CORE_0_1_2, NPU_CORE_ALL = 3, 7, 0xFFFF

    @guarded
    def init_runtime(
        self,
        target=None,
        *positional,
        target_sub_class=None,
        device_id=None,
        perf_debug=False,
        eval_mem=False,
        async_mode=False,
        core_mask=NPU_CORE_AUTO,
        fallback_prior_device="cpu",
        rknn2precompile=False,
    ):
        """Prepares the model for inference() on the chip `target`, or on the simulator (target=None). With async_mode every
        inference() returns the results of the one before, the first one zeros. After `target` Toolkit2's arguments in its order, or
        Toolkit1's, which has target_sub_class in second place."""
        self._alive("init_runtime")
        if positional:
            device_id, perf_debug, eval_mem, async_mode = _after_target(positional, device_id, perf_debug, eval_mem, async_mode)
        if not target and self._path_on_board is not None:
            raise ValueError(
                f"The model '{self._path_on_board}' is on a board (load_model_in_npu): init_runtime needs its target!"
            )
        chip = devices.chip_of(target) if target else None
        core_mask = whole_number("core_mask", core_mask)
        if fallback_prior_device not in ("cpu", "gpu"):
            raise ValueError(f"Invalid fallback_prior_device {fallback_prior_device!r}, expect in ['cpu', 'gpu']!")
        session = self._simulated_session() if chip is None else self._session_on(chip, device_id, core_mask)
        self._cores = session.cores_of_mask(core_mask)  # refuses cores the chip does not have
        self._perf_debug, self._eval_mem = bool(perf_debug), bool(eval_mem)
        self._is_async, self._late, self._own_order_told = bool(async_mode), None, False
        self._report_level = _openrknn.environment_log_level(0)
        session.report_loading(self._report_level)
        self._session, self._lost_in_fork = session, False

    def _simulated_session(self):
        self._log.info("Target is None, use simulator!")
        devices.remark_simulator(functools.partial(self._log.warn, "init_runtime"))
        return self._local_session()

    def _session_on(self, chip, device_id, core_mask):
        self._log.info(f"target set by user is: {chip}")
        address, why = devices.find(chip, device_id)
        if address is None:
            devices.simulate_instead(chip, device_id, why, functools.partial(self._log.warn, "init_runtime"))
        if self._path_on_board is not None:
            self._loaded = self._model_on_board(address)
        session = self._local_session()
        session.check_runs_on(chip)
        session.cores_of_mask(core_mask)  # before anything is sent to the device
        if address is not None:
            session.use_device(address, core_mask)
            self._log.info(f"Connected to {session.device_facts()['name']} at {address}")
        return session

    def _model_on_board(self, address):
        """The file that load_model_in_npu named. A simulated board is this process, so its files are this machine's."""
        if address is None:
            return _openrknn.LoadedModel.from_file(self._path_on_board)
        return _openrknn.LoadedModel.from_device(_openrknn.fetch_model(address, self._path_on_board))

    def _local_session(self):
        if self._loaded is not None:
            return self._loaded.make_session(self._custom_ops)
        return self._need_builder("init_runtime").make_session()

    def inference(self, inputs, *positional, **options):
        """inference(inputs, data_format=None, inputs_pass_through=None, get_frame_id=False): runs the model once; returns a list of arrays.
        Raises ValueError when the inputs do not fit. Toolkit1's order, with data_type in second place, is recognised; arrays know their type."""
        try:
            data_format, pass_through = model_inputs.arguments(
                positional, options, functools.partial(self._remark_unused, "inference")
            )
            session = self._need_session()
            self._use_log()
            warn = functools.partial(self._log.warn, "inference")
            own_order = self._remark_own_order if self._loaded is not None else None
            with self._running:
                arrays = model_inputs.prepare(session, inputs, data_format, pass_through, warn, own_order)
                return self._delayed(session.run(arrays, self._report_level, self._cores))
        except (ValueError, RuntimeError, TypeError, MemoryError) as error:
            self._fail("inference", str(error) or type(error).__name__)
            raise ValueError(str(error) or type(error).__name__) from None

    def _remark_own_order(self, text):
        if not self._own_order_told:
            self._log.warn("inference", text)
        self._own_order_told = True

    @tolerant
    def get_sdk_version(self):
        """The version block of the simulator; needs init_runtime."""
        if self._session is None:
            self._fail("get_sdk_version", "The runtime is not initialized, call init_runtime first!")
            return None
        return devices.version_block(self._session)

    @tolerant
    def list_devices(self):
        """Prints and returns the ids of devices in reach: (adb, ntb)."""
        return devices.list_devices(self._toolkit1)
