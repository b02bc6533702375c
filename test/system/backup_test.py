"""pif backup, pif restore: all kinds of files, onto all kinds of layouts, and archives that are not as they were."""

import os
import random
import shutil
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, flip, main_on

FS = None
COUNT = 5
DIGESTS = {}  # of the files as they were put, by path
NAMES = {}  # what `pif ls` says of each entry


def local(name):
    return FS.local(name)


def archives(where):
    return sorted(os.listdir(where))


# ---- what is backed up ----


def lines(rnd, count):
    return b"".join(b"%d %s\n" % (i, b"x" * rnd.randrange(60)) for i in range(count))


def put_folder(number, kind, layout, rnd):
    """Seven files in two folders."""
    for i in range(7):
        count = (0, 1, 7, 300, 2000)[rnd.randrange(5)]
        data = rnd.randbytes(rnd.randrange(40_000)) if not kind else rnd.randbytes(100 * count)
        if kind in (["--lines"], ["--delimited", ";"]):
            data = lines(rnd, count) if kind == ["--lines"] else b"ab;;c;" * count
        if i % 3 == 0 and kind == ["--lines"]:
            data += b"without an end"
        path = local(f"put/d{number}/e{i % 2}/f{i}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    FS.ok("put", "-q", "-r", *kind, *layout, local(f"put/d{number}"), f"/d{number}")


def put_files():
    """Some hundred: of records, lines, bytes; empty and with one record; wide and narrow; with parity."""
    rnd = random.Random(7)
    kinds = (["--record-length", "100"], ["--lines"], ["--delimited", ";"], [])
    layouts = (["--width", "1"], ["--width", "2"], ["--width", "3"], [], ["--width", "4", "--bevy", "2"])
    FS.ok("mkdir", "--width", "2", "--lines", "/striped")
    for i, (kind, layout) in enumerate((kind, layout) for kind in kinds for layout in layouts):
        put_folder(i, kind, layout, rnd)
    os.makedirs(local("put/small"))  # with these there are more than one job backs up
    for i in range(125):
        with open(local(f"put/small/{i}"), "w") as file:
            file.write(f"file {i}\n" * (i % 3))
    FS.ok("put", "-q", "-r", "--lines", local("put/small"), "/small")
    FS.ok("put", "-q", "--lines", "-", "/striped/ä b", data=lines(rnd, 50))
    FS.ok("put", "-q", "--record-length", "1000", "-", "/large", data=rnd.randbytes(12_000_000))
    FS.ok("put", "-q", "--lines", "--bevy", "2", "--width", "4", "-", "/many lines", data=lines(rnd, 60_000))
    FS.ok("chmod", "0640", "/d1/e1/f1")
    FS.ok("chmod", "0711", "/d2")
    FS.ok("ln", "-s", "../large", "/d1/link")


def entries(fs, below="/"):
    """{path: what is said of it}, of all that is below a folder, as if that were the root."""
    found = {}
    for entry in fs.json("find", below)["entries"]:
        path = entry["path"]
        if path != below:
            found[path[len(below.rstrip("/")):]] = entry
    return found


def files_of(names):
    return sorted(path for path, entry in names.items() if entry["kind"] == "file")


def digests(fs, paths):
    found = {}
    for at in range(0, len(paths), 200):
        report = fs.json("digest", *paths[at : at + 200])
        found.update(report["results"])
    return found


def remember():
    NAMES.update(entries(FS))
    DIGESTS.update(digests(FS, files_of(NAMES)))


def check_same(fs, below="/", keep_layout=True, paths=None):
    """What is below that folder is what was put."""
    now = entries(fs, below)
    expected = {path: entry for path, entry in NAMES.items() if paths is None or path in paths}
    check(set(now) >= set(expected), f"missing: {sorted(set(expected) - set(now))[:5]}")
    prefix = below.rstrip("/")
    found = digests(fs, [prefix + path for path in files_of(expected)])
    for path, entry in expected.items():
        same = ["kind", "mode", "owner", "group", "modified", "format", "records", "bytes", "striping", "target"]
        same += ["width", "bevies", "nodes"] if keep_layout else []
        wrong = [key for key in same if entry.get(key) != now[path].get(key)]
        check(not wrong, f"{path}: {[(key, entry.get(key), now[path].get(key)) for key in wrong]}")
        if entry["kind"] == "file":
            check(found[prefix + path] == DIGESTS[path], f"{path} has other records")
            check(now[path]["marks"] == [], f"{path} has marks")


# ---- backing up and restoring ----


def all_is_backed_up():
    report = FS.json("backup", "--all", local("all"))["results"]
    check(report["files"] == len(files_of(NAMES)), f"{report}")
    check(archives(local("all")) == sorted([f"lfs{i}.tar.zst" for i in range(COUNT)] + ["names.tar.zst"]), "archives")
    check(os.stat(local("all/lfs0.tar.zst")).st_mode & 0o077 == 0, "nobody else may read them")
    check(b"archives are whole" in FS.ok("restore", "--verify", local("all")), "whole")
    FS.fails(3, r"has a backup already", "backup", "--all", local("all"))


def tar_lists_and_unpacks_it():
    if shutil.which("zstd") is None:
        return
    lfs = f"lfs{NAMES['/large']['nodes'][0] - 1}"  # node 1 is lfs0
    done = subprocess.run(["tar", "tf", local(f"all/{lfs}.tar.zst")], capture_output=True, timeout=60)
    names = done.stdout.decode().splitlines()
    check(done.returncode == 0 and done.stderr == b"", f"tar says {done.stderr}")
    check(names[0] == "pif-backup" and names[-1] == "end" and "large/records-0" in names, f"{names[:5]}")
    row = ["tar", "xOf", local(f"all/{lfs}.tar.zst"), "large/records-0"]
    one = subprocess.run(row, capture_output=True, timeout=60).stdout
    data = FS.content("/large")
    check(one[:1000] == data[:1000] and one[1000:2000] == data[5000:6000], "rows are as they lie")


def all_is_restored_beside_it():
    FS.ok("restore", "--into", "/copy", local("all"))
    check_same(FS, "/copy")
    FS.fails(3, "exists|there already|is taken|already", "restore", "--into", "/copy", local("all"))
    FS.ok("restore", "--force", "--into", "/copy", local("all"), "/d1", "/large")
    check_same(FS, "/copy")
    FS.ok("rm", "-r", "/copy")


def one_file_and_one_folder():
    FS.ok("restore", "--into", "/some", local("all"), "/d3/e1", "/large")
    wanted = {path for path in NAMES if path.startswith("/d3/e1/") or path == "/large"}
    check(set(files_of(entries(FS, "/some"))) == wanted, "these, and no others")
    check_same(FS, "/some", paths=wanted)
    FS.ok("rm", "-r", "/some")
    FS.fails(3, r"the backup has no /nothing", "restore", local("all"), "/nothing")


def onto_other_widths():
    folders = ["/d1", "/d4", "/d8", "/d15", "/d19"]  # of all kinds, wide and narrow, with parity and without
    wanted = {path for path in NAMES if path.startswith(tuple(folder + "/" for folder in folders)) or path == "/large"}
    for options in (["--width", "1"], ["--width", "3"], ["--width", "4", "--bevy", "2"], ["--nodes", "lfs4,lfs0"]):
        FS.ok("restore", "--into", "/w", *options, local("all"), "/large", *folders)
        check_same(FS, "/w", keep_layout=False, paths=wanted)
        widths = {entry["width"] for path, entry in entries(FS, "/w").items() if entry.get("records")}
        expected = int(options[1]) if options[0] == "--width" else 2
        check(widths == {expected}, f"{options}: {widths}")
        FS.ok("rm", "-r", "/w")


def a_part_is_backed_up():
    FS.ok("backup", "/d1", "/large", local("part"))
    FS.ok("restore", "--into", "/p", local("part"))
    wanted = {path for path in NAMES if path.startswith("/d1/") or path in ("/d1", "/large")}
    check_same(FS, "/p", paths=wanted)
    check(set(files_of(entries(FS, "/p"))) == set(files_of(NAMES)) & wanted, "no others")
    FS.ok("rm", "-r", "/p")


def nothing_and_empty_files():
    FS.ok("mkdir", "/nothing")
    FS.ok("backup", "/nothing", local("nothing"))
    FS.ok("put", "-q", "-", "/nothing/empty", data=b"")
    FS.ok("backup", "/nothing/empty", local("empty"))
    FS.ok("rm", "-r", "/nothing")
    FS.ok("restore", local("nothing"))
    check(FS.json("ls", "/nothing")["entries"] == [], "the folder is back, and empty")
    FS.ok("restore", local("empty"))
    check(FS.content("/nothing/empty") == b"", "the empty file, too")
    FS.ok("rm", "-r", "/nothing")


# ---- what is not as it should be ----


def spoiled(name, change):
    """A copy of the backup, of which one archive is changed."""
    where = local("spoiled")
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(local("all"), where)
    change(os.path.join(where, name))
    return where


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def archives_that_were_cut():
    for name, pattern in (("lfs2.tar.zst", "lfs2.tar.zst has .* bytes, and had|cut"), ("names.tar.zst", "names.*cut")):
        where = spoiled(name, cut)
        FS.fails(3, pattern, "restore", "--into", "/bad", where, "/large")
        FS.fails(3, "cut", "restore", "--verify", where)
        check(files_of(entries(FS)) == files_of(NAMES), "no file was made")
    where = spoiled("lfs2.tar.zst", os.unlink)
    FS.fails(3, "lfs2.tar.zst", "restore", "--into", "/bad", where, "/large")
    where = spoiled("names.tar.zst", os.unlink)
    FS.fails(3, "names.tar.zst: No such file", "restore", "--into", "/bad", where, "/large")
    FS.fails(3, "names.tar.zst", "restore", local("no-such"))


def archives_that_are_damaged():
    rnd = random.Random(3)
    for name in ["lfs0.tar.zst", "names.tar.zst"] * 4:
        where = spoiled(name, lambda path: flip(path, rnd.randrange(os.path.getsize(path))))
        FS.fails(3, "changed or cut|wrong bytes|cannot be read|no end|entries", "restore", "--verify", where)
    where = spoiled("lfs0.tar.zst", lambda path: flip(path, os.path.getsize(path) // 2))
    before = files_of(entries(FS))
    FS.run("restore", "--into", "/bad", where, "/large")
    for path in set(files_of(entries(FS))) - set(before):
        check(digests(FS, [path])[path] == DIGESTS[path[len("/bad"):]], f"{path} is wrong")
    FS.run("rm", "-r", "/bad")


def archives_of_another_backup():
    where = spoiled("lfs0.tar.zst", lambda path: shutil.copy(local("part/lfs0.tar.zst"), path))
    for words in (["--verify", where], ["--into", "/bad", where, "/large"]):
        FS.fails(3, "lfs0.tar.zst is the archive of lfs0 in another backup", "restore", *words)
    where = spoiled("lfs0.tar.zst", lambda path: shutil.copy(local("all/lfs1.tar.zst"), path))
    FS.fails(3, "is the archive of lfs1", "restore", "--verify", where)
    where = spoiled("lfs0.tar.zst", lambda path: open(path, "w").write("no archive"))
    FS.fails(3, "lfs0.tar.zst", "restore", "--verify", where)


def repacked(name, change):
    """A copy of the backup, of which the tar in one archive is changed: zstd finds nothing wrong."""

    def repack(path):
        plain = bytearray(subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout)
        change(plain)
        with open(path, "wb") as file:
            file.write(subprocess.run(["zstd", "-c"], input=plain, capture_output=True, check=True).stdout)

    return spoiled(name, repack)


def bytes_that_were_changed_with_care():
    if shutil.which("zstd") is None:
        return
    nodes = NAMES["/large"]["nodes"]
    record = FS.content("/large")[:1000]

    def in_records(plain):
        plain[plain.index(record) + 500] ^= 1

    def of_another_row(plain):  # the first two rows change places
        at = plain.index(record)
        plain[at : at + 2000] = plain[at + 1000 : at + 2000] + plain[at : at + 1000]

    for change in (in_records, of_another_row):
        where = repacked(f"lfs{nodes[0] - 1}.tar.zst", change)
        FS.fails(3, "has wrong bytes in large/records-0", "restore", "--verify", where)


def archives_of_a_newer_program():
    if shutil.which("zstd") is None:
        return

    def newer(plain):
        plain[plain.index(b"\x08\x01\x12\x10") + 1] = 9  # version 1, and then the file system's id

    for name in ("lfs0.tar.zst", "names.tar.zst"):
        FS.fails(3, f"{name} has format 9.*use a newer", "restore", "--verify", repacked(name, newer))


def folders_that_cannot_be():
    FS.fails(3, "name another folder", "backup", "/large", os.path.join(FS.folder, "lfs0", "b"))
    FS.fails(3, "it has in it", "backup", "/large", "/")
    FS.fails(3, "cannot make the folder", "backup", "/large", local("no/such"))
    FS.fails(2, "name what is to be backed up", "backup", local("one"))
    FS.fails(2, "all that is named", "backup", "--all", "/large", local("one"))
    FS.fails(3, "/no-such", "backup", "/no-such", local("one"))
    check(not os.path.exists(local("one")), "nothing was made")
    check(not os.path.exists(os.path.join(FS.folder, "lfs0", "b")), "what was made goes again")


def a_disk_that_is_full():
    if os.geteuid() != 0:
        return
    where = local("small")
    os.mkdir(where)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", where], check=True)
    try:
        FS.fails(3, "No space left", "backup", "/large", where)
        check(archives(where) == [], f"what was begun is gone: {archives(where)}")
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def files_that_cannot_be_backed_up_are_named():
    FS.ok("put", "-q", "--lines", "-", "/busy", data=b"a\n")
    with FS.start("append", "-", "/busy", stdin=subprocess.PIPE) as writer:
        writer.stdin.write(b"b\n")
        writer.stdin.flush()
        await_condition(lambda: FS.content("/busy") == b"a\nb\n", "somebody writes to it")
        FS.fails(3, "/busy.*(append|writ)", "backup", "/busy", local("never"))
        writer.stdin.close()
    FS.ok("put", "-q", "-", "/busy/0/fork", data=b"x")
    FS.fails(3, "/busy has forks, which are not backed up", "backup", "/busy", local("never"))
    check(not os.path.exists(local("never")), "what was begun is gone")
    os.mkdir(local("other"))
    begun = os.path.join(local("other"), "lfs0.tar.zst.part")
    with open(begun, "w") as file:
        file.write("another backup's")
    FS.fails(3, r"lfs0.tar.zst.part is there already", "backup", "/large", local("other"))
    check(os.path.getsize(begun) > 0, "it is left alone")
    FS.ok("rm", "/busy")


def where_grants_are_forbidden():
    FS.ok("config", "set", "grants", "none")
    FS.fails(3, 'grants = "none"', "backup", "/large", local("never"))
    FS.ok("config", "set", "grants", "any")


# ---- when a disk is lost, and when all is ----


def a_lost_disk_is_filled_again():
    FS.kill("lfs1")
    shutil.rmtree(os.path.join(FS.folder, "lfs1"))
    FS.ok("node", "replace", "lfs1")
    FS.ok("rebuild", "lfs1")
    marked = [path for path, entry in entries(FS).items() if entry.get("marks")]
    check(len(marked) > 15, f"{len(marked)} files lack rows")
    FS.ok("rm", "/d0/e0/f0")
    said = FS.ok("restore", "--lfs", "lfs1", local("all"))
    check(b"names restored" in said, f"{said}")
    FS.await_settled(seconds=60)
    check_same(FS, paths=set(files_of(NAMES)) - {"/d0/e0/f0"})


def another_file_system_gets_all():
    with FileSystem(2) as other:
        other.fails(2, "is a backup of file system .*--foreign", "restore", local("all"))
        said = other.ok("restore", "--foreign", local("all")).decode()
        check_same(other, keep_layout=False)
        had = sum(bool(entry.get("bevies")) for entry in NAMES.values())
        check(f"{had} files had parity and have none now" in said, f"{said}")


def while_a_disk_is_lost():
    FS.ok("put", "-q", "--lines", "--width", "4", "--bevy", "2", "-", "/p", data=lines(random.Random(5), 5000))
    digest, nodes = digests(FS, ["/p"])["/p"], FS.json("stat", "/p")["nodes"]
    lost = f"lfs{nodes[1] - 1}"
    FS.kill(lost)
    FS.declare_lost(lost)
    FS.ok("backup", "/p", local("exposed"))
    check(f"{lost}.tar.zst" in archives(local("exposed")), "another LFS wrote what it would have")
    FS.ok("restore", "--into", "/again", local("exposed"))
    again = FS.json("stat", "/again/p")
    check(digests(FS, ["/again/p"])["/again/p"] == digest, "the same records")
    check(again["nodes"] == nodes and again["protected"], f"with parity, on the same LFSs: {again}")
    FS.bring_back(lost)
    FS.ok("rm", "-r", "/again", "/p")


TESTS = [
    all_is_backed_up,
    tar_lists_and_unpacks_it,
    all_is_restored_beside_it,
    one_file_and_one_folder,
    onto_other_widths,
    a_part_is_backed_up,
    nothing_and_empty_files,
    archives_that_were_cut,
    archives_that_are_damaged,
    archives_of_another_backup,
    bytes_that_were_changed_with_care,
    archives_of_a_newer_program,
    folders_that_cannot_be,
    a_disk_that_is_full,
    files_that_cannot_be_backed_up_are_named,
    where_grants_are_forbidden,
    another_file_system_gets_all,
    while_a_disk_is_lost,
    a_lost_disk_is_filled_again,
]

if __name__ == "__main__":
    with FileSystem(COUNT) as FS:
        put_files()
        remember()
        sys.exit(main_on(FS, TESTS, sys.argv[1:]))
