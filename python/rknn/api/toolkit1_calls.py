"""Calls that only Toolkit1 has."""

import numpy as np

from .. import _openrknn
from .model import Model, guarded, path_of, tolerant


class Toolkit1Calls(Model):
    """What scripts of the first generation call; most of it has nothing to do here."""

    @guarded
    def export_rknn_precompile_model(self, export_path=None):
        """Writes the built or loaded model as it is: every model is compiled for its chip already."""
        self._alive("export_rknn_precompile_model")
        path = path_of(export_path, "export_rknn_precompile_model")
        if self._loaded is not None:
            self._loaded.write(path)
        else:
            self._need_builder("export_rknn_precompile_model").export_rknn(path)

    @guarded
    def export_rknn_sync_model(self, input_model=None, sync_uids=None, output_model=None):
        """Stores the layers after which to yield in a model (itself without `output_model`). They are kept, fetch_rknn_model_config()
        shows them; the simulator never has to yield."""
        self._alive("export_rknn_sync_model")
        source = path_of(input_model, "export_rknn_sync_model")
        uids = [] if sync_uids is None else list(sync_uids)
        if not all(isinstance(uid, (int, np.integer)) and not isinstance(uid, bool) and 0 <= uid < 2**32 for uid in uids):
            raise ValueError(f"Invalid sync_uids {sync_uids!r}, expect a list of numbers!")
        _openrknn.set_sync_uids(
            source,
            source if output_model is None else path_of(output_model, "export_rknn_sync_model"),
            [int(uid) for uid in uids],
        )

    @tolerant
    def register_op(self, op_path):
        """Compiled Toolkit1 operators cannot be used; a model that needs one is refused when it is loaded."""
        self._log.warn("register_op", f"Compiled operators ({op_path}) cannot be used, a model that needs one will be refused!")

    @tolerant
    def fetch_rknn_model_config(self, model_path):
        """What a .rknn says about itself, as a dict; None when it cannot be read."""
        try:
            return _openrknn.model_config(path_of(model_path, "fetch_rknn_model_config"))
        except (ValueError, RuntimeError) as error:
            self._fail("fetch_rknn_model_config", str(error))
            return None

    @tolerant
    def load_firmware(self, fw_dir=None):
        """There is no compute stick to load firmware into: -1."""
        self._log.warn("load_firmware", "There is no device that takes firmware, nothing is loaded!")
        return -1
