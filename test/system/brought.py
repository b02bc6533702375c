"""Programs that are at no path which an LFS could see: they run from a file that has lost its name. So every LFS on
this machine lacks them, as one on another host would."""

import os
import subprocess

NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"  # of a build id of 20 bytes


def build_of(path):
    with open(path, "rb") as file:
        content = file.read()
    at = content.index(NOTE) + len(NOTE)
    return at, content[at : at + 20]


def make_build(source, path, size=0, build=b""):
    """A copy with that build id (20 bytes; empty: the source's), of `size` bytes where that is more than it has."""
    with open(source, "rb") as file:
        content = bytearray(file.read())
    if build:
        at, _ = build_of(source)
        content[at : at + 20] = build
    content += os.urandom(max(0, size - len(content)))
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o755)


def run_nameless(program, *words, env=None, **options):
    """Runs the program at that path, which is removed first. What the kernel calls it: PATH (deleted)."""
    fd = os.open(program, os.O_RDONLY)
    os.unlink(program)
    try:
        return subprocess.run(
            [program, *words],
            executable=f"/proc/self/fd/{fd}",
            pass_fds=[fd],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
            **options,
        )
    finally:
        os.close(fd)
