"""Which device a `target` means. Without one in reach, the chip is simulated in this process."""

import os

from .. import _openrknn


def chip_of(target):
    """The chip that `target` names, as the platform table spells it; ValueError when boards with it take no connection."""
    return _openrknn.chip_of_target(str(target).strip())


def find(chip, device_id):
    """(address, why) of the device that a target means: address None when none is in reach, then `why` says what was tried. ValueError
    when several could be meant, or when the one that ORKNN_DEVICE names is not in reach."""
    return _openrknn.find_device(chip, "" if device_id is None else str(device_id).strip())


def _named(chip, device_id):
    return f"{chip} with id {device_id!r}" if device_id else chip


def _missing(chip, device_id, why, instead):
    return ValueError(
        f"Connect to Device Failure (-1): there is no {_named(chip, device_id)} in reach{f' ({why})' if why else ''}. Start "
        f"rknn_server on the device, or {instead}!"
    )


def require(chip, device_id, instead):
    """ValueError when no device of that kind is in reach; `instead` says what else the user can do."""
    address, why = find(chip, device_id)
    if address is None:
        raise _missing(chip, device_id, why, instead)


def simulate_instead(chip, device_id, why, warn):
    """Nothing of that kind is in reach: `warn` gets one line that says so. ValueError when the user wants a real device."""
    if os.environ.get("ORKNN_REQUIRE_DEVICE") == "1":
        raise _missing(chip, device_id, why, "unset ORKNN_REQUIRE_DEVICE to simulate the chip in this process")
    named = _named(chip, device_id)
    warn(f"There is no {named} in reach, the chip is simulated in this process!{f' ({why})' if why else ''}")


def remark_simulator(warn):
    """target=None asks for the simulator, whatever the environment says: `warn` gets a line where it says otherwise."""
    if os.environ.get("ORKNN_DEVICE") or os.environ.get("ORKNN_REQUIRE_DEVICE") == "1":
        warn("ORKNN_DEVICE and ORKNN_REQUIRE_DEVICE are not used, target=None is the simulator: name a chip to run on a device!")


def list_devices(as_list):
    """Prints the block of list_devices, ids in Toolkit1's form when `as_list`, and returns (adb, ntb)."""
    adb, ntb = _openrknn.list_devices()
    print(_openrknn.device_block(adb, ntb, as_list), end="")
    return adb, ntb


def version_block(session):
    """What get_sdk_version returns: Toolkit1 has one DRV line."""
    line, version, facts = "=" * 46, _openrknn.version(), session.device_facts()
    server = f"{version} (simulator)" if facts is None else f"{facts['server_version']} (openrknn)"
    drivers = (
        [server]
        if session.generation() == 1
        else [f"rknn_server: {server}", f"rknnrt: {version if facts is None else facts['server_version']} (openrknn)"]
    )
    return "\n".join([line, "RKNN VERSION:", f"  API: {version} (openrknn)", *(f"  DRV: {d}" for d in drivers), line])
