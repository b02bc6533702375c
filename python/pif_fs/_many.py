"""Many names and small files at once."""

from __future__ import annotations

import itertools

from ._connection import Pool
from ._library import code_name, ffi, lib, path_of, reading
from ._names import CreateOptions, Info, info_of
from .errors import PifError, error_of

BATCH = 256  # some hundreds use the daemons best
BATCH_BYTES = 64 << 20
TRIES = 4  # of a file whose LFSs changed meanwhile


def batches(items, size: int = BATCH):
    items = iter(items)
    while batch := list(itertools.islice(items, size)):
        yield batch


class _Paths:
    """Paths as an array of C, and how each of them ended."""

    def __init__(self, paths) -> None:
        self.paths = [path_of(path) for path in paths]
        self._texts = [ffi.new("char[]", path) for path in self.paths]
        self.array = ffi.new("char *[]", self._texts)
        self.codes = ffi.new("int[]", len(self.paths))

    def __len__(self) -> int:
        return len(self.paths)

    def error(self, i: int) -> PifError | None:
        return _error(self.codes[i], self.paths[i].decode())


def _error(code: int, path: str) -> PifError | None:
    if code == 0:
        return None
    name = code_name(code)
    return error_of(name, f"{path}: {name}")


class Many:
    """What FileSystem can do with many files in few messages. One that fails takes no other with it: its error is in
    its place in the list."""

    _pool: Pool

    def stat_many(self, paths) -> list[Info | PifError]:
        out: list = []
        for batch in batches(paths):
            wanted = _Paths(batch)
            infos = ffi.new("pif_stat_info[]", len(wanted))
            with self._pool.use() as c:
                c.checked(lib.pif_stat_many(c.handle, wanted.array, len(wanted), infos, wanted.codes))
            out += [wanted.error(i) or info_of(path.decode(), infos[i]) for i, path in enumerate(wanted.paths)]
        return out

    def rm_many(self, paths) -> list[PifError | None]:
        """Files and empty folders."""
        out: list = []
        for batch in batches(paths):
            wanted = _Paths(batch)
            with self._pool.use() as c:
                c.checked(lib.pif_remove_many(c.handle, wanted.array, len(wanted), wanted.codes))
            out += [wanted.error(i) for i in range(len(wanted))]
        return out

    def get_many(self, paths) -> list[bytes | PifError]:
        """All bytes of small files."""
        out: list = []
        for batch in batches(paths):
            wanted = _Paths(batch)
            found: list = [None] * len(wanted)

            def each(_user, index, data, size, found=found):
                found[index] = bytes(ffi.buffer(data, size)) if size else b""
                return 0

            with self._pool.use() as c:
                asked = c.callback("pif_bytes_function", each)
                c.checked(lib.pif_get_many(c.handle, wanted.array, len(wanted), asked, ffi.NULL, wanted.codes))
            out += [wanted.error(i) or found[i] for i in range(len(wanted))]
        return out

    def put_many(self, files, **options) -> list[PifError | None]:
        """files: paths with their bytes, a dict or pairs. options: of create()."""
        pairs = iter(files.items() if hasattr(files, "items") else files)
        out: list = []
        for batch in _by_bytes(pairs):
            out += self._put_batch(batch, CreateOptions(**options))
        return out

    def _put_batch(self, batch, options) -> list[PifError | None]:
        paths = [path_of(path) for path, _ in batch]
        texts = [ffi.new("char[]", path) for path in paths]
        buffers = [reading(data) for _, data in batch]
        codes = ffi.new("int[]", len(batch))
        todo = list(range(len(batch)))
        ended: list = [0] * len(batch)
        for _ in range(TRIES):
            files = ffi.new("pif_small_file[]", [(texts[i], buffers[i], len(buffers[i])) for i in todo])
            with self._pool.use() as c:
                c.checked(lib.pif_put_many(c.handle, files, len(todo), options.raw, codes))
            for at, i in enumerate(todo):
                ended[i] = codes[at]
            todo = [i for i in todo if ended[i] == -lib.PIF_E_OLD_VIEW]
            if not todo:
                break
        return [_error(code, path.decode()) for code, path in zip(ended, paths)]


def _by_bytes(pairs):
    """Batches of at most so many files, and about so many bytes."""
    batch, size = [], 0
    for path, data in pairs:
        batch.append((path, data))
        size += memoryview(data).nbytes
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
