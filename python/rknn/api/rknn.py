"""The RKNN class, put together from one class per concern. They turn Python arguments into the native module's, which does the work."""

from . import platform_list
from .building import Building
from .custom_op import CustomOperators
from .exporting import Exporting
from .loading import Loading
from .measuring import Measuring
from .model import path_of, tolerant
from .running import Running
from .toolkit1_calls import Toolkit1Calls


class RKNN(CustomOperators, Loading, Building, Exporting, Running, Measuring, Toolkit1Calls):
    """One object = one model. Calls return 0, or -1 and log why. Those that return a value return None then; config() and inference()
    raise ValueError."""

    @tolerant
    def list_support_target_platform(self, rknn_model=None):
        """Prints and returns the platforms a .rknn runs on, or all of them without a path."""
        if rknn_model is None:
            return platform_list.print_families()
        try:
            return platform_list.print_platforms_of(path_of(rknn_model, "list_support_target_platform"))
        except (ValueError, RuntimeError) as error:
            self._fail("list_support_target_platform", str(error))
            return None
