"""Log lines in the toolkit's form: `<level> <function>: <text>` for W and E, without function for I and D."""

import sys
import weakref


def is_terminal():
    return sys.stderr is not None and sys.stderr.isatty()


def write_stderr(text):
    """There may be no stderr, or nobody who reads it: results matter more than lines."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


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
        self.file = None
        self.warnings = 0
        if verbose and path:
            try:
                self.file = open(path, "w", encoding="utf-8", errors="replace")
            except OSError as error:
                self._lost_file(error)
            else:
                self.info(f"Save log info to: {path}")

    def _write(self, level, text):
        colours = {"E": "31", "W": "33"}
        tty = is_terminal()
        for line in text.splitlines() or [""]:
            plain = f"{level} {line}"
            write_stderr(f"\033[{colours[level]}m{plain}\033[0m\n" if tty and level in colours else plain + "\n")
            if self.file:
                try:
                    print(plain, file=self.file, flush=True)
                except OSError as error:
                    self._lost_file(error)

    def _lost_file(self, error):
        """A log that cannot be written is no reason to stop."""
        file, self.file = self.file, None
        if file:
            try:
                file.close()
            except OSError:  # what is left in its buffer
                pass
        self.warn("__init__", f"The verbose_file cannot be written: {error}!")

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
        file, self.file = self.file, None
        if file:
            file.close()


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
        if not finished and (not is_terminal() or now - self.shown < 0.1):
            return
        self.shown = now
        seconds = now - self.start
        filled = self.WIDTH * done // max(total, 1)
        bar = "█" * filled + " " * (self.WIDTH - filled)
        clock = lambda s: f"{int(s) // 60:02}:{int(s) % 60:02}"
        left = seconds / done * (total - done) if done else 0
        rate = f"{done / seconds:.2f}" if seconds > 0 else "?"
        line = f"{name} : {100 * done // max(total, 1):3}%|{bar}| {done}/{total} [{clock(seconds)}<{clock(left)}, {rate}it/s]"
        if is_terminal():
            write_stderr(f"\rI {line}" + ("\n" if finished else ""))
        elif finished:
            self.log.info(line)
