"""Programs that are interrupted clean up and die of the signal, so that a shell ends its script, too; what nobody reads
any more, and limits of the machine, are said as what they are."""

import os
import signal
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, main_on

FS = None


def started(words, **streams):
    """A command in a process group of its own, whose signals are as a shell gives them to what it starts."""
    return subprocess.Popen(
        FS.command(*words), env=FS.env, cwd=FS.temp, stderr=subprocess.PIPE, start_new_session=True, **streams
    )


def dies_of(words, number, is_ready, **streams):
    """That the command, once it is ready, dies of the signal, and soon."""
    process = started(words, **streams)
    try:
        await_condition(is_ready, f"{words} has begun")
        os.killpg(process.pid, number)
        code = process.wait(timeout=30)
        said = process.stderr.read().decode()
        check(code == -number, f"{words}: {code} instead of death by {number.name}: {said}")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    await_condition(lambda: FS.json("status")["pending"] == 0, f"{words}: nothing is left")


def is_pending():
    return FS.json("status")["pending"] > 0


def a_put_of_a_silent_pipe_dies_of_the_signal():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        reading, writing = os.pipe()
        os.write(writing, b"begun")
        dies_of(["put", "-", "/endless"], number, is_pending, stdin=reading)
        os.close(reading)
        os.close(writing)
        FS.fails(3, "/endless", "stat", "/endless")


def an_append_to_a_log_dies_of_the_signal_and_keeps_what_was_appended():
    for number in (signal.SIGINT, signal.SIGTERM):
        FS.ok("put", "-q", "--lines", "-", "/log", data=b"one\n")
        reading, writing = os.pipe()
        os.write(writing, b"two\n")
        dies_of(["append", "-", "/log"], number, lambda: FS.content("/log") == b"one\ntwo\n", stdin=reading)
        os.close(reading)
        os.close(writing)
        check(FS.content("/log") == b"one\ntwo\n", "what was said is there")


def a_put_that_waits_for_a_named_pipe_dies_of_the_signal():
    pipe = FS.local("pipe")
    os.mkfifo(pipe)
    process = started(["put", pipe, "/of-pipe"])
    writer = os.open(pipe, os.O_WRONLY)  # returns when it is read
    os.killpg(process.pid, signal.SIGINT)
    code = process.wait(timeout=30)
    process.stderr.close()
    os.close(writer)
    check(code == -signal.SIGINT, f"{code}")
    FS.fails(3, "/of-pipe", "stat", "/of-pipe")


def workers_of(tool):
    """Processes of the tool that run for us; the first one is the user's own."""
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as comm:
                found += comm.read().strip() == tool and os.readlink(f"/proc/{pid}/cwd") == FS.temp
        except OSError:  # it has ended
            continue
    return max(found - 1, 0)


def is_caught_at_work(words, number):
    """Whether the tool was interrupted while its workers ran; then it must have died of that."""
    process = started(words)
    await_condition(lambda: process.poll() is not None or workers_of("pif-" + words[0]) > 0, f"{words} has begun")
    caught = process.poll() is None
    if caught:
        os.killpg(process.pid, number)
    code = process.wait(timeout=60)
    said = process.stderr.read().decode()
    process.stderr.close()
    check(code == (-number if caught else 0), f"{words}: {code} instead of death by {number.name}: {said}")
    return caught


def a_tool_that_is_interrupted_ends_everywhere_and_dies_of_the_signal():
    FS.ok("put", "-q", "--record-length", "100", "-", "/many", data=os.urandom(1_000_000) * 60)
    for words in (["sort", "/many", "/out"], ["copy", "--width", "1", "/many", "/out"]):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            await_condition(lambda w=words, n=number: is_caught_at_work(w, n), f"{words} is caught at work", 60)
            await_condition(lambda w=words: workers_of("pif-" + w[0]) == 0, f"{words}: no worker is left")
            await_condition(lambda: FS.json("status")["pending"] == 0, f"{words}: nothing is left")
    FS.ok("rm", "/many")


