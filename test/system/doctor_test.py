"""What `pif doctor` says of an installation: each thing that can be wrong is made wrong, and must be found."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pif_system
from pif_system import FileSystem, await_condition, check, main


def doctor(fs, code, program=None, **options):
    command = [program or os.path.join(pif_system.BIN, "pif"), "doctor", "--json"]
    done = subprocess.run(
        command,
        env=fs.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        **options,
    )
    check(done.returncode == code, f"doctor: exit {done.returncode} instead of {code}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout)


def finds(fs, name, pattern, todo, state="wrong", **options):
    """There must be such a finding, and something to do about it."""
    report = doctor(fs, 1 if state == "wrong" else 0, **options)
    for one in report["checks"]:
        if one["check"] == name and one["state"] == state and re.search(pattern, one["text"]):
            check(re.search(todo, one["do"]), f"{one} does not say {todo!r}")
            return
    check(False, f"no {state} {name} that matches {pattern!r}: {report['checks']}")


def nothing_wrong(fs):
    report = doctor(fs, 0)
    check(report["wrong"] == 0, f"{report}")
    return report


@contextlib.contextmanager
def mode(path, changed):
    before = os.stat(path).st_mode & 0o7777
    os.chmod(path, changed)
    yield
    os.chmod(path, before)


@contextlib.contextmanager
def text(path, replaced, by):
    with open(path, encoding="utf-8") as file:
        before = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(replaced, by, before))
    yield
    with open(path, "w", encoding="utf-8") as file:
        file.write(before)


def a_healthy_installation_has_a_line_for_every_check():
    with FileSystem(2) as fs:
        report = nothing_wrong(fs)
        names = [one["check"] for one in report["checks"]]
        wanted = [
            "programs",
            "limits",
            "kernel",
            "folder",
            "clock",
            "keys",
            "roots",
            "disks",
            "daemons",
            "service",
            "versions",
        ]
        check([name for name in wanted if name not in names] == [], f"checks: {names}")
        lines = fs.ok("doctor").decode().splitlines()
        check(len(lines) == len(names) and all(re.match("ok|warning", line) for line in lines), f"{lines}")
        check(not re.search("^ok", fs.ok("doctor", "-q").decode(), re.M), "-q leaves out what is well")


def daemons_that_do_not_run_and_sockets_that_are_gone():
    with FileSystem(2) as fs:
        fs.kill("lfs1")
        finds(fs, "daemons", "lfs1 is not running.*left behind", "pif up")
        fs.ok("up", fs.folder)
        await_condition(lambda: doctor_is_well(fs), "lfs1 is up again", 20)
        socket = os.path.join(fs.folder, "run", "server.sock")
        os.rename(socket, socket + ".away")
        finds(fs, "daemons", "server .*runs.*socket.*gone", "pif down")
        os.rename(socket + ".away", socket)
        nothing_wrong(fs)
        os.kill(fs.pid_of("lfs0"), signal.SIGSTOP)  # it has its lock, but says nothing
        await_condition(
            lambda: any(
                one["check"] == "service" and one["state"] == "wrong" and "lfs0" in one["text"]
                for one in doctor_report(fs)["checks"]
            ),
            "the server misses lfs0",
            30,
        )
        os.kill(fs.pid_of("lfs0"), signal.SIGCONT)
        fs.ok("down", fs.folder)
        finds(fs, "service", "does not answer", "log")


def doctor_report(fs):
    return json.loads(fs.run("doctor", "--json").stdout)


def doctor_is_well(fs):
    return doctor_report(fs)["wrong"] == 0


def keys_and_roots_that_others_could_read_or_that_are_others():
    with FileSystem(2) as fs:
        keys, root = os.path.join(fs.folder, "keys"), os.path.join(fs.folder, "lfs0")
        with mode(os.path.join(keys, "cluster.key"), 0o444):
            finds(fs, "keys", "cluster.key has mode 0444", "chmod 0400")
        with mode(keys, 0o777):
            finds(fs, "keys", "mode 0777", "chmod 0700")
        with mode(root, 0o755):
            finds(fs, "roots", "lfs0 has mode 0755", "chmod 0700")
        with text(os.path.join(root, "lfs.toml"), "format = 4", "format = 99"):
            finds(fs, "roots", "format 99", "release")
        with text(os.path.join(root, "lfs.toml"), 'cluster = ".*"', 'cluster = "0123456789abcdef"'):
            finds(fs, "roots", "0123456789abcdef", "pif.toml")
        with text(os.path.join(fs.folder, "pif.toml"), "format = 2", "format = 99"):
            finds(fs, "folder", "format 99", "release")
        with text(os.path.join(fs.folder, "pif.toml"), "bevy = 0", "bevy = x"):
            finds(fs, "folder", "line", "repair pif.toml")
        os.rename(os.path.join(keys, "cluster.key"), fs.local("key"))
        finds(fs, "keys", "cluster.key: No such file", "restore")
        os.rename(fs.local("key"), os.path.join(keys, "cluster.key"))
        nothing_wrong(fs)


def programs_that_do_not_fit_each_other():
    with FileSystem(1) as fs:
        programs = fs.local("bin")
        os.mkdir(programs)
        names = (
            "pif pif-server pif-lfs pif-exec pif-backup pif-cmp pif-compress pif-copy pif-count pif-decompress "
            "pif-digest pif-map pif-restore pif-search pif-sort pif-summarize pif-transpose pif-calibrate"
        )
        for name in names.split():
            shutil.copy(os.path.join(pif_system.BIN, name), programs)
        pif = os.path.join(programs, "pif")
        doctor(fs, 0, program=pif)
        os.unlink(os.path.join(programs, "pif-exec"))
        finds(fs, "programs", "pif-exec is not there", "beside pif-lfs", program=pif)
        shutil.copy(os.path.join(pif_system.BIN, "pif-exec"), programs)
        with open(os.path.join(programs, "pif-lfs"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho pif-lfs 9.9.9\n")
        finds(fs, "programs", "pif-lfs is of version .9.9.9", "one release", program=pif)
        with open(os.path.join(programs, "pif-sort"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec sleep 60\n")  # says nothing, and is not waited for
        finds(fs, "programs", 'pif-sort is of version "",', "one release", program=pif)


def machines_that_are_not_fit_for_it():
    with FileSystem(1) as fs:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard > 2000:
            finds(fs, "limits", "2000 files", "65536", state="warning", preexec_fn=lambda: limit_files(2000))
        finds(fs, "limits", "500 files.*too few", "65536", preexec_fn=lambda: limit_files(500))
        data = os.path.join(fs.folder, "server", "directory", "data.mdb")
        fs.ok("down", fs.folder)
        os.utime(data, (4e9, 4e9))
        finds(fs, "clock", "from now", "NTP")


def limit_files(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def disks_that_are_full_or_read_only():
    """Where a disk can be made: as root, with loop devices."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crash"))
    import disks  # after its folder is known

    if disks.why_not():
        print(f"skipped: {disks.why_not()}")
        return
    with FileSystem(1) as fs:
        fs.ok("down", fs.folder)
        disk = disks.Disk(fs.local("image"), os.path.join(fs.folder, "lfs0"))
        try:
            fs.ok("node", "replace", "lfs0")
            fs.ok("up", fs.folder)
            nothing_wrong(fs)
            filler = os.path.join(fs.folder, "lfs0", "filler")
            space = os.statvfs(disk.mount_point)
            with open(filler, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - (2 << 20))
            finds(fs, "disks", "take no new records", "remove files")
            os.unlink(filler)
            fs.ok("down", fs.folder)
            subprocess.run(["mount", "-o", "remount,ro", disk.mount_point], check=True)
            finds(fs, "disks", "read-only", "dmesg")
        finally:
            fs.run("down", fs.folder)
            disk.close()


