"""`from rknn.api import RKNN`."""

from .rknn import RKNN
from .toolkit1_operators import IoMap, RKNNCustomOP, Shape

__all__ = ["RKNN", "RKNNCustomOP", "IoMap", "Shape"]
