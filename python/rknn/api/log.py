"""Log lines in the toolkit's form: `<level> <function>: <text>` for W and E, without function for I and D."""

import contextlib
import datetime
import os
import re
import select
import shutil
import stat
import sys
import weakref


def is_terminal():
    return sys.stderr is not None and sys.stderr.isatty()


PATIENCE = 5  # seconds that a line waits for the reader of a full pipe
_left_out = 0  # lines since that reader was last seen


def _room_in_pipe(patience):
    """Whether stderr takes a line within `patience` seconds. Only a full pipe does not."""
    try:
        stream = sys.stderr.fileno()
        if not stat.S_ISFIFO(os.fstat(stream).st_mode):
            return True
        return bool(select.select([], [stream], [], patience)[1])
    except (AttributeError, OSError, ValueError):  # a stderr of the host program's own making
        return True


def write_stderr(text):
    """Stderr may be missing or a pipe that is not read: the call goes on all the same."""
    global _left_out
    try:
        if sys.stderr is None:
            return
        if not _room_in_pipe(0 if _left_out else PATIENCE):
            _left_out += 1
            return
        if _left_out:
            text = f"W {_left_out} log lines were left out: they were not read in time.\n" + text
            _left_out = 0
        _write_through(text)
    except (OSError, ValueError):
        pass


def _write_through(text):
    """Past the buffer of the process' own stderr: an interpreter that ends, or a child after a fork, while another thread holds the
    buffer's lock would abort."""
    if sys.stderr is not sys.__stderr__:
        sys.stderr.write(text)
        sys.stderr.flush()
        return
    left = text.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    while left:
        left = left[os.write(sys.stderr.fileno(), left) :]


# Names in files may hold control characters, which would move the cursor, change colours or the direction of writing: as in
# src/base/utf8.h.
CONTROL = (*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
ESCAPES = {c: "".join(f"\\x{byte:02x}" for byte in chr(c).encode()) for c in CONTROL if chr(c) not in "\n\t"}


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
        self.renamed = None  # see renaming()
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
        Progress.leave_line()
        for line in self.in_users_words(text).translate(ESCAPES).splitlines() or [""]:
            plain = f"{level} {line}"
            write_stderr(f"\033[{colours[level]}m{plain}\033[0m\n" if tty and level in colours else plain + "\n")
            if self.file:
                try:
                    print(plain, file=self.file, flush=True)
                except OSError as error:
                    self._lost_file(error)

    @contextlib.contextmanager
    def renaming(self, path, word):
        """What native texts call line i of the list `path` is `word`[i - 1] for the user; exceptions included."""
        self.renamed = (path, word)
        try:
            yield
        except ValueError as error:
            raise ValueError(self.in_users_words(str(error))) from None
        finally:
            self.renamed = None

    def in_users_words(self, text):
        if self.renamed is None:
            return text
        path, word = self.renamed
        text = re.sub(re.escape(path) + r" line (\d+)", lambda m: f"{word}[{int(m[1]) - 1}]", text)
        return text.replace(path, word)

    def _lost_file(self, error):
        """A log that cannot be written is no reason to stop."""
        file, self.file = self.file, None
        if file:
            try:
                file.close()
            except OSError:  # what is left in its buffer
                pass
        self.warn("__init__", f"The verbose_file cannot be written: {error}!")

    def line(self, level, text):
        """A line with nothing but its letter in front."""
        self._write(level, text)

    def info(self, text):
        self._write("I", text)

    def debug(self, text):
        if self.verbose:
            self._write("D", text)

    def warn(self, function, text):
        self.warnings += 1
        self._write("W", f"{function}: {text}")

    def error(self, function, text):
        for line in text.split("\n"):
            self._write("E", f"{function}: {line}")

    def core_line(self, level, tag, line):
        """A line of the native side: 0 error, 1 warn, 2 and 3 info, above debug. Lines without a tag are the runtime's, which
        RKNN_LOG_LEVEL asked for; they look as in C programs."""
        if not tag:
            now = datetime.datetime.now()
            self._write("EWIDDD"[level], f"RKNN: [{now:%H:%M:%S}.{now.microsecond // 1000:03}] {line}")
        elif level == 0:
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
    _is_open = False  # a progress bar is on the terminal's last line

    @classmethod
    def leave_line(cls):
        """Other lines begin below a bar that is still moving."""
        if cls._is_open:
            cls._is_open = False
            write_stderr("\n")

    def __init__(self, log):
        import time

        self.log, self.clock, self.name, self.start, self.shown = log, time.monotonic, None, 0.0, 0.0

    def _line(self, name, done, total, seconds, room):
        """The bar gives way, then the figures after it, when they do not fit into `room` characters."""
        clock = lambda s: f"{int(s) // 60:02}:{int(s) % 60:02}"
        left = seconds / done * (total - done) if done else 0
        rate = f"{done / seconds:.2f}" if seconds > 0 else "?"
        head, figures = (
            f"{name} : {100 * done // max(total, 1):3}%",
            f" {done}/{total} [{clock(seconds)}<{clock(left)}, {rate}it/s]",
        )
        width = min(self.WIDTH, room - len(head) - len(figures) - 2)
        if width < 5:
            return head[:room]
        filled = width * done // max(total, 1)
        return f"{head}|{'█' * filled}{' ' * (width - filled)}|{figures}"

    def __call__(self, name, done, total):
        now = self.clock()
        if name != self.name:
            self.name, self.start, self.shown = name, now, 0.0
        finished = done >= total
        if not finished and (not is_terminal() or now - self.shown < 0.1):
            return
        self.shown = now
        if is_terminal():
            room = shutil.get_terminal_size().columns - 3  # "I " and the cursor
            write_stderr("\r\033[KI " + self._line(name, done, total, now - self.start, room) + ("\n" if finished else ""))
            Progress._is_open = not finished
        elif finished:
            self.log.info(self._line(name, done, total, now - self.start, 200))
