"""Wrong usage and failures: exit code, and one line on stderr that says what, where, and what to do."""

import fcntl
import json
import os
import signal
import subprocess
import sys

from pif_system import BIN, FileSystem, await_condition, check, main_on

FS = None

# exit code, what stderr must say, the command
WRONG_USAGE = [
    (2, "subcommand", []),
    (2, "no command 'nonsense'", ["nonsense"]),
    (2, "--frobnicate", ["ls", "--frobnicate"]),
    (2, "FOLDER", ["mkdir"]),
    (2, "no path in the file system", ["mkdir", "relative"]),
    (2, "root folder", ["rm", "-r", "/"]),
    (2, "colon", ["cat", "--records", "5", "/a"]),
    (2, "ends before it starts", ["cat", "--records", "5:2", "/a"]),
    (2, "--width", ["placement", "--records", "0:4"]),
    (2, "width", ["placement", "--width", "0", "--records", "0:4"]),
    (2, "end the range", ["placement", "--width", "4", "--records", "0:"]),
    (2, "bev", ["placement", "--width", "8", "--bevies", "4,3", "--records", "0:4"]),
    (2, "bev", ["placement", "--width", "8", "--bevies", "8", "--records", "0:4"]),
    (2, "--bevies", ["placement", "--width", "8", "--bevies", "4,x", "--records", "0:4"]),
    (2, "--record-length", ["put", "--record-length", "0", "LOCAL", "/b"]),
    (2, "--record-length", ["put", "--record-length", "16777217", "LOCAL", "/b"]),
    (2, "excludes", ["put", "--lines", "--record-length", "5", "LOCAL", "/b"]),
    (2, "one character", ["put", "--delimited", "ab", "LOCAL", "/b"]),
    (2, "--header", ["put", "--header", "jpg", "LOCAL", "/b"]),
    (2, "width", ["put", "--width", "5", "LOCAL", "/b"]),
    (2, "lfs9", ["put", "--nodes", "lfs0,lfs9", "LOCAL", "/b"]),
    (2, "twice|once", ["put", "--nodes", "lfs0,lfs0", "LOCAL", "/b"]),
    (2, "bev|multiple", ["put", "--width", "4", "--bevy", "4", "LOCAL", "/b"]),
    (2, "already", ["put", "pif:/a", "/b"]),
    (2, "not a local file", ["get", "/a", "pif:/b"]),
    (2, "no name", ["put", "-", "/folder"]),
    (2, "4 LFSs, not 3", ["up", "-n", "3", "FOLDER"]),
    (2, "", ["status", "--route", "pigeon"]),
]

# What every tool says of a layout that cannot be. Twice 2147483648 is 0 in 32 bits.
IMPOSSIBLE_TARGETS = [
    ["--bevy", "2147483648"],
    ["--bevy", "4294967295"],
    ["--bevy", "2049"],
    ["--width", "4097"],
    ["--width", "0"],
]

FAILURES = [
    (3, "/none", ["stat", "/none"]),
    (3, "/none", ["cat", "/none"]),
    (3, "/none", ["get", "/none", "TARGET"]),
    (3, "/none", ["ls", "/none"]),
    (3, "/none", ["rm", "/none"]),
    (3, "/none", ["mv", "/none", "/b"]),
    (3, "/none", ["locate", "/none"]),
    (3, "mkdir", ["put", "LOCAL", "/none/"]),
    (3, "/none", ["put", "LOCAL", "/none/b"]),
    (3, "No such file", ["put", "MISSING", "/b"]),
    (3, "use -r", ["put", "TEMP", "/b"]),
    (3, "use -r", ["get", "/folder", "TARGET"]),
    (3, "folder", ["cat", "/folder"]),
    (3, "folder", ["locate", "/folder"]),
    (3, "exists", ["mkdir", "/folder"]),
    (3, "No such file", ["get", "/a", "MISSING/x"]),
    (3, "no file system|pif.toml", ["status", "--pif", "MISSING"]),
    (3, "cannot find the folder", ["down", "MISSING"]),
    (3, "start like", ["put", "--header", "pbm", "LOCAL", "/b"]),
    (3, "less than its header", ["put", "--header", "60000", "LOCAL", "/b"]),
]


