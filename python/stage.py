#!/usr/bin/env python3
"""Lays out the package `pif_fs` in a folder: its modules, its binding to libpif.so, and the programs.

stage.py BUILD TARGET     BUILD: a build of the project; TARGET: gets the folder pif_fs. Programs and libraries are
                          links to BUILD: scripts/wheel copies them
"""

import contextlib
import io
import os
import re
import shutil
import sys

import make_binding

HERE = os.path.dirname(os.path.abspath(__file__))
# Of all that is built these are left out: what needs FUSE, and what only developers use.
LEFT_OUT = re.compile(r"^(example-.*|pif-(bench|mount|umount|numbers-model|parity-model|simulate|snapshot-hold))$")


def version():
    with open(os.path.join(HERE, "../CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"^project\(\w+ VERSION ([0-9.]+)", file.read(), re.MULTILINE).group(1)


def programs(build):
    folder = os.path.join(build, "bin")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if not LEFT_OUT.match(name)]


def stage(build, target):
    package = os.path.join(target, "pif_fs")
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(os.path.join(HERE, "pif_fs"), package, ignore=shutil.ignore_patterns("__pycache__"))
    with open(os.path.join(package, "_version.py"), "w", encoding="utf-8") as file:
        file.write(f'"""Made by stage.py."""\n\n__version__ = "{version()}"\n')
    header = os.path.join(HERE, "../client/include/pif/client/pif.h")
    with contextlib.redirect_stdout(io.StringIO()):
        make_binding.main([header, os.path.join(package, "_binding.py")])
    os.mkdir(os.path.join(package, "bin"))
    for path in [*programs(build), os.path.join(build, "lib/libpif.so.0.1")]:
        os.symlink(os.path.realpath(path), os.path.join(package, "bin", os.path.basename(path)))
    return package


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    stage(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
