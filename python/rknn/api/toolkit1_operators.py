"""Base classes of Toolkit1's operator plug-ins, so that scripts that define one can be imported. The operators themselves are not used."""


class IoMap:
    """One input or output of an operator: its name, 'in' or 'out', and a description."""

    def __init__(self, name, direction_tag, description=""):
        self.name, self.direction_tag, self.description = name, direction_tag, description


class Shape:
    """Extents with an axis order ('nhwc' or 'nchw')."""

    def __init__(self, shape=None, fmt="nhwc"):
        self.set_shape(shape=shape, fmt=fmt)

    def set_shape(self, shape=None, fmt="nhwc"):
        self._shape, self._order = list(shape or []), fmt.lower()

    def format(self, fmt="nhwc"):
        """The extents in the order of `fmt`."""
        wanted = fmt.lower()
        if wanted == self._order or len(self._shape) != 4:
            return list(self._shape)
        return [self._shape[self._order.index(axis)] for axis in wanted]


class RKNNCustomOP:
    """To be derived from: `op`, `def_input` and `def_output` (lists of IoMap) and the three methods describe an operator."""

    op, def_input, def_output = "", (), ()

    def load_params_from_tf(self, node_def, tensor_data_map):
        return {}

    def compute_output_shape(self, inputs_shape, params):
        raise NotImplementedError

    def compute_output_tensor(self, const_tensor, inputs_tensor, params):
        raise NotImplementedError
