"""`openrknn sweep`: models x chips x settings. Every combination is built, measured and compared with the float model; the rows make one table.

The work is cut into tasks that depend on nothing but their files: one builds a combination, one evaluates 64 samples of the data on it. Tasks
run in processes of this machine or on a Ray cluster. A finished task is a file in the output folder, so an interrupted sweep goes on
where it stopped. How the work is cut never depends on the workers, so neither does the table.
"""

import argparse
import collections
import concurrent.futures
import csv
import functools
import hashlib
import html
import io
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from .api.log import Log, Progress, is_terminal

COLUMNS = [
    "model",
    "platform",
    "setting",
    "status",
    "predicted_us",
    "weight_bytes",
    "internal_bytes",
    "file_bytes",
    "samples",
    "mean_cosine",  # of the worst output
    "lowest_cosine",  # of any sample and output
    "same_top1",  # share of the samples whose first output has its largest element in the same place
    "error",
]
ATTEMPTS = 3  # of a task whose worker died
SAMPLES_PER_TASK = 64
CONNECT_SECONDS, CLUSTER_SECONDS = 5, 60  # until a Ray cluster must take a connection, and reply
PROGRAM = pathlib.Path(__file__).resolve().parent / "bin" / "openrknn"

# Options of quantization, which the float model is built without; those that take a value are True.
QUANTIZATION = {
    "--dataset": True,
    "--algorithm": True,
    "--quantized-algorithm": True,
    "--method": True,
    "--quantized-method": True,
    "--dtype": True,
    "--quantized-dtype": True,
    "--auto-hybrid": True,
    "--auto-hybrid-cos-thresh": True,
    "--auto-hybrid-euc-thresh": True,
    "--quantization-batch-size": True,
    "--quantized-hybrid-level": True,
    "--epochs": True,
    "--bgr": False,
    "--quant-img-RGB2BGR": False,
}


# --- what there is to do


def parse_setting(text):
    """'int8=--dataset list.txt --algorithm mmse' -> (name, words)."""
    name, _, words = text.partition("=")
    if not name.strip():
        raise ValueError(f"Invalid setting {text!r}, expect NAME or NAME='OPTIONS of openrknn quantize'!")
    words = [part for word in shlex.split(words) for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for taken in ("-o", "--output", "-t", "--target", "--target-platform", "--json"):
        if taken in words:
            raise ValueError(f"Invalid setting {name!r}, the sweep itself sets {taken}!")
    if "--dataset" in words[-1:]:
        raise ValueError(f"Invalid setting {name!r}, --dataset needs a file!")
    return name.strip(), words


def read_samples(path):
    """The samples of a list, or of a folder of pictures: a list of absolute paths each."""
    if os.path.isdir(path):
        names = sorted(n for n in os.listdir(path) if n.lower().endswith((".jpg", ".jpeg", ".png", ".bmp", ".npy")))
        samples = [[os.path.join(os.path.abspath(path), n)] for n in names]
    else:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file if line.strip()]
        beside = lambda name: os.path.join(os.path.dirname(os.path.abspath(path)), name)
        samples = [[beside(n) if os.path.exists(beside(n)) else os.path.abspath(n) for n in line] for line in lines]
    if not samples:
        raise ValueError(f"There are no samples in {path!r}!")
    for file in (file for sample in samples for file in sample):
        if not os.path.isfile(file) or len(file.split()) != 1:
            raise ValueError(f"{path}: the sample {file!r} is missing or has a space in its name!")
    return samples


@functools.lru_cache(maxsize=None)
def _file_digest(path, size, changed):
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def digest_of(path):
    """Of a file's content, or of all files of a folder."""
    if os.path.isdir(path):
        files = sorted(p for p in pathlib.Path(path).rglob("*") if p.is_file())
        return key_of([[os.fsencode(file.relative_to(path)).hex(), digest_of(str(file))] for file in files])
    facts = os.stat(path)
    return _file_digest(path, facts.st_size, facts.st_mtime_ns)


def parts_of_model(path):
    """The model and the files beside it that begin with its name: weights that some formats keep apart."""
    path = os.path.abspath(path)
    stem = os.path.splitext(os.path.basename(path))[0]
    beside = (os.path.join(os.path.dirname(path), n) for n in sorted(os.listdir(os.path.dirname(path))) if n.startswith(stem))
    return [path, *(p for p in beside if p != path and os.path.isfile(p) and not p.endswith(".rknn"))]


