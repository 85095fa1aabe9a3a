"""Which device a `target` means. Without one in reach, the chip is simulated in this process."""

import os

from .. import _openrknn

STARS = "*" * 25


def chip_of(target):
    """The chip that `target` names, as the platform table spells it; ValueError when boards with it take no connection."""
    return _openrknn.chip_of_target(str(target).strip())


def simulate_instead(chip, device_id, warn):
    """Nothing of that kind is in reach: `warn` gets one line that says so. ValueError when the user wants a real device."""
    named = f"{chip} with id {device_id!r}" if device_id else chip
    if os.environ.get("ORKNN_REQUIRE_DEVICE") == "1":
        raise ValueError(
            f"Connect to Device Failure (-1): there is no {named} in reach. Start rknn_server on the device, or unset "
            "ORKNN_REQUIRE_DEVICE to simulate the chip in this process!"
        )
    warn(f"There is no {named} in reach, the chip is simulated in this process!")


def list_devices(as_list):
    """Prints the block of list_devices, ids in Toolkit1's form when `as_list`, and returns (adb, ntb)."""
    adb, ntb = [], []
    print(block(adb, ntb, as_list))
    return adb, ntb


def block(adb, ntb, as_list):
    """The text that users of either toolkit know."""
    if not adb and not ntb:
        return "\n".join([STARS, "None devices connected.", STARS])
    lines = []
    for mode, ids in (("adb", adb), ("ntb", ntb)):
        if ids:
            lines += [STARS, f"all device(s) with {mode} mode:", *([str(ids)] if as_list else ids), STARS]
    return "\n".join(lines)


def version_block(generation):
    """What get_sdk_version returns: Toolkit1 has one DRV line."""
    line, version = "=" * 46, _openrknn.version()
    drivers = (
        [f"rknn_server: {version} (simulator)", f"rknnrt: {version} (openrknn)"]
        if generation != 1
        else [f"{version} (simulator)"]
    )
    return "\n".join([line, "RKNN VERSION:", f"  API: {version} (openrknn)", *(f"  DRV: {d}" for d in drivers), line])
