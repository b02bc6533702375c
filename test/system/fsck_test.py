"""What `pif fsck` finds in a file system that somebody has put back partly, and what --repair makes of it."""

import json
import os
import shutil
import sys

from pif_system import FileSystem, check, main


def directory_of(fs):
    return os.path.join(fs.folder, "server", "directory")


def with_older_directory(fs):
    """/old is known; /lost's components are committed on the LFSs, but the directory is from before it."""
    fs.ok("put", "--record-length", "100", "-", "/old", data=b"o" * 5000)
    fs.ok("down", fs.folder)
    shutil.copytree(directory_of(fs), fs.local("saved"))
    fs.ok("up", fs.folder)
    fs.ok("put", "--record-length", "100", "-", "/lost", data=b"l" * 5000)
    # A reader's capability tells every LFS that the file is committed.
    check(fs.content("/lost") == b"l" * 5000, "it comes back")
    fs.ok("down", fs.folder)
    shutil.rmtree(directory_of(fs))
    shutil.move(fs.local("saved"), directory_of(fs))
    fs.ok("up", fs.folder)


def report_of(fs, code, *options):
    done = fs.run("fsck", "--json", *options)
    check(done.returncode == code, f"fsck {options}: exit {done.returncode} instead of {code}: {done.stderr}")
    return json.loads(done.stdout)


def components_without_owner_are_found_and_only_repair_removes_them():
    with FileSystem(3) as fs:
        with_older_directory(fs)
        for _ in range(2):  # looking changes nothing
            report = report_of(fs, 1)
            check({f["kind"] for f in report["findings"]} == {"orphan"}, f"findings: {report['findings']}")
            check({f["node"] for f in report["findings"]} == {"lfs0", "lfs1", "lfs2"}, f"nodes: {report['findings']}")
            check(report["repaired"] == 0, "fsck alone repairs nothing")
        report = report_of(fs, 0, "--repair")
        check(report["repaired"] == 3 and report["findings"] == [], f"repaired: {report}")
        report = report_of(fs, 0)
        check(report["components"] == 3 and report["damages"] == 0, f"after the repair: {report}")
        check(fs.content("/old") == b"o" * 5000, "what has an owner is untouched")
        fs.ok("down", fs.folder)  # an LFS takes no file whose id it has removed since it was started
        fs.ok("up", fs.folder)
        fs.ok("put", "--record-length", "100", "-", "/new", data=b"n" * 700)
        check(fs.content("/new") == b"n" * 700, "and its id can be given out again")


def a_committed_file_that_has_lost_a_component_is_damage_that_repair_leaves_alone():
    with FileSystem(2) as fs:
        fs.ok("put", "--record-length", "100", "-", "/a", data=b"a" * 1000)
        fs.ok("down", fs.folder)
        shutil.rmtree(os.path.join(fs.folder, "lfs1"))
        fs.ok("up", fs.folder)
        report = report_of(fs, 1, "--repair")
        check([f["kind"] for f in report["findings"]] == ["missing"], f"findings: {report['findings']}")
        finding = report["findings"][0]
        check(finding["node"] == "lfs1" and finding["path"] == "/a", "it names file and LFS")
        check(report["repaired"] == 0 and report["components"] == 1, f"nothing is removed: {report}")


if __name__ == "__main__":
    sys.exit(main([components_without_owner_are_found_and_only_repair_removes_them,
                   a_committed_file_that_has_lost_a_component_is_damage_that_repair_leaves_alone]))
