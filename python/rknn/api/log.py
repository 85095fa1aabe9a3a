"""Log lines in the toolkit's form: `<level> <function>: <text>` for W and E, without function for I and D."""
import sys
import weakref


class Log:
    """Writes the lines of one RKNN object to stderr and, if wanted, to a file. D lines only when verbose."""

    _verbose = weakref.WeakSet()

    @classmethod
    def any_verbose(cls):
        """Whether some live object wants D lines."""
        return len(cls._verbose) > 0

    def __init__(self, verbose=False, path=None):
        self.verbose = bool(verbose)
        if verbose:
            Log._verbose.add(self)
        self.file = open(path, "w", encoding="utf-8") if verbose and path else None
        self.warnings = 0
        if self.file:
            self.info(f"Save log info to: {path}")

    def _write(self, level, text):
        colours = {"E": "31", "W": "33"}
        tty = sys.stderr.isatty()
        for line in text.splitlines() or [""]:
            plain = f"{level} {line}"
            print(f"\033[{colours[level]}m{plain}\033[0m" if tty and level in colours else plain, file=sys.stderr)
            if self.file:
                print(plain, file=self.file, flush=True)

    def info(self, text):
        self._write("I", text)

    def debug(self, text):
        if self.verbose:
            self._write("D", text)

    def warn(self, function, text):
        self.warnings += 1
        self._write("W", f"{function}: {text}")

    def error(self, function, text):
        for line in text.splitlines() or [""]:
            self._write("E", f"{function}: {line}")

    def core_line(self, level, tag, line):
        """A line of the native side: 0 error, 1 warn, 2 and 3 info, above debug."""
        if level == 0:
            self.error(tag, line)
        elif level == 1:
            self.warn(tag, line)
        elif self.verbose:
            self._write("I" if level <= 3 else "D", line)

    def close(self):
        Log._verbose.discard(self)
        if self.file:
            self.file.close()
            self.file = None


class Progress:
    """The toolkit's progress bar, `I Loading : 100%|####| 7/7 [00:00<00:00, 50.0it/s]`; live on a terminal, one line otherwise."""

    WIDTH = 30

    def __init__(self, log):
        import time
        self.log, self.clock, self.name, self.start, self.shown = log, time.monotonic, None, 0.0, 0.0

    def __call__(self, name, done, total):
        now = self.clock()
        if name != self.name:
            self.name, self.start, self.shown = name, now, 0.0
        finished = done >= total
        if not finished and (not sys.stderr.isatty() or now - self.shown < 0.1):
            return
        self.shown = now
        seconds = now - self.start
        filled = self.WIDTH * done // max(total, 1)
        bar = "█" * filled + " " * (self.WIDTH - filled)
        clock = lambda s: f"{int(s) // 60:02}:{int(s) % 60:02}"
        left = seconds / done * (total - done) if done else 0
        rate = f"{done / seconds:.2f}" if seconds > 0 else "?"
        line = f"{name} : {100 * done // max(total, 1):3}%|{bar}| {done}/{total} [{clock(seconds)}<{clock(left)}, {rate}it/s]"
        if sys.stderr.isatty():
            print(f"\rI {line}", end="\n" if finished else "", file=sys.stderr, flush=True)
        elif finished:
            self.log.info(line)
