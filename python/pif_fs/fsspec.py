"""PIF for fsspec, as the protocol "pif": what pandas, pyarrow, DuckDB, zarr, Dask and Ray open files with.

pandas.read_csv("pif:///table.csv")
pandas.read_csv("pif:///table.csv", storage_options={"where": "/data/pif"})
"""

from __future__ import annotations

import hashlib
import posixpath

from fsspec.spec import AbstractFileSystem
from fsspec.utils import stringify_path

from ._file import File
from ._many import batches
from ._system import FileSystem
from .errors import InvalidError, NotEmptyError, PifError

COPY_BESIDE_DISKS = 64 << 20  # from here on pif-copy is faster than reading and writing here
FIRST_READ = 64 << 10  # of a file of which the length is not known
SMALL = 1 << 20  # a file that put() sends with others


class PifFileSystem(AbstractFileSystem):
    """where: folder of the file system; None: of $PIF, a pif.toml here or above, or the user's default. Other options
    are those of pif_fs.connect()."""

    protocol = "pif"
    root_marker = "/"
    async_impl = False

    def __init__(self, where=None, auto_mkdir=True, route=None, data_path=0, timeout_ms=0, threads=1, **options):
        super().__init__(**options)
        self.auto_mkdir = auto_mkdir
        self._fs = FileSystem(where, route=route, data_path=data_path, timeout_ms=timeout_ms, threads=threads)

    @property
    def pif(self) -> FileSystem:
        """The file system behind it: records, lines, tools."""
        return self._fs

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = stringify_path(path)
        path = path[len("pif://") :] if path.startswith("pif://") else path
        return "/" + path.strip("/")

    def unstrip_protocol(self, name):
        return "pif://" + self._strip_protocol(name)

    # ---- names ----

    @staticmethod
    def _row(info) -> dict:
        return {
            "name": info.path,
            "type": "directory" if info.is_folder else "file",
            "size": None if info.is_folder else info.bytes,
            "id": info.id,
            "mtime": info.modified_ns / 1e9,
            "modified_ns": info.modified_ns,
            "mode": info.mode,
            "uid": info.owner,
            "gid": info.group,
            "records": info.records,
            "kind": info.kind,
            "record_length": info.record_length,
            "width": info.width,
        }

    def ls(self, path, detail=True, **_options):
        rows = [self._row(info) for info in self._fs.ls(self._strip_protocol(path))]
        return rows if detail else [row["name"] for row in rows]

    def info(self, path, **_options):
        return self._row(self._fs.stat(self._strip_protocol(path)))

    def exists(self, path, **_options):
        return self._fs.exists(self._strip_protocol(path))

    def mkdir(self, path, create_parents=True, **_options):
        path = self._strip_protocol(path)
        if create_parents and posixpath.dirname(path) != "/":
            self._fs.mkdir(posixpath.dirname(path), parents=True)
        self._fs.mkdir(path)

    def makedirs(self, path, exist_ok=False):
        path = self._strip_protocol(path)
        if not exist_ok and self._fs.exists(path):
            raise FileExistsError(path)
        self._fs.mkdir(path, parents=True)

    def rmdir(self, path):
        path = self._strip_protocol(path)
        if not self._fs.stat(path).is_folder:
            raise NotADirectoryError(path)
        self._fs.rm(path)

    def rm_file(self, path):
        self._fs.rm(self._strip_protocol(path))

    _rm = rm_file

    def rm(self, path, recursive=False, maxdepth=None):
        """Files in batches; folders, if recursive, each with all that is in it."""
        paths = [stringify_path(one) for one in (path if isinstance(path, list) else [path])]
        if maxdepth is not None or any("*" in one or "?" in one or "[" in one for one in paths):
            paths = list(reversed(self.expand_path(path, recursive=recursive, maxdepth=maxdepth)))
        paths = [self._strip_protocol(one) for one in paths]
        for batch in batches(paths):
            for one, error in zip(batch, self._fs.rm_many(batch)):
                self._remove_again(one, error, recursive)

    def _remove_again(self, path, error, recursive) -> None:
        """A folder that is not empty is for another call; what a recursive one has removed already is gone."""
        if error is None:
            return
        if not recursive or not isinstance(error, NotEmptyError):
            raise error
        if path != "/":
            self._fs.rm(path, recursive=True)
            return
        for info in self._fs.ls("/"):
            self._fs.rm(info.path, recursive=True)

    def mv(self, path1, path2, recursive=False, maxdepth=None, **options):
        """In one step, wherever there is one name and no pattern."""
        path1, path2 = stringify_path(path1), stringify_path(path2)
        is_one = isinstance(path1, str) and isinstance(path2, str) and not any(c in path1 for c in "*?[")
        if not is_one or maxdepth is not None:
            return super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)
        target = self._strip_protocol(path2)
        if path2.endswith("/") or self.isdir(target):
            target = posixpath.join(target, posixpath.basename(self._strip_protocol(path1)))
        self._make_folder_of(target)
        return self._fs.mv(self._strip_protocol(path1), target)

    def mv_file(self, path1, path2, **_options):
        self._make_folder_of(self._strip_protocol(path2))
        self._fs.mv(self._strip_protocol(path1), self._strip_protocol(path2))

    def cp_file(self, path1, path2, **_options):
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        info = self._fs.stat(source)
        self._make_folder_of(target)
        if info.is_folder:
            self._fs.mkdir(target, parents=True)
        elif info.bytes >= COPY_BESIDE_DISKS:
            self._fs.copy(source, target)
        else:
            self._copy_here(source, target, info)

    def _copy_here(self, source, target, info) -> None:
        records = {"fixed": info.record_length, "delimited": "lines"}.get(info.kind)
        if records is None:
            self._fs.copy(source, target)
            return
        with self._fs.open(source) as file, self._fs.open(
            target, "wb", records=records, delimiter=info.delimiter or b"\n"
        ) as out:
            while block := file.read(8 << 20):
                out.write(block)

    def created(self, path):
        return self.modified(path)

    def modified(self, path):
        return self._fs.stat(self._strip_protocol(path)).modified

    def ukey(self, path):
        info = self._fs.stat(self._strip_protocol(path))
        return hashlib.sha256(f"{info.id} {info.bytes} {info.modified_ns}".encode()).hexdigest()

    checksum = ukey

    def _make_folder_of(self, path) -> None:
        if self.auto_mkdir and posixpath.dirname(path) != "/":
            self._fs.mkdir(posixpath.dirname(path), parents=True)

    def invalidate_cache(self, path=None):
        """Nothing is kept."""

    # ---- files ----

    def open(self, path, mode="rb", block_size=None, cache_options=None, compression=None, **options):
        if compression is None and "b" in mode:
            path = self._strip_protocol(path)
            in_transaction = self._intrans and "r" not in mode
            options.setdefault("autocommit", not in_transaction)
            file = self._open(path, mode, block_size, **options)
            if in_transaction and not options["autocommit"]:
                self.transaction.files.append(file)
            return file
        return super().open(path, mode, block_size, cache_options, compression, **options)

    def _open(self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **options):
        options.pop("size", None)
        if "r" in mode:
            return self._fs.open(path, mode, autocommit=autocommit)
        try:
            return self._fs.open(path, mode, autocommit=autocommit, **options)
        except FileNotFoundError:
            if not self.auto_mkdir:
                raise
        self._make_folder_of(path)
        return self._fs.open(path, mode, autocommit=autocommit, **options)

    def touch(self, path, truncate=True, **_options):
        path = self._strip_protocol(path)
        if truncate or not self._fs.exists(path):
            self.open(path, "wb").close()
        else:
            import time

            self._fs.set_attributes(path, modified_ns=time.time_ns())

    # ---- bytes of whole files, and of pieces ----

    def cat_file(self, path, start=None, end=None, **_options):
        """Its length is asked for only where that is needed."""
        with File.opened(self._fs._pool, self._strip_protocol(path)) as file:
            if (start or 0) < 0 or (end is not None and end < 0):
                size = file.lengths()[1]
                start, end = _from_end(start, size), _from_end(end, size)
            return _read(file, start or 0, end)

    def cat(self, path, recursive=False, on_error="raise", **options):
        paths = self.expand_path(path, recursive=recursive) if recursive or _is_pattern(path) else None
        if paths is None and isinstance(path, str):
            return self.cat_file(path, **options)
        paths = paths or [self._strip_protocol(one) for one in path]
        if paths == [path] and not _is_pattern(path):
            return self.cat_file(path, **options)
        out = {}
        for batch in self._by_size(paths):
            for one, found in zip(batch, self._cat_batch(batch)):
                if isinstance(found, Exception) and on_error == "raise":
                    raise found
                if not isinstance(found, Exception) or on_error != "omit":
                    out[one] = found
        return out

    def _by_size(self, paths):
        """Small ones together; each larger one alone."""
        for batch in batches(paths):
            infos = self._fs.stat_many(batch)
            small = [path for path, info in zip(batch, infos) if isinstance(info, PifError) or info.bytes <= SMALL]
            yield small
            yield from ([path] for path in batch if path not in set(small))

    def _cat_batch(self, paths):
        if len(paths) > 1:
            return self._fs.get_many(paths)
        out = []
        for path in paths:
            try:
                out.append(self.cat_file(path))
            except PifError as error:
                out.append(error)
        return out

    def cat_ranges(self, paths, starts, ends, max_gap=None, on_error="return", **_options):
        """All pieces of one file at once."""
        count = (
            len(paths)
            if not isinstance(paths, str)
            else max(len(one) for one in (starts, ends) if hasattr(one, "__len__"))
        )
        paths = [paths] * count if isinstance(paths, str) else list(paths)
        starts = list(starts) if hasattr(starts, "__len__") else [starts] * count
        ends = list(ends) if hasattr(ends, "__len__") else [ends] * count
        if not len(paths) == len(starts) == len(ends):
            raise InvalidError("there are not as many paths as starts and ends", "invalid")
        of_path: dict = {}
        for i, path in enumerate(paths):
            of_path.setdefault(self._strip_protocol(path), []).append(i)
        out: list = [None] * len(paths)
        for path, places in of_path.items():
            try:
                found = self._pieces(path, [starts[i] or 0 for i in places], [ends[i] for i in places])
            except PifError as error:
                if on_error == "raise":
                    raise
                found = [error] * len(places)
            for i, data in zip(places, found):
                out[i] = data
        return out

    def _pieces(self, path, starts, ends):
        with File.opened(self._fs._pool, path) as file:
            if any(end is None or end < 0 for end in ends) or any(start < 0 for start in starts):
                size = file.lengths()[1]
                starts = [_from_end(start, size) for start in starts]
                ends = [size if end is None else _from_end(end, size) for end in ends]
            return file.read_pieces([(start, max(end - start, 0)) for start, end in zip(starts, ends)])

    def pipe_file(self, path, value, mode="overwrite", **options):
        path = self._strip_protocol(path)
        self._make_folder_of(path)
        if memoryview(value).nbytes > SMALL or mode == "create" or options:
            with self.open(path, "xb" if mode == "create" else "wb", **options) as file:
                file.write(value)
            return
        _raise_first(self._fs.put_many([(path, value)]))

    def pipe(self, path, value=None, **options):
        """Many small ones in batches."""
        if isinstance(path, str):
            self.pipe_file(path, value, **options)
            return
        small, folders = [], set()
        for one, data in path.items():
            one = self._strip_protocol(one)
            if memoryview(data).nbytes > SMALL or options:
                self.pipe_file(one, data, **options)
                continue
            small.append((one, data))
            folders.add(posixpath.dirname(one))
        self._put_small(small, folders)

    def _put_small(self, small, folders) -> None:
        if self.auto_mkdir:
            for folder in sorted(folders - {"/"}):
                self._fs.mkdir(folder, parents=True)
        _raise_first(self._fs.put_many(small))

    def put_file(self, lpath, rpath, callback=None, mode="overwrite", **options):
        import os

        target = self._strip_protocol(rpath)
        if os.path.isdir(lpath):
            self.makedirs(target, exist_ok=True)
            return
        self._make_folder_of(target)
        self._fs.put(lpath, target, exclusive=mode == "create", **options)
        _tell(callback, os.path.getsize(lpath))

    def get_file(self, rpath, lpath, callback=None, outfile=None, **_options):
        import os

        source = self._strip_protocol(rpath)
        if outfile is None and not hasattr(lpath, "write"):
            if self.isdir(source):
                os.makedirs(lpath, exist_ok=True)
                return
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            _tell(callback, self._fs.get(source, lpath))
            return
        with self._fs.open(source) as file:
            while block := file.read(8 << 20):
                (outfile or lpath).write(block)

    def block_locations(self, path, start=0, end=None):
        """(offset, length, [hosts]) of a file's pieces, for who sends work to where they lie."""
        return self._fs.block_locations(self._strip_protocol(path), start, end)


def _is_pattern(path) -> bool:
    return isinstance(path, str) and any(c in path for c in "*?[")


def _from_end(position, size: int):
    return max(position + size, 0) if position is not None and position < 0 else position


def _read(file: File, start: int, end) -> bytes:
    """Up to `end`, or to where the file ends."""
    wanted = FIRST_READ if end is None else max(end - start, 0)
    out = bytearray(min(wanted, FIRST_READ))
    count = file.pread(out, start)
    if count == len(out) and (end is None or wanted > count):
        size = file.lengths()[1]
        rest = bytearray(max(min(size, end if end is not None else size) - start - count, 0))
        return b"".join([out, memoryview(rest)[: file.pread(rest, start + count)]])
    return bytes(memoryview(out)[:count])


def _raise_first(errors) -> None:
    for error in errors:
        if error is not None:
            raise error


def _tell(callback, size: int) -> None:
    if callback is not None:
        callback.set_size(size)
        callback.absolute_update(size)


__all__ = ["PifFileSystem"]
