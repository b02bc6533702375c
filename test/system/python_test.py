"""The Python package: names, files, records, tools, what goes wrong, forks, threads, signals."""

import gc
import io
import json
import os
import pickle
import signal
import sys
import threading
import time

from pif_system import BIN, Failure, FileSystem, check, main_on
from python_package import import_package
from several_hosts import SeveralHosts

FS = None
pif = None
np = None


def fails(kind, what, call):
    """What a call that must fail says."""
    try:
        value = call()
    except kind as error:
        return str(error)
    except Exception as error:
        raise Failure(f"{what}: {type(error).__name__} instead of {kind.__name__}: {error}") from error
    raise Failure(f"{what} gave {value!r}")


def connect():
    return pif.connect(FS.folder)


def names_come_and_go():
    fs = connect()
    fs.mkdir("/d/e", parents=True)
    with fs.open("/d/f", "wb") as file:
        file.write(b"1234")
    found = fs.ls("/d")
    check([(i.name, i.is_folder, i.bytes) for i in found] == [("e", True, 0), ("f", False, 4)], f"{found}")
    check(fs.ls("pif:///d/f/")[0].path == "/d/f", "ls of a file")
    fs.set_attributes("/d/f", mode=0o600, modified_ns=10**18)
    check((fs.stat("/d/f").mode, fs.stat("/d/f").modified_ns) == (0o600, 10**18), "attributes")
    fs.mv("/d/f", "/d/e/g")
    check([i.path for i in fs.find("/d")] == ["/d/e/g"], "find")
    fails(FileExistsError, "mkdir", lambda: fs.mkdir("/d"))
    fails(NotADirectoryError, "below a file", lambda: fs.stat("/d/e/g/h"))
    fails(IsADirectoryError, "open of a folder", lambda: fs.open("/d"))
    fs.rm("/d", recursive=True)
    fails(FileNotFoundError, "rm", lambda: fs.rm("/d"))
    check(not fs.exists("/d") and fs.status()["nodes_up"] == 3, "exists")


def files_are_as_python_has_them():
    fs = connect()
    with fs.open("/f", "wb") as file:
        file.write(b"0123456789")
        file.seek(100_000)
        file.write(b"end")
    with fs.open("/f") as file:
        check(file.read(4) == b"0123" and file.seek(-3, io.SEEK_END) == 100_000 and file.read() == b"end", "seek")
    with fs.open("/f", "r+b") as file:
        file.seek(2)
        file.write(b"xx")
        file.truncate(6)
    with fs.open("/f", "ab") as file:
        file.write(b"!\n")
    with fs.open("/f", "r") as file:
        check(file.readlines() == ["01xx45!\n"], "text")
    fails(FileExistsError, "xb", lambda: fs.open("/f", "xb"))
    check(fs.open_records("/f").path == "/f", "path")


def a_new_file_is_there_as_a_whole_or_not_at_all():
    fs = connect()
    with fs.open("/new", "wb") as file:
        file.write(b"1")
        check(not fs.exists("/new"), "it is seen before its commit")
    for broken in (lambda: fs.open("/none", "wb"), lambda: fs.open("/none", "w"), lambda: fs.create("/none", 1)):
        with_failure(broken)
        check(not fs.exists("/none"), "a block that raised leaves a file")
    file = fs.open("/none", "wb", buffering=2)
    file.write(b"123456")
    abandoned = file.raw
    check(fs.status()["pending"] == 1, "nothing is pending")
    abandoned.abandon()
    check(fs.status()["pending"] == 0 and not fs.exists("/none"), "what the collector finds is given up")


def with_failure(make):
    try:
        with make() as file:
            file.write("1" if isinstance(file, io.TextIOBase) else b"1")
            raise KeyError
    except KeyError:
        pass


def a_file_with_a_failed_write_is_not_committed():
    fs = connect()
    file = fs.open("/none", "wb")
    file.write(b"1")
    file.seek(1 << 62)
    file.write(b"there is no such byte")
    fails(OSError, "a write that fails when it is flushed", file.close)
    check(file.closed and not fs.exists("/none") and fs.status()["pending"] == 0, "it was committed all the same")


