"""OpenRKNN: the RKNN toolkit's Python packages (rknn.api, rknn.utils)."""
