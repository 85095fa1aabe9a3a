"""Calls that write a finished model in other forms: encrypted, or as a C++ project."""

import os

from .. import _openrknn
from .model import Model, guarded, path_of
from .options import whole_number


class Exporting(Model):
    """export_encrypted_rknn_model() and codegen()."""

    @guarded
    def export_encrypted_rknn_model(self, input_model, output_model=None, crypt_level=1, passphrase=None):
        """Writes the .rknn `input_model` encrypted, as <stem>.crypt.rknn beside it without `output_model`. Levels 1 to 3: a higher one
        takes longer to open and to attack. The model is a secret only with a `passphrase` (else that of ORKNN_PASSPHRASE, which
        loading needs too): the built-in key is known to everybody."""
        self._alive("export_encrypted_rknn_model")
        source = path_of(input_model, "export_encrypted_rknn_model")
        if output_model is None:
            output_model = os.path.splitext(source)[0] + ".crypt.rknn"
        if passphrase is None:
            passphrase = _openrknn.passphrase_of_environment()
        if not isinstance(passphrase, str):
            raise ValueError(f"Invalid passphrase of type {type(passphrase).__name__}, expect a str!")
        target = path_of(output_model, "export_encrypted_rknn_model")
        _openrknn.encrypt_rknn(source, target, whole_number("crypt_level", crypt_level), passphrase)
        self._log.info(f"The encrypted model is {target}")

    @guarded
    def codegen(self, output_path, inputs=None, overwrite=False):
        """Writes a C++ project that runs the built or loaded model through the C API. With `inputs`, a picture or .npy per model input,
        it compares its outputs with the simulator's. An existing folder is left alone unless `overwrite`."""
        self._alive("codegen")
        model = self._loaded if self._loaded is not None else self._need_builder("codegen")
        files = [] if inputs is None else [inputs] if isinstance(inputs, (str, bytes, os.PathLike)) else list(inputs)
        folder = path_of(output_path, "codegen")
        if model.codegen(folder, [path_of(file, "codegen") for file in files], bool(overwrite)):
            self._log.info(f"The C++ project is in {folder}")
        else:
            self._log.warn("codegen", f"The folder '{folder}' exists and is left alone, set overwrite=True to write into it!")
