"""The command `pif` of an environment that the wheel is in."""

import os
import sys

from ._tools import PROGRAMS


def main() -> None:
    program = os.path.join(PROGRAMS, "pif")
    os.execv(program, [program, *sys.argv[1:]])
