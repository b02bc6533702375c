"""What changes of a file and its folder by an operation (times, bits of rights, names), and how the operation ends:
on a mount, on a lazy mount and beside them on the local disk. What a mount does not have is in docs/MOUNT.md."""

import ctypes
import errno
import mmap
import os
import stat
import subprocess
import sys

from mounts import Mount, as_user, can_mount
from pif_system import FileSystem, check, main_on

LIBC = ctypes.CDLL(None, use_errno=True)
NOW, OMIT = (1 << 30) - 1, (1 << 30) - 2
OLD_NS = 10**18
FS = None
MOUNTED = LAZY = ""


def utimens(path, accessed, modified):
    """Both: (seconds, nanoseconds)."""
    times = (ctypes.c_long * 4)(*accessed, *modified)
    if LIBC.utimensat(-100, path.encode(), times, 0x100) != 0:
        raise OSError(ctypes.get_errno(), path)


def opened(path, flags, mode=0o644):
    os.close(os.open(path, flags, mode))


def with_open(path, call, flags=os.O_RDWR):
    fd = os.open(path, flags)
    try:
        return call(fd)
    finally:
        os.close(fd)


def mode_of(path):
    return oct(os.lstat(path).st_mode)


def with_bits(path, call, mode=0o6777):
    os.chown(path, 1001, 2001)
    os.chmod(path, mode)
    return as_user(1001, 2001, [], lambda: call(path)), mode_of(path)


def map_bytes(fd):
    with mmap.mmap(fd, 10) as mapped:
        mapped[0:3] = b"abc"
        mapped.flush()


def without_name(fd, path):
    os.unlink(path)
    os.write(fd, b"more")
    os.fchmod(fd, 0o611)
    os.fchown(fd, 9, 8)
    os.utime(fd, ns=(3, 4))
    status = os.fstat(fd)
    os.ftruncate(fd, 2)
    return oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns, status.st_nlink, os.pread(fd, 9, 0)


def replaced(fd, folder):
    os.rename(f"{folder}/f", f"{folder}/empty")
    os.write(fd, b"more")
    os.fchmod(fd, 0o600)
    return mode_of(f"{folder}/empty"), os.fstat(fd).st_size


def times_while_open(path, change):
    """Whether it is new: when it was changed, and after the close."""
    fd = os.open(path, os.O_RDWR)
    change(fd)
    while_open = os.fstat(fd).st_mtime_ns > OLD_NS
    os.close(fd)
    return while_open, os.stat(path).st_mtime_ns > OLD_NS


def kept_time(path):
    """A time that is set stays, whatever was changed before."""
    fd = os.open(path, os.O_RDWR | os.O_TRUNC)
    os.write(fd, b"new")
    os.utime(fd, ns=(5, 6))
    seen = os.fstat(fd).st_mtime_ns
    os.close(fd)
    return seen, os.stat(path).st_mtime_ns


def far(path):
    os.truncate(path, (1 << 40) + 5)
    size = os.stat(path).st_size
    os.truncate(path, 3)
    return size


def to_itself(path):
    os.symlink("two", path + "one")
    os.symlink("one", path + "two")
    return path + "one"


def run_while_written(folder):
    subprocess.run(["cp", "/bin/true", f"{folder}/program"], check=True)
    os.chmod(f"{folder}/program", 0o755)
    return with_open(f"{folder}/program", lambda _: subprocess.run([f"{folder}/program"]).returncode)


