#!/usr/bin/env python3
"""What hosts must stand for longer than CI may take (scripts/long has the numbers).

  test/hosts/rounds.py outages --rounds N [--seed S]   a host goes off in the middle of a command, N times
  test/hosts/rounds.py delay --seconds N               20 ms and 1 % loss between all hosts, all the time
  test/hosts/rounds.py speed                           put and get over links of 50 MB/s, with 1, 2, 4 and 8 hosts
  test/hosts/rounds.py many                            16 hosts: how long init, up and down take

Exit code: 0, 1 if something does not hold, 77 if this machine cannot have hosts (it says why).
"""

import argparse
import random
import re
import sys
import time

from several import FOLDER, System, check, text, why_not  # isort: skip
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


def timed(function, *arguments, **options):
    begin = time.monotonic()
    value = function(*arguments, **options)
    return time.monotonic() - begin, value


def bring_back(fs, host):
    host.link(True)
    host.mend()
    if host.power is None:
        host.power_on()
    fs.ok("h1", "up", FOLDER)
    fs.await_up(seconds=60)


def outage(fs, number, draw):
    """A command on the host without an LFS, and a fault in its middle: done, or an error that names the host."""
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
    check(seconds < LIMIT, f"{what}: {text(error)}")
    bring_back(fs, lost)
    done = fs.run("h1", "fsck", "--json")
    check(done.returncode in (0, 1) and b'"damages":0' in done.stdout, f"{what}: fsck: {text(done.stdout)[:500]}")
    print(what, flush=True)


def outages(options):
    draw = random.Random(options.seed)
    with System(3, clients=1, seconds=30 * options.rounds + 2 * LEASES) as fs:
        fs.ok("h4", "put", "-", "/log", data=b"")
        fs.ok("h4", "put", "-", "/whole", data=draw.randbytes(20 * MB))
        for number in range(options.rounds):
            outage(fs, number, draw)
        fs.await_clean(seconds=LEASES)
    print(f"{options.rounds} rounds; nothing pending, nothing doomed")


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


def speed(_):
    for count in (1, 2, 4, 8):
        with System(count, clients=1, disk="3G") as fs:
            for host in fs.hosts.all[:count]:
                host.limit("50mbps")
            size = count * 100 * MB
            fs.hosts[count].ok("sh", "-c", f"head -c {size} /dev/urandom >/srv/file")
            client = f"h{count + 1}"
            for words in (["put", "-q", "/srv/file", "/file"], ["get", "-q", "/file", "/srv/back"]):
                seconds, _ = timed(fs.ok, client, *words)
                share = size / seconds / (count * 50 * MB)
                rate = f"{size / seconds / MB:.0f} MB/s, {share:.2f} of the links"
                print(f"{words[0]} with {count} hosts: {rate}", flush=True)
            fs.hosts[count].ok("cmp", "/srv/file", "/srv/back")


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
    commands = parser.add_subparsers(required=True, metavar="outages, delay, speed or many")
    for function in (outages, delay, speed, many):
        commands.add_parser(function.__name__).set_defaults(function=function)
    commands.choices["outages"].add_argument("--rounds", type=int, default=200)
    commands.choices["outages"].add_argument("--seed", type=int, default=1)
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
