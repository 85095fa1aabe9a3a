"""OpenRKNN: the board-side Python package (rknnlite.api)."""