TRUNC, WRITE = os.O_TRUNC, os.O_WRONLY
MAKE = os.O_CREAT | os.O_WRONLY
LONG = "n" * 255
OPERATIONS = {
    "write": lambda d: with_open(d + "/f", lambda fd: os.write(fd, b"x")),
    "append": lambda d: with_open(d + "/f", lambda fd: os.write(fd, b"x"), WRITE | os.O_APPEND),
    "write nothing": lambda d: with_open(d + "/f", lambda fd: os.write(fd, b"")),
    "map": lambda d: with_open(d + "/f", map_bytes),
    "read": lambda d: with_open(d + "/f", lambda fd: os.read(fd, 9)),
    "open to truncate": lambda d: opened(d + "/f", WRITE | TRUNC),
    "open to truncate, reading": lambda d: opened(d + "/f", TRUNC),
    "open an empty one to truncate": lambda d: opened(d + "/empty", WRITE | TRUNC),
    "truncate": lambda d: os.truncate(d + "/f", 0),
    "shorten": lambda d: os.truncate(d + "/f", 5),
    "lengthen": lambda d: os.truncate(d + "/f", 5000),
    "truncate to the same": lambda d: os.truncate(d + "/f", 11),
    "truncate an empty one": lambda d: os.truncate(d + "/empty", 0),
    "truncate far": lambda d: far(d + "/f"),
    "truncate below 0": lambda d: os.truncate(d + "/f", -1),
    "write while open": lambda d: times_while_open(d + "/f", lambda fd: os.write(fd, b"x")),
    "shorten while open": lambda d: times_while_open(d + "/f", lambda fd: os.ftruncate(fd, 3)),
    "lengthen while open": lambda d: times_while_open(d + "/f", lambda fd: os.ftruncate(fd, 30)),
    "the same while open": lambda d: times_while_open(d + "/f", lambda fd: os.ftruncate(fd, 11)),
    "a time that is set": lambda d: kept_time(d + "/f"),
    "chmod": lambda d: os.chmod(d + "/f", 0o600),
    "chmod to the same": lambda d: os.chmod(d + "/f", 0o644),
    "chmod of a folder": lambda d: os.chmod(d + "/sub", 0o700),
    "fchmod": lambda d: with_open(d + "/f", lambda fd: os.fchmod(fd, 0o611)),
    "chown": lambda d: os.chown(d + "/f", 5, 6),
    "chown of a link": lambda d: os.lchown(d + "/link", 5, 6),
    "utimens": lambda d: (utimens(d + "/f", (7, 8), (1000, 123456789)), os.stat(d + "/f").st_mtime_ns),
    "utimens now": lambda d: utimens(d + "/f", (0, NOW), (0, NOW)),
    "utimens modified now": lambda d: utimens(d + "/f", (0, OMIT), (0, NOW)),
    "utimens of nothing": lambda d: utimens(d + "/f", (0, OMIT), (0, OMIT)),
    "utimens wrong": lambda d: utimens(d + "/f", (0, 2 * 10**9), (0, 1)),
    "utimens before 1970": lambda d: (utimens(d + "/f", (-5, 5), (-5, 7)), os.stat(d + "/f").st_mtime_ns),
    "utimens after 2106": lambda d: (utimens(d + "/f", (1, 5), (1 << 33, 7)), os.stat(d + "/f").st_mtime_ns),
    "utimens of a link": lambda d: (utimens(d + "/link", (1, 5), (100, 7)), os.lstat(d + "/link").st_mtime_ns),
    "utimens of a fifo": lambda d: (utimens(d + "/fifo", (1, 5), (100, 7)), os.lstat(d + "/fifo").st_mtime_ns),
    "bits: write": lambda d: with_bits(d + "/f", lambda path: with_open(path, lambda fd: os.write(fd, b"x"))),
    "bits: write, no group": lambda d: with_bits(
        d + "/f", lambda path: with_open(path, lambda fd: os.write(fd, b"x")), 0o2666
    ),
    "bits: map": lambda d: with_bits(d + "/f", lambda path: with_open(path, map_bytes)),
    "bits: truncate": lambda d: with_bits(d + "/f", lambda path: os.truncate(path, 2)),
    "bits: truncate to the same": lambda d: with_bits(d + "/f", lambda path: os.truncate(path, 11)),
    "bits: open to truncate": lambda d: with_bits(d + "/f", lambda path: opened(path, WRITE | TRUNC)),
    "bits: open to truncate, no group": lambda d: with_bits(
        d + "/f", lambda path: opened(path, WRITE | TRUNC), 0o6666
    ),
    "bits: open an empty one to truncate": lambda d: with_bits(
        d + "/empty", lambda path: opened(path, WRITE | TRUNC)
    ),
    "bits: root truncates": lambda d: (os.chmod(d + "/f", 0o6777), opened(d + "/f", WRITE | TRUNC), mode_of(d + "/f")),
    "bits: chown": lambda d: with_bits(d + "/f", lambda path: os.chown(path, -1, 2001)),
    "bits: chmod for a foreign group": lambda d: (
        os.chown(d + "/f", 1001, 4444),
        as_user(1001, 2001, [], lambda: os.chmod(d + "/f", 0o2755)),
        mode_of(d + "/f"),
    ),
    "bits: of a folder": lambda d: (os.chmod(d + "/sub", 0o6777), os.chown(d + "/sub", 3, 4), mode_of(d + "/sub")),
    "mkdir": lambda d: os.mkdir(d + "/new", 0o7755),
    "rmdir": lambda d: os.rmdir(d + "/sub"),
    "rmdir of a full one": lambda d: os.rmdir(d + "/full"),
    "unlink": lambda d: os.unlink(d + "/f"),
    "symlink": lambda d: os.symlink("x", d + "/new"),
    "a long symlink": lambda d: (os.symlink("é" * 2047, d + "/new"), os.lstat(d + "/new").st_size),
    "an empty symlink": lambda d: os.symlink("", d + "/new"),
    "mkfifo": lambda d: os.mkfifo(d + "/new"),
    "mknod of a file": lambda d: os.mknod(d + "/new", stat.S_IFREG | 0o640),
    "rename": lambda d: os.rename(d + "/f", d + "/new"),
    "rename over": lambda d: os.rename(d + "/f", d + "/empty"),
    "rename to itself": lambda d: os.rename(d + "/f", d + "/f"),
    "rename into a folder": lambda d: os.rename(d + "/f", d + "/sub/x"),
    "rename of a folder": lambda d: os.rename(d + "/full", d + "/sub/x"),
    "rename into its child": lambda d: os.rename(d + "/sub", d + "/sub/x"),
    "rename over its parent": lambda d: os.rename(d + "/full/in", d + "/full"),
    "rename with a slash": lambda d: os.rename(d + "/f", d + "/new/"),
    "rename to a long name": lambda d: os.rename(d + "/f", d + "/" + LONG + "n"),
    "below a file": lambda d: opened(d + "/f/x", MAKE),
    "through a link to itself": lambda d: opened(to_itself(d + "/"), os.O_RDONLY),
    "below a link to itself": lambda d: os.mkdir(to_itself(d + "/") + "/x"),
    "through a dangling link": lambda d: (os.symlink("new", d + "/l"), opened(d + "/l", MAKE)),
    "make a dangling link": lambda d: (os.symlink("new", d + "/l"), opened(d + "/l", MAKE | os.O_EXCL)),
    "a long name": lambda d: os.mkdir(d + "/" + LONG),
    "too long a name": lambda d: os.mkdir(d + "/" + LONG + "n"),
    "write to a folder": lambda d: opened(d + "/sub", WRITE),
    "read a folder": lambda d: with_open(d + "/sub", lambda fd: os.read(fd, 9), os.O_RDONLY),
    "open a fifo that nobody reads": lambda d: opened(d + "/fifo", WRITE | os.O_NONBLOCK),
    "run while it is written": run_while_written,
    "without a name": lambda d: with_open(d + "/f", lambda fd: without_name(fd, d + "/f")),
    "replaced while open": lambda d: with_open(d + "/empty", lambda fd: replaced(fd, d)),
}
# New files that wait change their folder later.
STRICT = {
    "create": lambda d: opened(d + "/new", MAKE, 0o6755),
    "create and write": lambda d: with_open(d + "/new", lambda fd: os.write(fd, b"hi"), MAKE),
}
NAMES = [".", "f", "empty", "link", "fifo", "sub", "full", "full/in"]


