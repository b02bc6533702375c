"""pif du: what files hold and what they take on disks."""

import os
import sys

from pif_system import FileSystem, check, main

LFSS = 8
MIB = 1 << 20
LARGE = 64 * MIB
# path: (options of put, bytes, most that is stored for each byte)
FILES = {
    "/blocks": (("--record-length", "65536", "--bevy", "4"), LARGE, 1.36),
    "/records": (("--record-length", "100", "--bevy", "4"), 16 * MIB, 1.40),
    "/plain": (("--record-length", "65536"), 16 * MIB, 1.01),
}


def on_disks(fs):
    """Of all components, as the local file system says: all, and parity."""
    stored = parity = 0
    for lfs in range(LFSS):
        for folder, _, names in os.walk(os.path.join(fs.folder, f"lfs{lfs}", "data")):
            for name in names:
                taken = os.lstat(os.path.join(folder, name)).st_blocks * 512
                stored += taken
                parity += taken if name.endswith((".par", ".psum", ".pap")) else 0
    return stored, parity


def fill(fs):
    for path, (options, size, _) in FILES.items():
        fs.ok("put", *options, "-", path, data=os.urandom(size))


def stored_bytes_are_those_of_the_disks_and_within_the_budget():
    with FileSystem(LFSS) as fs:
        fill(fs)
        document = fs.json("du", "-a", "-c", "/")
        lines = {line["path"]: line for line in document["usage"]}
        check(set(lines) == {*FILES, "/"}, f"a line for each: {sorted(lines)}")
        for path, (_, size, most) in FILES.items():
            line = lines[path]
            check(line["bytes"] == size and line["files"] == 1 and line["unmeasured"] == 0, f"{line}")
            check(size <= line["stored_bytes"] <= most * size, f"{path}: {line['stored_bytes'] / size} of its bytes")
            check((line["parity_bytes"] >= size / 3) == (path != "/plain"), f"{path}: parity is a third: {line}")
        check(lines["/plain"]["parity_bytes"] == 0, "no parity without bevies")
        whole = dict(lines["/"])
        del whole["path"]
        check(document["total"] == whole, "one operand is the total")
        check((whole["stored_bytes"], whole["parity_bytes"]) == on_disks(fs), f"{whole}, {on_disks(fs)}")


def lines_are_for_people():
    with FileSystem(LFSS) as fs:
        fill(fs)
        fs.ok("mkdir", "/folder")
        fs.ok("cp", "/plain", "/folder/copy")
        lines = [line.split() for line in fs.ok("du", "-c", "/blocks", "/folder").decode().splitlines()]
        check(lines[0] == ["data", "stored", "parity", "ratio", "records", "files", "folders", "path"], f"{lines[0]}")
        check(lines[1][:2] == ["64.0", "MiB"] and lines[1][-1] == "/blocks", f"{lines[1]}")
        check(1.33 <= float(lines[1][6]) <= 1.36, f"{lines[1]}")
        check(lines[2][-3:] == ["1", "1", "/folder"] and lines[3][-1] == "total", f"{lines}")
        exact = [line.split() for line in fs.ok("du", "-b", "/blocks", "/folder").decode().splitlines()]
        check([line[0] for line in exact] == ["data", str(LARGE), str(16 * MIB)], f"{exact}")
        names = [line.split()[-1] for line in fs.ok("du", "-a", "/folder").decode().splitlines()]
        check(names == ["path", "/folder/copy", "/folder"], f"{names}")
        done = fs.run("du", "/none", "/folder")
        check(done.returncode == 3 and b"/folder" in done.stdout, "the others are done")


def what_a_dead_lfs_has_is_left_out():
    with FileSystem(LFSS) as fs:
        fill(fs)
        whole = fs.json("du", "/blocks")["usage"][0]
        fs.kill("lfs2")
        rest = fs.json("du", "/blocks")["usage"][0]
        check(rest["unmeasured"] == 1 and 0 < rest["stored_bytes"] < whole["stored_bytes"], f"{whole}, {rest}")
        done = fs.run("du", "/blocks")
        check(done.returncode == 0 and b"lfs2" in done.stderr and b">" in done.stdout, f"{done}")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                stored_bytes_are_those_of_the_disks_and_within_the_budget,
                lines_are_for_people,
                what_a_dead_lfs_has_is_left_out,
            ]
        )
    )
