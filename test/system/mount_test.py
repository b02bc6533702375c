"""A mounted file system, as programs that know nothing of it use it."""

import errno
import mmap
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading

from mounts import Mount, can_mount, twin
from pif_system import BIN, FileSystem, await_condition, check, main

FS = None
HERE = THERE = ""


def shell(text, folder=None, code=0):
    done = subprocess.run(["bash", "-c", text], cwd=folder or HERE, capture_output=True, timeout=300)
    check(done.returncode == code, f"{text}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def fails(wanted, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        check(error.errno == wanted, f"{arguments}: {error} instead of {errno.errorcode[wanted]}")
        return
    check(False, f"{arguments}: no error instead of {errno.errorcode[wanted]}")


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def what_is_closed_is_there_for_all():
    data = os.urandom(3_000_000)
    write(f"{HERE}/f", data)
    check(read(f"{THERE}/f") == data, "the other mount reads what was closed")
    check(FS.ok("cat", "/f") == data, "and so does pif")
    FS.ok("put", "-q", "-", "/g", data=data[:1000])
    check(read(f"{HERE}/g") == data[:1000], "what pif has put is there")
    check(FS.json("stat", "/f")["bytes"] == 3_000_000, "the length is known")


def a_name_is_there_at_once_and_its_bytes_at_the_close():
    fd = os.open(f"{HERE}/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails(errno.EEXIST, os.open, f"{THERE}/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(fd, b"x" * 100_000)
    check(read(f"{THERE}/new") == b"", "others see none of the bytes yet")
    check(os.stat(f"{HERE}/new").st_size == 100_000, "this mount sees them")
    os.fsync(fd)
    check(read(f"{THERE}/new") == b"x" * 100_000, "fsync shows them")
    os.write(fd, b"y" * 5)
    os.close(fd)
    check(read(f"{THERE}/new") == b"x" * 100_000 + b"y" * 5, "what follows is appended")


def two_mounts_count_by_exclusive_creation():
    os.mkdir(f"{HERE}/counted")
    made = {HERE: 0, THERE: 0}

    def count(mount):
        for i in range(300):
            try:
                os.close(os.open(f"{mount}/counted/{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                made[mount] += 1
            except FileExistsError:
                pass

    threads = [threading.Thread(target=count, args=(mount,)) for mount in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(sum(made.values()) == 300, f"each was made once: {made}")
    check(len(os.listdir(f"{HERE}/counted")) == 300, "and all are there")


def shells_write_whole_files():
    shell("(echo one; echo two) > subshell; (ls /; ls /) > twice; dd if=/dev/zero of=zeros bs=4k count=500 status=none")
    check(read(f"{THERE}/subshell") == b"one\ntwo\n", "children's closes do not count")
    check(read(f"{THERE}/twice") == shell("ls /; ls /"), "nor those of other programs")
    check(read(f"{THERE}/zeros") == bytes(500 * 4096), "dd closes a duplicate first")
    write(f"{HERE}/zeros", b"new")
    check(read(f"{THERE}/zeros") == b"new", "a file that is written anew")
    shell("> zeros")
    await_condition(lambda: read(f"{THERE}/zeros") == b"", "a truncation alone counts at the last close")


def appends_of_many_processes_are_all_there():
    shell("for i in 1 2 3 4 5 6 7 8; do (for j in $(seq 50); do echo $i.$j >> log; done) & done; wait")
    lines = read(f"{THERE}/log").split()
    check(len(lines) == 400 and len(set(lines)) == 400, f"{len(lines)} lines, {len(set(lines))} different")


def programs_work():
    shell("mkdir src && for i in $(seq 40); do echo $i > src/f$i; done")
    shell("tar cf a.tar src && mkdir out && tar xf a.tar -C out && diff -r src out/src")
    shell("sed -i s/1/one/ src/f1 && test $(cat src/f1) = one && cp -a src copy && diff -r src copy")
    shell("touch -d '2001-02-03 04:05:06' src/f2 && test $(date -d @$(stat -c %Y src/f2) +%F) = 2001-02-03")
    shell("ln -s src/f3 link && test $(cat link) = 3 && test $(readlink link) = src/f3")
    shell("mv link moved && rm moved && rm -r copy out")
    with sqlite3.connect(f"{HERE}/db") as database:
        database.execute("create table t (a integer primary key, b text)")
        database.executemany("insert into t (b) values (?)", [(str(i),) for i in range(1000)])
    database.close()
    with sqlite3.connect(f"{HERE}/db") as database:
        check(database.execute("select sum(b) from t").fetchone() == (499500,), "sqlite reads what it wrote")
    database.close()


def maps_are_written_back():
    write(f"{HERE}/mapped", bytes(20_000))
    with open(f"{HERE}/mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[5000:5005] = b"hello"
        memory.flush()
    with open(f"{HERE}/mapped", "r+b") as file:
        os.fsync(file.fileno())
    check(read(f"{THERE}/mapped")[5000:5005] == b"hello", "what was written to the map")


def names_and_links_have_their_errors():
    fails(errno.ENAMETOOLONG, open, f"{HERE}/" + "n" * 256, "w")
    fails(errno.EILSEQ, os.mkdir, os.fsencode(HERE) + b"/\xff\xfe")
    write(f"{HERE}/linked", b"")
    fails(errno.EPERM, os.link, f"{HERE}/linked", f"{HERE}/again")
    fails(errno.ENOTEMPTY, os.rmdir, f"{HERE}/src")
    fails(errno.EOPNOTSUPP, os.getxattr, f"{HERE}/linked", "user.a")
    FS.ok("put", "-q", "--lines", "-", "/lines", data=b"one\ntwo\n")
    check(read(f"{HERE}/lines") == b"one\ntwo\n", "lines are read")
    fails(errno.EROFS, write, f"{HERE}/lines", b"x")


def a_mount_that_was_killed_is_made_anew():
    mount = Mount(FS, "killed")
    mount.begin()
    write(f"{mount.folder}/whole", b"w" * 100_000)
    fd = os.open(f"{mount.folder}/half", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"h" * 100_000)
    os.kill(mount.process(), signal.SIGKILL)
    await_condition(lambda: mount.process() is None, "it is gone")
    try:
        os.listdir(mount.folder)
        check(False, "a dead mount lists nothing")
    except OSError as error:
        check(error.errno in (errno.ENOTCONN, errno.ECONNABORTED), f"{error}")
    mount.begin()
    check(read(f"{mount.folder}/whole") == b"w" * 100_000, "what was closed is whole")
    check(read(f"{mount.folder}/half") == b"", "what was not is empty")
    mount.end()
    try:
        os.close(fd)
    except OSError:
        pass


def a_signal_sends_everything():
    mount = Mount(FS, "ended")
    mount.begin()
    fd = os.open(f"{mount.folder}/sent", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"s" * 1000)
    os.kill(mount.process(), signal.SIGTERM)
    await_condition(lambda: mount.process() is None, "it ends")
    check(read(f"{HERE}/sent") == b"s" * 1000, "what was written is there")
    try:
        os.close(fd)
    except OSError:
        pass


def the_server_may_be_started_again():
    write(f"{HERE}/before", b"b")
    FS.kill("server")
    FS.ok("up", FS.folder)
    write(f"{HERE}/after", b"a")
    check(read(f"{HERE}/before") == b"b" and read(f"{THERE}/after") == b"a", "the mounts go on")


def only_reading():
    with Mount(FS, "ro", "ro") as folder:
        check(read(f"{folder}/subshell") == b"one\ntwo\n", "it reads")
        fails(errno.EROFS, open, f"{folder}/x", "w")


def command_lines_are_checked():
    def refused(code, text, *words):
        done = subprocess.run([os.path.join(BIN, "pif"), *words], env=FS.env, capture_output=True, timeout=60)
        check(done.returncode == code and text in done.stderr.decode(), f"{words}: {done}")

    refused(2, "no such option", "mount", "-o", "nonsense", FS.local("h"))
    refused(3, "has a file system mounted already", "mount", FS.folder, HERE)
    refused(3, "No such file", "mount", FS.folder, FS.local("nowhere"))
    refused(2, "no file system of ours", "umount", FS.temp)


def it_is_as_a_local_folder():
    local = FS.local("twin")
    for seed in range(1, 7):
        folder = f"{HERE}/twin{seed}"
        for root in (folder, local):
            os.mkdir(root)
        twin(seed, 300, folder, local)
        shutil.rmtree(local)


def run_all():
    global FS, HERE, THERE
    if not can_mount():
        print("skipped: mounts need root and /dev/fuse")
        return 77
    os.umask(0o022)
    tests = [
        what_is_closed_is_there_for_all,
        a_name_is_there_at_once_and_its_bytes_at_the_close,
        two_mounts_count_by_exclusive_creation,
        shells_write_whole_files,
        appends_of_many_processes_are_all_there,
        programs_work,
        maps_are_written_back,
        names_and_links_have_their_errors,
        a_mount_that_was_killed_is_made_anew,
        a_signal_sends_everything,
        the_server_may_be_started_again,
        only_reading,
        command_lines_are_checked,
        it_is_as_a_local_folder,
    ]
    with FileSystem(3) as FS, Mount(FS, "h") as HERE, Mount(FS, "t") as THERE:
        return main(tests, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run_all())