def records_have_numbers():
    fs = connect()
    values = np.arange(10_000, dtype="f8")
    with fs.create("/n", values.dtype, width=2, attributes={"made-by": "test"}) as out:
        out.write(values[:7000])
        out.write(values[7000:])
    check(fs.attributes("/n") == {"made-by": "test"}, "attributes")
    with fs.open_records("/n", dtype="f8") as n:
        check(len(n) == 10_000 and n[3] == 3 and n[-1] == 9999 and list(n[5:8]) == [5, 6, 7], "numbers")
        check(list(n[[9, 0, 9]]) == [9, 0, 9] and list(n[::4000]) == [0, 4000, 8000], "lists")
        check((np.concatenate(list(n.batches(999))) == values).all(), "batches")
        own = np.zeros(4)
        check(n.read(2, 4, out=own) is own and list(own) == [2, 3, 4, 5], "memory of one's own")
        check(sorted(n.sample(5, seed=1)) == list(n.sample(5, seed=1)) and n.__getitems__([1, 2]) == [1, 2], "sample")
        check(list(n.locations(0, 4)) == [*n.locations(0, 2)] * 2, "locations")
        for wrong in (10_000, -10_001, 1 << 70):
            fails(IndexError, f"record {wrong}", lambda wrong=wrong: n[wrong])
        fails(IndexError, "a list", lambda: n[[0, 10_000]])
    with fs.open_records("/n", dtype="f4") as pairs:
        check(pairs[0:2].shape == (2, 2), "a dtype that divides")
    fails(ValueError, "a dtype that does not", lambda: fs.open_records("/n", dtype="S3"))
    with fs.open_records("/n", writable=True) as n:
        check(n.append(np.ones(1)) == 10_000 and len(n) == 10_001 and n[0] == bytes(8), "append")


def lines_have_numbers():
    fs = connect()
    lines = [b"x" * (i % 50) + b"%d\n" % i for i in range(5000)]
    with fs.create("/l", "lines") as out:
        out.write(b"".join(lines)[:1000])
        out.write(b"".join(lines)[1000:])
    with fs.open_records("/l") as f:
        check(len(f) == 5000 and f[17] == lines[17] and f[-2:] == lines[-2:] and f[[4, 4999, 4]][1] == lines[4999], "f")
        check(list(f) == lines, "iteration")
        data, offsets = f.read(10, 3)
        check(data.tobytes() == b"".join(lines[10:13]) and offsets[1] == len(lines[10]), "Arrow's layout")
        fails(IndexError, "a line past the end", lambda: f[[0, 5000]])
    check(
        fs.append_lines("/l", ["one", "two\n"]) == 5000 and fs.open_records("/l")[-2:] == [b"one\n", b"two\n"], "append"
    )
    with fs.open("/l", "ab") as file:
        file.write(b"in\nparts")
        file.write(b"!\n")
    check(fs.open_records("/l")[-2:] == [b"in\n", b"parts!\n"], "ab")
    with fs.create("/semicolons", "lines", delimiter=";") as out:
        out.write("a;b;c")
    check(fs.open_records("/semicolons")[:] == [b"a;", b"b;", b"c"], "a delimiter of one's own")
    fails(ValueError, "a long delimiter", lambda: fs.create("/x", "lines", delimiter="ab"))
    with fs.create("/v", "variable") as out:
        out.write([b"a", b"bb", b"x" * 100_000])
    with fs.open_records("/v") as v:
        check(v[[2, 0]] == [b"x" * 100_000, b"a"] and v[1:2] == [b"bb"], "variable records")


def a_reader_is_not_in_the_way_of_a_tool_after_an_append():
    fs = connect()
    fs.put_many({"/open": b"b\na\n"}, records="lines")
    with fs.open_records("/open") as reader:
        fs.append_lines("/open", ["c"])
        check(fs.sort("/open", "/sorted")["records"] == 3 and len(reader) == 3, "sort")