def key_of(*facts):
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()


class Combination:
    """A model, a chip and a setting: what the row says and what its tasks need."""

    def __init__(self, model, platform, name, words, data, version):
        self.model, self.platform, self.setting = os.path.abspath(model), platform, name
        self.words, self.list = list(words), None
        if "--dataset" in words:
            at = words.index("--dataset")
            self.list = read_samples(words[at + 1])
            del self.words[at : at + 2]
        self.words = [os.path.abspath(w) if os.path.isfile(w) else w for w in self.words]
        self.samples = data if data is not None else self.list or []
        self.files = [*parts_of_model(model), *(w for w in self.words if os.path.isabs(w))]
        content = {file: digest_of(file) for file in self.files}
        calibration = [[digest_of(file) for file in sample] for sample in self.list or []]
        words = [content.get(word, word) for word in self.words]
        self.key = key_of(version, sorted(content.values()), platform, words, calibration)

    def chunks(self):
        """(key, samples) of the evaluation's tasks."""
        for begin in range(0, len(self.samples), SAMPLES_PER_TASK):
            part = self.samples[begin : begin + SAMPLES_PER_TASK]
            yield key_of(self.key, [[digest_of(file) for file in sample] for sample in part]), part

    def row(self, **facts):
        named = dict(model=os.path.basename(self.model), platform=self.platform, setting=self.setting)
        return {**dict.fromkeys(COLUMNS, ""), **named, **facts}


# --- tasks: files in, facts and files out; they run anywhere


class WorkerDied(Exception):
    pass


def _openrknn(words, cwd):
    """What the native program prints as JSON; ValueError with its message when it fails, WorkerDied when something ended it."""
    done = _RUNNING.run([str(PROGRAM), *words, "--json"], cwd)
    if done.returncode < 0:
        raise WorkerDied(f"signal {signal.Signals(-done.returncode).name}")
    try:
        facts = json.loads(done.stdout)
    except ValueError:
        raise ValueError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no result") from None
    if done.returncode:
        raise ValueError(facts["error"]["message"].splitlines()[0])
    return facts


