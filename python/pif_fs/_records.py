"""A file as a sequence of records: by number, in batches, as arrays."""

from __future__ import annotations

import operator
import random
import typing

from ._file import File
from ._library import ffi, lib, writing
from ._lines import packed
from ._locations import node_ids
from ._names import stat
from .errors import InvalidError

BATCH_BYTES = 8 << 20
LINE_BYTES_MIN = 64 << 10  # room for lines of which nothing is known
CALL_BYTES = 1 << 20  # of lines in one call: they are put together in the processor's cache


class Records:
    """What FileSystem.open_records() gives. `f[3]`, `f[-1]`, `f[10:20]` and `f[[7, 1, 7]]` are records; `len(f)` is
    asked anew each time. Iterating reads ahead in batches. A map-style dataset for PyTorch as it is.

    A record is bytes. Fixed ones are elements of `dtype`, where that was given, and several of them an array.
    """

    def __init__(self, file: File, dtype=None) -> None:
        self._file = file
        self._length = file.record_length
        with file._connection as c:
            self._delimiter = stat(c, file.path).delimiter
        self._shape: tuple = ()
        self._dtype: typing.Any = None
        if dtype is not None:
            self._set_dtype(dtype)

    def _set_dtype(self, dtype) -> None:
        import numpy

        self._dtype = numpy.dtype(dtype)
        size = self._dtype.itemsize
        if size == 0 or self._length % size != 0 or self._length == 0:
            what = f"records of {self._length} bytes" if self._length else "records of no fixed length"
            self.close()
            raise InvalidError(f"a dtype of {size} bytes does not divide {what}", "invalid")
        self._shape = () if size == self._length else (self._length // size,)

    # ---- the file ----

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def record_length(self) -> int:
        """Bytes; 0: they differ."""
        return self._length

    def __len__(self) -> int:
        return self._file.lengths()[0]

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "Records":
        return self

    def __exit__(self, *_ignored) -> None:
        self.close()

    def __reduce__(self):
        return self._file.__reduce_ex__(2)

    def __repr__(self) -> str:
        return f"<pif_fs records of {self.path!r}>"

    # ---- as a sequence ----

    def __getitem__(self, which):
        if isinstance(which, slice):
            return self._slice(which)
        if hasattr(which, "__len__") and not isinstance(which, (str, bytes)):
            return self._several(self.take(which))
        number = operator.index(which)
        if number < 0:
            number += len(self)
        try:
            if not 0 <= number < 1 << 63:
                raise IndexError
            return self._several(self.take([number]))[0]
        except IndexError:
            raise IndexError(f"{self.path} has no record {which}") from None

    def _slice(self, which: slice):
        first, end, step = which.indices(len(self))
        if step == 1:
            return self._several(self.read(first, max(end - first, 0)))
        return self._several(self.take(range(first, end, step)))

    def __getitems__(self, numbers):
        """For PyTorch's DataLoader: many at once."""
        return list(self[list(numbers)])

    def __iter__(self):
        for batch in self.batches():
            yield from self._several(batch)

    def _several(self, batch):
        if self._length == 0:
            data, offsets = batch
            text = data.tobytes()
            return [text[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
        return batch if self._dtype is not None else [record.tobytes() for record in batch]

    def sample(self, count: int, seed=None):
        """So many records, chosen at random without repetition, in the order of the file."""
        numbers = random.Random(seed).sample(range(len(self)), count)
        return self[sorted(numbers)]

    # ---- as arrays ----

    def read(self, first: int = 0, count: int | None = None, out=None):
        """Consecutive records, fewer only at the end. Fixed ones: an array of `dtype`, or of rows of bytes; out: memory
        of one's own for them. Others: (bytes, offsets), as Arrow has them: record i is bytes[offsets[i]:offsets[i+1]].
        """
        length = len(self)
        first = self._checked(first, length)
        count = length - first if count is None else min(count, length - first)
        if self._length == 0:
            return self._read_variable(first, count)
        return self._read_fixed(first, count, out)

    def take(self, numbers, out=None):
        """The same of a list of numbers, in its order."""
        import numpy

        wanted = numpy.asarray(numbers if isinstance(numbers, numpy.ndarray) else list(numbers))
        if wanted.size and wanted.dtype.kind not in "iu":
            raise InvalidError(f"{wanted.dtype} are no numbers of records", "invalid")
        wanted = wanted.astype(numpy.int64).ravel()
        if (wanted < 0).any():
            wanted = numpy.where(wanted < 0, wanted + len(self), wanted)
            if (wanted < 0).any():
                raise IndexError(f"{self.path} has no record before its first")
        wanted = wanted.astype(numpy.uint64)
        return self._take_lines(wanted) if self._length == 0 else self._take_fixed(wanted, out)

    def batches(self, count: int | None = None):
        """All records, as read() gives them; count: of one batch; None: about 8 MiB."""
        records, size = self._file.lengths()
        if count is None:
            count = max(BATCH_BYTES * max(records, 1) // max(size, 1), 1)
        for first in range(0, records, count):
            yield self.read(first, count)

    def _checked(self, first: int, length: int) -> int:
        first = operator.index(first)
        if first < 0:
            first += length
        if not 0 <= first <= length:
            raise IndexError(f"{self.path} has {length} records, and no record {first}")
        return first

    # ---- fixed records ----

    def _memory(self, count: int, out):
        import numpy

        if out is None:
            if self._dtype is None:
                return numpy.empty((count, self._length), numpy.uint8)
            return numpy.empty((count, *self._shape), self._dtype)
        with writing(out, "out") as memory:
            if len(memory) < count * self._length:
                raise InvalidError(f"out has {len(memory)} bytes; {count * self._length} are needed", "invalid")
        return out

    def _read_fixed(self, first: int, count: int, out):
        memory = self._memory(count, out)
        if count > 0:
            size = self._length * count
            with writing(memory, "out") as to:
                self._check_whole(self._file.pread_into(to, size, first * self._length), size)
        return memory

    def _check_whole(self, read: int, size: int) -> None:
        if read < size:
            raise InvalidError(
                f"the last record of {self.path} is shorter than {self._length} bytes: read it as bytes, "
                f"with fs.open()",
                "invalid",
            )

    def _take_fixed(self, wanted, out):
        import numpy

        memory = self._memory(len(wanted), out)
        if len(wanted) == 0:
            return memory
        requests = numpy.zeros((len(wanted), 5), numpy.uint64)  # as pif_read_request has its members
        with writing(memory, "out") as to, writing(requests) as raw:
            begin = int(ffi.cast("uintptr_t", to))
            requests[:, 0] = wanted
            requests[:, 1] = 1
            requests[:, 2] = begin + numpy.arange(len(wanted), dtype=numpy.uint64) * numpy.uint64(self._length)
            requests[:, 3] = self._length
            self._ask(lib.pif_read_many, ffi.cast("pif_read_request *", raw), len(wanted))
        if not requests[:, 4].all():
            raise IndexError(f"{self.path} has no record {int(wanted[requests[:, 4] == 0][0])}")
        return memory

    def _ask(self, function, *words) -> int:
        """A call of which a number past the end is an IndexError."""
        with self._file._connection as c:
            result = function(self._file._open(), *words)
            if result == -lib.PIF_E_END_OF_FILE:
                raise IndexError(str(c.error(result)))
            return c.checked(result)

    # ---- lines and other variable records ----

    def _read_variable(self, first: int, count: int):
        import numpy

        records, size = self._file.lengths()
        data = numpy.empty(size * count // max(records, 1) + LINE_BYTES_MIN, numpy.uint8)
        lengths = numpy.empty(count, numpy.uint32)
        done = filled = 0
        while done < count:
            read = self._read_batch(first + done, data[filled : filled + CALL_BYTES], lengths[done:])
            read = read or self._read_batch(first + done, data[filled:], lengths[done:])
            if read == 0:
                data = _longer(data)
                continue
            filled += int(lengths[done : done + read].sum(dtype=numpy.int64))
            done += read
        return _arrow(data[:filled], lengths)

    def _read_batch(self, first: int, data, lengths) -> int:
        """Records that fit; 0: the next one does not."""
        with self._file._connection as c, writing(data) as out, writing(lengths) as sizes:
            handle = self._file._open()
            c.checked(lib.pif_seek(handle, first))
            count = min(len(lengths), len(data))  # none is empty
            read = lib.pif_read_batch(handle, out, len(data), ffi.cast("uint32_t *", sizes), count)
            return 0 if read == -lib.PIF_E_TOO_LARGE else c.checked(read)

    def _take_lines(self, wanted):
        """They are read in the order of the file, and then put in that of `wanted`."""
        import numpy

        if (wanted[1:] >= wanted[:-1]).all():
            return self._take_sorted(wanted)
        order = numpy.argsort(wanted, kind="stable")
        back = numpy.empty_like(order)
        back[order] = numpy.arange(len(order))
        return _gathered(*self._take_sorted(wanted[order]), back)

    def _take_sorted(self, wanted):
        import numpy

        records, size = self._file.lengths()
        data = numpy.empty(size * len(wanted) // max(records, 1) + LINE_BYTES_MIN, numpy.uint8)
        lengths = numpy.empty(len(wanted), numpy.uint32)
        done = filled = 0
        while done < len(wanted):
            read = self._read_lines(wanted[done:], data[filled:], lengths[done:])
            if read == 0:
                data = _longer(data)
            filled += int(lengths[done : done + read].sum(dtype=numpy.int64))
            done += read
        return _arrow(data[:filled], lengths)

    def _read_lines(self, wanted, data, lengths) -> int:
        with writing(wanted) as numbers, writing(data) as out, writing(lengths) as sizes:
            try:
                return self._ask(
                    lib.pif_read_lines,
                    ffi.cast("uint64_t *", numbers),
                    len(wanted),
                    out,
                    len(data),
                    ffi.cast("uint32_t *", sizes),
                )
            except OSError as error:
                if getattr(error, "code", "") == "too-large":
                    return 0
                raise

    # ---- changes ----

    def append(self, records) -> int:
        """Records behind all others, durable when it returns: the number of the first. Fixed ones: anything with bytes.
        Lines and variable records: several, bytes or text."""
        if self._length == 0:
            return self._file.append_batch(*packed(records, self._delimiter))
        with ffi.from_buffer(records) as data:
            return self._file.call(lib.pif_append, data, len(data))

    # ---- where they are ----

    def locations(self, first: int = 0, count: int | None = None):
        """For each of these records the id of its LFS, as an array."""
        import numpy

        count = len(self) - first if count is None else count
        ids = numpy.array(node_ids(self._file), numpy.uint32)
        return ids[numpy.arange(first, first + count) % len(ids)]


def _longer(data):
    import numpy

    longer = numpy.empty(2 * len(data), numpy.uint8)
    longer[: len(data)] = data
    return longer


def _gathered(data, offsets, which):
    """Records `which` of these, in Arrow's layout, too."""
    import numpy

    lengths = numpy.diff(offsets)[which]
    out = _arrow(data, lengths)[1]
    within = numpy.arange(out[-1]) - numpy.repeat(out[:-1], lengths)
    return data[numpy.repeat(offsets[:-1][which], lengths) + within], out


def _arrow(data, lengths):
    import numpy

    offsets = numpy.zeros(len(lengths) + 1, numpy.int64)
    numpy.cumsum(lengths, out=offsets[1:])
    return data, offsets
