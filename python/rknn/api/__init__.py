"""`from rknn.api import RKNN`."""
from .rknn import RKNN

__all__ = ["RKNN"]
