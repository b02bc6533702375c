"""Mounts of a file system of a test, and a twin: the same steps on a mount and on a local folder."""

import contextlib
import errno
import mmap
import os
import random
import stat
import subprocess

from pif_system import BIN, await_condition, check


def can_mount():
    return os.path.exists("/dev/fuse") and os.geteuid() == 0


def as_user(uid, gid, groups, call):
    """What call() gives in a process of that user: a value as text, or the name of its error."""
    end, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        try:
            said = repr(call())
        except OSError as error:
            said = errno.errorcode[error.errno]
        os.write(begin, said.encode()[:4000])
        os._exit(0)
    os.close(begin)
    with os.fdopen(end, "rb") as said:
        text = said.read().decode()
    os.waitpid(pid, 0)
    return text


class Mount:
    """`with Mount(fs, "m") as folder:` is mounted there. words: after -o."""

    def __init__(self, fs, name, words=None):
        self.fs = fs
        self.folder = fs.local(name)
        self.words = words

    def begin(self):
        with contextlib.suppress(FileExistsError):  # of a dead mount nothing more is known
            os.mkdir(self.folder)
        command = [os.path.join(BIN, "pif"), "mount", self.fs.folder, self.folder]
        command += ["-o", self.words] if self.words else []
        done = subprocess.run(command, env=self.fs.env, stderr=subprocess.PIPE, timeout=60)
        check(done.returncode == 0, f"mount: {done.stderr.decode()}")

    def end(self):
        done = subprocess.run(
            [os.path.join(BIN, "pif"), "umount", self.folder], env=self.fs.env, stderr=subprocess.PIPE, timeout=120
        )
        check(done.returncode == 0, f"umount: {done.stderr.decode()}")

    def process(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                if os.path.basename(words[0]) == "pif-mount" and self.folder in words:
                    return int(pid)
        return None

    def __enter__(self):
        self.begin()
        return self.folder

    def __exit__(self, kind, *ignored):
        try:
            self.end()
        except Exception:
            subprocess.run(["umount", "-l", self.folder], stderr=subprocess.DEVNULL)
            if kind is None:
                raise
        await_condition(lambda: self.process() is None, "the mount's process has ended")


class Side:
    """One of two folders that the same is done to."""

    def __init__(self, root):
        self.root = root
        self.fds = {}

    def do(self, step):
        """What a program sees of it: a value, or the error's name."""
        try:
            return getattr(self, step[0])(*step[1:])
        except OSError as error:
            return errno.errorcode[error.errno]

    def path(self, name):
        return os.path.join(self.root, name)

    def open(self, number, name, flags):
        if number in self.fds:
            os.close(self.fds.pop(number))
        self.fds[number] = os.open(self.path(name), flags, 0o640)
        return "opened"

    def close(self, number):
        if number in self.fds:
            os.close(self.fds.pop(number))
        return "closed"

    def write(self, number, offset, data):
        return os.pwrite(self.fds[number], data, offset) if number in self.fds else None

    def append(self, number, data):
        return os.write(self.fds[number], data) if number in self.fds else None

    def read(self, number, offset, size):
        return os.pread(self.fds[number], size, offset) if number in self.fds else None

    def ftruncate(self, number, size):
        return os.ftruncate(self.fds[number], size) if number in self.fds else None

    def map(self, number, offset, data):
        """Through a shared mapping, as far as the file goes."""
        if number not in self.fds:
            return None
        status = os.fstat(self.fds[number])
        size = status.st_size
        if size == 0 or not stat.S_ISREG(status.st_mode):
            return "nothing to map"
        with mmap.mmap(self.fds[number], size) as mapped:
            part = data[: max(size - offset, 0)]
            mapped[offset : offset + len(part)] = part
            mapped.flush()
        return len(part)

    def mknod(self, name):
        os.mknod(self.path(name), stat.S_IFCHR | 0o600, os.makedev(1, 3))
        return os.lstat(self.path(name)).st_rdev

    def fsync(self, number):
        return os.fsync(self.fds[number]) if number in self.fds else None

    def fstat(self, number):
        return self.seen(os.fstat(self.fds[number])) if number in self.fds else None

    def truncate(self, name, size):
        return os.truncate(self.path(name), size)

    def rename(self, old, new):
        return os.rename(self.path(old), self.path(new))

    def unlink(self, name):
        return os.unlink(self.path(name))

    def mkdir(self, name):
        return os.mkdir(self.path(name), 0o750)

    def rmdir(self, name):
        return os.rmdir(self.path(name))

    def symlink(self, target, name):
        return os.symlink(target, self.path(name))

    def readlink(self, name):
        return os.readlink(self.path(name))

    def mkfifo(self, name):
        return os.mkfifo(self.path(name), 0o600)

    def chmod(self, name, mode):
        return os.chmod(self.path(name), mode)

    def utime(self, name, ns):
        os.utime(self.path(name), ns=(ns, ns))
        return os.stat(self.path(name)).st_mtime_ns

    def lstat(self, name):
        return self.seen(os.lstat(self.path(name)))

    def whole(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def listdir(self, name):
        return sorted(os.listdir(self.path(name)))

    @staticmethod
    def seen(status):
        size = status.st_size if not stat.S_ISDIR(status.st_mode) else None
        return (status.st_mode, size, status.st_uid, status.st_gid)


NAMES = ["a", "b", "c", "d/a", "d/b", "e/f", "d", "e", "l"]
FLAGS = [
    os.O_RDONLY,
    os.O_RDWR | os.O_CREAT,
    os.O_RDWR | os.O_CREAT | os.O_EXCL,
    os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    os.O_RDWR | os.O_CREAT | os.O_APPEND,
    os.O_WRONLY | os.O_CREAT,
    os.O_WRONLY | os.O_TRUNC,
    os.O_RDWR,
    os.O_RDONLY | os.O_NOFOLLOW,
    os.O_RDONLY | os.O_DIRECTORY,
]


def any_step(choose):
    """Weights: most are for bytes."""
    name, other, number = choose.choice(NAMES), choose.choice(NAMES), choose.randrange(4)
    offset = choose.choice([0, choose.randrange(5000), choose.randrange(200_000)])
    data = choose.randbytes(choose.choice([1, 100, 4096, choose.randrange(1, 70_000)]))
    size = choose.choice([0, choose.randrange(5000), choose.randrange(200_000)])
    bytes_of_files = [
        ("open", number, name, choose.choice(FLAGS)),
        ("close", number),
        ("write", number, offset, data),
        ("append", number, data),
        ("read", number, offset, choose.choice([1, 4096, 100_000])),
        ("ftruncate", number, size),
        ("fsync", number),
        ("map", number, offset, data),
        ("fstat", number),
        ("whole", name),
    ]
    names = [
        ("truncate", name, size),
        ("rename", name, other),
        ("unlink", name),
        ("mkdir", name),
        ("rmdir", name),
        ("symlink", other, name),
        ("readlink", name),
        ("mkfifo", "p"),
        ("mknod", choose.choice(["p", "d/p"])),
        ("unlink", "p"),
        ("chmod", name, choose.choice([0o600, 0o644, 0o755, 0o4711])),
        ("utime", name, choose.randrange(2**60)),
        ("lstat", name),
        ("listdir", choose.choice([".", "d", "e"])),
    ]
    return choose.choice(bytes_of_files if choose.random() < 0.7 else names)


def twin(seed, steps, mounted, local):
    """The same steps on both; what programs see is the same."""
    choose = random.Random(seed)
    sides = [Side(mounted), Side(local)]
    done = []
    for _ in range(steps):
        step = any_step(choose)
        seen = [side.do(step) for side in sides]
        done.append(step)
        if seen[0] != seen[1]:
            last = "\n".join(str(old)[:120] for old in done[-12:])
            check(False, f"seed {seed}, after\n{last}\nmounted: {str(seen[0])[:200]}\nlocal:   {str(seen[1])[:200]}")
    for side in sides:
        for number in list(side.fds):
            side.close(number)