def words_of(words):
    places = {
        "LOCAL": FS.local("local"),
        "TARGET": FS.local("target"),
        "TEMP": FS.temp,
        "FOLDER": FS.folder,
        "MISSING": FS.local("missing"),
        "MISSING/x": FS.local("missing/x"),
    }
    return [places.get(word, word) for word in words]


def wrong_usage_is_exit_2():
    for code, pattern, words in WRONG_USAGE:
        FS.fails(code, pattern, *words_of(words))


def tools_refuse_impossible_layouts_like_put():
    for tool in (["copy"], ["sort"], ["transpose", "--columns", "8"]):
        for words in IMPOSSIBLE_TARGETS:
            done = FS.run(*tool, *words, "/a", "/b")
            check(done.returncode == 2 and words[0].encode() in done.stderr, f"{tool} {words}: {done}")


def failures_are_exit_3():
    for code, pattern, words in FAILURES:
        FS.fails(code, pattern, *words_of(words))


def failures_leave_nothing():
    check([e["path"] for e in FS.json("ls", "-R", "/")["entries"]] == ["/a", "/folder"], "only what was there before")
    check(not os.path.exists(FS.local("target")), "no local file")
    check([n for n in os.listdir(FS.temp) if n.startswith(".pif-")] == [], "no temporary file")


def an_error_is_a_json_document_too():
    done = FS.run("stat", "/none", "--json")
    check(done.returncode == 3 and json.loads(done.stdout)["error"]["code"] == "not-found", f"{done}")


def an_interrupted_put_leaves_nothing():
    put = FS.start("put", "-", "/endless", stdin=subprocess.PIPE)
    put.stdin.write(b"x" * 100_000)
    put.stdin.flush()
    await_condition(lambda: FS.json("status")["pending"] > 0, "the put has begun")
    put.send_signal(signal.SIGINT)  # the pipe stays open, and silent
    code = put.wait(timeout=30)
    put.stdin.close()
    text = put.stderr.read().decode()
    put.stdout.close()
    put.stderr.close()
    check(code == -signal.SIGINT and "interrupted" in text, f"exit {code}: {text}")
    FS.fails(3, "/endless", "stat", "/endless")
    await_condition(lambda: FS.json("status")["pending"] == 0, "the create is aborted at once", 10)


def into_full(*words):
    with open("/dev/full", "wb") as full:
        return subprocess.run(FS.command(*words), env=FS.env, stdout=full, stderr=subprocess.PIPE, check=False)


def a_full_stdout_is_reported():
    done = into_full("cat", "/a")
    check(done.returncode == 3 and b"No space" in done.stderr, f"{done}")


def a_tool_whose_stdout_is_full_says_so():
    for words in (["--json"], ["--verbose"], ["--report", "-"]):
        done = into_full("copy", *words, "/a", "/copied")
        check(
            done.returncode == 3 and b"No space" in done.stderr and b"the job is done" in done.stderr,
            f"{words}: {done}",
        )
        FS.ok("rm", "/copied")
    for words in (["--explain"], ["--explain", "--json"]):
        done = into_full("copy", *words, "/a", "/copied")
        check(done.returncode == 3 and b"No space" in done.stderr, f"{words}: {done}")
    done = into_full("copy", "--help")
    check(done.returncode == 3 and b"standard output" in done.stderr, f"{done}")


def a_report_that_cannot_be_written_stops_a_tool_before_its_job():
    FS.fails(3, "No such file", "copy", "--report", FS.local("missing/report"), "/a", "/copied")
    FS.fails(3, "/copied", "stat", "/copied")
    report = FS.local("report")
    with open(report, "w", encoding="ascii") as file:
        file.write("an older report " * 1000)
    FS.fails(3, "/none", "copy", "--report", report, "/none", "/copied")
    check(os.path.getsize(report) == 16000, "the older one is there until there is a new one")
    FS.fails(3, "/none", "copy", "--report", report + "-new", "/none", "/copied")
    check(not os.path.exists(report + "-new"), "no report, no file")
    FS.ok("copy", "--report", report, "/a", "/copied")
    with open(report, encoding="ascii") as file:
        check(json.load(file)["tool"] == "pif-copy", "the new one is all that is in the file")
    FS.ok("rm", "/copied")


def a_dead_lfs_is_named():
    FS.kill("lfs2")
    done = FS.run("cat", "/a", timeout=60)
    check(done.returncode == 3 and b"lfs2" in done.stderr and done.stderr.count(b"\n") == 1, f"{done}")
    FS.ok("up", FS.folder)
    check(FS.content("/a") == b"a" * 1_000_000, "up starts what is missing, and all is there")


