"""Text and dictionaries of eval_perf and eval_memory, from what the native side predicts for the model's chip."""

KIB, MIB = 1024, 1024 * 1024
DETAIL_HINT = "You can set perf_debug to True in init_runtime to get more detail performance information!"


def size_text(count):
    return f"{count / MIB:.2f} MiB" if count >= MIB else f"{count / KIB:.2f} KiB"


def performance_text(facts, detailed):
    """Toolkit2: the clocks, then the total or the tables."""
    if detailed:
        return facts["clocks"] + facts["table"]
    us, rule = facts["total_us"], "=" * 67
    total, speed = ("Unknown", "Unknown") if us is None else (round(us), f"{1e6 / us:.2f}" if us > 0 else "Unknown")
    return f"{facts['clocks']}{rule}\n{'Performance':^67}\n{rule}\nFPS: {speed}\nTotal Time(us): {total}\n{rule}\n"


def performance_dict(facts):
    """Toolkit1 on the simulator. A layer's uid is what export_rknn_sync_model() takes; inputs and outputs are no layers."""
    layers = {}
    for i, (name, uid, us) in enumerate(facts["layers"]):
        layers[str(i)] = {"name": name, "time": us} | ({} if uid is None else {"uid": uid})
    return {"total_time": sum(layer["time"] or 0 for layer in layers.values()), "layers": layers}


def performance_table(result, megahertz):
    """Toolkit1: names that are too long go on in the next line."""
    width, rule = 50, "=" * 80
    lines = [rule, f"{'Performance':^80}", rule, f"{'Layer ID':<10}{'Name':<{width}}{'Uid':>8}{'Time(us)':>12}"]
    for key, layer in result["layers"].items():
        name, us = layer["name"] or "\\", "\\" if layer["time"] is None else layer["time"]
        lines.append(f"{key:<10}{name[: width - 2]:<{width}}{layer.get('uid', ''):>8}{us:>12}")
        lines += [f"{'':<10}{name[i : i + width - 2]}" for i in range(width - 2, len(name), width - 2)]
    total = result["total_time"]
    lines += [
        f"Total Time(us): {total}",
        f"FPS({megahertz}MHz): {1e6 / total:.2f}" if total else f"FPS({megahertz}MHz): 0.00",
        rule,
    ]
    return "\n".join(lines) + "\n"


def memory_dict(facts):
    sizes = {"weight_memory": facts["weight"], "internal_memory": facts["internal"], "other_memory": facts["other"]}
    sizes["total_memory"] = sum(sizes.values())
    # Names of earlier releases.
    return sizes | {
        "total_weight_allocation": facts["weight"],
        "total_internal_allocation": facts["internal"],
        "total_model_allocation": sizes["total_memory"],
    }


def memory_dict_toolkit1(facts):
    """The host holds the model file, the NPU everything else; peaks are what both hold at once."""
    npu = facts["weight"] + facts["internal"] + facts["other"]
    parts = {
        "system_memory": {"maximum_allocation": facts["file"], "total_allocation": facts["file"]},
        "npu_memory": {"maximum_allocation": npu, "total_allocation": npu},
    }
    parts["total_memory"] = {key: sum(part[key] for part in parts.values()) for key in ("maximum_allocation", "total_allocation")}
    return parts


def memory_text(result, facts):
    rule = "=" * 54
    head = f"{rule}\n            Memory Profile Info Dump\n{rule}\n"
    tail = f"\nINFO: When evaluating memory usage, we need consider\nthe size of model, current model size is: {size_text(facts['file'])}\n{rule}\n"
    if "npu_memory" in result:
        body = ""
        for title, key in (("System memory", "system_memory"), ("NPU memory", "npu_memory"), ("Total memory", "total_memory")):
            part = result[key]
            body += f"{title}:\n    maximum allocation : {part['maximum_allocation'] / MIB:.2f} MiB\n    total allocation   : {part['total_allocation'] / MIB:.2f} MiB\n"
        return head + body + tail
    return (
        f"{head}NPU model memory detail(bytes):\n    Weight Memory: {size_text(result['weight_memory'])}\n    Internal Tensor Memory: {size_text(result['internal_memory'])}\n"
        f"    Other Memory: {size_text(result['other_memory'])}\n    Total Memory: {size_text(result['total_memory'])}\n{tail}"
    )
