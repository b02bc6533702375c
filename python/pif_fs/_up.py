"""Starting a file system."""

from __future__ import annotations

import os

from ._system import FileSystem
from ._tools import report_of, run_program


class StartedSystem(FileSystem):
    """A file system whose daemons up() has looked after. At the end of its block those that it started are stopped."""

    def __init__(self, where: str, was_started: bool, **options) -> None:
        super().__init__(where, **options)
        self._was_started = was_started

    def down(self) -> None:
        """Stops the daemons. What is open breaks; all that is committed stays."""
        self._pool.forget()
        run_program(self.where, "down", ["--yes", str(self.where)])
        self._was_started = False

    def __enter__(self) -> "StartedSystem":
        return self

    def __exit__(self, *_ignored) -> None:
        if self._was_started:
            self.down()


def up(
    folder, n: int | None = None, disks=(), force: bool = False, bevy: int | None = None, **options
) -> StartedSystem:
    """The file system of a folder, started, and made first if it is new: `pif up`. As a context manager it stops, at
    the end of its block, what it started; else the daemons go on.

    n: number of LFSs of a new one (4; with disks, one on each); disks: folders on these; bevy: of parity; force: in a
    folder that has other things in it. options: of connect().
    """
    where = os.path.abspath(os.fspath(folder))
    words = [word for disk in disks for word in ("--disk", os.fspath(disk))]
    words += ["-n", str(n)] if n is not None else []
    words += ["--bevy", str(bevy)] if bevy is not None else []
    words += ["--force"] if force else []
    _, out = run_program(None, "up", [*words, where, "--json"])
    return StartedSystem(where, report_of(out).get("started", 0) > 0, **options)