def many_go_together():
    fs = connect()
    fs.mkdir("/m")
    errors = fs.put_many({f"/m/{i}": b"%d" % i for i in range(600)})
    check(errors == [None] * 600, "put_many")
    before = fs.stats()
    found = fs.get_many(["/m/5", "/m/none", "/m/599"])
    check(found[0] == b"5" and isinstance(found[1], FileNotFoundError) and found[2] == b"599", f"{found}")
    infos = fs.stat_many([f"/m/{i}" for i in range(600)])
    check([i.bytes for i in infos] == [len(str(i)) for i in range(600)], "stat_many")
    check(fs.stats()["stat"] - before.get("stat", 0) <= 3, "a message for each stat")
    errors = fs.rm_many([f"/m/{i}" for i in range(601)])
    check(errors[:600] == [None] * 600 and isinstance(errors[600], FileNotFoundError), "rm_many")


def tools_give_their_reports():
    fs = connect()
    fs.put_many({"/t": b"c,3\na,1\nb,2\n"}, records="lines")
    check(fs.sort("/t", "/sorted", key="-t , -k 2,2n")["records"] == 3, "sort")
    check(fs.open_records("/sorted")[:] == [b"a,1\n", b"b,2\n", b"c,3\n"], "sorted")
    check(fs.search("[ab],", "/sorted")["lines"] == ["a,1", "b,2"] and fs.search("zz", "/t")["lines"] == [], "search")
    check(fs.summarize("/t", t=",", field=2)["table"][1][0].split() == ["numbers", "3"], "summarize")
    check(fs.copy("/t", "/copy", width=2)["workers"] >= 2 and fs.stat("/copy").width == 2, "copy")
    check("/t" in fs.run("digest", "/t")["results"], "run")
    with fs.create("/matrix", 8) as out:
        out.write(np.arange(16, dtype="u1"))
    check(fs.transpose("/matrix", "/transposed", columns=8, element_bits=8)["workers"] > 0, "transpose")
    check(fs.stat("/transposed").record_length == 2, "transposed")
    told = []
    fs.run("sort", "/t", "/sorted", progress=told.append)
    text = fails(FileNotFoundError, "sort", lambda: fs.sort("/none", "/sorted"))
    check(text == "pif-sort: there is no /none", text)
    fails(pif.ToolError, "an unknown option", lambda: fs.run("sort", "/t", "/u", nothing=1))
    fails(pif.ToolError, "an unknown program", lambda: fs.run("nothing"))


def bad_input_is_told():
    fs = connect()
    fs.put_many({"/w": bytes(100)})
    file = fs.open("/w")
    for what, call in {
        "a read-only buffer": lambda: file.raw.readinto(b"123"),
        "a buffer with gaps": lambda: file.raw.readinto(np.zeros(9, "u1")[::2]),
        "a negative offset": lambda: file.raw.pread(bytearray(1), -1),
        "a huge offset": lambda: file.raw.pread(bytearray(1), 1 << 64),
        "a path with NUL": lambda: fs.stat("/a\0b"),
        "a path that is not UTF-8": lambda: fs.stat(b"/\xff"),
        "a mode": lambda: fs.open("/w", "q"),
        "a record length": lambda: fs.create("/x", 0),
        "a width": lambda: fs.create("/x", 8, width=-1),
        "no whole records": lambda: fs.create("/x", 8).write(b"123"),
        "an option": lambda: pif.connect(FS.folder, tiemout=1),
    }.items():
        fails(ValueError, what, call)
    check(file.raw.pread(bytearray(5), (1 << 63) - 1) == 0 and fs.stat(b"/w").bytes == 100, "bytes as a path")
    for what in (file, fs.open_records("/w")):
        check("pickle the file system" in fails(TypeError, "pickle", lambda what=what: pickle.dumps(what)), "words")
    check(pickle.loads(pickle.dumps(fs)).exists("/w"), "a file system is pickled")
    file.close()
    fails(ValueError, "a closed file", file.read)
    fails(ValueError, "a closed raw file", lambda: file.raw.pread(bytearray(1), 0))
    gc.collect()


def a_child_connects_anew():
    fs = connect()
    fs.put_many({"/w": bytes(100)})
    file = fs.open("/w")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            text = fails(ValueError, "a file of the parent", file.read)
            code = 0 if "fork" in text and fs.stat("/w").bytes == 100 else 2
        finally:
            os._exit(code)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child's file system")
    check(len(file.read()) == 100, "the parent's file")
    file.close()


