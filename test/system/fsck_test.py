"""What `pif fsck` finds in a file system that somebody has put back partly, and what --repair makes of it."""

import json
import os
import shutil
import sys

from pif_system import FileSystem, check, main


def directory_of(fs):
    return os.path.join(fs.folder, "server", "directory")


def report_of(fs, code, *options):
    done = fs.run("fsck", "--json", *options)
    check(done.returncode == code, f"fsck {options}: exit {done.returncode} instead of {code}: {done.stderr}")
    return json.loads(done.stdout)


def only_an_owner_may_say_that_a_component_is_nobodys():
    """A directory from before /lost: nothing is removed, and what it does not know comes back under another name."""
    with FileSystem(3) as fs:
        fs.ok("put", "--record-length", "100", "-", "/old", data=b"o" * 5000)
        fs.ok("down", fs.folder)
        shutil.copytree(directory_of(fs), fs.local("saved"))
        fs.ok("up", fs.folder)
        fs.ok("put", "--record-length", "100", "-", "/lost", data=b"l" * 5000)
        fs.ok("down", fs.folder)
        shutil.rmtree(directory_of(fs))
        shutil.move(fs.local("saved"), directory_of(fs))
        done = fs.run("up", fs.folder)
        check(done.returncode == 3 and b"accept-old" in done.stderr, f"up says what to do: {done.stderr}")
        done = fs.run("fsck", "--repair")
        check(done.returncode == 3 and b"is older than" in done.stderr, f"fsck touches nothing: {done.stderr}")
        fs.ok("server", "accept-old")
        report = report_of(fs, 0)
        check(report["components"] == 6 and report["damages"] == 0, f"after accept-old: {report}")
        found = json.loads(fs.ok("ls", "--json", "/lost+found"))["entries"]
        check(len(found) == 1, f"found: {found}")
        check(fs.content("/lost+found/" + found[0]["name"]) == b"l" * 5000, "byte for byte")
        check(fs.content("/old") == b"o" * 5000, "what was known is untouched")


def a_committed_file_that_has_lost_a_component_is_damage_that_repair_leaves_alone():
    with FileSystem(2) as fs:
        fs.ok("put", "--record-length", "100", "-", "/a", data=b"a" * 1000)
        fs.ok("down", fs.folder)
        shutil.rmtree(os.path.join(fs.folder, "lfs1"))
        done = fs.run("up", fs.folder)
        check(
            done.returncode == 3 and b"is the disk mounted?" in done.stderr, f"up says what is missing: {done.stderr}"
        )
        fs.ok("node", "replace", "lfs1")
        fs.ok("up", fs.folder)
        report = report_of(fs, 1, "--repair")
        check([f["kind"] for f in report["findings"]] == ["missing"], f"findings: {report['findings']}")
        finding = report["findings"][0]
        check(finding["node"] == "lfs1" and finding["path"] == "/a", "it names file and LFS")
        check(report["repaired"] == 0 and report["components"] == 1, f"nothing is removed: {report}")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                only_an_owner_may_say_that_a_component_is_nobodys,
                a_committed_file_that_has_lost_a_component_is_damage_that_repair_leaves_alone,
            ]
        )
    )
