"""Disks whose power can be cut: an XFS image on a loop device for each daemon. A cut drops what was not synced."""

import os
import subprocess

import loop_devices
from loop_devices import call
from pif_system import await_condition

IMAGE_BYTES = 320 << 20  # sparse; XFS wants 300 MiB


def why_not():
    """Why this machine cannot have them, or nothing."""
    return loop_devices.why_not("xfs_io")


class Disk:
    def __init__(self, image, mount_point):
        self.mount_point = mount_point
        self.image = image
        self.device = None
        self.is_mounted = False
        with open(image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        try:
            self.device = call("losetup", "-f", "--show", image)
            call("mkfs.xfs", "-q", self.device)
            os.makedirs(mount_point, mode=0o700, exist_ok=True)
            self.mount()
            os.chmod(mount_point, 0o700)
        except BaseException:
            self.close()
            raise

    def mount(self):
        call("mount", "-t", "xfs", self.device, self.mount_point)
        self.is_mounted = True

    def cut(self):
        """From now on every call to it fails."""
        call("xfs_io", "-x", "-c", "shutdown", self.mount_point)

    def replug(self):
        """As after a reboot. Everybody who had files open on it must have died."""
        await_condition(self.try_unmount, f"nobody uses {self.mount_point}", 20)
        self.mount()

    def try_unmount(self):
        done = subprocess.run(["umount", self.mount_point], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.is_mounted = self.is_mounted and done.returncode != 0
        return not self.is_mounted

    def close(self):
        if self.is_mounted and not self.try_unmount():
            subprocess.run(["umount", "-l", self.mount_point], check=False)
            self.is_mounted = False
        if self.device:
            subprocess.run(["losetup", "-d", self.device], check=False)
            self.device = None
        if os.path.exists(self.image):
            os.unlink(self.image)


def make_disks(temp, folder, names):
    """{daemon: the disk that its folder is}."""
    disks = {}
    try:
        for name in names:
            disks[name] = Disk(os.path.join(temp, name + ".xfs"), os.path.join(folder, name))
    except BaseException:
        for disk in disks.values():
            disk.close()
        raise
    return disks
