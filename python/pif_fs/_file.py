"""Files as Python has them: a raw file of the library's, under Python's own buffers.

A raw file belongs to the connection of its opening, and holds its lock during each call. One that nobody closed is
noted by the collector, and closed by whoever has the connection next.
"""

from __future__ import annotations

import io
import os
import warnings

from ._connection import Connection, Pool
from ._library import ffi, lib, path_of, reading, writing
from ._lines import LineSink
from ._names import CreateOptions, stat
from .errors import InvalidError

BUFFER = 128 << 10
CALL_BYTES = 32 << 20  # of one call: between two of them signals are handled
OFFSET_MAX = (1 << 63) - 1


def checked_offset(offset: int) -> int:
    if not 0 <= offset <= OFFSET_MAX:
        raise InvalidError(f"there is no byte {offset}", "invalid")
    return offset


def _by_bytes(pieces):
    """Lists of them of about so many bytes as one call reads."""
    some, total = [], 0
    for piece in pieces:
        some.append(piece)
        total += piece[1]
        if total >= CALL_BYTES:
            yield some
            some, total = [], 0
    if some:
        yield some


class File(io.RawIOBase):
    """A file that is open, or being created. Use FileSystem.open(), which puts buffers over it."""

    def __init__(
        self,
        connection: Connection,
        handle,
        path: str,
        *,
        writes: bool,
        is_new: bool = False,
        appends: bool = False,
        delimiter: bytes = b"",
    ) -> None:
        self._connection = connection
        self._handle = handle
        self.path = path
        self._writes = writes
        self.is_new = is_new
        self._appends = appends
        self.autocommit = True
        self._position = 0
        self._is_broken = False  # a write failed: what is new is not committed
        self._lines: LineSink | None = None  # what is written is cut into lines
        if delimiter:
            self._lines = LineSink(self.append_batch if appends else self.write_batch, delimiter)

    @classmethod
    def opened(cls, pool: Pool, path, writes: bool = False, appends: bool = False) -> "File":
        with pool.use(changes=writes or appends) as c:
            delimiter = stat(c, path).delimiter if appends else b""
            mode = lib.PIF_WRITE if writes or appends else lib.PIF_READ
            handle = c.opened(lib.pif_open(c.handle, path_of(path), mode))
            return cls(
                c, handle, path_of(path).decode(), writes=writes or appends, appends=appends, delimiter=delimiter
            )

    @classmethod
    def created(cls, pool: Pool, path, options: CreateOptions) -> "File":
        with pool.use() as c:
            handle = c.opened(lib.pif_create(c.handle, path_of(path), options.raw))
            return cls(c, handle, path_of(path).decode(), writes=True, is_new=True, delimiter=options.delimiter)

    def __reduce_ex__(self, _protocol):
        raise TypeError("an open file cannot be pickled: pickle the file system and the path, and open it there")

    def __repr__(self) -> str:
        return f"<pif_fs file {self.path!r}{', closed' if self.closed else ''}>"

    # ---- what all calls do ----

    def call(self, function, *words) -> int:
        """A function of the library with this file, on its connection: what it gives."""
        with self._connection as c:
            return c.checked(function(self._open(), *words))

    def _open(self):
        if self._handle is None:
            raise InvalidError(f"{self.path}: it is closed", "invalid")
        return self._handle

    @property
    def record_length(self) -> int:
        with self._connection:
            return lib.pif_record_length(self._open())

    def lengths(self) -> tuple[int, int]:
        """Records and bytes as they are now."""
        records, size = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        self.call(lib.pif_file_length, records, size)
        return records[0], size[0]

    # ---- bytes ----

    def pread(self, buffer, offset: int) -> int:
        """Bytes from there into a buffer that can be written to: how many; fewer only at the end of the file."""
        with writing(buffer) as out:
            return self.pread_into(out, len(out), offset)

    def pread_into(self, memory, size: int, offset: int) -> int:
        """The same into memory of cffi's."""
        return self._in_calls(lib.pif_pread, memory, size, checked_offset(offset))

    def pwrite(self, buffer, offset: int) -> int:
        with reading(buffer) as data:
            return self._in_calls(lib.pif_pwrite, data, len(data), checked_offset(offset))

    def _in_calls(self, function, memory, size: int, offset: int) -> int:
        done = 0
        while done < size:
            some = min(size - done, CALL_BYTES)
            moved = self.call(function, memory + done, some, offset + done)
            done += moved
            if moved < some:
                break
        return done

    def read_pieces(self, pieces) -> list[bytes]:
        """Many pieces at once: (offset, size) of each; shorter where the file ends."""
        out: list[bytes] = []
        for some in _by_bytes(pieces):
            out += self._read_some(some)
        return out

    def _read_some(self, pieces) -> list[bytes]:
        """All pieces in one request. A file that ends before the end of one gives nothing of those behind it, so these
        are read one by one."""
        total = sum(size for _, size in pieces)
        memory = bytearray(total)
        listed = ffi.new("pif_piece[]", [(checked_offset(offset), size) for offset, size in pieces])
        patterns = [
            ffi.gc(lib.pif_pattern_list(listed, len(pieces)), lib.pif_pattern_free),
            ffi.gc(lib.pif_pattern_range(0, total), lib.pif_pattern_free),
        ]
        wanted = ffi.new("pif_pieces *", {"file": patterns[0], "memory": patterns[1]})
        with writing(memory) as to:
            is_whole = total == 0 or self.call(lib.pif_read_pieces, wanted, to, total) == total
        if not is_whole:
            return [self._read_one(offset, size) for offset, size in pieces]
        view, at, out = memoryview(memory), 0, []
        for _, size in pieces:
            out.append(bytes(view[at : at + size]))
            at += size
        return out

    def _read_one(self, offset: int, size: int) -> bytes:
        out = bytearray(min(size, max(self.lengths()[1] - offset, 0)))
        return bytes(memoryview(out)[: self.pread(out, offset)])

    # ---- variable records, packed, with their lengths ----

    def write_batch(self, data, lengths) -> None:
        with reading(data) as memory:
            self.call(lib.pif_write_batch, memory, len(memory), lengths, len(lengths))

    def append_batch(self, data, lengths) -> int:
        with reading(data) as memory:
            return self.call(lib.pif_append_batch, memory, len(memory), lengths, len(lengths))

    # ---- as Python has raw files ----

    def readable(self) -> bool:
        return not self._appends and self._lines is None

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return self._lines is None

    def readinto(self, buffer) -> int:
        if self._appends:
            raise io.UnsupportedOperation("it is open for appending")
        count = self.pread(buffer, self._position)
        self._position += count
        return count

    def readall(self) -> bytes:
        size = max(self.lengths()[1] - self._position, 0)
        out = bytearray(size)
        return bytes(memoryview(out)[: self.readinto(out)])

    def write(self, buffer) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("it is open for reading")
        try:
            count = self._write(buffer)
        except BaseException:
            self._is_broken = True
            raise
        self._position += count
        return count

    def _write(self, buffer) -> int:
        if self._lines is not None:
            return self._lines.write(buffer)
        if not self._appends:
            return self.pwrite(buffer, self._position)
        with reading(buffer) as data:
            if len(data) > 0:
                self._position = self.call(lib.pif_append_bytes, data, len(data))
            return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._open()
        begin = {os.SEEK_SET: lambda: 0, os.SEEK_CUR: lambda: self._position, os.SEEK_END: lambda: self.lengths()[1]}
        if whence not in begin:
            raise InvalidError(f"there is no way to seek {whence}", "invalid")
        self._position = checked_offset(begin[whence]() + offset)
        return self._position

    def tell(self) -> int:
        self._open()
        return self._position

    def truncate(self, size: int | None = None) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("it is open for reading")
        size = self._position if size is None else size
        self.call(lib.pif_resize, checked_offset(size))
        return size

    # ---- the end ----

    def commit(self) -> None:
        """A file being created is there, durable, when this returns."""
        if self._handle is not None:
            self.call(lib.pif_commit)
            self._finish()

    def discard(self) -> None:
        """Gives up a file being created. Of another one nothing happens but that it is closed."""
        self.autocommit = False
        self.is_new = False
        self._finish()
        super().close()

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._lines is not None and not self._is_broken:
                self._lines.flush()
            if self.is_new and self.autocommit and not self._is_broken:
                self.commit()
        except BaseException:
            self._is_broken = True
            raise
        finally:
            super().close()
            if self.autocommit or not self.is_new or self._is_broken:
                self._finish()

    def _finish(self) -> None:
        """Closes the library's file, and with it aborts one that is not committed."""
        handle, self._handle = self._handle, None
        if handle is not None and not self._connection.is_of_parent():
            with self._connection:
                lib.pif_close(handle)

    def abandon(self) -> None:
        """For the collector, on any thread: it waits for nothing."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            self._connection.abandoned.append(handle)

    def __del__(self) -> None:
        self.abandon()


class Buffered:
    """What FileSystem.open() gives: Python's buffers, and the end of a file being created."""

    raw: File

    @property
    def path(self) -> str:
        return self.raw.path

    def commit(self) -> None:
        """Of a file that was opened with autocommit=False, and closed."""
        self.raw.commit()

    def discard(self) -> None:
        """Gives it up: what was written to a new file never was."""
        self.raw.discard()

    def __exit__(self, kind, *_ignored) -> None:
        if kind is not None and self.raw.is_new:
            self.discard()
        else:
            self.close()

    def __del__(self) -> None:
        if not getattr(self, "closed", True) and self.raw.writable() and self.raw._handle is not None:
            warnings.warn(f"{self.raw!r} was not closed", ResourceWarning, source=self)
            self.raw.abandon()

    def __reduce_ex__(self, protocol):
        return self.raw.__reduce_ex__(protocol)


