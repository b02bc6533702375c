"""What nobody may do, tried on real processes: as root, whose LFSs run as the same user, and as somebody else.

What the attacks are pointed at belongs to the test: where nothing stops them, the machine must survive them."""

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys

from pif_system import BIN, FileSystem, await_condition, check, main

FS = None
STRANGER = 54321  # a user that nobody is
SILENT = 2000


def program(name):
    """Where everybody can reach it: the build may be in a folder of root's alone."""
    return os.path.join(FS.local("programs"), name)


def publish_programs():
    os.mkdir(FS.local("programs"))
    os.chmod(FS.local("programs"), 0o755)
    for path in (os.path.join(BIN, "pif"), os.environ["PIF_HOSTILE"], os.environ["PIF_OTHER_USER"]):
        shutil.copy(path, program(os.path.basename(path)))


class Skip(Exception):
    """Cannot be tried here; its text says why."""


def needs_root():
    if os.geteuid() != 0:
        raise Skip("only root can start programs of other users")


def landlock_version():
    import ctypes

    return max(ctypes.CDLL(None).syscall(444, None, 0, 1), 0)


def attack(kind, user=None, **options):
    """What the workers report, by line."""
    words = [program("hostile-worker"), "--attack", kind]
    for name, value in options.items():
        words += ["--" + name, value]
    who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(
        words, env=FS.env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, **who
    )
    check(done.returncode == 0, f"{kind}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    lines = done.stdout.decode().splitlines()
    check(
        f"as {os.geteuid() if user is None else user}" in lines, f"the worker runs as the user who started it: {lines}"
    )
    return lines


def refused(kind, user=None, allowed=(), **options):
    """Every attempt of the attack must be refused."""
    lines = attack(kind, user, **options)
    tried = [line for line in lines if line.startswith(("refused ", "DONE "))]
    check(tried, f"{kind}: nothing was tried: {lines}")
    done = [line for line in tried if line.startswith("DONE ") and line not in allowed]
    check(not done, f"{kind} as {user}: {done}")
    return lines


def users(landlock=0):
    """Who tries: the LFSs' own user, where this Landlock at least is there to stop him, and somebody else."""
    own = [None] if landlock_version() >= landlock else []
    found = own + ([STRANGER] if os.geteuid() == 0 else [])
    if not found:
        raise Skip(f"this kernel's Landlock is not version {landlock}, and only root can try as another user")
    return found


def still_serves():
    check(FS.content("/f") == b"f" * 1_000_000, "the file is as it was")
    FS.ok("ls", "/")


# ---- the store ----


def keys_and_stores_are_their_owners_alone():
    keys = os.path.join(FS.folder, "keys")
    check(stat.S_IMODE(os.stat(keys).st_mode) == 0o700, "the folder of keys")
    for folder, _, names in os.walk(keys):
        for name in names:
            check(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == 0o400, f"key {name}")
    for root in ("lfs0/data", "lfs0/log", "lfs0/catalogue", "server/directory"):
        for folder, _, names in os.walk(os.path.join(FS.folder, root)):
            check(stat.S_IMODE(os.stat(folder).st_mode) & 0o077 == 0, f"folder {folder}")
            for name in names:
                mode = stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode)
                check(mode & 0o077 == 0, f"{folder}/{name} has mode {mode:o}")


def paths_that_lead_out_are_refused():
    for path in ("/../etc/passwd", "/a/../../b"):
        done = FS.run("put", FS.local("f"), path)
        check(done.returncode == 2, f"put to {path}: {done}")
    for path in ("/f/../f", "/..", "pif:/a/.."):
        check(FS.run("cat", path).returncode == 2, f"cat {path}")


