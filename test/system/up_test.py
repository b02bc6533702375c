"""`pif up` and `pif down`: several at once, beside people who look at the locks, and in folders that are not to be
trusted."""

import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

from disks_steps import await_heartbeats, put, put_back, rows, save
from pif_system import Failure, FileSystem, await_condition, check, main

COUNT = 4


def at_once(fs, *words, count=4):
    """So many of one command at the same moment: their JSON documents."""
    running = [fs.start(*words, "--json") for _ in range(count)]
    documents = []
    for one in running:
        out, error = one.communicate(timeout=60)
        check(
            one.returncode == 0,
            f"pif {' '.join(words)}, one of {count} at once: exit {one.returncode}: {error.decode()}",
        )
        documents.append(json.loads(out))
    return documents


def of_many_who_start_a_file_system_one_starts_it():
    with FileSystem(COUNT) as fs:
        fs.ok("put", "-", "/a", data=b"a")
        for _ in range(5):
            fs.ok("down", fs.folder)
            started = [document["started"] for document in at_once(fs, "up", fs.folder)]
            check(sorted(started) == [0, 0, 0, COUNT + 1], f"started: {started}")
            check(len(fs.processes()) == COUNT + 1 and fs.content("/a") == b"a", "it is up, once")


def of_many_who_make_a_file_system_one_makes_it():
    with FileSystem(COUNT) as fs:
        fs.ok("down", fs.folder)
        fs.folder = fs.local("new")
        fs.env["PIF"] = fs.folder
        documents = at_once(fs, "up", "-n", str(COUNT), fs.folder)
        check(len({document["cluster"] for document in documents}) == 1, f"{documents}")
        check(sum(document["started"] for document in documents) == COUNT + 1, f"{documents}")
        fs.ok("put", "-", "/a", data=b"a")


def a_start_waits_for_another_one():
    with FileSystem(COUNT) as fs:
        with open(os.path.join(fs.folder, "keys", "cluster.key"), "rb") as key:
            fcntl.flock(key, fcntl.LOCK_EX)
            up = fs.start("up", "-q", fs.folder)
            try:
                up.wait(timeout=0.5)
                raise Failure("it does not wait")
            except subprocess.TimeoutExpired:
                fcntl.flock(key, fcntl.LOCK_UN)
            check(up.communicate(timeout=10)[1] == b"" and up.returncode == 0, "it goes on when the other is done")


def daemon_of(fs, name):
    for pid in fs.processes():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode().split("\0")
        except OSError:
            continue
        if (name == "server") == words[0].endswith("pif-server") and (name == "server" or name in words):
            return pid
    return None


def who_looks_at_a_lock_keeps_no_daemon_from_starting():
    with FileSystem(COUNT) as fs:
        for name in ("server", "lfs1"):
            fs.ok("down", fs.folder)
            with open(os.path.join(fs.folder, name, "lock"), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH)  # as pif status does, for a moment
                up = fs.start("up", fs.folder)
                await_condition(lambda n=name: daemon_of(fs, n), "the daemon is there", 10)
                threading.Event().wait(0.1)  # more than it takes to come to its lock
                fcntl.flock(lock, fcntl.LOCK_UN)
            error = up.communicate(timeout=60)[1]
            check(up.returncode == 0, f"{name}: exit {up.returncode}: {error.decode()}")


