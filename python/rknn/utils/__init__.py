"""`from rknn.utils import onnx_edit`."""

from .onnx_edit import onnx_edit

__all__ = ["onnx_edit"]
