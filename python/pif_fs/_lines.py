"""Bytes into lines, and records into packed bytes with their lengths."""

from __future__ import annotations

from ._library import ffi
from .errors import InvalidError


def lengths_array(lengths):
    return ffi.new("uint32_t[]", lengths)


def packed(records, delimiter: bytes):
    """(bytes, lengths) of records that are bytes or text. Lines may lack their delimiter; then they get it."""
    all_bytes = [record.encode() if isinstance(record, str) else bytes(record) for record in records]
    if delimiter:
        all_bytes = [line if line.endswith(delimiter) else line + delimiter for line in all_bytes]
        for line in all_bytes:
            if line.find(delimiter) != len(line) - 1:
                raise InvalidError(f"a line has {delimiter!r} inside: {line[:40]!r}", "invalid")
    return b"".join(all_bytes), lengths_array([len(record) for record in all_bytes])


class LineSink:
    """Takes bytes of any length, and gives whole lines to `emit(data, lengths)`. What comes after the last delimiter
    waits, at the end for flush()."""

    def __init__(self, emit, delimiter: bytes) -> None:
        self._emit = emit
        self._delimiter = delimiter
        self._tail = b""

    def write(self, buffer) -> int:
        data = memoryview(buffer).cast("B")
        whole = bytes(data)
        end = whole.rfind(self._delimiter) + 1
        if end == 0:
            self._tail += whole
        else:
            self._give(self._tail + whole[:end])
            self._tail = whole[end:]
        return len(data)

    def flush(self) -> None:
        """Its last line may lack the delimiter."""
        data, self._tail = self._tail, b""
        if data:
            self._emit(data, lengths_array([len(data)]))

    def _give(self, data: bytes) -> None:
        lines = data.split(self._delimiter)
        lines.pop()  # what comes behind the last delimiter
        self._emit(data, lengths_array([len(line) + 1 for line in lines]))