def lay_out(folder):
    os.mkdir(folder)
    with open(folder + "/f", "wb") as file:
        file.write(b"hello world")
    opened(folder + "/empty", MAKE)
    os.symlink("f", folder + "/link")
    os.mkfifo(folder + "/fifo")
    for name in ("sub", "full", "full/in"):
        os.mkdir(f"{folder}/{name}")
    for name in reversed(NAMES):
        os.utime(f"{folder}/{name}", ns=(OLD_NS, OLD_NS), follow_symlinks=False)


def all_below(folder):
    names = [os.path.relpath(os.path.join(at, name), folder) for at, a, b in os.walk(folder) for name in a + b]
    return {name: os.lstat(f"{folder}/{name}") for name in [".", *names]}


def outcome(root, name, operation):
    folder = f"{root}/{name}"
    lay_out(folder)
    before = {status.st_ino: status for status in all_below(folder).values()}
    try:
        said = operation(folder)
    except OSError as error:
        said = errno.errorcode[error.errno]
    seen = {}
    for path, now in all_below(folder).items():
        was = before.get(now.st_ino)
        times = was and (now.st_mtime_ns != was.st_mtime_ns, now.st_ctime_ns != was.st_ctime_ns)
        size = None if stat.S_ISDIR(now.st_mode) else now.st_size
        seen[path] = ("modified, changed", times, oct(now.st_mode), size, now.st_uid, now.st_gid)
    return said, seen


def compare(mount, name, operations):
    mounted, local = f"{mount}/{name}", FS.local(name)
    for folder in (mounted, local):
        os.mkdir(folder)
    wrong = []
    for operation, call in operations.items():
        here, there = outcome(mounted, operation, call), outcome(local, operation, call)
        if here != there:
            paths = [path for path in {*here[1], *there[1]} if here[1].get(path) != there[1].get(path)]
            seen = [f"{path} {here[1].get(path)}, locally {there[1].get(path)}" for path in paths]
            wrong.append(f"{operation}: {here[0]}, locally {there[0]}; {seen}")
    check(not wrong, "\n".join(wrong))


def changes_are_those_of_a_local_folder():
    compare(MOUNTED, "strict", {**OPERATIONS, **STRICT})


def changes_on_a_lazy_mount_are_those_of_a_local_folder():
    compare(LAZY, "lazy", OPERATIONS)


def run_all():
    global FS, MOUNTED, LAZY
    if not can_mount():
        print("skipped: mounts need root and /dev/fuse")
        return 77
    os.umask(0o022)
    words = "allow_other,suid,dev"
    with FileSystem(2) as FS, Mount(FS, "m", words) as MOUNTED, Mount(FS, "l", words + ",lazy") as LAZY:
        os.chmod(FS.temp, 0o755)
        tests = [changes_are_those_of_a_local_folder, changes_on_a_lazy_mount_are_those_of_a_local_folder]
        return main_on(FS, tests, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run_all())
