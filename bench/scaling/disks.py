"""Disks of a fixed speed: XFS images on loop devices, held to it by the block-I/O throttle of the root cgroup (v1).

The machine is the only record of what is up: a disk is a loop device whose backing file bears our name. So what a
killed process left is found, and every step is undone in an order that leaves what is still there findable: the rule
first, because it would hold for whoever gets the loop device next; the image last.
"""

import contextlib
import fcntl
import glob
import os
import re
import shutil
import signal

import loop_devices
from loop_devices import call
from pif_system import Failure, await_condition, check

CGROUP = "/sys/fs/cgroup/blkio"
RULES = [os.path.join(CGROUP, f"blkio.throttle.{way}_bps_device") for way in ("read", "write")]
IMAGE_NAME = re.compile(r"fixed-speed-disk-(\d+)\.xfs$")
SIZE_MIN = 300 << 20  # XFS wants that


def why_not():
    """Why this machine cannot have them, or nothing."""
    missing = loop_devices.why_not("fallocate", "umount")
    if missing:
        return missing
    for rule in RULES:
        if not os.access(rule, os.W_OK):
            return f"there is no block-I/O throttle of cgroup v1: {rule}"
    with open("/proc/self/cgroup", encoding="ascii") as file:
        if not re.search(r"^\d+:blkio:/$", file.read(), re.MULTILINE):
            return "processes here are not in the root group of blkio, which the rules are for"
    return ""


def read_line(path):
    with open(path, encoding="utf-8") as file:
        return file.readline().rstrip("\n")


def rules_of(number):
    """Bytes per second of the read rule and of the write rule for device "MAJ:MIN"; 0: none."""
    found = []
    for path in RULES:
        with open(path, encoding="ascii") as file:
            found.append(next((int(line.split()[1]) for line in file if line.split()[0] == number), 0))
    return found


class Disk:
    """One that is attached. `image` is its backing file, DIR/fixed-speed-disk-N.xfs; it is mounted on DIR/diskN."""

    def __init__(self, image, device):
        self.image, self.device = image, device
        self.index = int(IMAGE_NAME.search(image).group(1))
        self.mount_point = os.path.join(os.path.dirname(image), f"disk{self.index}")
        self.block = os.path.join("/sys/block", os.path.basename(device))
        self.number = read_line(os.path.join(self.block, "dev"))

    def hold_to(self, speed):
        """Bytes per second, of reads and of writes; 0: as fast as it goes."""
        for path in RULES:
            with open(path, "w", encoding="ascii") as file:
                file.write(f"{self.number} {speed}")

    def bytes_moved(self):
        """(read, written) since it was attached."""
        fields = read_line(os.path.join(self.block, "stat")).split()
        return int(fields[2]) * 512, int(fields[6]) * 512

    def mounted_on(self):
        return [point for device, point in mounts() if device == self.device]

    def users(self):
        """Processes that keep it busy."""
        devices = [os.stat(point).st_dev for point in self.mounted_on()]
        pids = map(int, filter(str.isdigit, os.listdir("/proc")))
        return {pid for pid in pids if pid != os.getpid() and uses(pid, devices)}

    def undo(self):
        self.hold_to(0)
        for point in self.mounted_on():
            call("umount", point)
        call("losetup", "-d", self.device)
        await_condition(lambda: attached_to(self.device) != self.image, f"{self.device} is free", 10)
        remove_made(self.image, self.mount_point)


def mounts():
    """(device, where) of all mounts here. The kernel writes a space as \\040."""
    def plain(word):
        return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word)

    with open("/proc/self/mounts", encoding="utf-8") as file:
        return [tuple(plain(word) for word in line.split()[:2]) for line in file]


def uses(pid, devices):
    for link in [f"/proc/{pid}/cwd", f"/proc/{pid}/root", *glob.glob(f"/proc/{pid}/fd/*")]:
        with contextlib.suppress(OSError):
            if os.stat(link).st_dev in devices:
                return True
    return False


def remove_made(image, mount_point):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(image)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(mount_point)


def attached_to(device):
    """The backing file of a loop device, or nothing."""
    with contextlib.suppress(OSError):
        return read_line(f"/sys/block/{os.path.basename(device)}/loop/backing_file").removesuffix(" (deleted)")
    return ""


def find(where=None):
    """All disks of folder `where`, or of the machine."""
    disks = []
    for block in glob.glob("/sys/block/loop*"):
        device = os.path.join("/dev", os.path.basename(block))
        image = attached_to(device)
        if IMAGE_NAME.search(image) and where in (None, os.path.dirname(image)):
            disks.append(Disk(image, device))
    return sorted(disks, key=lambda disk: (os.path.dirname(disk.image), disk.index))


def make(where, index, speed, size):
    image, point = os.path.join(where, f"fixed-speed-disk-{index}.xfs"), os.path.join(where, f"disk{index}")
    call("fallocate", "-l", str(size - size % 4096), image)  # whole sectors, of whatever size
    disk = Disk(image, call("losetup", "-f", "--show", "--direct-io=on", image))
    call("mkfs.xfs", "-q", "-K", disk.device)  # -K: a discard would give back the space that was just taken
    os.makedirs(point, mode=0o700, exist_ok=True)
    call("mount", "-t", "xfs", disk.device, point)
    os.chmod(point, 0o700)
    disk.hold_to(speed)
    return disk


def end_users(disks):
    """SIGTERM, after 10 s SIGKILL, to everybody who has something open there."""

    def users():
        return set().union(*(disk.users() for disk in disks))

    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in users():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        with contextlib.suppress(Failure):
            await_condition(lambda: not users(), "nobody uses the disks", 10)
            return


@contextlib.contextmanager
def held(where):
    """One process at a time makes or undoes disks in a folder; the lock goes with the process, however that ends."""
    os.makedirs(where, exist_ok=True)
    folder = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"somebody is at work with the disks in {where}") from None
        yield
        with contextlib.suppress(OSError):
            os.rmdir(where)  # stays if there is anything in it
    finally:
        os.close(folder)


def down(where, end_processes=False):
    """Undoes all that is there of disks in `where`, whoever made it; nothing there is fine too. Held by the caller."""
    found, failures = find(where), []
    if end_processes:
        end_users(found)
    for disk in found:
        try:
            disk.undo()
        except Failure as failure:
            users = sorted(disk.users())
            failures.append(f"{failure}" + (f" (processes {users} use it)" if users else ""))
    check(not failures, "; ".join(failures))
    for image in glob.glob(os.path.join(where, "fixed-speed-disk-*.xfs")):  # of one that was never attached
        remove_made(image, os.path.join(where, f"disk{IMAGE_NAME.search(image).group(1)}"))


def up(where, count, speed, size):
    """A list of disks. Held by the caller."""
    check(size >= SIZE_MIN, f"a disk of {size} bytes is too small: XFS wants {SIZE_MIN}")
    check(not find(where), f"there are disks in {where} (take them down first)")
    free = shutil.disk_usage(where).free
    check(free > count * size, f"{where} has {free} bytes free, which is not {count} times {size}")
    try:
        return [make(where, index, speed, size) for index in range(count)]
    except BaseException:
        with signals_held():
            down(where)
        raise


@contextlib.contextmanager
def signals_held():
    """What is being undone is undone wholly."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def disks(where, count, speed, size):
    """`with disks(...) as list:` has them as long as it lasts; then whoever still uses them is ended. What a killed
    process left in `where` is undone first."""
    with held(where):
        down(where, end_processes=True)
        try:
            yield up(where, count, speed, size)
        finally:
            with signals_held():
                down(where, end_processes=True)
