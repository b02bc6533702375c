#!/usr/bin/env python3
"""Makes the wheel `pif-fs`: one file for every Python from 3.9 on, with the programs and all libraries that they need
beside them.

  make_wheel.py BUILD TARGET     BUILD: a release build of the project; TARGET: gets the wheel

Needs patchelf, strip and Python's cffi (Debian: patchelf, binutils, python3-cffi). A worker may read its program and
what lies beside it, so libraries are in the programs' folder, and each finds the others there (RPATH $ORIGIN). ZeroMQ
is loaded by name, and so is there under that name.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import stage

SYSTEM = re.compile(r"^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so)")  # every Linux has them
BY_NAME = "libzmq.so.5"
BYTES_MAX = 60 << 20
TIME = (2020, 1, 1, 0, 0, 0)  # the same files make the same wheel

METADATA = """Metadata-Version: 2.1
Name: pif-fs
Version: {version}
Summary: PIF, a parallel interleaved file system: files over several disks, records, lines, tools, fsspec
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: cffi>=1.15
Requires-Dist: numpy>=1.22
Requires-Dist: fsspec>=2022.11
Description-Content-Type: text/plain

{description}"""

ENTRY_POINTS = """[console_scripts]
pif = pif_fs._main:main

[fsspec.specs]
pif = pif_fs.fsspec:PifFileSystem
"""


def needed(path):
    """{name: path} of the libraries that a program or a library needs, and these, and so on; None: it is static."""
    done = subprocess.run(
        ["ldd", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=dict(os.environ, LC_ALL="C"),
    )
    if "not a dynamic executable" in done.stderr:
        return None
    if done.returncode != 0 or "not found" in done.stdout:
        raise SystemExit(f"make_wheel: {path}: a library is missing:\n{done.stdout}{done.stderr}")
    found = re.findall(r"^\s*(\S+) => (\S+)", done.stdout, re.MULTILINE)
    return {name: where for name, where in found if not SYSTEM.match(name)}


def library(name):
    """Where the loader finds a library of that name."""
    listed = subprocess.run(
        ["ldconfig", "-p"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"),
    ).stdout
    found = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)", listed, re.MULTILINE)
    if found is None:
        raise SystemExit(f"make_wheel: {name} is missing (Debian: libzmq5)")
    return found.group(1)


def fill_bin(folder):
    """Copies instead of links, the libraries, and where each finds the others."""
    libraries = {BY_NAME: library(BY_NAME), **needed(library(BY_NAME))}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        real = os.path.realpath(path)
        os.remove(path)
        if name.startswith("lib") or name == os.path.basename(real):
            shutil.copy(real, path)
            libraries.update(needed(path) or {})
    for name, where in libraries.items():
        shutil.copy(os.path.realpath(where), os.path.join(folder, name))
    for name in os.listdir(folder):
        finish(os.path.join(folder, name))
    add_grep(os.path.join(folder, "pif-grep"))


def finish(path):
    """Without what only debuggers read."""
    subprocess.run(["strip", "--strip-unneeded", path], check=True)
    if needed(path) is not None:
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", path], check=True)
    os.chmod(path, 0o755)


def add_grep(path):
    """`pif NAME` looks for a program of that name; this one has two, and a wheel has no links."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec "${0%/*}/pif-search" "$@"\n')
    os.chmod(path, 0o755)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def add(wheel, records, name, data, mode):
    info = zipfile.ZipInfo(name, TIME)
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(info, data, compresslevel=9)
    records.append(f"{name},{digest(data)},{len(data)}")


def files_of(folder, packages):
    for package in packages:
        for where, _, names in sorted(os.walk(os.path.join(folder, package))):
            yield from (os.path.join(where, name) for name in sorted(names) if not name.endswith(".pyc"))


def write_wheel(folder, path, tag, version, packages):
    """The packages in `folder`, as a wheel that pip installs."""
    info = f"pif_fs-{version}.dist-info"
    with open(os.path.join(stage.HERE, "README.txt"), encoding="utf-8") as file:
        description = file.read()
    texts = {
        "METADATA": METADATA.format(version=version, description=description),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: pif\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": ENTRY_POINTS,
    }
    records = []
    with zipfile.ZipFile(path, "w") as wheel:
        for full in files_of(folder, packages):
            with open(full, "rb") as file:
                add(wheel, records, os.path.relpath(full, folder), file.read(), os.stat(full).st_mode & 0o777)
        for name, text in texts.items():
            add(wheel, records, f"{info}/{name}", text.encode(), 0o644)
        with open(os.path.join(stage.HERE, "../LICENSE"), "rb") as file:
            add(wheel, records, f"{info}/LICENSE", file.read(), 0o644)
        records.append(f"{info}/RECORD,,")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", TIME), "\n".join(records) + "\n")


def main(words):
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    build, target = map(os.path.abspath, words)
    version = stage.version()
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{libc}_{os.uname().machine}"
    os.makedirs(target, exist_ok=True)
    path = os.path.join(target, f"pif_fs-{version}-{tag}.whl")
    with tempfile.TemporaryDirectory(prefix="pif-wheel-") as folder:
        package = stage.stage(build, folder)
        fill_bin(os.path.join(package, "bin"))
        write_wheel(folder, path + ".part", tag, version, ["pif_fs"])
    size = os.path.getsize(path + ".part")
    if size > BYTES_MAX:
        raise SystemExit(f"make_wheel: {size} bytes are more than the {BYTES_MAX} that are allowed")
    os.replace(path + ".part", path)
    print(f"{path}: {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