def an_old_root_is_told_of_when_the_other_lfss_are_up():
    """What a person is told to say then needs all of them."""
    with FileSystem(2) as fs:
        fs.ok("down", fs.folder)
        save(fs, "lfs1")
        fs.ok("up", fs.folder)
        put(fs, "/late", rows("l"))
        await_heartbeats(fs)
        fs.ok("down", fs.folder)
        put_back(fs, "lfs1")
        with open(os.path.join(fs.folder, "lfs0", "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # lfs0 does not come before it is stopped
            up = fs.start("up", fs.folder)
            slow = await_condition(lambda: daemon_of(fs, "lfs0"), "lfs0 is there", 10)
            os.kill(slow, signal.SIGSTOP)
        try:
            await_condition(lambda: b"stale" in fs.run("status").stdout, "lfs1 is known to be old", 10)
            threading.Event().wait(0.5)
            check(up.poll() is None, "it waits for lfs0")
        finally:
            os.kill(slow, signal.SIGCONT)
        error = up.communicate(timeout=60)[1]
        check(up.returncode == 3 and b"lfs1 is older than it has been" in error, f"{up.returncode}: {error}")
        fs.ok("node", "accept-stale", "lfs1")


def bystander(fs, name, user=None):
    """A process of that name that is no daemon."""
    program = fs.local(name)
    shutil.copy(shutil.which("cat"), program)
    os.chmod(program, 0o755)
    who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    return subprocess.Popen([program], stdin=subprocess.PIPE, **who)


def end(processes):
    for one in processes:
        one.stdin.close()
        one.wait(timeout=10)


def down_signals_nobody_but_its_daemons():
    with FileSystem(COUNT) as fs:
        os.chmod(fs.temp, 0o755)
        fs.ok("down", fs.folder)
        named = {"server": bystander(fs, "cat"), "lfs0": bystander(fs, "pif-server")}
        if os.geteuid() == 0:
            named["lfs1"] = bystander(fs, "pif-lfs", user=12345)
        with contextlib.ExitStack() as stack:
            for name, process in named.items():
                lock = stack.enter_context(open(os.path.join(fs.folder, name, "lock"), "w", encoding="ascii"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                lock.write(f"{process.pid}\n")
                lock.flush()
            fs.fails(3, f"no pif-server of user {os.geteuid()}", "down", fs.folder)
        check([name for name, process in named.items() if process.poll() is not None] == [], "nobody was signalled")
        end(named.values())


def down_waits_until_it_knows_who_is_to_stop():
    with FileSystem(COUNT) as fs:
        earlier = bystander(fs, "cat")
        for text in (b"", b"0\n", b"99999999999999999999\n", b"4294967295\n", b"%d\n" % earlier.pid):
            pid = fs.pid_of("lfs1")
            with open(os.path.join(fs.folder, "lfs1", "lock"), "wb") as lock:
                lock.write(text)  # as if it had not written its own yet
            down = fs.start("down", fs.folder)
            await_condition(lambda p=pid: fs.processes() == [p], "the others have been told", 8)
            with open(os.path.join(fs.folder, "lfs1", "lock"), "wb") as lock:
                lock.write(b"%d\n" % pid)
            out, error = down.communicate(timeout=10)
            check(
                down.returncode == 0 and error == b"" and b"5 stopped" in out,
                f"{text}: exit {down.returncode}: {out} {error}",
            )
            fs.ok("up", fs.folder)
        check(earlier.poll() is None, "nobody else was signalled")
        end([earlier])


def down_waits_for_a_start_under_way():
    with FileSystem(COUNT) as fs:
        with open(os.path.join(fs.folder, "keys", "cluster.key"), "rb") as key:
            fcntl.flock(key, fcntl.LOCK_EX)  # as an `up` has it until all daemons serve
            down = fs.start("down", fs.folder)
            try:
                down.wait(timeout=0.5)
                raise Failure("it does not wait")
            except subprocess.TimeoutExpired:
                check(len(fs.processes()) == COUNT + 1, "nothing was stopped meanwhile")
                fcntl.flock(key, fcntl.LOCK_UN)
        check(down.communicate(timeout=10)[1] == b"" and down.returncode == 0, "it goes on when the other is done")
        check(fs.processes() == [], "and stops all")


def ups_and_downs_at_once_leave_all_or_nothing():
    with FileSystem(COUNT) as fs:
        ups = [fs.start("up", "-q", fs.folder) for _ in range(3)]
        downs = [fs.start("down", fs.folder) for _ in range(3)]
        for one in ups + downs:
            error = one.communicate(timeout=60)[1]
            check(one.returncode == 0 and error == b"", f"{one.args}: exit {one.returncode}: {error}")
        check(len(fs.processes()) in (0, COUNT + 1), f"{fs.processes()}")


def sockets_outside_the_folder_go_with_it():
    with FileSystem(COUNT, ["--insecure-loopback"], folder="f" * 100) as fs:
        (short,) = glob.glob(f"/tmp/pif-{fs.json('status')['cluster']}-*")
        fs.kill("lfs1")  # leaves its sockets
        fs.ok("down", fs.folder)
        check(not os.path.exists(short), f"{short} is gone")
        fs.ok("up", fs.folder)
        with open(os.path.join(short, "mine"), "wb"):
            fs.ok("down", fs.folder)
        check(os.listdir(short) == ["mine"], "what is somebody else's stays")
        shutil.rmtree(short)


def up_waits_for_a_daemon_that_was_killed_and_starts_it_anew():
    with FileSystem(COUNT) as fs:
        for name in ("lfs1", "server"):
            pid = fs.pid_of(name)
            with open(os.path.join(fs.folder, name, "lock"), "rb") as lock:
                fs.kill(name)
                fcntl.flock(lock, fcntl.LOCK_EX)  # as a process has it until the last of its threads has ended
                up = fs.start("up", fs.folder)
                try:
                    up.wait(timeout=0.5)
                    raise Failure(f"it takes a dead {name} for a running one: exit {up.returncode}")
                except subprocess.TimeoutExpired:
                    fcntl.flock(lock, fcntl.LOCK_UN)
            error = up.communicate(timeout=60)[1]
            check(up.returncode == 0 and b"(1 started" in error, f"{name}: exit {up.returncode}: {error}")
            check(fs.pid_of(name) != pid and len(fs.processes()) == COUNT + 1, f"{name} runs again")


def a_daemon_whose_lock_is_gone_is_stopped_and_gets_no_second_one():
    with FileSystem(COUNT) as fs:
        for name in ("lfs0", "server"):
            os.remove(os.path.join(fs.folder, name, "lock"))
        running = fs.processes()
        fs.fails(3, r"server runs \(process \d+\), and its lock .*/server/lock is gone: .*pif down", "up", fs.folder)
        check(sorted(fs.processes()) == sorted(running), "nothing was started")
        doctor = fs.run("doctor").stdout.decode()
        check(re.search(r"lfs0 runs \(process \d+\), and its lock .*/lfs0/lock is gone", doctor), doctor)
        stopped = fs.json("down", fs.folder)["stopped"]
        check(sorted(stopped) == ["lfs0", "lfs1", "lfs2", "lfs3", "server"], f"{stopped}")
        check(fs.processes() == [], "all have stopped")
        fs.ok("up", fs.folder)


def run_by_the_host(fs):
    """`pif host run`, when it has said that all are up."""
    runner = fs.start("host", "run", fs.folder)
    for line in runner.stderr:
        if b"are up" in line:
            return runner
    raise Failure("pif host run has ended")


def down_counts_all_that_ran():
    with FileSystem(COUNT) as fs:
        check(fs.ok("down", fs.folder).endswith(b"is down: 5 stopped\n"), "without a runner")
        runner = run_by_the_host(fs)
        stopped = fs.json("down", fs.folder)["stopped"]
        runner.communicate(timeout=10)
        check(stopped == ["pif host run", "server", "lfs0", "lfs1", "lfs2", "lfs3"], f"{stopped}")


def how_a_daemon_ended_is_said():
    with FileSystem(COUNT) as fs:
        fs.ok("down", fs.folder)
        runner = run_by_the_host(fs)
        os.kill(fs.pid_of("lfs2"), signal.SIGKILL)
        line = runner.stderr.readline()
        check(re.search(rb"lfs2 has ended.*it was killed by signal 9 \(Killed\)", line), f"{line}")
        fs.ok("down", fs.folder)
        runner.communicate(timeout=10)
        # An error, and then the line with which it takes its leave.
        shutil.move(os.path.join(fs.folder, "lfs1"), fs.local("lfs1"))
        shutil.copytree(os.path.join(fs.folder, "lfs0"), os.path.join(fs.folder, "lfs1"))
        done = fs.run("up", fs.folder)
        said = done.stderr.decode()
        check(done.returncode == 3 and "lfs1 did not start: " in said, f"{done}")
        check(" error: " in said and "lfs1 stops" not in said, said)


def a_shell_can_evaluate_what_up_prints():
    with FileSystem(COUNT) as fs:
        fs.folder = os.path.join(fs.temp, "it's $(a) new one")
        line = 'eval "$("$0" up -n 2 "$1")" && eval "$("$0" up "$1")" && printf %s "$PIF"'
        done = subprocess.run(
            ["sh", "-c", line, *fs.command(), fs.folder], env=fs.env, stdout=-1, stderr=-1, text=True, check=False
        )
        said = done.stderr.splitlines()
        check(done.returncode == 0 and done.stdout == fs.folder, f"{done}")
        check(len(said) == 2 and "is up: " in said[0] and "is already running" in said[1], f"{said}")
        check(fs.run("up", "-q", fs.folder).stderr == b"", "-q says nothing")
        fs.ok("down", os.path.join(fs.temp, "fs"))


if __name__ == "__main__":
    sys.exit(
        main(
            [
                down_waits_for_a_start_under_way,
                ups_and_downs_at_once_leave_all_or_nothing,
                sockets_outside_the_folder_go_with_it,
                of_many_who_start_a_file_system_one_starts_it,
                of_many_who_make_a_file_system_one_makes_it,
                a_start_waits_for_another_one,
                who_looks_at_a_lock_keeps_no_daemon_from_starting,
                an_old_root_is_told_of_when_the_other_lfss_are_up,
                down_signals_nobody_but_its_daemons,
                down_waits_until_it_knows_who_is_to_stop,
                up_waits_for_a_daemon_that_was_killed_and_starts_it_anew,
                a_daemon_whose_lock_is_gone_is_stopped_and_gets_no_second_one,
                down_counts_all_that_ran,
                how_a_daemon_ended_is_said,
                a_shell_can_evaluate_what_up_prints,
            ],
            sys.argv[1:],
        )
    )
