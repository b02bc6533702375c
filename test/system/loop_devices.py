"""What disks in image files need of a machine: root's rights, programs, loop devices. And calls of those programs."""

import os
import shutil
import subprocess

from pif_system import check


def why_not(*programs):
    """Why this machine cannot have them, made by these programs, or nothing."""
    if os.geteuid() != 0:
        return "only root can mount"
    for program in ("losetup", "mkfs.xfs", "mount", *programs):
        if not shutil.which(program):
            return f"there is no {program}"
    done = subprocess.run(["losetup", "-f"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return "" if done.returncode == 0 else f"there are no loop devices: {done.stderr.strip()}"


def call(*words):
    """What it prints. If it fails, what it said is the failure's text."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
    )
    check(done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
