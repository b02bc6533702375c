"""Rounds of fill-together (fill_together.cc): eight processes that fill one file, some of them killed."""

import subprocess

from pif_system import check

PATH = "/filled"
PROCESSES = 8


def fill(system, program, size, seed, *victim):
    done = subprocess.run(
        [program, system.folder, PATH, str(size), str(PROCESSES), str(seed), *victim],
        stderr=subprocess.PIPE,
        check=False,
    )
    check(done.returncode == 0, f"round {seed} {victim}: {done}")


def fill_round(system, program, size, seed):
    """Two of three rounds have a victim, and are repeated without. Whether this one had."""
    killed = seed % 3 != 0
    if killed:
        fill(system, program, size, seed, str(seed % PROCESSES))
    fill(system, program, size, seed)
    system.ok("rm", PATH)
    return killed
