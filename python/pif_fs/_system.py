"""A file system: its names, and what opens its files."""

from __future__ import annotations

import collections.abc
import contextlib
import fnmatch
import functools
import os
import posixpath
import typing

from ._connection import Pool
from ._file import File, open_file
from ._library import Path, ffi, lib, path_of, text_of
from ._locations import Block, Node, blocks_of, nodes_of
from ._many import Many
from ._names import CreateOptions, Info, info_of, stat
from ._records import Records
from ._tools import Tools
from ._writer import RecordWriter
from .errors import ExistsError, NotFoundError

__all__ = ["FileSystem", "connect"]

LocalPath = typing.Union[str, "os.PathLike[str]"]


class FileSystem(Many, Tools):
    """A connection to a file system. All threads may use it; it may be pickled, and goes on in a forked child.

    Paths are absolute; "pif://" in front of them is ignored. What goes wrong is a PifError, which is an OSError.
    """

    def __init__(self, where: str | None = None, **options) -> None:
        self.where = where
        self._options = options
        self._pool = Pool(where, options)

    def __reduce__(self):
        return functools.partial(FileSystem, self.where, **self._options), ()

    def __repr__(self) -> str:
        return f"pif_fs.connect({self.where!r})"

    # ---- names ----

    def mkdir(self, path: Path, parents: bool = False, mode: int = 0o755) -> None:
        """A folder. parents: missing folders above are made, too, and one that is there is no error."""
        with self._pool.use() as c:
            c.checked(lib.pif_mkdir_mode(c.handle, path_of(path), parents, mode))

    def ls(self, path: Path = "/") -> list[Info]:
        """All that is in a folder, in byte order; of a file itself."""
        folder = path_of(path).decode()
        found: list[Info] = []

        def each(_user, name, info):
            found.append(info_of(posixpath.join(folder, text_of(name)), info))
            return 0

        with self._pool.use() as c:
            result = lib.pif_list(c.handle, folder.encode(), c.callback("pif_list_function", each), ffi.NULL)
            if result == -lib.PIF_E_NOT_DIRECTORY:
                return [stat(c, folder)]
            c.checked(result)
        return found

    def stat(self, path: Path) -> Info:
        with self._pool.use() as c:
            return stat(c, path)

    def exists(self, path: Path) -> bool:
        try:
            self.stat(path)
        except (NotFoundError, NotADirectoryError):
            return False
        return True

    def mv(self, source: Path, target: Path, replace: bool = True) -> None:
        """In one step; what has the name `target` is replaced."""
        with self._pool.use() as c:
            c.checked(lib.pif_rename(c.handle, path_of(source), path_of(target), not replace))

    def rm(self, path: Path, recursive: bool = False) -> None:
        """A file, or an empty folder; recursive: with all that is in it."""
        with self._pool.use() as c:
            c.checked(lib.pif_remove(c.handle, path_of(path), recursive))

    def find(self, path: Path = "/", name: str = "*", folders: bool = False) -> collections.abc.Iterator[Info]:
        """All files below a folder, or folders, too, in byte order; name: a pattern of the last part of the path."""
        for info in self.ls(path):
            if (folders or not info.is_folder) and fnmatch.fnmatchcase(info.name, name):
                yield info
            if info.is_folder:
                yield from self.find(info.path, name, folders)

    def attributes(self, path: Path) -> dict[str, str]:
        """The named attributes of a file."""
        found: dict[str, str] = {}

        def each(_user, name, value):
            found[text_of(name)] = text_of(value)
            return 0

        with self._pool.use() as c:
            asked = c.callback("pif_attribute_function", each)
            c.checked(lib.pif_attributes_of(c.handle, path_of(path), asked, ffi.NULL))
        return found

    def set_attributes(
        self,
        path,
        mode: int | None = None,
        owner: int | None = None,
        group: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        """In one step; what is None stays as it is."""
        given = {"mode": mode, "owner": owner, "group": group, "modified": modified_ns}
        change = ffi.new("pif_attribute_change *")
        for name, value in given.items():
            if value is not None:
                setattr(change, f"sets_{name}", 1)
                setattr(change, "modified_ns" if name == "modified" else name, value)
        with self._pool.use() as c:
            c.checked(lib.pif_set_attributes(c.handle, path_of(path), change))

    # ---- files ----

    def open(self, path: Path, mode: str = "rb", **options) -> typing.IO:
        """A file as Python has them: "rb", "wb", "w+b", "xb", "ab" and "r+b", and the same as text without "b".

        A new file is there when it is closed, or its block ends well; if that raises, it never was. options: of
        create(), and buffering, encoding, errors and newline.
        """
        return open_file(self._pool, path, mode, **options)

    def open_records(self, path: Path, dtype=None, writable: bool = False) -> Records:
        """A file as a sequence of records or lines. dtype: numpy's, of fixed records."""
        return Records(File.opened(self._pool, path, writable), dtype)

    def create(self, path: Path, records=None, **options) -> RecordWriter:
        """A new file for a block: committed when that ends well, aborted when it raises.

        records: "lines", a record's length in bytes, a numpy dtype; None: 64 KiB. options: width (number of LFSs),
        nodes (their ids), bevy (of parity; 0: none), mode, attributes (a dict of texts), exclusive.
        """
        return RecordWriter.create(self._pool, path, records, **options)

    def append_lines(self, path: Path, lines) -> int:
        """Lines, or variable records, behind all others, durable when it returns: the number of the first."""
        with self.open_records(path, writable=True) as file:
            return file.append(lines)

    # ---- where things are ----

    def nodes(self) -> list[Node]:
        """All LFSs."""
        return nodes_of(self._pool)

    def status(self, wait_up: int = 0) -> dict:
        """Counts of the file system. wait_up: waits, for most of the timeout, until so many LFSs are up."""
        info = ffi.new("pif_status_info *")
        with self._pool.use() as c:
            c.checked(lib.pif_status(c.handle, wait_up, info))
            names = ("files", "folders", "pending", "doomed", "sessions", "nodes", "nodes_up")
            return {
                "name": text_of(info.name),
                "refused": text_of(info.refused),
                **{name: getattr(info, name) for name in names},
            }

    def block_locations(self, path: Path, start: int = 0, end: int | None = None) -> list[Block]:
        """(offset, length, [hosts]) of consecutive pieces of a file of fixed records, in bytes.

        Who splits work over hosts lets each one read what lies there.
        """
        with File.opened(self._pool, path) as file:
            return blocks_of(file, self.nodes(), start, end)

    # ---- whole files ----

    def put(self, local: LocalPath, path: Path, **options) -> int:
        """A local file into the file system: bytes. options: of create()."""
        chosen = CreateOptions(**options)
        with open(local, "rb") as file, self._pool.use() as c:
            return c.checked(lib.pif_put(c.handle, file.fileno(), path_of(path), chosen.raw))

    def get(self, path: Path, local: LocalPath) -> int:
        """A file out of the file system: bytes. The local file is there as a whole, or as it was."""
        part = f"{os.fspath(local)}.{os.getpid()}.part"
        try:
            with open(part, "xb") as file, self._pool.use() as c:
                size = c.checked(lib.pif_get(c.handle, path_of(path), file.fileno()))
            os.replace(part, local)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)
            raise
        return size

    def stats(self) -> dict[str, int]:
        """Requests that were sent so far, by their names."""
        counts: collections.Counter = collections.Counter()

        def each(_user, stats):
            counts[text_of(stats.name)] += stats.count
            return 0

        for c in self._pool.all():
            with c:
                c.checked(lib.pif_stats(c.handle, c.callback("pif_stats_function", each), ffi.NULL))
        return dict(counts)

    def touch(self, path: Path) -> None:
        """An empty file, if nothing is there."""
        with contextlib.suppress(ExistsError):
            self.open(path, "xb").close()


def connect(where: str | None = None, **options) -> FileSystem:
    """The file system of the folder `where`; None: of $PIF, a pif.toml here or above, or the user's default.

    options: route ("auto", "unix", "ipc", "tcp"), timeout_ms, threads (of large transfers; 1, since threads of a
    library and fork() do not go together: more are faster where nobody forks).
    """
    return FileSystem(where, **options)
