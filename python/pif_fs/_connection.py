"""Connections: each belongs to one thread at a time. A pool has up to 8, and gives a thread one that is free.

What goes wrong in a call is raised with the library's text. Signals are handled while a call waits, so Ctrl-C ends it.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
import weakref

from ._library import code_name, ffi, lib, text_of
from .errors import InvalidError, PifError, error_of

CONNECTIONS_MAX = 8
ROUTES = {"route": None, "data_path": 0, "timeout_ms": 0, "threads": 1}

_pools: weakref.WeakSet = weakref.WeakSet()


class Connection:
    """One connection of the library, its lock, and what is to be done when somebody holds that next."""

    def __init__(self, where: str | None, options: dict) -> None:
        self.pid = os.getpid()
        self.changes = False  # it is for files that are changed
        self.is_broken = False  # by a bug of the library: it does nothing more
        self.lock = threading.Lock()
        self.owner: int | None = None  # the thread that has the lock
        self.abandoned: collections.deque = collections.deque()  # files that the collector found
        self._raised: BaseException | None = None
        folder = ffi.NULL if where is None else ffi.new("char[]", os.fsencode(where))
        route = ffi.NULL if options.get("route") is None else ffi.new("char[]", options["route"].encode())
        try:
            chosen = ffi.new("pif_options *", dict(options, route=route))
        except (OverflowError, TypeError) as error:
            raise InvalidError(f"options of the connection: {error}", "invalid") from error
        self.handle = lib.pif_connect(folder, chosen)
        if self.handle == ffi.NULL:
            raise MemoryError("no memory for a connection")
        if lib.pif_error(self.handle) != 0:
            raise self.error(-lib.pif_error(self.handle))
        self._watch_signals()

    def _watch_signals(self) -> None:
        """The library asks `wants_to_stop` while it waits: that is Python, so signals are handled in it."""
        itself = weakref.ref(self)  # else the collector would have to find it

        def note(_type, raised, _trace):
            connection = itself()
            if connection is not None:
                connection._raised = raised

        def wants_to_stop(_user):
            connection = itself()
            return 0 if connection is None or connection._raised is None else 1

        self._note = note
        self._on_wait = ffi.callback("pif_wait_function", wants_to_stop, error=1, onerror=note)
        lib.pif_on_wait(self.handle, self._on_wait, ffi.NULL)

    def callback(self, kind: str, function):
        """A function that a call on this connection asks. What it raises ends that; checked() raises it."""
        return ffi.callback(kind, function, error=1, onerror=self._note)

    def __del__(self) -> None:
        handle = getattr(self, "handle", None)
        if handle is not None and not self.is_of_parent():
            lib.pif_disconnect(handle)

    def error(self, result: int, what: str = "") -> BaseException:
        """The exception for a negative result of the last call, or what a signal raised meanwhile."""
        raised, self._raised = self._raised, None
        if raised is not None:
            return raised
        text = text_of(lib.pif_error_text(self.handle))
        self.is_broken = self.is_broken or result == -lib.PIF_E_INTERNAL
        return error_of(code_name(result), what + text if text else what + code_name(result))

    def checked(self, result: int) -> int:
        """The result of a call, if it is none of an error, and nothing was raised meanwhile."""
        if result < 0 or self._raised is not None:
            raise self.error(result)
        return result

    def opened(self, handle):
        """The same of a file."""
        if handle == ffi.NULL:
            raise self.error(-lib.pif_error(self.handle))
        if self._raised is not None:
            lib.pif_close(handle)
            raise self.error(0)
        return handle

    def close_abandoned(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                lib.pif_close(self.abandoned.popleft())

    def is_of_parent(self) -> bool:
        return self.pid != os.getpid()

    def __enter__(self) -> "Connection":
        """This thread has it, once it is free."""
        if self.is_of_parent():
            raise InvalidError("it was opened before fork(): open it anew in this process", "invalid")
        if self.owner == threading.get_ident():
            raise InvalidError("a signal handler cannot use the file whose call it interrupts", "invalid")
        self.lock.acquire()
        self._begin()
        return self

    def try_enter(self) -> bool:
        if not self.lock.acquire(blocking=False):
            return False
        self._begin()
        return True

    def _begin(self) -> None:
        self.owner = threading.get_ident()
        if self.abandoned:
            self.close_abandoned()

    def __exit__(self, *_ignored) -> None:
        self.owner = None
        self.lock.release()


class Pool:
    """Connections to one file system. After fork() it makes new ones: those of the parent are left alone."""

    def __init__(self, where: str | None, options: dict) -> None:
        unknown = set(options) - set(ROUTES)
        if unknown:
            raise InvalidError(f"no option {sorted(unknown)[0]!r}; there are {', '.join(ROUTES)}", "invalid")
        self.where = where
        self.options = dict(ROUTES, **options)
        self.forget()
        _pools.add(self)
        with self.use():
            pass

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._connections: list[Connection] = []
        self._next = 0

    @contextlib.contextmanager
    def use(self, changes: bool = False):
        """A connection, for this thread alone until the block ends. What changes committed files has connections of its
        own: the server takes a file for one that is being changed until the last one that its connection has open is
        closed."""
        connection = self._free(changes) or self._made(changes) or self._in_turn()
        try:
            yield connection
        finally:
            connection.__exit__()

    def all(self) -> list[Connection]:
        return list(self._connections)

    def _free(self, changes: bool) -> Connection | None:
        if any(connection.is_broken for connection in self._connections):
            self._connections = [connection for connection in self._connections if not connection.is_broken]
        for connection in self._connections:
            if connection.changes == changes and connection.try_enter():
                return connection
        return None

    def _made(self, changes: bool) -> Connection | None:
        if len(self._connections) >= CONNECTIONS_MAX:
            return None
        connection = Connection(self.where, self.options)
        connection.changes = changes
        connection.__enter__()
        with self._lock:
            if len(self._connections) < CONNECTIONS_MAX:
                self._connections.append(connection)
                return connection
        connection.__exit__()
        return None

    def _in_turn(self) -> Connection:
        self._next += 1
        connections = self.all()
        return connections[self._next % len(connections)].__enter__()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)

__all__ = ["Connection", "Pool", "PifError"]