def threads_share_a_file_system():
    fs = connect()
    fs.put_many({"/w": bytes(100)})
    with fs.create("/n", np.dtype("u4")) as out:
        out.write(np.arange(1000, dtype="u4"))
    n = fs.open_records("/n", dtype="u4")
    wrong = []

    def work():
        try:
            for i in range(100):
                check(n[i] == i and fs.stat("/w").bytes == 100, "a wrong answer")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong and len(fs._pool.all()) <= 8, f"{wrong[:1]}")
    n.close()


def a_signal_ends_what_waits():
    fs = connect()
    main = threading.main_thread().ident
    server = FS.pid_of("server")
    os.kill(server, signal.SIGSTOP)
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    begin = time.monotonic()
    timer.start()
    try:
        fails(KeyboardInterrupt, "a call", lambda: fs.stat("/w"))
    finally:
        os.kill(server, signal.SIGCONT)
        timer.join()
    check(time.monotonic() - begin < 5, "it took too long")
    check(fs.exists("/"), "the connection is of no use any more")
    a_signal_ends_a_put(fs, main)


def a_signal_ends_a_put(fs, main):
    large = FS.local("large")
    with open(large, "wb") as file:
        file.truncate(20 << 30)
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    fails(KeyboardInterrupt, "a put", lambda: fs.put(large, "/large"))
    timer.join()
    os.remove(large)
    check(not fs.exists("/large") and fs.status()["pending"] == 0, "a part of it is there")


def a_folder_with_a_space_becomes_a_file_system():
    folder = FS.local("a folder")
    with pif.up(folder, n=1) as fs:
        with pif.up(folder) as again:
            check(again.exists("/"), "a second up")
        check(fs.status()["nodes_up"] == 1, "it is down, though another started it")
    fails(ConnectionError, "a file system that is down", lambda: pif.connect(folder))
    fails(FileExistsError, "a folder with other things", lambda: pif.up(FS.temp))


def every_host_has_blocks_of_its_own():
    with SeveralHosts(["h1", "h2"], 2) as hosts:
        fs = pif.connect(hosts.folder("h1"), route="tcp")
        with fs.create("/blocks", 100_000) as out:
            out.write(bytes(600_000))
        found = fs.block_locations("/blocks")
        wanted = [(0, 200_000, ["h1"]), (200_000, 200_000, ["h2"]), (400_000, 200_000, ["h1"])]
        check(found == wanted, f"{found}")
        check([node.host for node in fs.nodes()] == ["h1", "h1", "h2", "h2"], "hosts of LFSs")
        other = pif.connect(hosts.folder("h2"), route="tcp")
        with other.open("/blocks") as file:
            check(file.read() == bytes(600_000), "the other host reads them")


def the_example_runs():
    os.environ["PIF_EXAMPLE_FOLDER"] = FS.local("example")
    os.environ["PIF_EXAMPLE_TABLE"] = FS.local("example.csv")
    notebook = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/first_five_minutes.ipynb")
    with open(notebook, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    scope = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)  # what a notebook does
    check(scope["report"]["records"] == 100_000, "sorted")


TESTS = [
    names_come_and_go,
    files_are_as_python_has_them,
    a_new_file_is_there_as_a_whole_or_not_at_all,
    a_file_with_a_failed_write_is_not_committed,
    records_have_numbers,
    lines_have_numbers,
    a_reader_is_not_in_the_way_of_a_tool_after_an_append,
    many_go_together,
    tools_give_their_reports,
    bad_input_is_told,
    a_child_connects_anew,
    threads_share_a_file_system,
    a_signal_ends_what_waits,
    a_folder_with_a_space_becomes_a_file_system,
    every_host_has_blocks_of_its_own,
    the_example_runs,
]

if __name__ == "__main__":
    with FileSystem(3) as FS:
        pif = import_package(FS.temp, BIN, ["cffi", "numpy"])
        import numpy as np

        os.environ.update(FS.env)
        code = main_on(FS, TESTS, sys.argv[1:])
    sys.exit(code)