def disks_without_inodes():
    """Where a small file system can be mounted: as root, in memory."""
    if os.geteuid() != 0:
        print("skipped: only root can mount")
        return
    with FileSystem(2) as fs:
        fs.ok("put", "--width", "1", "-", "/x", data=b"x")
        fs.ok("down", fs.folder)
        root = os.path.join(fs.folder, "lfs1")
        shutil.rmtree(root)
        os.mkdir(root, 0o700)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=200,mode=700", "tmpfs", root],
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            print(f"skipped: {done.stderr}")
            return
        try:
            fs.ok("node", "replace", "lfs1")
            fs.ok("up", fs.folder)
            check(fs.run("df").stderr.count(b"inodes left") == 0, "there are enough")
            check(b"inodes" in fs.ok("df"), "df has a column")
            with contextlib.suppress(OSError):
                for number in range(200):
                    with open(os.path.join(root, f"filler{number}"), "wb"):
                        pass
            finds(fs, "disks", f"{root}.*none of its 200 inodes", "remove small files")
            await_condition(lambda: b"lfs1: its disk has 0 of 200 inodes left" in fs.run("df").stderr, "df says so")
            check([n["inodes_free"] for n in fs.json("df")["nodes"] if n["name"] == "lfs1"] == [0], "in JSON, too")
        finally:
            fs.run("down", fs.folder)
            subprocess.run(["umount", root], check=True)


def no_file_system_at_all():
    with FileSystem(1) as fs:
        nowhere = dict(fs.env, PIF=fs.local("nowhere"))
        done = fs.run("doctor", env=nowhere)
        check(done.returncode == 1 and b"wrong    folder" in done.stdout, f"{done}")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                a_healthy_installation_has_a_line_for_every_check,
                daemons_that_do_not_run_and_sockets_that_are_gone,
                keys_and_roots_that_others_could_read_or_that_are_others,
                programs_that_do_not_fit_each_other,
                machines_that_are_not_fit_for_it,
                disks_that_are_full_or_read_only,
                disks_without_inodes,
                no_file_system_at_all,
            ]
        )
    )
