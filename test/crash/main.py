"""What scripts/kill-test and scripts/power-cut-test have in common: options, rounds until enough, totals."""

import argparse
import os
import signal
import sys
import time

import journal
import pif_system
import system

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse(description, unit, default):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--bin", type=os.path.abspath, default=os.path.join(ROOT, "build/release/bin"), help="folder of the programs"
    )
    parser.add_argument("--client", type=os.path.abspath, help="test/crash's client (default: beside --bin)")
    parser.add_argument("--lfs", type=int, help="LFSs of the file system (default 3, with --bevies 4)")
    parser.add_argument("--bevies", action="store_true", help="files with parity, in two bevies; LFSs lose their disks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", help="JSON lines; what it has already counts, and new lines are added")
    parser.add_argument(
        "--where", type=os.path.abspath, help="folder for the file system (default: that for temporary files)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="no waiting: no clients over ipc, which notices late who is gone, and no waiting for leases at the end",
    )
    parser.add_argument("--keep", action="store_true", help="keep the file system if something does not hold")
    parser.add_argument(f"--{unit}", dest="goal", type=int, default=default, help="in all, those in --log included")
    options = parser.parse_args()
    options.lfs = options.lfs or (4 if options.bevies else 3)
    if options.bevies and (options.lfs < 4 or options.lfs % 2):
        parser.error("two bevies need an even number of LFSs, at least 4")
    options.client = options.client or os.path.join(options.bin, "..", "test", "crash", "crash_client")
    return options


def run(name, options, rounds, make_disks=None):
    """rounds(system, journal) has round(). The process's exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # so that nothing is left behind
    log = journal.Journal(options.log)
    options.seed += len(log.lines)  # what goes on does not repeat itself
    begin, done_before = time.monotonic(), len(log.crashes())
    code = 0
    try:
        with system.System(options, make_disks) as running:
            try:
                work(running, rounds(running, log), log, options)
            except pif_system.Failure as failure:
                log.add(failure=str(failure), seed=options.seed, at=len(log.crashes()))
                open(os.path.join(running.temp, "failed"), "w", encoding="ascii").close()
                raise
    except pif_system.Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        code = 3
    done, seconds = len(log.crashes()) - done_before, time.monotonic() - begin
    print(log.totals())
    print(f"this run: {done} in {seconds:.0f} s, {done / seconds:.1f} a second")
    return code


def work(running, rounds, log, options):
    shown = len(log.crashes())
    while len(log.crashes()) < options.goal:
        rounds.round()
        if len(log.crashes()) - shown >= 100:
            shown = len(log.crashes())
            print(f"{shown} of {options.goal}", flush=True)
    if not options.quick:
        running.await_settled()
    running.verify()
    running.stop()
