"""Files that lose bytes while a tool's worker has them mapped: an error that says which file it was, and no output."""

import collections
import os
import re
import sys

from pif_system import FileSystem, check, main_on

FS = None
COLUMNS, ROWS = 80_000, 8_000  # rows so long that stripes after the first read pieces of them
LENGTH = COLUMNS // 8
ATTEMPTS = 50


def workers(tool):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(tool.encode()) and b"--pif-worker" in words:
            found.append(pid)
    return found


def mapped_files(pid, pattern):
    """Paths below the file system's folder that it has mapped."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            paths = {line.split(maxsplit=5)[5].strip() for line in file if FS.folder in line}
    except OSError:
        return []
    return sorted(path for path in paths if re.search(pattern, path))


def cut(pid, path):
    """A scratch file has no name, but its descriptors have."""
    try:
        if not path.endswith("(deleted)"):
            os.truncate(path, 0)
            return True
        for number in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{number}") == path:
                os.truncate(f"/proc/{pid}/fd/{number}", 0)
                return True
    except OSError:
        pass  # it was over
    return False


def a_cut_ends_it(tool, words, pattern, sharers=1):
    """Cuts the first file like that which so many workers have mapped. A job that was over before is begun again: a
    worker that is done with a file does not miss it."""
    data = os.urandom(LENGTH * ROWS)
    for _ in range(ATTEMPTS):
        FS.ok("put", "-q", "--record-length", str(LENGTH), "-", "/in", data=data)
        running, is_cut = FS.start(tool, "-q", *words, "/in", "/out"), False
        while running.poll() is None and not is_cut:
            maps = [(path, pid) for pid in workers(f"pif-{tool}") for path in mapped_files(pid, pattern)]
            count = collections.Counter(path for path, _ in maps)
            is_cut = any(cut(pid, path) for path, pid in maps if count[path] >= sharers)
        error = running.communicate(timeout=120)[1].decode()
        FS.run("rm", "/in")
        if running.returncode == 0:
            FS.ok("rm", "/out")
            continue
        check(running.returncode == 3, f"exit code {running.returncode}: {error}")
        check(re.search(r"lfs\d.* ends before byte \d+", error), f"said: {error}")
        check(error.count("\n") == 1, f"one line: {error}")
        FS.fails(3, "/out", "stat", "/out")
        return
    check(False, f"{ATTEMPTS} jobs were over before anything could be cut")


def a_component_that_is_cut_off_between_stripes():
    a_cut_ends_it("transpose", ["--memory", "32M", "--columns", str(COLUMNS)], r"/data/.*\.dat$")


def a_scratch_file_that_is_cut_off_between_passes():
    a_cut_ends_it(
        "transpose", ["--memory", "32M", "--algorithm", "recursive", "--columns", str(COLUMNS)], r"/scratch/.*deleted"
    )


def runs_of_a_sort_that_are_cut_off():
    a_cut_ends_it("sort", ["--memory", "32M", "-k", "0:10"], r"/scratch/.*deleted", sharers=4)


def run_all():
    global FS
    with FileSystem(4) as FS:
        return main_on(
            FS,
            [
                a_component_that_is_cut_off_between_stripes,
                a_scratch_file_that_is_cut_off_between_passes,
                runs_of_a_sort_that_are_cut_off,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
