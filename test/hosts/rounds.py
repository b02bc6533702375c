#!/usr/bin/env python3
"""What hosts must stand for longer than CI may take (scripts/long has the numbers).

  test/hosts/rounds.py outages --rounds N [--seed S] [--log FILE] [--limit SECONDS]
                                                       a host goes off in the middle of a command, N times; goes on
                                                       where the log ends, and counts all of it
  test/hosts/rounds.py delay --seconds N               20 ms and 1 % loss between all hosts, all the time
  test/hosts/rounds.py many                            16 hosts: how long init, up and down take

Exit code: 0, 1 if something does not hold, 77 if this machine cannot have hosts (it says why).
"""

import argparse
import json
import random
import re
import sys
import time
from pathlib import Path

from several import FOLDER, System, check, text, timed, why_not  # isort: skip
from pif_system import Failure

LIMIT = 10.0  # seconds until somebody who waits for a host must know which one it is
MB = 1_000_000
LEASES = 700  # seconds: what killed clients have open may last eleven minutes

FAULTS = {
    "cable": lambda host: host.link(False),
    "power": lambda host: host.power_off(),
    "input": lambda host: host.cut("input"),
    "output": lambda host: host.cut("output"),
}


def bring_back(fs, host):
    host.link(True)
    host.mend()
    if host.power is None:
        host.power_on()
    fs.ok("h1", "up", FOLDER)
    fs.await_up(seconds=60)


def outage(fs, number, draw, limit):
    """A command on the host without an LFS, and a fault in its middle: done, or an error that names the host. What it
    was."""
    data = draw.randbytes(draw.choice((1000, 300_000, 20 * MB)))
    operation = draw.choice(("put", "append", "cat", "cp", "rm"))
    words = {"put": ["put", "-", f"/put{number}"], "append": ["append", "-", "/log"], "cat": ["cat", "/whole"]}
    words.update(cp=["cp", "/whole", f"/cp{number}"], rm=["rm", "/gone"])
    fs.ok("h4", "put", "-", "/gone", data=data)
    lost, fault = fs.host(draw.choice(("h2", "h3"))), draw.choice(sorted(FAULTS))
    command = fs.host("h4").start("pif", *words[operation], stdin=-1)
    half = data if operation in ("put", "append") else b""
    command.stdin.write(half[: len(half) // 2])
    command.stdin.flush()
    FAULTS[fault](lost)
    seconds, (_, error) = timed(command.communicate, half[len(half) // 2 :], timeout=90)
    what = f"round {number}, {operation}, {fault} of {lost.name}: exit {command.returncode} after {seconds:.1f} s"
    names = rf"lfs{int(lost.name[1:]) - 1}|{lost.name}"
    check(command.returncode == 0 or re.search(names, text(error)), f"{what}: {text(error)}")
    check(seconds < limit, f"{what}: {text(error)}")
    bring_back(fs, lost)
    done = fs.run("h1", "fsck", "--json")
    check(done.returncode in (0, 1) and b'"damages":0' in done.stdout, f"{what}: fsck: {text(done.stdout)[:500]}")
    print(what, flush=True)
    return {"round": number, "operation": operation, "fault": fault, "exit": command.returncode, "seconds": seconds}


def logged(path):
    """What rounds before this run have found."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def note(path, entry):
    if path is not None:
        with path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")


def outages(options):
    done = len(logged(options.log))
    left = range(done, options.rounds)
    with System(3, clients=1, seconds=30 * len(left) + 2 * LEASES) as fs:
        fs.ok("h4", "put", "-", "/log", data=b"")
        fs.ok("h4", "put", "-", "/whole", data=random.Random(options.seed).randbytes(20 * MB))
        for number in left:
            note(options.log, outage(fs, number, random.Random(f"{options.seed} {number}"), options.limit))
        fs.await_clean(seconds=LEASES)
    longest = max((entry["seconds"] for entry in logged(options.log)), default=0)
    print(f"{max(done, options.rounds)} rounds; nothing pending, nothing doomed; longest wait {longest:.1f} s")


def delay(options):
    with System(3, clients=1, seconds=options.seconds + 300) as fs:
        for host in fs.hosts:
            host.set_delay(20, 1)
        end, rounds, times = time.monotonic() + options.seconds, 0, {}
        while time.monotonic() < end or rounds == 0:
            data = random.Random(rounds).randbytes(2 * MB)
            for name, words, given in (
                ("put", ["put", "-", "/a"], data),
                ("append", ["append", "-", "/a"], b"more"),
                ("cp", ["cp", "/a", "/b"], b""),
                ("cat", ["cat", "/b"], b""),
                ("rm", ["rm", "/a", "/b"], b""),
            ):
                seconds, out = timed(fs.ok, "h4", *words, data=given)
                times.setdefault(name, []).append(seconds)
                check(name != "cat" or out == data + b"more", f"round {rounds}: other bytes")
            rounds += 1
        check(fs.run("h1", "fsck").returncode in (0, 1), "fsck")
    for name, seconds in times.items():
        print(f"{name}: median {sorted(seconds)[len(seconds) // 2]:.2f} s, longest {max(seconds):.2f} s")
    print(f"{rounds} rounds, all right")


def many(_):
    fs = System(16, disk="200M")
    try:
        for words in (fs.init_words, ["up", FOLDER], ["down", FOLDER], ["up", FOLDER]):
            seconds, _ = timed(fs.ok, "h1", *words)
            print(f"{words[0]} of 16 hosts: {seconds:.2f} s")
            check(seconds < 8, f"{words[0]} took {seconds:.1f} s")
        fs.await_up()
    finally:
        fs.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="outages, delay or many")
    for function in (outages, delay, many):
        commands.add_parser(function.__name__).set_defaults(function=function)
    commands.choices["outages"].add_argument("--rounds", type=int, default=200)
    commands.choices["outages"].add_argument("--seed", type=int, default=1)
    commands.choices["outages"].add_argument("--log", type=Path)
    commands.choices["outages"].add_argument("--limit", type=float, default=LIMIT)
    commands.choices["delay"].add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return 77
    try:
        options.function(options)
    except Failure as failure:
        print(f"FAIL  {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
