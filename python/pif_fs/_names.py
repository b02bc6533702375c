"""What names stand for: what stat() and ls() tell, and how new files are to be."""

from __future__ import annotations

import builtins
import datetime
import posixpath
from typing import NamedTuple

from ._library import ffi, lib, path_of
from .errors import InvalidError

KINDS = {1: "fixed", 2: "variable", 3: "delimited"}


class Info(NamedTuple):
    """A file or a folder. Sizes are bytes; records and bytes are a hint while somebody appends."""

    path: str
    is_folder: bool
    id: int
    bytes: int
    records: int
    modified_ns: int  # since 1970
    mode: int  # permission bits
    owner: int
    group: int
    kind: str = ""  # "fixed", "variable" or "delimited"; "" of a folder
    record_length: int = 0  # of fixed records
    delimiter: builtins.bytes = b""  # of delimited ones
    width: int = 0  # LFSs that it is on
    is_placed: bool = False

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def modified(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.modified_ns / 1e9, datetime.timezone.utc)


def info_of(path: str, info) -> Info:
    if info.is_folder:
        return Info(path, True, info.id, 0, 0, info.modified_ns, info.mode, info.owner, info.group)
    kind = KINDS.get(info.kind, "")
    return Info(
        path,
        False,
        info.id,
        info.bytes,
        info.records,
        info.modified_ns,
        info.mode,
        info.owner,
        info.group,
        kind,
        info.record_length,
        bytes([info.delimiter]) if kind == "delimited" else b"",
        info.width,
        bool(info.is_placed),
    )


def stat(connection, path) -> Info:
    """Of a connection that the caller has for itself."""
    info = ffi.new("pif_stat_info *")
    connection.checked(lib.pif_stat(connection.handle, path_of(path), info))
    return info_of(path_of(path).decode(), info)


class CreateOptions:
    """pif_create_options, with what it points to. None: as the library has it."""

    def __init__(
        self,
        records: int | str | None = None,
        width: int = 0,
        nodes=None,
        bevy: int | None = None,
        mode: int = 0o644,
        attributes=None,
        exclusive: bool = False,
        delimiter: bytes | str = b"\n",
    ) -> None:
        delimiter = delimiter.encode() if isinstance(delimiter, str) else delimiter
        self.delimiter = delimiter if records == "lines" else b""
        try:
            self.raw = ffi.new("pif_create_options *", {"width": width, "mode": mode, "exclusive": exclusive})
            self._set_format(records, delimiter)
            if bevy is not None:
                self.raw.bevy = bevy if bevy > 0 else lib.PIF_NO_BEVIES
            if nodes is not None:
                self._nodes = ffi.new("uint32_t[]", list(nodes))
                self.raw.nodes, self.raw.node_count = self._nodes, len(self._nodes)
        except (OverflowError, TypeError) as error:
            raise InvalidError(f"options of a new file: {error}", "invalid") from error
        if attributes:
            self._set_attributes(attributes)

    def _set_format(self, records, delimiter) -> None:
        records = getattr(records, "itemsize", records)  # a numpy dtype
        if records is None:
            return
        if records == "lines":
            self.raw.kind, self.raw.delimiter = lib.PIF_DELIMITED, ord(delimiter)
        elif records == "variable":
            self.raw.kind = lib.PIF_VARIABLE
        elif isinstance(records, int) and 0 < records < 1 << 32:
            self.raw.kind, self.raw.record_length = lib.PIF_FIXED, records
        else:
            raise InvalidError(f'records are "lines", "variable" or a length in bytes, not {records!r}', "invalid")

    def _set_attributes(self, attributes) -> None:
        self._texts = [
            (ffi.new("char[]", str(name).encode()), ffi.new("char[]", str(value).encode()))
            for name, value in attributes.items()
        ]
        self._attributes = ffi.new("pif_attribute[]", self._texts)
        self.raw.attributes, self.raw.attribute_count = self._attributes, len(self._texts)
