"""What happens to disks, one cycle after the other, and what must hold after each: nothing is lost that no mark names,
and no mark is without a reason."""

import collections
import json
import os
import shutil
import subprocess
import time

import disks
from contents import empty, read_as_is
from disks_steps import await_heartbeats
from pif_system import await_condition, check, command_lines

MEMBERS_SECONDS = 120.0


class Cycles:
    def __init__(self, fs, contents, rng, own_disks):
        """own_disks: {LFS: the disk that its root is}."""
        self.fs = fs
        self.contents = contents
        self.rng = rng
        self.own_disks = own_disks
        self.number = 0
        self.counts = collections.Counter()
        self.kinds = {
            "killed": self.killed,
            "away": self.away,
            "wiped": self.wiped,
            "old, accepted": self.old_accepted,
            "old, rebuilt": self.old_rebuilt,
            "swapped": self.swapped,
            "another one away while one is wiped": self.wiped_and_another_away,
            "server and LFS old": self.server_and_lfs_old,
        }
        if own_disks:
            self.kinds.update({"EIO, returns": self.eio_returns, "EIO, replaced": self.eio_replaced})

    def cycle(self, kind=None):
        self.number += 1
        kind = kind or self.rng.choice(sorted(self.kinds))
        lfs = self.rng.choice([f"lfs{i}" for i in range(self.fs.count)])
        begin = time.monotonic()
        reasons = self.kinds[kind](lfs) or set()
        self.verify(f"cycle {self.number}, {lfs} {kind}", reasons)
        self.counts[kind] += 1
        print(f"{self.number}: {lfs} {kind}: {time.monotonic() - begin:.1f} s", flush=True)

    # ---- what must hold ----

    def verify(self, where, reasons):
        """reasons: paths of the files that may have marks."""
        self.await_members()
        files = self.contents.files
        marks = self.contents.marks()
        check(set(marks) <= reasons, f"{where}: marks without a reason: {sorted(set(marks) - reasons)}: {marks}")
        self.contents.check(where, [file for path, file in files.items() if path not in marks])
        for path in marks:
            read_as_is(self.fs, path)
            self.contents.renew(files[path], self.number)
        await_condition(lambda: self.fs.run("scrub", "-q").returncode == 0, f"{where}: scrub has nothing to say", 60)
        report = await_condition(self.try_fsck, f"{where}: fsck reaches all", 60)
        check(report["damages"] == 0, f"{where}: fsck: {report['findings'][:5]}")

    def try_fsck(self):
        done = self.fs.run("fsck", "--json")
        return json.loads(done.stdout) if done.returncode in (0, 1) else None

    def await_members(self):
        await_condition(
            lambda: set(self.fs.view_states().values()) == {"member"}, "all LFSs are members", MEMBERS_SECONDS
        )
        await_condition(self.fs.have_one_view, "all LFSs know of it", MEMBERS_SECONDS)

    def protected(self):
        return [file for file in self.contents.files.values() if file.is_protected]

    def without(self, lfs):
        """What can be read without this LFS."""
        return [file for file in self.contents.files.values() if file.is_protected or not file.uses(lfs)]

    def unprotected_on(self, *lfss):
        return {
            path
            for path, file in self.contents.files.items()
            if not file.is_protected and any(file.uses(lfs) for lfs in lfss)
        }

    def may_be_old(self, number):
        """What was changed after this cycle, or opened for writing at any time: nobody knows when that was."""
        files = self.contents.files.items()
        return {path for path, file in files if file.changed_in > number or file.was_appended_to}

    # ---- steps ----

    def root(self, name):
        return os.path.join(self.fs.folder, name)

    def up(self):
        self.fs.ok("up", "-q", self.fs.folder)

    def down(self):
        self.fs.ok("down", "-q", self.fs.folder)

    def work_without(self, lfs):
        """Files are read without it, some are written, and read again."""
        self.contents.check(f"cycle {self.number}, without {lfs}", self.without(lfs))
        self.contents.work(self.number, self.protected())
        self.contents.check(f"cycle {self.number}, written without {lfs}", self.without(lfs))

    def save(self, *names):
        """Copies as a backup has them; a later call replaces an earlier one."""
        for name in names:
            kept = self.fs.local("kept-" + name)
            shutil.rmtree(kept, ignore_errors=True)
            subprocess.run(["cp", "-a", self.root(name), kept], check=True)

    def put_back(self, *names):
        for name in names:
            empty(self.root(name))
            bring(self.fs.local("kept-" + name), self.root(name))

    def replace(self, lfs):
        """An empty disk in place of a dead one: docs/DISKS.md."""
        empty(self.root(lfs))
        self.fs.ok("node", "replace", lfs)
        self.up()
        self.rebuild(lfs)

    def rebuild(self, lfs):
        done = self.fs.run("rebuild", "-q", lfs, timeout=300)
        said = done.stderr.decode(errors="replace")
        is_done = done.returncode == 0 or (done.returncode == 2 and "nothing to rebuild" in said)
        check(is_done, f"cycle {self.number}: rebuild {lfs}: exit {done.returncode}: {said}")

    # ---- what happens ----

    def killed(self, lfs):
        self.fs.kill(lfs)
        self.contents.check_without_workers(f"cycle {self.number}, {lfs} is silent", self.protected())
        self.up()

    def away(self, lfs):
        self.fs.kill(lfs)
        self.fs.declare_lost(lfs)
        self.work_without(lfs)
        self.up()

    def wiped(self, lfs):
        self.fs.kill(lfs)
        if self.rng.random() < 0.5:
            self.fs.declare_lost(lfs)
            self.work_without(lfs)
        self.replace(lfs)
        return self.unprotected_on(lfs)

    def become_old(self, *names):
        """They are put back as they were before some work. Returns the cycle's number before that work."""
        self.down()
        self.save(*names)
        self.up()
        before = self.number
        self.number += 1
        self.contents.work(self.number, list(self.contents.files.values()))
        await_heartbeats(self.fs)
        self.down()
        self.put_back(*names)
        done = self.fs.run("up", self.fs.folder)
        said = done.stderr.decode(errors="replace")
        check(done.returncode == 3 and "older than" in said, f"{names} are old: exit {done.returncode}: {said}")
        return before

    def old_accepted(self, lfs):
        before = self.become_old(lfs)
        self.fs.ok("node", "accept-stale", lfs)
        self.up()
        return self.may_be_old(before)

    def old_rebuilt(self, lfs):
        self.become_old(lfs)
        self.fs.kill(lfs)
        self.replace(lfs)
        return self.unprotected_on(lfs)

    def swapped(self, _):
        folders = [f"lfs{i}" for i in range(self.fs.count) if f"lfs{i}" not in self.own_disks]
        lfs, other = self.rng.sample(folders, 2)
        self.down()
        self.swap(lfs, other)
        done = self.fs.run("up", self.fs.folder)
        said = done.stderr.decode(errors="replace")
        check(done.returncode == 3 and "right disk" in said, f"swapped: exit {done.returncode}: {said}")
        self.down()
        self.swap(lfs, other)
        self.up()

    def swap(self, one, other):
        aside = self.fs.local("aside")
        os.rename(self.root(one), aside)
        os.rename(self.root(other), self.root(one))
        os.rename(aside, self.root(other))

    def wiped_and_another_away(self, lfs):
        """The other one has all that it had, and comes back while the first is being rebuilt, or before."""
        other = self.rng.choice([f"lfs{i}" for i in range(self.fs.count) if f"lfs{i}" != lfs])
        self.fs.kill(lfs)
        self.fs.declare_lost(lfs)
        self.contents.work(self.number, self.protected())
        self.fs.kill(other)
        empty(self.root(lfs))
        self.fs.ok("node", "replace", lfs)
        self.up()
        self.rebuild(lfs)
        return self.unprotected_on(lfs)

    def server_and_lfs_old(self, lfs):
        """Both on one disk, which was restored from an image: names that were made since are found again."""
        before = self.become_old("server", lfs)
        changed = self.may_be_old(before)
        self.fs.ok("server", "accept-old")
        self.fs.run("up", "-q", self.fs.folder)
        for node in self.fs.json("status")["nodes"]:
            if node["state"] == "stale":
                self.fs.ok("node", "accept-stale", node["name"])
        self.up()
        self.await_members()
        # What was changed since has the bytes of then, or of now, or a mark; the test puts it anew.
        marked = self.contents.marks()
        check(set(marked) <= changed, f"cycle {self.number}: marks without a reason: {sorted(set(marked) - changed)}")
        for path in changed:
            self.check_one_moment(path, path in marked)
            self.contents.renew(self.contents.files[path], self.number)
        for entry in self.fs.json("ls", "/")["entries"]:
            if entry["name"] == "lost+found":
                self.fs.ok("rm", "-r", "/lost+found")
        return set()

    def check_one_moment(self, path, is_marked):
        done = self.fs.run("cat", path)
        if is_marked:
            check(done.returncode != 0, f"cycle {self.number}: {path} is marked and can be read")
            return
        said = done.stderr.decode(errors="replace")
        check(done.returncode == 0, f"cycle {self.number}: {path} has no mark, and cannot be read: {said}")
        file = self.contents.files[path]
        check(
            done.stdout in (file.data, file.data_before),
            f"cycle {self.number}: {path} has no mark and {len(done.stdout)} bytes that are of no moment",
        )

    # ---- disks that fail ----

    def fail_disk(self):
        lfs = self.rng.choice(sorted(self.own_disks))
        self.own_disks[lfs].cut()
        self.contents.check_without_workers(f"cycle {self.number}, the disk of {lfs} fails", self.protected())
        await_condition(lambda: self.fs.run("node", "lost", lfs).returncode in (0, 2), f"{lfs} is lost", 60)
        self.work_without(lfs)
        if pid := process_in(self.root(lfs)):
            os.kill(pid, 9)
        await_condition(lambda: not process_in(self.root(lfs)), f"{lfs} ends", 20)
        self.own_disks[lfs].replug()
        return lfs

    def eio_returns(self, _):
        """After a reboot the disk is as it was."""
        self.fail_disk()
        self.up()

    def eio_replaced(self, _):
        lfs = self.fail_disk()
        self.replace(lfs)
        return self.unprotected_on(lfs)


def process_in(folder):
    """Process id of the daemon that runs in this root; none if none does."""
    parent, name = os.path.split(folder)
    for pid, words in command_lines():
        if os.path.basename(words[0]) == "pif-lfs" and parent in words and name in words:
            return pid
    return None


def bring(copy, root):
    """The root has all of the copy, durably: a disk that fails later keeps what was synced."""
    subprocess.run(["cp", "-a", copy + "/.", root], check=True)
    subprocess.run(["sync", "-f", root], check=True)


def move_roots_to_own_disks(fs, names):
    """{LFS: its disk}; the file system is down meanwhile."""
    fs.ok("down", "-q", fs.folder)
    made = {}
    for name in names:
        root = os.path.join(fs.folder, name)
        aside = fs.local("aside")
        os.rename(root, aside)
        made[name] = disks.Disk(fs.local(name + ".xfs"), root)
        bring(aside, root)
        shutil.rmtree(aside)
    fs.ok("up", "-q", fs.folder)
    return made
