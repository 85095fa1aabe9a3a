"""The RKNN class, put together from one class per concern. They turn Python arguments into the native module's, which does the work."""

from . import platform_list
from .building import Building
from .exporting import Exporting
from .loading import Loading
from .measuring import Measuring
from .model import path_of, tolerant
from .running import Running
from .toolkit1_calls import Toolkit1Calls


class RKNN(Loading, Building, Exporting, Running, Measuring, Toolkit1Calls):
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

    # ---- known by name, not available yet

    def _unavailable(name):
        def call(self, *args, **kwargs):
            self._fail(name, f"{name} is not available yet!")
            return -1

        call.__name__, call.__doc__ = name, "Not available yet: logs an E line and returns -1."
        return call

    for _name in ("reg_custom_op",):
        locals()[_name] = _unavailable(_name)
    del _name, _unavailable
