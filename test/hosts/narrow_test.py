"""Where many small files go: to all LFSs alike, and with parity never to one host twice over."""

import sys
from collections import Counter

from several import FOLDER, System, check, text, why_not  # isort: skip
from pif_system import main

FILES = 1000
BYTES = 2000
SHARE_MAX = 1.3  # times the mean, of one LFS
SUM = "find $f/data -type f -printf '%s\\n' | awk -v name=$f '{ sum += $1 } END { print name, sum + 0 }'"
LINE = f"for f in {FOLDER}/lfs*; do {SUM}; done"


def stored(fs):
    """What each LFS has on its disk, rows and parity with their sums: {folder: bytes}."""
    found = Counter()
    for host in fs.hosts:
        for line in text(host.ok("sh", "-c", LINE)).splitlines():
            folder, size = line.split()
            found[folder] += int(size)
    return found


def put_many(fs, folder, *options):
    """Their entries, and what they have added to each LFS."""
    before = stored(fs)
    fs.ok("h1", "put", "-q", "-r", *options, "/srv/tree", folder)
    added = stored(fs)
    added.subtract(before)
    return fs.json("h2", "ls", folder)["entries"], added


def nobody_has_much_more_than_others(added, what):
    mean = sum(added.values()) / len(added)
    check(mean >= FILES * BYTES / len(added), f"{what}: all is stored: {added}")
    check(max(added.values()) <= SHARE_MAX * mean, f"{what}: {max(added.values()) / mean:.2f} times the mean: {added}")


def a_thousand_narrow_files_are_spread_over_all_lfss():
    with System(4, lfss_per_host=2, disk="400M") as fs:
        line = f"mkdir /srv/tree && cd /srv/tree && head -c {FILES * BYTES} /dev/urandom | split -a 4 -b {BYTES}"
        fs.host("h1").ok("sh", "-c", line)
        host_of = {node["id"]: node["tcp"].split(":")[1].strip("/") for node in fs.json("h1", "status")["nodes"]}
        check(len(set(host_of.values())) == 4, f"{host_of}")

        for options in (["--width", "1"], []):
            entries, added = put_many(fs, f"/plain{len(options)}", *options)
            check(len(entries) == FILES, "all are there")
            nobody_has_much_more_than_others(added, f"files of {entries[0]['width']} LFSs")

        entries, added = put_many(fs, "/safe", "--width", "4", "--bevy", "2")
        nobody_has_much_more_than_others(added, "files with parity")
        for entry in entries:
            bevy, companion = entry["nodes"][:2], entry["nodes"][2:]
            both = {host_of[node] for node in bevy} & {host_of[node] for node in companion}
            check(entry["protected"] and not both, f"{entry['path']}: companions on {both}: {entry['nodes']}")


TESTS = [a_thousand_narrow_files_are_spread_over_all_lfss]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
