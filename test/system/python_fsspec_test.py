"""The Python package for fsspec: the protocol "pif", as pandas and others use it."""

import multiprocessing
import os
import pickle
import sys

from pif_system import BIN, Failure, FileSystem, check, main_on
from python_package import import_package

FS = None


def connect():
    import fsspec

    return fsspec.filesystem("pif", where=FS.folder)


def fails(kind, what, call):
    try:
        value = call()
    except kind:
        return
    raise Failure(f"{what} gave {value!r}")


def all_modes():
    fs = connect()
    with fs.open("pif:///a/b/f", "wb") as file:  # folders are made on the way
        file.write(b"0123456789" * 1000)
    with fs.open("/a/b/f", "ab") as file:
        file.write(b"end")
    with fs.open("/a/b/f", "r+b") as file:
        file.write(b"X")
    with fs.open("/a/b/f") as file:
        check(file.read(3) == b"X12" and file.seek(-3, 2) and file.read() == b"end", "rb")
    with fs.open("/a/text", "w") as file:
        file.write("ä\n")
    with fs.open("/a/text", "r", encoding="utf-8") as file:
        check(file.read() == "ä\n", "text")
    fails(FileExistsError, "xb", lambda: fs.open("/a/text", "xb"))
    fails(FileNotFoundError, "rb", lambda: fs.open("/a/none"))
    check(fs.size("/a/b/f") == 10003 and fs.isdir("/a/b") and fs.isfile("/a/text"), "info")


def bytes_by_pieces():
    fs = connect()
    data = os.urandom(300_000)
    fs.pipe("/p", data)
    check(fs.cat("/p") == data and fs.cat_file("/p", 5, 9) == data[5:9] and fs.cat_file("/p", -7) == data[-7:], "cat")
    starts = [0, 299_990, 70_000, -4, 400_000]
    ends = [10, 299_999, 250_000, None, 400_010]
    found = fs.cat_ranges(["/p"] * 5, starts, ends)
    check(found == [data[a:b] for a, b in zip(starts, ends)], "cat_ranges")
    found = fs.cat_ranges(["/p", "/none"], [0, 0], [1, 1], on_error="return")
    check(found[0] == data[:1] and isinstance(found[1], FileNotFoundError), f"{found}")
    check(fs.block_locations("/p")[0][:2] == (0, 300_000), "block_locations")


def a_small_file_takes_four_exchanges():
    fs = connect()
    fs.pipe("/small", b"x" * 4096)
    fs.cat_file("/small")
    before = sum(fs.pif.stats().values())
    fs.cat_file("/small")
    spent = sum(fs.pif.stats().values()) - before
    check(spent <= 4, f"{spent} exchanges")


def many_small_files():
    fs = connect()
    fs.pipe({f"/many/{i % 7}/{i}": b"%d" % i for i in range(500)})
    check(len(fs.find("/many")) == 500, "find")
    found = fs.cat([f"/many/{i % 7}/{i}" for i in range(500)])
    check(found["/many/3/10"] == b"10" and len(found) == 500, "cat")
    check(len(fs.glob("/many/*/1?")) == 10, "glob")
    fs.mv("/many/3", "/many/moved")
    check(fs.cat("/many/moved/10") == b"10" and not fs.exists("/many/3"), "mv")
    fs.cp("/many/moved/10", "/many/copied")
    check(fs.cat("/many/copied") == b"10", "cp")
    fails(OSError, "rm of a folder", lambda: fs.rm("/many"))
    fs.rm("/many", recursive=True)
    check(not fs.exists("/many"), "rm")


def local_files_come_and_go():
    fs = connect()
    folder = FS.local("tree")
    os.makedirs(os.path.join(folder, "sub"))
    for name in ("a", "sub/b"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(name)
    fs.put(folder, "/tree", recursive=True)
    check(sorted(fs.find("/tree")) == ["/tree/a", "/tree/sub/b"], f"{fs.find('/tree')}")
    fs.get("/tree", FS.local("back"), recursive=True)
    with open(FS.local("back/sub/b"), encoding="utf-8") as file:
        check(file.read() == "sub/b", "get")


def transactions_commit_together_or_not():
    fs = connect()
    try:
        with fs.transaction:
            with fs.open("/t1", "wb") as file:
                file.write(b"1")
            check(not fs.exists("/t1"), "it is seen too early")
            raise KeyError
    except KeyError:
        pass
    check(not fs.exists("/t1") and fs.pif.status()["pending"] == 0, "it is there, or pending")
    with fs.transaction:
        for name in ("/t1", "/t2"):
            with fs.open(name, "wb") as file:
                file.write(b"1")
    check(fs.cat("/t1") == b"1" and fs.exists("/t2"), "they are not there")
    try:
        with fs.open("/t3", "wb") as file:
            file.write(b"1")
            raise KeyError
    except KeyError:
        pass
    check(not fs.exists("/t3"), "a block that raised leaves a file")


def keys_change_with_files():
    fs = connect()
    fs.pipe("/k", b"1")
    before = fs.ukey("/k")
    check(fs.ukey("/k") == before and fs.modified("/k").year >= 2020, "ukey")
    fs.pipe("/k", b"2")
    check(fs.ukey("/k") != before, "ukey stays")


def size_of(fs):
    return fs.size("/w"), os.getpid()


def forked_processes_have_connections_of_their_own():
    fs = connect()
    fs.pipe("/w", b"12345")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        found = pool.map(size_of, [fs] * 16, chunksize=1)
        pool.close()
        pool.join()
    check({size for size, _ in found} == {5}, f"{found}")
    check(pickle.loads(pickle.dumps(fs)).cat("/w") == b"12345", "pickle")


TESTS = [
    all_modes,
    bytes_by_pieces,
    a_small_file_takes_four_exchanges,
    many_small_files,
    local_files_come_and_go,
    transactions_commit_together_or_not,
    keys_change_with_files,
    forked_processes_have_connections_of_their_own,
]

if __name__ == "__main__":
    with FileSystem(2) as FS:
        import_package(FS.temp, BIN, ["cffi", "numpy", "fsspec"])
        import fsspec
        from pif_fs.fsspec import PifFileSystem

        fsspec.register_implementation("pif", PifFileSystem)
        code = main_on(FS, TESTS, sys.argv[1:])
    sys.exit(code)
