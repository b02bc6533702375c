"""together_test.py: processes that fill one file, some of them killed. FILL_ROUNDS and FILL_BYTES make it longer."""

import os
import subprocess
import sys

from pif_system import FileSystem, check, main

FS = None
FILL = os.environ["PIF_FILL"]
ROUNDS = int(os.environ.get("FILL_ROUNDS", "20"))
BYTES = int(os.environ.get("FILL_BYTES", str(32 << 20)))


def fill(path, seed, *victim):
    done = subprocess.run(
        [FILL, FS.folder, path, str(BYTES), "8", str(seed), *victim], stderr=subprocess.PIPE, check=False
    )
    check(done.returncode == 0, f"round {seed} {victim}: {done}")


def files_that_processes_fill_are_whole_or_not_there():
    for seed in range(1, ROUNDS + 1):
        victim = [str(seed % 8)] if seed % 3 else []
        fill(f"/filled{seed}", seed, *victim)


def nothing_is_left_of_those_that_were_given_up():
    FS.ok("fsck")


if __name__ == "__main__":
    with FileSystem(4) as FS:
        sys.exit(main([files_that_processes_fill_are_whole_or_not_there, nothing_is_left_of_those_that_were_given_up]))
