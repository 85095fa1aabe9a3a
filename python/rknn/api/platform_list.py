"""What list_support_target_platform prints."""

from .. import _openrknn

STARS = "*" * 50


def print_families():
    """All chips by family; returns them."""
    families = _openrknn.platform_families()
    print(STARS, "All RKNN Toolkit supported target platforms:", sep="\n")
    for index, members in enumerate(families.values(), 1):
        print(f"    chip family {index}: {','.join(m.upper() for m in members)}")
    print(STARS)
    return families


def print_platforms_of(path):
    """The chips that a .rknn was made for and those it runs on; returns them as a dict. ValueError when it cannot be read."""
    filled, supported = _openrknn.platforms_of(path)
    supported = [name.upper() for name in supported]
    print(
        STARS,
        f"Target platforms filled in RKNN model:         {filled}",
        f"Target platforms supported by this RKNN model: {supported}",
        STARS,
        sep="\n",
    )
    return {"filled_target_platform": filled, "support_target_platform": supported}
