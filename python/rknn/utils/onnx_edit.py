"""Other shapes for the inputs and outputs of an ONNX model; the native module edits the file, no package is needed."""

from .. import _openrknn
from ..api.log import Log
from ..api.model import path_of


def _formulas(value, what):
    if not isinstance(value, dict) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise ValueError(f"Invalid {what} {value!r}, expect a dict of tensor names and formulas!")
    return list(value.items())


def onnx_edit(model, export_path, inputs_transform=None, outputs_transform=None, dataset=None):
    """Writes `model` to `export_path` with inputs and outputs in the shapes that formulas like 'a,bc,d[b=8]->a,b,d,c' state, and, with a
    calibration list of the old model, the arrays of its samples in the new shapes and dataset_for_<stem>.txt beside `export_path`.
    Returns 0; raises ValueError for formulas and models that do not fit."""
    log = Log()
    try:
        lines = _openrknn.edit_onnx(
            path_of(model, "onnx_edit"),
            path_of(export_path, "onnx_edit"),
            _formulas({} if inputs_transform is None else inputs_transform, "inputs_transform"),
            _formulas({} if outputs_transform is None else outputs_transform, "outputs_transform"),
            "" if dataset is None else path_of(dataset, "onnx_edit"),
        )
    except ValueError as error:
        log.error("onnx_edit", str(error))
        raise
    for line in lines:
        log.info(line if line.startswith(("For ", "The ")) else "  " + line)
    return 0
