"""What goes wrong: all of it is an OSError, with the library's text and the name of its code."""

from __future__ import annotations

import errno

__all__ = [
    "PifError",
    "NotFoundError",
    "ExistsError",
    "FolderExpectedError",
    "FileExpectedError",
    "NotEmptyError",
    "DeniedError",
    "InvalidError",
    "UnsupportedError",
    "BusyError",
    "NoSpaceError",
    "TooLargeError",
    "CorruptError",
    "UnavailableError",
    "TimedOutError",
    "CancelledError",
    "StaleError",
    "ToolError",
]


class PifError(OSError):
    """`code` is the library's name of it, such as "not-found"; `strerror` its text."""

    number = errno.EIO

    def __init__(self, text: str, code: str = "io-error") -> None:
        super().__init__(self.number, text)
        self.code = code

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self):
        return type(self), (self.strerror, self.code)


class NotFoundError(PifError, FileNotFoundError):
    number = errno.ENOENT


class ExistsError(PifError, FileExistsError):
    number = errno.EEXIST


class FolderExpectedError(PifError, NotADirectoryError):
    number = errno.ENOTDIR


class FileExpectedError(PifError, IsADirectoryError):
    number = errno.EISDIR


class NotEmptyError(PifError):
    number = errno.ENOTEMPTY


class DeniedError(PifError, PermissionError):
    number = errno.EACCES


class InvalidError(PifError, ValueError):
    """What was asked for cannot be: it is the caller's to change."""

    number = errno.EINVAL


class UnsupportedError(PifError):
    number = errno.EOPNOTSUPP


class BusyError(PifError):
    number = errno.EBUSY


class NoSpaceError(PifError):
    number = errno.ENOSPC


class TooLargeError(PifError):
    number = errno.EFBIG


class CorruptError(PifError):
    """Bytes are not as they were written, and parity could not give them back."""


class UnavailableError(PifError, ConnectionError):
    """A daemon that is needed, which the text names, is not there. Or it has another version than this package."""

    number = errno.ECONNREFUSED


class TimedOutError(PifError, TimeoutError):
    number = errno.ETIMEDOUT


class CancelledError(PifError, InterruptedError):
    """A signal ended the call; what it had begun may be done."""

    number = errno.EINTR


class StaleError(PifError):
    """The file was removed or replaced since it was opened."""

    number = errno.ESTALE


class ToolError(PifError):
    """A program of the file system failed. `program`: which; `exit_code`: with what."""

    def __init__(self, text: str, program: str = "", exit_code: int = 1) -> None:
        super().__init__(text, "tool")
        self.program = program
        self.exit_code = exit_code

    def __reduce__(self):
        return type(self), (self.strerror, self.program, self.exit_code)


_CLASS_OF = {
    "invalid": InvalidError,
    "not-found": NotFoundError,
    "exists": ExistsError,
    "not-a-directory": FolderExpectedError,
    "is-a-directory": FileExpectedError,
    "not-empty": NotEmptyError,
    "permission-denied": DeniedError,
    "bad-capability": DeniedError,
    "read-only": DeniedError,
    "stale-file": StaleError,
    "stale-data": StaleError,
    "stale-node": UnavailableError,
    "stale-server": UnavailableError,
    "busy": BusyError,
    "no-space": NoSpaceError,
    "corrupt": CorruptError,
    "timed-out": TimedOutError,
    "unavailable": UnavailableError,
    "version": UnavailableError,
    "too-large": TooLargeError,
    "unsupported": UnsupportedError,
    "cancelled": CancelledError,
}


def error_of(code: str, text: str) -> PifError:
    """The exception for an error of the library."""
    return _CLASS_OF.get(code, PifError)(text, code)
