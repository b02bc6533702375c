"""The Python package, laid out in a folder of a test."""

import importlib.util
import os
import sys

SKIPPED = 77


def import_package(folder, bin_folder, modules):
    """The module pif_fs; ends the test as skipped where a module that it needs is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: Python lacks {missing[0]} (Debian: python3-{missing[0]})")
        sys.exit(SKIPPED)
    python = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
    sys.path.insert(0, python)
    import stage

    stage.stage(os.path.dirname(os.path.abspath(bin_folder)), folder)
    sys.path.insert(0, folder)
    import pif_fs

    return pif_fs
