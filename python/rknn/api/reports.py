"""Text and dictionaries of eval_perf and eval_memory, from what the native side predicts for the model's chip."""

import re
import textwrap

KIB, MIB = 1024, 1024 * 1024
# Columns of the tables that a narrow terminal does without, the first one first.
LEAST_NEEDED = (
    "TaskNumber WorkLoad SparseRation Cycles RW InputShape DataType GPUTime CPUTime NPUTime OutputShape MacUsage Target".split()
)
SIMULATED = "The times are simulated (predicted, not measured on a chip)."
DETAIL_HINT = "You can set perf_debug to True in init_runtime to get more detail performance information!"


def size_text(count):
    return f"{count / MIB:.2f} MiB" if count >= MIB else f"{count / KIB:.2f} KiB"


def performance_text(facts, detailed):
    """Toolkit2: the clocks, what the times are, then the total or the tables."""
    head = f"{facts['clocks']}{SIMULATED}\n"
    if detailed:
        return head + facts["table"]
    us, rule = facts["total_us"], "=" * 67
    total, speed = ("Unknown", "Unknown") if us is None else (round(us), f"{1e6 / us:.2f}" if us > 0 else "Unknown")
    return f"{head}{rule}\n{'Performance':^67}\n{rule}\nFPS: {speed}\nTotal Time(us): {total}\n{rule}\n"


def fitted(text, width):
    """The text for a terminal: of tables that are wider some columns are left out and named below, and names lose their middle."""
    lines, out = text.splitlines(), []
    is_rule = lambda i: i < len(lines) and re.fullmatch("-+", lines[i])
    while lines:
        if is_rule(0) and is_rule(2) and is_rule(4) and len(lines[0]) > width:
            end = next(i for i in range(5, len(lines)) if is_rule(i))
            out += _fitted_table(lines[1].strip(), [lines[3], *lines[5:end]], width)
            lines = lines[end + 1 :]
        else:
            line = lines.pop(0)
            out += [line] if len(line) <= width else textwrap.wrap(line, width)
    return "\n".join(out) + "\n"


def _fitted_table(title, rows, width):
    starts = [match.start() for match in re.finditer(r"(?:^|(?<=  ))\S", rows[0])]
    columns = [[row[a:b].rstrip() for row in rows] for a, b in zip(starts, [*starts[1:], None])]
    widths = lambda: [max(map(len, column)) for column in columns]
    excess = lambda: sum(widths()) + 2 * len(columns) - 2 - width
    left_out = []
    for name in LEAST_NEEDED:
        if excess() + 12 - widths()[-1] <= 0:  # the last column, names, can give way
            break
        left_out += [column[0] for column in columns if column[0].startswith(name)]
        columns = [column for column in columns if not column[0].startswith(name)]
    room = max(12, widths()[-1] - max(0, excess()))
    columns[-1] = [c if len(c) <= room else f"{c[: room // 2]}…{c[len(c) - (room - 1) // 2 :]}" for c in columns[-1]]
    rule = "-" * width
    head, *body = ["  ".join(c.ljust(w) for c, w in zip(row, widths())).rstrip() for row in zip(*columns)]
    remark = textwrap.wrap(f"(no room for: {', '.join(left_out)})", width) if left_out else []
    return [rule, title.center(width).rstrip(), rule, head, rule, *body, rule, *remark]


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
