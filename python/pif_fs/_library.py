"""libpif.so, and the folder of the programs that come with it."""

from __future__ import annotations

import os
import typing

from ._binding import ffi
from .errors import InvalidError

Path = typing.Union[str, bytes, "os.PathLike[str]"]  # of the file system, or a URL "pif:///..."

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")

lib = ffi.dlopen(os.path.join(PROGRAMS, "libpif.so.0.1"))


def path_of(path: Path) -> bytes:
    """A path as the library takes it: absolute, UTF-8, without NUL. "pif://" in front and "/" behind are left out."""
    text = os.fspath(path)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            raise InvalidError(f"the path {text!r} is not UTF-8", "invalid") from None
    if text.startswith("pif://"):
        text = text[len("pif://") :]
    if not text.startswith("/"):
        text = "/" + text
    try:
        out = (text.rstrip("/") or "/").encode()
    except UnicodeEncodeError:
        raise InvalidError(f"the path {text!r} is not UTF-8", "invalid") from None
    if b"\0" in out:
        raise InvalidError(f"the path {text!r} has a NUL in it", "invalid")
    return out


def text_of(pointer) -> str:
    """A C string of the library."""
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode(errors="replace")


def code_name(code: int) -> str:
    """Such as "not-found"; the sign does not matter."""
    return text_of(lib.pif_code_name(abs(code)))


def reading(buffer, what: str = "the buffer"):
    """The bytes of an object that has them, to be read from; whoever has this keeps them in place."""
    try:
        return ffi.from_buffer(buffer)
    except (BufferError, ValueError) as error:
        raise InvalidError(f"{what} is not contiguous", "invalid") from error


def writing(buffer, what: str = "the buffer"):
    """The same, to be written to."""
    try:
        return ffi.from_buffer(buffer, require_writable=True)
    except (BufferError, ValueError) as error:
        raise InvalidError(f"{what} is read-only, or not contiguous", "invalid") from error
