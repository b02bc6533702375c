"""The programs of the file system, as calls: each is one process, whose report is a dict."""

from __future__ import annotations

import collections.abc
import contextlib
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import tempfile
import threading

from ._library import PROGRAMS, path_of
from .errors import ToolError, error_of

END_SECONDS = 15.0  # that a program has to end after a signal

Progress = collections.abc.Callable[[float], None]


def words_of(options: dict) -> list[str]:
    """{"by": "city", "top": 3, "exact": True, "field": [1, 2]}: --by city --top 3 --exact --field 1 --field 2."""
    words: list[str] = []
    for name, value in options.items():
        option = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not False and one is not None:
                words += [option, str(one)]
    return words


def program_path(program: str) -> list[str]:
    """The words that start a program of the wheel: "sort", "pif-sort", "put" and the like."""
    name = program if program.startswith("pif-") else f"pif-{program}"
    path = os.path.join(PROGRAMS, name)
    return [path] if os.path.exists(path) else [os.path.join(PROGRAMS, "pif"), program]


def _show_progress(terminal: int, progress: Progress) -> str:
    """Reads what a program says on its terminal, until it ends; tells the part that is done, and gives the rest. A line
    of progress begins with a return of the carriage, and is wiped by the next."""
    rest = line = ""
    with contextlib.suppress(OSError):  # which says that it has ended
        while piece := os.read(terminal, 4096):
            *lines, line = (line + piece.decode(errors="replace")).replace("\r\n", "\n").split("\r")
            rest += "".join(_unless_progress(one, progress) for one in lines)
    return rest + _unless_progress(line, progress)


def _unless_progress(line: str, progress: Progress) -> str:
    found = re.search(r"\b(\d{1,3}) ?%", line)
    if found is None:
        return line.replace("\x1b[K", "")
    progress(int(found.group(1)) / 100)
    return line.partition("\x1b[K")[2] if not line.startswith("\x1b[K") else ""


class _Process:
    """A program that runs. It ends with its caller's wait: after an exception it is told to, then made to."""

    def __init__(self, words: list[str], env: dict, data: bytes | None, progress: Progress | None) -> None:
        self._data = data
        self._said: list[str] = []
        self._raised: BaseException | None = None
        self._reader: threading.Thread | None = None
        errors: int = subprocess.PIPE
        if progress is not None:
            self._terminal, errors = pty.openpty()
        self._process = subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        if progress is not None:
            os.close(errors)
            self._reader = threading.Thread(target=self._read, args=(progress,), daemon=True)
            self._reader.start()

    def _read(self, progress: Progress) -> None:
        try:
            self._said.append(_show_progress(self._terminal, progress))
        except BaseException as error:  # of the callback: wait() raises it
            self._raised = error
            self._said.append(_show_progress(self._terminal, lambda _part: None))

    def wait(self) -> tuple[int, bytes, str]:
        """Its exit code, its output, and what it said."""
        try:
            out, errors = self._process.communicate(self._data)
        except BaseException:
            self._end()
            raise
        finally:
            if self._reader is not None:
                self._reader.join(END_SECONDS)
                os.close(self._terminal)
        if self._raised is not None:
            raise self._raised
        said = errors.decode(errors="replace") if errors is not None else "".join(self._said)
        return self._process.returncode, out, said

    def _end(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def run_program(
    where: str | None, program: str, words, *, data: bytes | None = None, ok=(0,), progress: Progress | None = None
) -> tuple[int, bytes]:
    """The exit code and the output of a program that ended with one of `ok`. Raises what it said if it did not."""
    env = dict(os.environ) if where is None else dict(os.environ, PIF=os.path.abspath(where))
    code, out, said = _Process([*program_path(program), *words], env, data, progress).wait()
    if code in ok:
        return code, out
    raise _failure(program, code, out, said)


def _failure(program: str, code: int, out: bytes, said: str) -> OSError:
    lines = said.strip().splitlines()
    text = lines[-1] if lines else f"{program} ended with exit code {code}"
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error = json.loads(out)["error"]
        found = error_of(error["code"], text)
        if type(found).__name__ != "PifError":
            return found
    return ToolError(text, program, code)


def report_of(out: bytes) -> dict:
    """One document, or one a line."""
    text = out.decode()
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return {"output": text}


class Tools:
    """What FileSystem does beside each disk, so that the data does not travel. Options are those of the programs, by
    their long names: fs.copy("/a", "/b", width=2). What comes back is a program's report."""

    where: str | None

    def run(
        self, program: str, *words, data: bytes | None = None, ok=(0,), progress: Progress | None = None, **options
    ) -> dict:
        """Any program: fs.run("digest", "/a"). data: its standard input; ok: exit codes that are no failure; progress:
        is told, on a thread of its own, which part is done. Ctrl-C ends the program, too."""
        all_words = [*words_of(options), *map(os.fspath, words)]
        _, out = run_program(self.where, program, [*all_words, "--json"], data=data, ok=ok, progress=progress)
        return report_of(out)

    def sort(self, source, target, key: str | None = None, **options) -> dict:
        """key: keys as `pif sort` has them: "-t , -k 3", "-k 2,2nr", "0:8:u"."""
        keys = shlex.split(key) if key else []
        if keys and not keys[0].startswith("-"):
            keys = ["-k", key]
        sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        return self.run("sort", *keys, *map(_path, sources), _path(target), **options)

    def copy(self, source, target, **options) -> dict:
        return self.run("copy", _path(source), _path(target), **options)

    def transpose(self, source, target, **options) -> dict:
        return self.run("transpose", _path(source), _path(target), **options)

    def search(self, pattern: str, *paths, **options) -> dict:
        """The report, and in it "lines": what was found, as `pif search` prints it."""
        return self._with_output("search", ["-e", pattern, *map(_path, paths)], options, ok=(0, 1))

    def summarize(self, path, **options) -> dict:
        """The report, and in it "table": the lines that `pif summarize` prints, cut at their tabs."""
        report = self._with_output("summarize", [_path(path)], options)
        report["table"] = [line.split("\t") for line in report.pop("lines")]
        return report

    def _with_output(self, program: str, words, options: dict, ok=(0,)) -> dict:
        progress = options.pop("progress", None)
        with tempfile.TemporaryDirectory(prefix="pif-fs-") as folder:
            path = os.path.join(folder, "report")
            all_words = [*words_of(options), "--report", path, *words]
            _, out = run_program(self.where, program, all_words, ok=ok, progress=progress)
            with open(path, "rb") as file:
                report = report_of(file.read())
        report["lines"] = out.decode(errors="surrogateescape").splitlines()
        return report


def _path(path) -> str:
    return path_of(path).decode()
