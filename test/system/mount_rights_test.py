"""Every kind of name, every operation on names, three users, folders with the set-group-id and sticky bits: on a mount
and beside it on the local disk, with the same outcome.

PIF_RIGHTS=all: every combination; else every 151st. Nobody opens a device: no mount of FUSE's lets one."""

import itertools
import os
import shutil
import stat
import sys

from mounts import Mount, as_user, can_mount
from pif_system import FileSystem, check, main_on

FS = None
MOUNTED = LOCAL = ""
ROOT, OWNER, OTHER = (0, 0, []), (1001, 2001, [3001]), (1002, 2002, [3001])  # user, group, further groups
USERS = {"root": ROOT, "owner": OWNER, "other": OTHER}


def make(kind, path, target):
    makers = {
        "file": lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)),
        "folder": lambda: os.mkdir(path, 0o755),
        "full folder": lambda: (os.mkdir(path, 0o755), os.mkdir(path + "/in", 0o755)),
        "symlink": lambda: os.symlink(target, path),
        "dangling": lambda: os.symlink("nowhere", path),
        "fifo": lambda: os.mkfifo(path, 0o644),
        "socket": lambda: os.mknod(path, stat.S_IFSOCK | 0o644),
        "device": lambda: os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(1, 3)),
        "nothing": lambda: None,
    }
    makers[kind]()


KINDS = ["file", "folder", "full folder", "symlink", "dangling", "fifo", "socket", "device", "nothing"]
LONG = "n" * 255


def opened(path, flags):
    fd = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.close(fd)
    return "opened"