def a_stranger_cannot_look_into_the_store():
    needs_root()
    for path in ("keys/cluster.key", "keys", "lfs0/data", "lfs0/lfs.toml", "server/directory/data.mdb"):
        done = subprocess.run(
            ["head", "-c", "1", os.path.join(FS.folder, path)],
            user=STRANGER,
            group=STRANGER,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
        check(done.returncode != 0 and b"Permission denied" in done.stderr, f"{path}: {done}")


def what_a_file_denies_is_denied():
    needs_root()
    FS.ok("put", FS.local("f"), "/secret")
    who = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
    for words in (["rm", "/secret"], ["put", "/etc/hostname", "/secret"], ["mkdir", "/mine"]):
        done = subprocess.run(
            [program("pif"), *words],
            env=FS.env,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            **who,
        )
        check(done.returncode == 3 and b"may not" in done.stderr, f"{words}: {done}")
    FS.ok("rm", "/secret")


def what_a_file_allows_others_can_do_in_bulk():
    needs_root()
    for words, who in (
        (["make", "/shared"], {}),
        (["use", "/shared"], {"user": STRANGER, "group": STRANGER, "extra_groups": []}),
    ):
        done = subprocess.run(
            [program("other-user"), *words], env=FS.env, cwd="/", stderr=subprocess.PIPE, timeout=60, check=False, **who
        )
        check(done.returncode == 0, f"{words}: {done}")


# ---- connections ----


def silent_connections_by_the_thousand_stop_nobody():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    count = min(SILENT, (most - 256) // 3)
    silent = []
    for daemon in ("server", "lfs0"):
        path = os.path.join(FS.folder, "run", daemon + ".sock")
        for _ in range(count):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.connect(path)
            silent.append(one)
    with open(os.path.join(FS.folder, "run", "server.tcp")) as file:
        port = int(file.read().split()[0].rsplit(":", 1)[1])
    for _ in range(count):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        silent.append(one)
    still_serves()
    done = FS.run("cat", "/f", env=dict(FS.env, PIF_ROUTE="tcp"))
    check(done.returncode == 0 and done.stdout == b"f" * 1_000_000, f"over tcp with CURVE too: {done.stderr}")
    for one in silent:
        one.close()


# ---- workers ----


def a_worker_cannot_change_what_it_was_given_to_read():
    for user in users(landlock=1):
        lines = refused("input", user, input="/f")
        check("descriptors 2" in lines, f"data and sums were attacked: {lines}")
    still_serves()


def a_worker_cannot_open_a_path_outside():
    if landlock_version() < 1:
        raise Skip("this kernel has no Landlock")
    inside = [
        os.path.join(FS.folder, path)
        for path in ("", "keys", "keys/cluster.key", "lfs0/lfs.toml", "lfs0/data", "pif.toml", "run")
    ]
    # Nothing but the test's own: were the worker not held, it would have its way with what is named here.
    target = ":".join(inside + [FS.temp, FS.local("f")])
    refused("paths", target=target)
    if os.geteuid() == 0:
        refused("paths", STRANGER, target=target)
    still_serves()


def a_worker_reads_of_etc_what_programs_need():
    if landlock_version() < 1:
        raise Skip("this kernel has no Landlock")
    needed = ["nsswitch.conf", "passwd", "group", "hosts", "ld.so.cache", "localtime", "ssl/certs", "services"]
    needed = [path for path in (os.path.join("/etc", name) for name in needed) if os.path.exists(path)]
    secret = ["", "shadow", "shadow-", "gshadow", "sudoers", "ssl/private", "ssh", "pam.d", "cron.d", "login.defs"]
    secret = [os.path.join("/etc", name) for name in secret]
    for user in [None] + ([STRANGER] if os.geteuid() == 0 else []):
        lines = attack("paths", user, target=":".join(needed + [path for path in secret if os.path.exists(path)]))
        done = [line.removeprefix("DONE read ") for line in lines if line.startswith("DONE ")]
        check(set(done) == set(needed), f"as {user}: {lines}")


def a_worker_cannot_fork_without_end():
    needs_root()  # root's own workers are bounded by nothing but their job's end
    refused("forks", STRANGER)
    await_condition(lambda: not processes_of(STRANGER), "its processes are gone with it", 30)
    still_serves()


def processes_of(uid):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + pid).st_uid == uid:
                found.append(pid)
        except OSError:
            continue
    return found


def a_worker_cannot_take_all_memory():
    if os.environ.get("PIF_SANITIZED"):
        raise Skip("a sanitizer's own memory is larger than any bound")
    for user in users():
        refused("memory", user)


def a_worker_cannot_touch_its_lfs():
    pids = [FS.pid_of(daemon) for daemon in ("server", "lfs0", "lfs1")]
    if landlock_version() >= 6:
        refused("process")
    if os.geteuid() == 0:
        refused("process", STRANGER)
    check(pids == [FS.pid_of(daemon) for daemon in ("server", "lfs0", "lfs1")], "the daemons are the same")
    still_serves()
    if landlock_version() < 6:
        raise Skip("for the LFS's own user: this kernel's Landlock does not hold signals back")


def a_worker_starts_no_workers():
    for user in users():
        lines = refused("jobs", user)
        check(any("start a worker" in line for line in lines), f"it tried: {lines}")
    still_serves()


def a_worker_cannot_leave_its_group_or_reach_the_kernel():
    for user in users():
        refused("kernel", user)


TESTS = [
    keys_and_stores_are_their_owners_alone,
    paths_that_lead_out_are_refused,
    a_stranger_cannot_look_into_the_store,
    what_a_file_denies_is_denied,
    what_a_file_allows_others_can_do_in_bulk,
    silent_connections_by_the_thousand_stop_nobody,
    a_worker_cannot_change_what_it_was_given_to_read,
    a_worker_cannot_open_a_path_outside,
    a_worker_reads_of_etc_what_programs_need,
    a_worker_cannot_fork_without_end,
    a_worker_cannot_take_all_memory,
    a_worker_cannot_touch_its_lfs,
    a_worker_starts_no_workers,
    a_worker_cannot_leave_its_group_or_reach_the_kernel,
]


def skipping(test):
    def run():
        try:
            test()
        except Skip as why:
            print(f"skip  {test.__name__}: {why}", flush=True)

    run.__name__ = test.__name__
    return run


if __name__ == "__main__":
    with FileSystem(2, ["--curve"]) as FS:
        os.chmod(FS.temp, 0o755)
        publish_programs()
        with open(FS.local("f"), "wb") as local:
            local.write(b"f" * 1_000_000)
        FS.ok("put", "--record-length", "1000", FS.local("f"), "/f")
        code = main([skipping(test) for test in TESTS])
    sys.exit(code)
