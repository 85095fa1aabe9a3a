"""The RKNN class, put together from one class per concern. They turn Python arguments into the native module's, which does the work."""

from .. import _openrknn
from .building import Building
from .custom_op import CustomOperators
from .loading import Loading
from .measuring import Measuring
from .model import path_of
from .running import Running
from .toolkit1_calls import Toolkit1Calls


class RKNN(CustomOperators, Loading, Building, Running, Measuring, Toolkit1Calls):
    """One object = one model. Calls return 0, or -1 and log why. Those that return a value return None then; config() and inference()
    raise ValueError."""

    def list_support_target_platform(self, rknn_model=None):
        """Prints and returns the platforms a .rknn runs on, or all of them without a path."""
        stars = "*" * 50
        if rknn_model is None:
            families = _openrknn.platform_families()
            print(stars, "All RKNN Toolkit supported target platforms:", sep="\n")
            for index, (_, members) in enumerate(families.items(), 1):
                print(f"    chip family {index}: {','.join(m.upper() for m in members)}")
            print(stars)
            return families
        try:
            filled, supported = _openrknn.platforms_of(path_of(rknn_model, "list_support_target_platform"))
        except (ValueError, RuntimeError) as error:
            self._fail("list_support_target_platform", str(error))
            return None
        supported = [name.upper() for name in supported]
        print(
            stars,
            f"Target platforms filled in RKNN model:         {[filled]}",
            f"Target platforms supported by this RKNN model: {supported}",
            stars,
            sep="\n",
        )
        return {"filled_target_platform": [filled], "support_target_platform": supported}

    # ---- known by name, not available yet

    def _unavailable(name):
        def call(self, *args, **kwargs):
            self._fail(name, f"{name} is not available yet!")
            return -1

        call.__name__, call.__doc__ = name, "Not available yet: logs an E line and returns -1."
        return call

    for _name in ("load_keras", "export_encrypted_rknn_model", "codegen"):
        locals()[_name] = _unavailable(_name)
    del _name, _unavailable
