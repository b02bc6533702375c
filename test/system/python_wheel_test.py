"""What makes the Python wheel: its libraries are found beside its programs, and pip can read it. Few programs are in
the one that is made here, so that it is made quickly."""

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

from pif_system import BIN, check, main
from python_package import SKIPPED, import_package

KEPT = ("libpif.so.0.1", "pif-server", "pif-exec", "pif-search", "pif-grep")
LOADED = """
import pif_fs._library, sys
with open("/proc/self/maps") as maps:
    paths = {line.split()[-1] for line in maps if ".so" in line}
print(*sorted(path for path in paths if "libsodium" in path or "libprotobuf" in path or "libpif" in path))
"""
TEMP = ""
PACKAGE = ""


def a_library_finds_the_others_beside_it():
    make_wheel.fill_bin(os.path.join(PACKAGE, "bin"))
    names = set(os.listdir(os.path.join(PACKAGE, "bin")))
    check({"libzmq.so.5", "libsodium.so.23", "pif-grep", "pif-exec"} <= names, f"{sorted(names)}")
    check(not any(name.startswith(("libc.", "libstdc++.")) for name in names), "the system's are in it")
    found = subprocess.run(
        [sys.executable, "-c", LOADED], env=dict(os.environ, PYTHONPATH=TEMP), stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    check(len(found.split()) >= 3 and all(path.startswith(PACKAGE) for path in found.split()), found)
    for program in ("pif-server", "pif-grep"):
        done = subprocess.run([os.path.join(PACKAGE, "bin", program), "--version"], stdout=subprocess.PIPE, check=False)
        check(done.returncode == 0 and done.stdout, f"{program} does not run")


def the_wheel_is_what_pip_reads():
    path = os.path.join(TEMP, "pif_fs-0.1.0-py3-none-any.whl")
    make_wheel.write_wheel(TEMP, path, "py3-none-any", "0.1.0", ["pif_fs"])
    with zipfile.ZipFile(path) as wheel:
        rows = list(csv.reader(wheel.read("pif_fs-0.1.0.dist-info/RECORD").decode().splitlines()))
        check({row[0] for row in rows} == set(wheel.namelist()), "RECORD does not have all files")
        for name, digest, size in rows[:-1]:
            data = wheel.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            check(digest == "sha256=" + right and int(size) == len(data), f"{name} has another digest")
        check(wheel.getinfo("pif_fs/bin/pif-server").external_attr >> 16 & 0o111, "a program is none")
        entry_points = wheel.read("pif_fs-0.1.0.dist-info/entry_points.txt").decode()
        check("[fsspec.specs]\npif = pif_fs.fsspec:PifFileSystem\n" in entry_points, entry_points)


if __name__ == "__main__":
    if shutil.which("patchelf") is None:
        print("skipped: there is no patchelf (Debian: patchelf)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="pif-system-") as TEMP:
        PACKAGE = os.path.dirname(import_package(TEMP, BIN, ["cffi"]).__file__)
        import make_wheel

        for name in set(os.listdir(os.path.join(PACKAGE, "bin"))) - set(KEPT):
            os.remove(os.path.join(PACKAGE, "bin", name))
        code = main([a_library_finds_the_others_beside_it, the_wheel_is_what_pip_reads], sys.argv[1:])
    sys.exit(code)
