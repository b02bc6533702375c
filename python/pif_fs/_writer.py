"""A new file of records, for a block."""

from __future__ import annotations

from ._connection import Pool
from ._file import File
from ._library import lib, reading
from ._lines import LineSink, packed
from ._names import CreateOptions
from .errors import InvalidError


class RecordWriter:
    """What FileSystem.create() gives. Its file is there, durable, when the block ends well; if it raises, or nobody
    ever closes it, there never was one."""

    def __init__(self, file: File, delimiter: bytes) -> None:
        self._file = file
        self._delimiter = delimiter
        self._length = file.record_length
        self._sink = LineSink(file.write_batch, delimiter) if delimiter else None

    @classmethod
    def create(cls, pool: Pool, path, records, **options) -> "RecordWriter":
        if records is not None and not isinstance(records, (int, str)):
            import numpy

            records = numpy.dtype(records).itemsize
        chosen = CreateOptions(records, **options)
        delimiter, chosen.delimiter = chosen.delimiter, b""  # lines are cut here
        return cls(File.created(pool, path, chosen), delimiter)

    @property
    def path(self) -> str:
        return self._file.path

    def write(self, records) -> None:
        """Fixed records: anything with bytes, such as an array, of whole records. Lines: bytes, which are cut, or
        several lines, which get their ends. Variable records: several of them, bytes or text."""
        if self._length:
            self._write_fixed(records)
        elif self._sink is not None and isinstance(records, (bytes, bytearray, memoryview, str)):
            self._sink.write(records.encode() if isinstance(records, str) else records)
        elif isinstance(records, (bytes, bytearray, memoryview, str)):
            raise InvalidError(
                "several records are written, in a list: bytes alone say nowhere where one ends", "invalid"
            )
        else:
            self._file.write_batch(*packed(records, self._delimiter))

    def _write_fixed(self, records) -> None:
        with reading(records, "what is written") as data:
            if len(data) % self._length != 0:
                raise InvalidError(f"{len(data)} bytes are no whole records of {self._length} bytes", "invalid")
            step = max((32 << 20) // self._length, 1) * self._length
            for at in range(0, len(data), step):
                self._file.call(lib.pif_write, data + at, min(step, len(data) - at))

    def resize(self, size: int) -> None:
        """The length in bytes; what is new is zero."""
        self._file.truncate(size)

    def commit(self) -> None:
        if self._sink is not None:
            self._sink.flush()
        self._file.close()

    def abort(self) -> None:
        self._file.discard()

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, kind, *_ignored) -> None:
        if kind is not None:
            self.abort()
        else:
            self.commit()