def up_of_what_runs_is_fine_and_down_of_what_does_not_too():
    done = FS.run("up", FS.folder)
    check(done.returncode == 0 and b"already running" in done.stderr, f"up says so: {done}")
    check(b"export PIF=" + FS.folder.encode() in FS.ok("up", "-n", "4", FS.folder), "and how to reach it")
    check(b"down" in FS.ok("down", FS.folder), "down")
    check(b"not running" in FS.ok("down", FS.folder), "down again")
    done = FS.run("status")
    check(done.returncode == 1 and b"server" in done.stdout, f"status of what is down: {done}")
    FS.fails(3, "pif up", "ls", "/")
    FS.fails(3, "pif-lfs check", "fsck")
    FS.ok("up", FS.folder)
    check(FS.content("/a") == b"a" * 1_000_000, "the file is there again")


def what_is_advised_for_tcp_works():
    with FileSystem(2) as other:
        for words in (["ls", "--route", "tcp", "/"], ["copy", "--route", "tcp", "/a", "/b"]):
            other.fails(3, r'write tcp = "curve" into .*pif.toml, then: pif down, pif up', *words)
        other.ok("down", other.folder)
        description = os.path.join(other.folder, "pif.toml")
        with open(description, encoding="utf-8") as file:
            text = file.read()
        with open(description, "w", encoding="utf-8") as file:
            file.write(text.replace('tcp = "none"', 'tcp = "curve"'))
        other.ok("up", other.folder)
        other.ok("ls", "--route", "tcp", "/")
        other.ok("put", "--lines", "-", "/a", data=b"b\na\n")
        other.ok("sort", "--route", "tcp", "/a", "/b")


def without_zmq_what_needs_it_says_so():
    hide = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    hide += ['find /usr/lib -type f -name "libzmq.so.*" -exec mount --bind /dev/null {} ";" && exec "$@"', "sh"]
    if subprocess.run(hide + ["true"], capture_output=True, check=False).returncode != 0:
        print("skip  without_zmq_what_needs_it_says_so: only root can hide a library")
        return
    words = hide + [os.path.join(BIN, "pif"), "ls", "/", "--pif", FS.folder]
    near = subprocess.run(words, capture_output=True, text=True, check=False)
    check(near.returncode == 0, f"a Unix socket needs none: {near}")
    far = subprocess.run(words + ["--route", "ipc"], capture_output=True, text=True, check=False)
    check(far.returncode == 3 and "ZeroMQ cannot be loaded" in far.stderr, f"ipc: {far}")
    check("install libzmq5" in far.stderr and far.stderr.count("\n") == 1, f"what to do: {far}")


def a_folder_in_use_is_refused_with_its_reason():
    FS.ok("down", FS.folder)
    with open(os.path.join(FS.folder, "lfs1", "lock"), "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # keeps the daemon out, and is none
        done = FS.run("up", FS.folder)
        check(done.returncode == 3 and b"lfs1" in done.stderr, f"{done}")
        running = {node["name"] for node in FS.json("status")["nodes"] if node["state"] == "up"}
        check(running == {"lfs0", "lfs2", "lfs3"}, f"the others serve: {running}")
    FS.ok("up", FS.folder)


def run_all():
    global FS
    tests = [
        wrong_usage_is_exit_2,
        tools_refuse_impossible_layouts_like_put,
        failures_are_exit_3,
        failures_leave_nothing,
        an_error_is_a_json_document_too,
        an_interrupted_put_leaves_nothing,
        a_full_stdout_is_reported,
        a_tool_whose_stdout_is_full_says_so,
        a_report_that_cannot_be_written_stops_a_tool_before_its_job,
        a_dead_lfs_is_named,
        what_is_advised_for_tcp_works,
        without_zmq_what_needs_it_says_so,
        up_of_what_runs_is_fine_and_down_of_what_does_not_too,
        a_folder_in_use_is_refused_with_its_reason,
    ]
    with FileSystem(4) as FS:
        with open(FS.local("local"), "wb") as file:
            file.write(b"local\n" * 100)
        FS.ok("put", "-", "/a", data=b"a" * 1_000_000)
        FS.ok("mkdir", "/folder")
        return main_on(FS, tests)


if __name__ == "__main__":
    sys.exit(run_all())
