"""Tools, puts and stopped processes at the same time: nothing fails because of another."""

import os
import signal
import sys
import threading

from pif_system import FileSystem, await_condition, check, main

COUNT = 4
RECORD = 100


def loop(fs, failures, again, *words):
    """Runs a command, and removes what it made, as long as again() holds."""
    rounds = 0
    while again(rounds):
        target = f"{words[-1]}-{rounds}"
        done = fs.run(*words[:-1], target)
        if done.returncode != 0:
            failures.append(done.stderr.decode(errors="replace"))
        fs.run("rm", target)
        rounds += 1


def puts_and_copies_succeed_while_tools_start_on_the_same_lfss():
    with FileSystem(COUNT) as fs:
        source = fs.local("source")
        with open(source, "wb") as file:
            file.write(os.urandom(300_000))
        fs.ok("put", source, "/base")
        failures = []
        puts = [
            threading.Thread(target=loop, args=(fs, failures, lambda n: n < 40, "put", source, f"/p{i}"))
            for i in range(2)
        ]
        copying = lambda n: any(put.is_alive() for put in puts)
        copies = [
            threading.Thread(target=loop, args=(fs, failures, copying, "copy", "/base", f"/c{i}")) for i in range(2)
        ]
        for thread in puts + copies:
            thread.start()
        for thread in puts + copies:
            thread.join()
        check(not failures, f"{len(failures)} failed: {failures[:3]}")


def children_of(pid, name):
    found = []
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{other}/stat", encoding="utf-8", errors="replace") as file:
                program, rest = file.read().split(" (", 1)[1].rsplit(") ", 1)
        except (OSError, IndexError):
            continue
        if program == name and int(rest.split()[1]) == pid:
            found.append(int(other))
    return found


def tools_go_on_when_a_controller_or_an_lfs_was_stopped():
    with FileSystem(COUNT) as fs:
        source = fs.local("source")
        with open(source, "wb") as file:
            file.write(os.urandom(RECORD * 400_000))
        fs.ok("put", "--record-length", str(RECORD), source, "/base")
        lfs = fs.pid_of("lfs1")
        tools = []
        try:
            for i in range(2):
                tools.append(fs.start("sort", "/base", f"/sorted{i}"))
                await_condition(
                    lambda: len(children_of(lfs, "pif-sort")) > i or tools[i].poll() is not None, "it works"
                )
                if i == 0:
                    os.kill(tools[0].pid, signal.SIGSTOP)  # the terminal's Ctrl-Z
            os.kill(lfs, signal.SIGSTOP)
            threading.Event().wait(3)
        finally:
            for pid in [lfs] + [tool.pid for tool in tools[:1]]:
                os.kill(pid, signal.SIGCONT)
        for tool in tools:
            error = tool.communicate(timeout=60)[1].decode()
            check(tool.returncode == 0, f"exit {tool.returncode}: {error}")


def workers_of_a_controller_that_is_killed_end_at_once():
    with FileSystem(COUNT) as fs:
        source = fs.local("source")
        with open(source, "wb") as file:
            file.write(os.urandom(RECORD * 400_000))
        fs.ok("put", "--record-length", str(RECORD), source, "/base")
        # Over a Unix socket, whose end tells; over ZeroMQ a job lives for its lease (docs/PROTOCOL.md "Timers").
        for _ in range(3):
            tool = fs.start("sort", "/base", "/sorted")
            await_condition(lambda: children_of(fs.pid_of("lfs1"), "pif-sort"), "it works")
            tool.kill()
            tool.wait()
            # At once, if the LFS had heard that it is waited for; a job that nobody waits for yet is ended after 10 s.
            await_condition(
                lambda: not any(children_of(fs.pid_of(f"lfs{i}"), "pif-sort") for i in range(COUNT)), "they ended", 15
            )


if __name__ == "__main__":
    sys.exit(
        main(
            [
                puts_and_copies_succeed_while_tools_start_on_the_same_lfss,
                tools_go_on_when_a_controller_or_an_lfs_was_stopped,
                workers_of_a_controller_that_is_killed_end_at_once,
            ]
        )
    )