class _Children:
    """Native processes under way, so that Ctrl-C ends them all."""

    def __init__(self):
        self.lock, self.alive, self.ended = threading.Lock(), set(), False

    def run(self, words, cwd):
        with self.lock:
            if self.ended:
                raise WorkerDied("interrupted")
            child = subprocess.Popen(
                words,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            self.alive.add(child)
        try:
            out, err = child.communicate()
        finally:
            with self.lock:
                self.alive.discard(child)
        return subprocess.CompletedProcess(words, child.returncode, out, err)

    def end(self):
        with self.lock:
            self.ended = True
            for child in self.alive:
                child.kill()


_RUNNING = _Children()


def _without_quantization(words):
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in QUANTIZATION:
            skip = QUANTIZATION[word]
        else:
            kept.append(word)
    return kept


def _write_list(path, samples, local):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(" ".join(local(name) for name in sample) + "\n" for sample in samples)


def build_task(task, local):
    """Facts of the built model, and {name: bytes} of it and of the float model when they are compared."""
    with tempfile.TemporaryDirectory(prefix="openrknn-sweep-") as folder:
        words = [local(w) if os.path.isabs(w) else w for w in task["words"]]
        model, chip = local(task["model"]), ["-t", task["platform"]]
        command, calibration = "convert", []
        if task["list"] is not None:
            _write_list(os.path.join(folder, "list.txt"), task["list"], local)
            command, calibration = "quantize", ["--dataset", "list.txt"]
        facts = _openrknn([command, model, "-o", "built.rknn", *chip, *calibration, *words], folder)
        wanted = {}
        if task["compared"]:
            plain = _without_quantization(words)
            plain = [w for i, w in enumerate(plain) if w != "--float-dtype" and (i == 0 or plain[i - 1] != "--float-dtype")]
            _openrknn(["convert", model, "-o", "float.rknn", *chip, "--float-dtype", "float32", *plain], folder)
            wanted = {name: pathlib.Path(folder, name).read_bytes() for name in ("built.rknn", "float.rknn")}
        program = facts["model"]["programs"][0]
        time = program.get("predicted_us")
        numbers = dict(
            predicted_us="" if time is None else round(time, 3),
            weight_bytes=facts["model"]["packed_weight_bytes"] or facts["model"]["weight_bytes"],
            internal_bytes=program["internal_bytes"],
            file_bytes=facts["file_bytes"],
        )
        return numbers, wanted


def evaluate_task(task, local):
    """How far the built model is from the float model on some samples."""
    with tempfile.TemporaryDirectory(prefix="openrknn-sweep-") as folder:
        _write_list(os.path.join(folder, "list.txt"), task["list"], local)
        pair = [local(path) for path in task["models"]]
        swapped = ["--bgr"] if task["bgr"] else []
        facts = _openrknn(["compare", *pair, "--dataset", "list.txt", *swapped], folder)
        outputs = [{k: o[k] for k in ("cosine", "lowest_cosine", "same_top1")} for o in facts["outputs"]]
        return dict(samples=facts["pictures"], outputs=outputs), {}


def run_task(task, local=lambda path: path):
    """(facts, files) of a task; facts = {'error': text} when it cannot be done. A worker that dies is replaced."""
    how = ""
    for _ in range(ATTEMPTS):
        try:
            return (build_task if task["kind"] == "build" else evaluate_task)(task, local)
        except WorkerDied as died:
            how = str(died)
        except (ValueError, KeyError, OSError) as error:
            return {"error": str(error) or type(error).__name__}, {}
    return {"error": f"the worker died {ATTEMPTS} times ({how})"}, {}


# --- who runs them


class Processes:
    """Native processes of this machine, `count` at a time."""

    def __init__(self, count):
        self.pool, self.pending = concurrent.futures.ThreadPoolExecutor(count), {}

    def submit(self, task):
        self.pending[self.pool.submit(run_task, task)] = task

    def next(self):
        """(task, facts, files) of one that is finished."""
        done = next(iter(concurrent.futures.wait(self.pending, return_when=concurrent.futures.FIRST_COMPLETED).done))
        return self.pending.pop(done), *done.result()

    def close(self):
        _RUNNING.end()
        self.pool.shutdown(wait=True, cancel_futures=True)


def _on_cluster(task, contents):
    """run_task where the files may be missing: `contents` holds (digest, object) of each."""
    import ray

    with tempfile.TemporaryDirectory(prefix="openrknn-sweep-") as folder:

        def local(path):
            digest, content = contents[path]
            if os.path.exists(path) and digest_of(path) == digest:
                return path
            if content is None:
                raise ValueError(f"The folder {path!r} is not the same on the node {os.uname().nodename}, only files are sent!")
            # The parts of a model are in one folder, under their own names.
            copy = os.path.join(
                folder, hashlib.blake2b(os.path.dirname(path).encode(), digest_size=8).hexdigest(), os.path.basename(path)
            )
            if not os.path.exists(copy):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                with open(copy, "wb") as file:
                    file.write(ray.get(content))
            return copy

        try:
            for part in task["files"]:
                local(part)
        except ValueError as error:
            return {"error": str(error)}, {}
        return run_task(task, local)


def _find_cluster(address):
    """ValueError unless a Ray cluster replies at the address: ray.init() waits without end where there is something else."""
    nobody = f"There is no Ray cluster at {address!r}"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise ValueError(f"{nobody}: {error}!") from None
    program = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"
    words = [sys.executable, "-c", program, address]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CLUSTER_SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(f"{nobody}: it did not reply within {CLUSTER_SECONDS} s!") from None
    if done.returncode != 0:
        raise ValueError(f"{nobody}: {(done.stderr.strip().splitlines() or ['ray.init() failed'])[-1]}")


class Cluster:
    """A Ray cluster. OpenRKNN must be installed on its nodes; files come along where they are missing."""

    def __init__(self, address):
        try:
            import ray
        except ImportError:
            raise ValueError("--ray needs the package 'ray' (pip install ray)!") from None
        self.ray = ray
        _find_cluster(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            raise ValueError(f"There is no Ray cluster at {address!r}: {str(error).splitlines()[0]}") from None
        self.remote = ray.remote(max_retries=ATTEMPTS)(_on_cluster)
        self.pending, self.objects = {}, {}

    def _content(self, path):
        digest = digest_of(path)
        if os.path.isdir(path):
            return digest, None
        if digest not in self.objects:
            with open(path, "rb") as file:
                self.objects[digest] = self.ray.put(file.read())
        return digest, self.objects[digest]

    def submit(self, task):
        paths = {*task["files"], *(file for sample in task["list"] or [] for file in sample)}
        self.pending[self.remote.remote(task, {path: self._content(path) for path in paths})] = task

    def next(self):
        (done,), _ = self.ray.wait(list(self.pending), num_returns=1)
        task = self.pending.pop(done)
        try:
            return task, *self.ray.get(done)
        except self.ray.exceptions.RayError as error:
            return task, {"error": f"the worker died: {str(error).strip().splitlines()[0]}"}, {}

    def close(self):
        for reference in self.pending:
            self.ray.cancel(reference, force=True)
        self.ray.shutdown()


# --- the table


def write_whole(path, content):
    """All of it or nothing."""
    binary = isinstance(content, bytes)
    handle, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".sweep-")
    try:
        with open(handle, "wb" if binary else "w", **({} if binary else dict(encoding="utf-8", newline=""))) as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class Results:
    """The output folder: a file per finished task, the models that evaluation still needs."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        for name in ("tasks", "models"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)

    def model(self, key, name):
        return os.path.join(self.folder, "models", f"{key}.{name}")

    def facts(self, key):
        """Of a task that is finished; None for others."""
        try:
            with open(os.path.join(self.folder, "tasks", key + ".json"), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def has_models(self, key):
        return all(os.path.exists(self.model(key, name)) for name in ("built.rknn", "float.rknn"))

    def store(self, key, facts, files):
        for name, content in files.items():
            write_whole(self.model(key, name), content)
        write_whole(os.path.join(self.folder, "tasks", key + ".json"), json.dumps(facts))


def evaluation_of(parts):
    """One row's columns of the evaluation's tasks, in the order of the samples."""
    for part in parts:
        if "error" in part:
            return dict(status="failed", error=part["error"])
    count = sum(part["samples"] for part in parts)
    outputs = range(len(parts[0]["outputs"]))
    means = [sum(part["outputs"][i]["cosine"] * part["samples"] for part in parts) / count for i in outputs]
    least = min(output["lowest_cosine"] for part in parts for output in part["outputs"])
    same = sum(part["outputs"][0]["same_top1"] for part in parts)
    return dict(samples=count, mean_cosine=round(min(means), 6), lowest_cosine=round(least, 6), same_top1=round(same / count, 4))


class Sweep:
    def __init__(self, combinations, results, workers, log):
        self.combinations, self.results, self.workers, self.log = combinations, results, workers, log
        self.waiting = collections.defaultdict(list)  # build key -> combinations to evaluate after it
        self.submitted, self.done, self.progress = set(), {}, Progress(log)

    def run(self):
        """Does what is not yet done; returns the rows in the order of the combinations."""
        for combination in self.combinations:
            facts = self.results.facts(combination.key)
            if facts is not None and self._may_evaluate(combination):
                self._evaluate(combination)
            else:
                self._build(combination)
        while self.workers.pending:
            task, facts, files = self.workers.next()
            if "error" not in facts:  # what failed is tried again by the next sweep
                self.results.store(task["key"], facts, files)
            self.done[task["key"]] = facts
            self._show(task, facts)
            for combination in self.waiting.pop(task["key"], []):
                if "error" not in facts:
                    self._evaluate(combination)
        return [self._row(combination) for combination in self.combinations]

    def _may_evaluate(self, combination):
        todo = any(self.results.facts(key) is None for key, _ in combination.chunks())
        return not todo or self.results.has_models(combination.key)

    def _submit(self, task):
        if task["key"] not in self.submitted:
            self.submitted.add(task["key"])
            self.workers.submit(task)

    def _build(self, combination):
        self.waiting[combination.key].append(combination)
        c = combination
        self._submit(
            dict(
                kind="build",
                key=c.key,
                title=f"{os.path.basename(c.model)} {c.platform} {c.setting}",
                model=c.model,
                platform=c.platform,
                words=c.words,
                list=c.list,
                files=c.files,
                compared=bool(c.samples),
            )
        )

    def _evaluate(self, combination):
        c = combination
        models = [self.results.model(c.key, name) for name in ("float.rknn", "built.rknn")]
        for key, samples in c.chunks():
            if self.results.facts(key) is None:
                title = f"{os.path.basename(c.model)} {c.platform} {c.setting}, {len(samples)} samples"
                swapped = not {"--bgr", "--quant-img-RGB2BGR"}.isdisjoint(c.words)
                self._submit(dict(kind="evaluate", key=key, title=title, models=models, list=samples, files=models, bgr=swapped))

    def _show(self, task, facts):
        total = len(self.submitted) + sum(len(list(c.chunks())) for group in self.waiting.values() for c in group)
        if is_terminal():
            self.progress("Sweeping", len(self.done), total)
        else:
            self.log.info(f"sweep: {len(self.done)}/{total} {task['title']}: {facts.get('error', 'done')}")

    def _facts(self, key):
        return self.done.get(key) or self.results.facts(key)

    def _row(self, combination):
        facts = self._facts(combination.key)
        if "error" in facts:
            return combination.row(status="failed", error=facts["error"])
        parts = [self._facts(key) for key, _ in combination.chunks()]
        return combination.row(status="ok", **facts) | (evaluation_of(parts) if parts else {})


def csv_text(rows):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def html_text(rows):
    cells = lambda values, tag: "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)
    lines = [f'<tr class="{row["status"]}">{cells([row[c] for c in COLUMNS], "td")}</tr>' for row in rows]
    return "\n".join(
        [
            "<!doctype html><meta charset=utf-8><title>sweep</title><style>",
            "body{font:14px system-ui;margin:2em}table{border-collapse:collapse}",
            "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}.failed{color:#b00}</style>",
            f"<table><tr>{cells(COLUMNS, 'th')}</tr>",
            *lines,
            "</table>\n",
        ]
    )


def table_text(rows):
    """Aligned columns; those that are empty in every row are left out."""
    shown = [c for c in COLUMNS if any(row[c] != "" for row in rows)]
    lines = [shown, *([str(row[c]) for c in shown] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(shown))]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in lines)


def _arguments(words):
    parser = argparse.ArgumentParser(prog="openrknn sweep", add_help=False)  # the native program shows the help
    parser.add_argument("models", nargs="+")
    parser.add_argument("-t", "--platforms", required=True)
    parser.add_argument("--settings", nargs="+", default=["float"])
    parser.add_argument("--data")
    parser.add_argument("-o", "--output", default="sweep")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--ray")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def _combinations(options):
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    settings = [parse_setting(text) for text in options.settings]
    platforms = [name for name in options.platforms.split(",") if name]
    names = [name for name, _ in settings]
    if len(set(names)) != len(names) or not platforms:
        raise ValueError("Every setting needs a name of its own, and there must be a platform!")
    data = read_samples(options.data) if options.data else None
    return [Combination(m, p, name, words, data, version) for m in options.models for p in platforms for name, words in settings]


def main(words=None):
    options = _arguments(words)
    log = Log()
    workers = None
    try:
        combinations = _combinations(options)
        results = Results(options.output)
        count = options.workers if options.workers > 0 else os.cpu_count() or 1
        workers = Cluster(options.ray) if options.ray else Processes(count)
        rows = Sweep(combinations, results, workers, log).run()
        write_whole(os.path.join(results.folder, "sweep.csv"), csv_text(rows))
        write_whole(os.path.join(results.folder, "sweep.html"), html_text(rows))
    except (ValueError, OSError) as error:
        log.error("sweep", str(error))
        return 1
    except KeyboardInterrupt:
        log.error("sweep", f"interrupted; the same command continues from here ({options.output})")
        return 130
    finally:
        if workers is not None:
            workers.close()
    print(json.dumps(rows, indent=2) if options.json else table_text(rows), end="\n" if options.json else "")
    return 1 if any(row["status"] != "ok" for row in rows) else 0


if __name__ == "__main__":
    from rknn import sweep  # as nodes of a cluster know it

    sys.exit(sweep.main())