class Reader(Buffered, io.BufferedReader):
    def read_buffer(self, size: int = -1):
        """read() into new memory, without a copy: what pyarrow asks, where there is it."""
        import numpy

        position = self.tell()
        if size is None or size < 0:
            size = max(self.raw.lengths()[1] - position, 0)
        out = numpy.empty(size, numpy.uint8)  # large ones are in huge pages
        count = self.raw.pread(out, position)
        self.seek(position + count)
        return memoryview(out)[:count]


class Appender(Buffered, io.BufferedWriter):
    pass


class Editor(Buffered, io.BufferedRandom):
    pass


def open_file(
    pool: Pool,
    path,
    mode: str = "rb",
    *,
    buffering: int = BUFFER,
    encoding=None,
    errors=None,
    newline=None,
    autocommit: bool = True,
    **options,
):
    """FileSystem.open()."""
    kind = mode.replace("b", "").replace("t", "")
    if kind not in ("r", "w", "w+", "x", "x+", "a", "r+"):
        raise InvalidError(f'no mode {mode!r}; there are "rb", "wb", "w+b", "xb", "ab" and "r+b"', "invalid")
    if kind[0] not in "wx" and options:
        raise InvalidError(f"{sorted(options)[0]!r} is for new files", "invalid")
    raw = _raw(pool, path, kind, options)
    raw.autocommit = autocommit
    size = BUFFER if buffering < 2 else buffering
    out = (Reader if kind == "r" else Editor if raw.readable() else Appender)(raw, size)
    if "b" in mode:
        return out
    return Text(out, encoding=encoding or "utf-8", errors=errors, newline=newline)


def _raw(pool: Pool, path, kind: str, options) -> File:
    if kind == "r":
        return File.opened(pool, path)
    if kind == "r+":
        return File.opened(pool, path, writes=True)
    if kind == "a":
        try:
            file = File.opened(pool, path, appends=True)
        except FileNotFoundError:
            return File.created(pool, path, CreateOptions(**options))
        file.seek(0, os.SEEK_END)
        return file
    options.setdefault("exclusive", kind[0] == "x")
    return File.created(pool, path, CreateOptions(**options))


class Text(io.TextIOWrapper):
    """The same as text."""

    def __exit__(self, kind, *ignored) -> None:
        if kind is not None and self.buffer.raw.is_new:
            self.buffer.discard()
        else:
            self.close()

    def __del__(self) -> None:
        pass  # the buffer below says what is to be said


__all__ = ["File", "open_file"]
