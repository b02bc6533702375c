"""What libtool gives to who writes a tool: the words of workers, traces, a debugger, very many inputs."""

import json
import os
import re
import signal
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, main_on

FS = None
COUNT = 3
TALKATIVE = os.environ["PIF_TALKATIVE"]


def talk(*words, **options):
    return FS.run("run", TALKATIVE, *words, **options)


def lines_of(done):
    return done.stderr.decode().splitlines()


def what_workers_write_is_shown_with_their_node():
    done = talk("say")
    check(done.returncode == 0 and done.stdout == b"0\n", done)
    lines = lines_of(done)
    for rank in range(COUNT):
        for text in (f"out of {rank}", f"err of {rank} \\x1b[31m", f"no end of {rank}"):
            check(f"lfs{rank}: {text}" in lines, f"{text}: {lines}")
    check(len(lines) == 3 * COUNT, lines)
    check(talk("say", "-q").stderr == b"", "-q hides it")


def words_of_a_worker_that_fails_come_before_its_error():
    lines = lines_of(talk("fail"))
    check("lfs1: out of 1" in lines and lines[-1].endswith("worker 1 on lfs1 failed: as it was told"), lines)
    check(sum("as it was told" in line for line in lines) == 1, lines)
    done = talk("die")
    lines = lines_of(done)
    check(done.returncode == 3 and "lfs1: before the end" in lines, lines)
    check(re.search("died of signal 6 .*: the last words$", lines[-1]), lines)
    check(sum("the last words" in line for line in lines) == 1, lines)


def who_writes_very_much_loses_some_of_it_and_no_time():
    lines = lines_of(talk("flood"))
    kept = [line for line in lines if line.startswith("lfs1: xxx")]
    check(1000 < len(kept) < 100_000, f"{len(kept)} lines")


def a_trace_has_all_that_took_time():
    FS.ok("mkdir", "/t")
    FS.ok("put", "-q", "--lines", "-", "/t/0", data=b"a line\n" * 300_000)
    path = os.path.join(FS.temp, "trace.json")
    done = talk("reduce", "--trace", path)
    check(done.returncode == 0, done)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {(event["pid"], event["name"]) for event in events}
    for pid in range(1, COUNT + 1):
        wanted = {(pid, "send"), (pid, "receive"), (pid, "wait"), (pid, "round 39")}
        check(wanted <= names, f"worker {pid - 1}: {names}")
    check({(0, "spawn"), (0, "work")} <= names, names)
    spawn, work = (next(event for event in events if event["name"] == name) for name in ("spawn", "work"))
    end = work["ts"] + work["dur"]
    rounds = [event for event in events if event["name"].startswith("round")]  # one may begin before all have started
    check(all(spawn["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end for e in rounds), f"one clock: {spawn} {work}")
    for words in (["copy", "/t/0", "/t/copy"], ["sort", "/t/0", "/t/sorted"], ["search", "-c", "line", "/t/0"]):
        FS.ok(*words, "--trace", path)
        with open(path, encoding="utf-8") as file:
            check(any(event["pid"] > 0 for event in json.load(file)["traceEvents"]), words)
    done = talk("say", "--trace", "/nowhere/trace")
    check(done.returncode == 3 and b"/nowhere/trace" in done.stderr, done)


def a_worker_stops_for_a_debugger():
    FS.fails(2, "there is no worker 3 to be debugged: the job has 3", "run", TALKATIVE, "say", "--debug-worker", "3")
    tool = FS.start("run", TALKATIVE, "reduce", "--debug-worker", "1")
    line = tool.stderr.readline().decode()
    found = re.match("lfs1: worker 1 on lfs1 has stopped, pid ([0-9]+) at .*: gdb -p", line)
    check(found, line)
    pid = int(found.group(1))
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        check(file.read().split()[2] == "T", "it is stopped")
    os.kill(pid, signal.SIGCONT)
    out, _ = tool.communicate(timeout=60)
    check(tool.returncode == 0 and out == b"3\n", out)


def very_many_inputs_one_after_another():
    count = int(os.environ.get("PIF_INPUTS", "2500"))
    folder = os.path.join(FS.temp, "many")
    os.mkdir(folder)
    for i in range(count):
        with open(f"{folder}/{i}", "w", encoding="utf-8") as file:
            file.write(f"{i}\n" * 3)
    FS.ok("put", "-q", "-r", "--lines", folder, "/many")
    expected = sum(3 * len(f"{i}\n") for i in range(count))
    done = talk("read", "/many", "--count", str(count), "--jobs", "2")
    check(done.returncode == 0 and done.stdout == b"%d\n" % (2 * expected), done)


def records_are_numbered_in_windows():
    count = int(os.environ.get("PIF_NUMBERED", "10000000"))
    FS.ok("mkdir", "/n")
    with FS.start("put", "-q", "--record-length", "1", "-", "/n/0", stdin=subprocess.PIPE) as put:
        for done in range(0, count, 1 << 20):
            put.stdin.write(b"x" * min(1 << 20, count - done))
        put.stdin.close()
        check(put.wait(timeout=600) == 0, "put")
    vanished = (count + 2) // 3
    done = talk("number", "/n", timeout=3600)
    check(done.stdout == b"%d\n" % (vanished * (vanished - 1) // 2), done)


def run_all():
    global FS
    with FileSystem(COUNT) as FS:
        return main_on(
            FS,
            [
                what_workers_write_is_shown_with_their_node,
                words_of_a_worker_that_fails_come_before_its_error,
                who_writes_very_much_loses_some_of_it_and_no_time,
                a_trace_has_all_that_took_time,
                a_worker_stops_for_a_debugger,
                very_many_inputs_one_after_another,
                records_are_numbered_in_windows,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
