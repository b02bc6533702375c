"""together_test.py: processes that fill one file, some of them killed. scripts/fill-together does it for longer."""

import os
import sys

from fill import fill_round
from pif_system import FileSystem, main

FS = None
ROUNDS = 20
BYTES = 32 << 20


def files_that_processes_fill_are_whole_or_not_there():
    for seed in range(1, ROUNDS + 1):
        fill_round(FS, os.environ["PIF_FILL"], BYTES, seed)


def nothing_is_left_of_those_that_were_given_up():
    FS.ok("fsck")


if __name__ == "__main__":
    with FileSystem(4) as FS:
        sys.exit(main([files_that_processes_fill_are_whole_or_not_there, nothing_is_left_of_those_that_were_given_up]))