OPERATIONS = {
    "lstat": lambda d: seen(d + "/x"),
    "open": lambda d: opened(d + "/x", os.O_RDONLY),
    "write": lambda d: opened(d + "/x", os.O_WRONLY),
    "create": lambda d: opened(d + "/x", os.O_CREAT | os.O_WRONLY),
    "create exclusively": lambda d: opened(d + "/x", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    "create new": lambda d: (opened(d + "/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY), seen(d + "/new")),
    "truncate on open": lambda d: opened(d + "/x", os.O_WRONLY | os.O_TRUNC),
    "as a folder": lambda d: opened(d + "/x", os.O_RDONLY | os.O_DIRECTORY),
    "not through a link": lambda d: opened(d + "/x", os.O_RDONLY | os.O_NOFOLLOW),
    "truncate": lambda d: os.truncate(d + "/x", 100),
    "unlink": lambda d: os.unlink(d + "/x"),
    "rmdir": lambda d: os.rmdir(d + "/x"),
    "mkdir": lambda d: os.mkdir(d + "/x"),
    "mkdir new": lambda d: (os.mkdir(d + "/new"), seen(d + "/new")),
    "mkfifo": lambda d: os.mkfifo(d + "/x"),
    "mknod": lambda d: os.mknod(d + "/new", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "symlink": lambda d: os.symlink("t", d + "/x"),
    "symlink new": lambda d: (os.symlink("t", d + "/new"), os.readlink(d + "/new")),
    "readlink": lambda d: os.readlink(d + "/x"),
    "chmod": lambda d: (os.chmod(d + "/x", 0o6711), seen(d + "/x")),
    "chmod sticky": lambda d: (os.chmod(d + "/x", 0o1777), seen(d + "/x")),
    "chown to other": lambda d: (os.lchown(d + "/x", 1002, 2002), seen(d + "/x")),
    "chgrp to a further group": lambda d: (os.chmod(d + "/x", 0o6755), os.lchown(d + "/x", -1, 3001), seen(d + "/x")),
    "utime": lambda d: (os.utime(d + "/x", ns=(5, 5)), os.stat(d + "/x").st_mtime_ns),
    "utime now": lambda d: os.utime(d + "/x"),
    "rename": lambda d: (os.rename(d + "/x", d + "/y"), seen(d + "/y")),
    "rename over a file": lambda d: os.rename(d + "/x", d + "/file"),
    "rename over a folder": lambda d: os.rename(d + "/x", d + "/folder"),
    "rename over a full folder": lambda d: os.rename(d + "/x", d + "/full"),
    "rename over it": lambda d: os.rename(d + "/file", d + "/x"),
    "rename a folder over it": lambda d: os.rename(d + "/folder", d + "/x"),
    "rename into itself": lambda d: os.rename(d + "/x", d + "/x/below"),
    "rename onto itself": lambda d: os.rename(d + "/x", d + "/x"),
    "move away": lambda d: os.rename(d + "/x", d + "/folder/x"),
    "below it": lambda d: seen(d + "/x/in"),
    "create below it": lambda d: opened(d + "/x/new", os.O_CREAT | os.O_WRONLY),
    "list": lambda d: sorted(os.listdir(d + "/x")),
    "a long name": lambda d: opened(d + "/" + LONG, os.O_CREAT | os.O_WRONLY),
    "too long a name": lambda d: opened(d + "/" + LONG + "n", os.O_CREAT | os.O_WRONLY),
    "a dot": lambda d: os.rmdir(d + "/x/."),
    "two dots": lambda d: os.rmdir(d + "/x/.."),
    "a slash behind": lambda d: os.unlink(d + "/x/"),
}
# What the folder of all this is: owner, group, mode.
FOLDERS = {
    "own": (1001, 2001, 0o755),
    "of all": (1001, 2001, 0o777),
    "sticky of root": (0, 0, 0o1777),
    "sticky of owner": (1001, 2001, 0o1777),
    "set-group-id": (1001, 3001, 0o2775),
    "of its group": (1002, 3001, 0o770),
    "closed": (1002, 2002, 0o700),
    "without search": (1001, 2001, 0o666),
}


def is_opening(operation):
    opening = ("open", "write", "create", "create exclusively", "truncate on open", "not through a link")
    return operation in opening


def seen(path):
    status = os.lstat(path)
    size = None if stat.S_ISDIR(status.st_mode) else status.st_size
    mode = None if stat.S_ISLNK(status.st_mode) else oct(status.st_mode)
    return (mode, size, status.st_uid, status.st_gid, status.st_rdev)


def lay_out(folder, kind, whose, of_folder):
    os.mkdir(folder)
    for name, like in (("file", "file"), ("folder", "folder"), ("full", "full folder"), ("x", kind)):
        make(like, f"{folder}/{name}", "file")
        uid, gid, _ = USERS[whose]
        if os.path.lexists(f"{folder}/{name}"):
            os.lchown(f"{folder}/{name}", uid, gid)
    uid, gid, mode = FOLDERS[of_folder]
    os.chown(folder, uid, gid)
    os.chmod(folder, mode)


def outcome(root, number, case):
    kind, operation, whose, user, of_folder = case
    folder = f"{root}/{number}"
    lay_out(folder, kind, whose, of_folder)
    before = os.stat(folder).st_mtime_ns
    said = as_user(*USERS[user], lambda: OPERATIONS[operation](folder))
    is_changed = os.stat(folder).st_mtime_ns != before
    left = sorted((name, seen(f"{folder}/{name}")) for name in os.listdir(folder))
    shutil.rmtree(folder)
    return said, is_changed, left


def outcomes_are_those_of_a_local_folder():
    cases = itertools.product(KINDS, OPERATIONS, ["root", "owner", "other"], USERS, FOLDERS)
    cases = (case for case in cases if case[0] != "device" or not is_opening(case[1]))
    step = 1 if os.environ.get("PIF_RIGHTS") == "all" else 151
    count, wrong = 0, []
    for number, case in enumerate(cases):
        if number % step != 0:
            continue
        count += 1
        mounted, local = outcome(MOUNTED, number, case), outcome(LOCAL, number, case)
        if mounted != local:
            wrong.append(f"{case}\n  mounted: {mounted}\n  local:   {local}")
    print(f"# {count} combinations, {len(wrong)} different")
    check(not wrong, "\n".join(wrong[:20]))


def run_all():
    global FS, MOUNTED, LOCAL
    if not can_mount():
        print("skipped: mounts need root and /dev/fuse")
        return 77
    os.umask(0o022)
    with FileSystem(1) as FS, Mount(FS, "m", "allow_other") as MOUNTED:
        os.chmod(FS.temp, 0o755)
        LOCAL = FS.local("local")
        os.mkdir(LOCAL)
        return main_on(FS, [outcomes_are_those_of_a_local_folder], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run_all())