def a_script_ends_after_ctrl_c():
    went_on = FS.local("went-on")
    reading, writing = os.pipe()
    os.write(writing, b"begun")
    script = subprocess.Popen(
        ["bash", "-c", f'"$0" put - /endless; touch {went_on}', *FS.command()],
        env=FS.env,
        stdin=reading,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    await_condition(is_pending, "the put has begun")
    os.killpg(script.pid, signal.SIGINT)
    check(script.wait(timeout=30) == -signal.SIGINT, f"{script.returncode}")
    os.close(reading)
    os.close(writing)
    check(not os.path.exists(went_on), "the script went on")


def a_signal_that_is_ignored_stays_ignored():
    reading, writing = os.pipe()
    os.write(writing, b"one\n")
    process = subprocess.Popen(
        ["bash", "-c", 'trap "" HUP; exec "$0" put --lines - /kept', *FS.command()],
        env=FS.env,
        stdin=reading,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(reading)
    await_condition(is_pending, "the put has begun")
    os.killpg(process.pid, signal.SIGHUP)
    os.write(writing, b"two\n")
    os.close(writing)
    check(process.wait(timeout=30) == 0, f"{process.returncode}: {process.stderr.read()}")
    process.stderr.close()
    check(FS.content("/kept") == b"one\ntwo\n", "as if nothing had come")


def what_nobody_reads_any_more_is_said_of_standard_output():
    FS.ok("put", "-q", "--lines", "-", "/lines", data=b"a line\n" * 300_000)
    for words in ("cat /lines", "get /lines -", "head -n 200000 /lines"):
        piped = f'"$0" {words} | head -n 1; exit ${{PIPESTATUS[0]}}'
        done = subprocess.run(["bash", "-c", piped, *FS.command()], env=FS.env, capture_output=True, check=False)
        check(done.returncode == 128 + signal.SIGPIPE and not done.stderr, f"{words}: {done}")
        ignored = subprocess.run(
            ["bash", "-c", 'trap "" PIPE; ' + piped, *FS.command()], env=FS.env, capture_output=True, check=False
        )
        check(ignored.returncode == 3 and b"standard output: Broken pipe" in ignored.stderr, f"{words}: {ignored}")
    FS.ok("rm", "/lines")


def a_process_with_few_descriptors_reads_all_the_same_or_says_why():
    FS.ok("put", "-q", "--record-length", "100", "-", "/wide", data=bytes(100_000))
    outcomes = set()
    for limit in range(3, 40):
        limited = f'ulimit -n {limit}; exec "$0" cat /wide'
        done = subprocess.run(["bash", "-c", limited, *FS.command()], env=FS.env, capture_output=True, check=False)
        is_whole = done.returncode == 0 and done.stdout == bytes(100_000)
        said = b"Too many open files" in done.stderr or b"Error 24" in done.stderr  # the second by the loader
        check(is_whole or said, f"{limit}: {done.returncode} {done.stderr}")
        outcomes.add(is_whole)
    check(outcomes == {True, False}, f"{outcomes}")
    FS.ok("rm", "/wide")


def a_limit_of_the_size_of_files_is_said_of_the_local_file():
    FS.ok("put", "-q", "-", "/large", data=bytes(300_000))
    limited = 'trap "" XFSZ; ulimit -f 100; exec "$0" get /large large'
    words = ["bash", "-c", limited, *FS.command()]
    done = subprocess.run(words, env=FS.env, cwd=FS.temp, capture_output=True, check=False)
    check(done.returncode == 3 and b"cannot write large: File too large" in done.stderr, f"{done}")
    check(not os.path.exists(FS.local("large")), "nothing is left of it")
    FS.ok("rm", "/large")


def what_a_growing_log_has_is_counted_as_readers_see_it():
    FS.ok("put", "-q", "--lines", "-", "/log", data=b"1\n2\n3\n")
    process = subprocess.Popen(FS.command("append", "-q", "-", "/log"), env=FS.env, stdin=subprocess.PIPE)
    for number in range(4, 9):
        process.stdin.write(b"%d\n" % number)
        process.stdin.flush()
        await_condition(lambda n=number: FS.ok("tail", "-n", "1", "/log") == b"%d\n" % n, "the line is there")
        for option, count in (("-l", number), ("-r", number), ("-c", 2 * number), ("-w", number)):
            check(FS.ok("wc", option, "/log").split()[0] == b"%d" % count, f"wc {option} after {number} lines")
    process.stdin.close()
    check(process.wait(timeout=30) == 0, "append")


def times_before_1970_are_those_of_date():
    for when in ("1969-12-31T23:59:58.500000000Z", "1931-02-03T04:05:06.000000007Z", "2106-02-07T06:28:16.1Z"):
        subprocess.run(["touch", "-d", when, FS.local("old")], check=True)
        seconds = subprocess.run(["stat", "-c", "%.9Y", FS.local("old")], stdout=subprocess.PIPE, check=True).stdout
        dated = subprocess.run(
            ["date", "-u", "-d", "@" + seconds.decode().strip(), "+%Y-%m-%dT%H:%M:%S.%NZ"],
            stdout=subprocess.PIPE,
            check=True,
        )
        right = dated.stdout.decode().strip()
        FS.ok("put", "-q", FS.local("old"), "/old")
        check(FS.json("stat", "/old")["modified"] == right, f"{when}: {FS.json('stat', '/old')['modified']}")
        check(right.encode() in FS.ok("stat", "/old"), when)
        FS.ok("get", "-q", "/old", FS.local("back"))
        check(os.stat(FS.local("back")).st_mtime_ns == os.stat(FS.local("old")).st_mtime_ns, f"{when}: and back")


def no_temporary_file_is_left():
    check(not [name for name in os.listdir(FS.temp) if name.startswith(".pif-")], f"{os.listdir(FS.temp)}")


def run_all():
    global FS
    with FileSystem(3) as FS:
        return main_on(
            FS,
            [
                a_put_of_a_silent_pipe_dies_of_the_signal,
                an_append_to_a_log_dies_of_the_signal_and_keeps_what_was_appended,
                a_put_that_waits_for_a_named_pipe_dies_of_the_signal,
                a_tool_that_is_interrupted_ends_everywhere_and_dies_of_the_signal,
                a_script_ends_after_ctrl_c,
                a_signal_that_is_ignored_stays_ignored,
                what_nobody_reads_any_more_is_said_of_standard_output,
                a_process_with_few_descriptors_reads_all_the_same_or_says_why,
                a_limit_of_the_size_of_files_is_said_of_the_local_file,
                what_a_growing_log_has_is_counted_as_readers_see_it,
                times_before_1970_are_those_of_date,
                no_temporary_file_is_left,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
