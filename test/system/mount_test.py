"""A mounted file system, as programs that know nothing of it use it.

PIF_TWIN_SEEDS=N: so many times 300 random steps on each mount and beside it; PIF_TWIN_FIRST=N: from that seed on."""

import contextlib
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
HERE = THERE = LAZY = ""


def shell(text, folder=None, code=0):
    done = subprocess.run(["bash", "-c", text], cwd=folder or HERE, capture_output=True, timeout=300)
    check(done.returncode == code, f"{text}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def fails(wanted, call, *arguments, **more):
    try:
        call(*arguments, **more)
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


def a_removed_folder_is_there_for_who_has_it_open():
    for folder in (f"{HERE}/removed", f"{LAZY}/removed"):
        os.mkdir(folder, 0o750)
        fd = os.open(folder, os.O_RDONLY)
        before = os.fstat(fd)
        os.rmdir(folder)
        after = os.fstat(fd)
        check((after.st_mode, after.st_uid, after.st_nlink) == (before.st_mode, before.st_uid, 0), f"{after}")
        fails(errno.ENOENT, os.open, "new", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd)
        os.close(fd)


def an_unlinked_file_outlives_its_folder():
    for root in (HERE, LAZY):
        os.makedirs(f"{root}/outer/inner")
        write(f"{root}/outer/inner/f", b"x" * 5000)
        fd = os.open(f"{root}/outer/inner/f", os.O_RDWR)
        os.unlink(f"{root}/outer/inner/f")
        os.rmdir(f"{root}/outer/inner")
        os.rename(f"{root}/outer", f"{root}/moved")
        os.ftruncate(fd, 100)
        os.pwrite(fd, b"y" * 10, 200)
        check(os.pread(fd, 1000, 0) == b"x" * 100 + bytes(100) + b"y" * 10, "its bytes are there")
        os.close(fd)
        os.rmdir(f"{root}/moved")


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


def it_is_as_a_local_folder(mounted=None, first=int(os.environ.get("PIF_TWIN_FIRST", 1)), count=6):
    seeds = range(first, first + int(os.environ.get("PIF_TWIN_SEEDS", count)))
    local = FS.local("twin")
    for seed in seeds:
        folder = f"{mounted or HERE}/twin{seed}"
        for root in (folder, local):
            os.mkdir(root)
        twin(seed, 300, folder, local)
        shutil.rmtree(local)
        shutil.rmtree(folder)


def a_lazy_mount_is_as_a_local_folder():
    it_is_as_a_local_folder(LAZY, int(os.environ.get("PIF_TWIN_FIRST", 101)), 12)


def lazy_files_are_here_at_once_and_elsewhere_soon():
    os.mkdir(f"{LAZY}/lazy")
    for i in range(700):
        write(f"{LAZY}/lazy/{i}", b"%d" % i * 900)
        check(read(f"{LAZY}/lazy/{i}") == b"%d" % i * 900, "this mount reads it at once")
    await_condition(lambda: len(os.listdir(f"{THERE}/lazy")) == 700, "the others see all")
    check(all(read(f"{THERE}/lazy/{i}") == b"%d" % i * 900 for i in range(700)), "whole")
    numbers = {entry.name: entry.inode() for entry in os.scandir(f"{LAZY}/lazy")}
    check(all(os.stat(f"{LAZY}/lazy/{name}").st_ino == number for name, number in numbers.items()), "one number each")


def lazy_files_of_any_size_are_sent_together():
    os.mkdir(f"{LAZY}/sizes")
    sizes = [0, 1, 4096, 90_000, 100_000, 300_000, 700_000, 1 << 20, (1 << 20) + 1, 3_000_000] * 8
    for i, size in enumerate(sizes):
        write(f"{LAZY}/sizes/{i}", bytes([i]) * size)
    fd = os.open(f"{LAZY}/sizes", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    await_condition(lambda: len(os.listdir(f"{THERE}/sizes")) == len(sizes), "the others see all")
    for i, size in enumerate(sizes):
        check(read(f"{THERE}/sizes/{i}") == bytes([i]) * size, f"{size} bytes, file {i}")


def what_was_closed_before_a_rename_or_fsync_is_there():
    os.mkdir(f"{LAZY}/order")
    for i in range(5):
        write(f"{LAZY}/order/data{i}", b"d" * 1000)
        write(f"{LAZY}/order/new", b"n%d" % i)
        os.rename(f"{LAZY}/order/new", f"{LAZY}/order/done{i}")
        check(read(f"{THERE}/order/data{i}") == b"d" * 1000, "the older file")
        check(read(f"{THERE}/order/done{i}") == b"n%d" % i, "the renamed one")
    write(f"{LAZY}/order/closed", b"c")
    with open(f"{LAZY}/order/synced", "wb") as file:
        file.write(b"s" * 5000)
        file.flush()
        os.fsync(file.fileno())
        check(read(f"{THERE}/order/synced") == b"s" * 5000, "fsync sends it")
        check(read(f"{THERE}/order/closed") == b"c", "and the older one")
        file.write(b"t")
    check(read(f"{THERE}/order/synced") == b"s" * 5000 + b"t", "from then on it is strict")


def lazy_files_keep_what_programs_set():
    path = f"{LAZY}/set"
    write(path, b"x")
    os.chmod(path, 0o604)
    os.chown(path, 12, 34)
    os.utime(path, ns=(10**18, 10**18))
    seen = os.stat(path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    for mount in (LAZY, THERE):
        now = os.stat(f"{mount}/set")
        for name in ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns"):
            check(getattr(now, name) == getattr(seen, name), f"{mount}: {name}")
    os.mkdir(f"{LAZY}/shared")
    os.chown(f"{LAZY}/shared", 0, 34)
    os.chmod(f"{LAZY}/shared", 0o2775)
    write(f"{LAZY}/shared/f", b"x")
    check(os.stat(f"{LAZY}/shared/f").st_gid == 34, "a set-group-id folder gives its group")


def dropped_files_are_never_seen():
    os.mkdir(f"{LAZY}/dropped")
    for i in range(50):
        write(f"{LAZY}/dropped/f{i}", b"x")
        os.unlink(f"{LAZY}/dropped/f{i}")
        fails(errno.ENOENT, os.stat, f"{LAZY}/dropped/f{i}")
    os.close(os.open(f"{LAZY}/dropped/again", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    fails(errno.EEXIST, os.open, f"{LAZY}/dropped/again", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails(errno.ENOTEMPTY, os.rmdir, f"{LAZY}/dropped")
    os.unlink(f"{LAZY}/dropped/again")
    os.rmdir(f"{LAZY}/dropped")


def programs_work_lazily():
    folder = f"{LAZY}/programs"
    os.mkdir(folder)
    shell("mkdir src && for i in $(seq 400); do echo $i > src/f$i; done", folder)
    shell("tar cf a.tar src && mkdir out && tar xf a.tar -C out && diff -r src out/src", folder)
    shell("sed -i s/1/one/ src/f1 && test $(cat src/f1) = one && cp -a src copy && diff -r src copy", folder)
    shell("mv copy moved && (ls; ls) > moved/twice && test $(wc -l < moved/twice) -gt 3 && rm -r moved", folder)
    shell("dd if=/dev/zero of=zeros bs=4k count=3 status=none && test $(stat -c %s zeros) = 12288", folder)
    shell("for i in $(seq 50); do echo $i >> log; done; test $(wc -l < log) = 50", folder)
    with open(f"{folder}/mapped", "w+b") as file:
        file.truncate(10_000)
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[5000:5005] = b"hello"
    check(read(f"{folder}/mapped")[5000:5005] == b"hello", "what was written to the map")


def logged_mount(name):
    mount = Mount(FS, name, "lazy")
    os.mkdir(mount.folder)
    command = [os.path.join(BIN, "pif-mount"), "-f", "-o", "lazy", FS.folder, mount.folder]
    process = subprocess.Popen(command, env=FS.env, stderr=subprocess.PIPE)
    await_condition(lambda: os.path.ismount(mount.folder), "it is mounted")
    return mount, process


def errors_of_lazy_files_are_told_at_fsync_or_logged():
    mount, process = logged_mount("logged")
    os.mkdir(f"{HERE}/going")
    await_condition(lambda: os.path.isdir(f"{mount.folder}/going"), "the folder is known")
    file = os.open(f"{mount.folder}/going/synced", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"s")
    write(f"{mount.folder}/going/closed", b"c")
    FS.ok("rm", "-r", "/going")
    fails(errno.ENOENT, os.fsync, file)
    with contextlib.suppress(OSError):
        os.close(file)
    mount.end()
    check(b"closed: the file is lost" in process.communicate(timeout=60)[1], "the log names the other")


def a_lazy_mount_that_is_killed_loses_at_most_what_waited():
    mount = Mount(FS, "killed-lazy", "lazy")
    mount.begin()
    folder = f"{mount.folder}/many"
    os.mkdir(folder)
    for i in range(1000):
        write(f"{folder}/{i}", b"k" * (i * 10 + 1))
    with open(f"{folder}/600", "rb") as file:
        os.fsync(file.fileno())
    for i in range(1000, 1500):
        write(f"{folder}/{i}", b"k" * (i * 10 + 1))
    os.kill(mount.process(), signal.SIGKILL)
    await_condition(lambda: mount.process() is None, "it is gone")
    left = {int(name): len(read(f"{HERE}/many/{name}")) for name in os.listdir(f"{HERE}/many")}
    check(set(range(1000)) <= set(left), "what was closed before an fsync is there")
    check(all(size == i * 10 + 1 for i, size in left.items()), "and each file is whole")
    mount.begin()
    mount.end()


def the_end_of_a_lazy_mount_sends_everything():
    for end in (lambda mount: mount.end(), lambda mount: os.kill(mount.process(), signal.SIGTERM)):
        mount = Mount(FS, "ended-lazy", "lazy")
        mount.begin()
        for i in range(20):
            write(f"{mount.folder}/ended{i}", b"e" * 100)
        end(mount)
        await_condition(lambda mount=mount: mount.process() is None, "it ends")
        check(all(read(f"{HERE}/ended{i}") == b"e" * 100 for i in range(20)), "all are there")
        for i in range(20):
            os.unlink(f"{HERE}/ended{i}")


def of_two_lazy_mounts_the_later_file_stays():
    with Mount(FS, "second-lazy", "lazy") as second:
        for mount, data in ((LAZY, b"first"), (second, b"later")):
            write(f"{mount}/both", data)
            with open(f"{mount}/both", "rb") as file:
                os.fsync(file.fileno())
        check(read(f"{THERE}/both") == b"later", "the later one")
        write(f"{second}/one", b"1")
    check(read(f"{LAZY}/one") == b"1", "its umount has sent it")


def run_all():
    global FS, HERE, THERE, LAZY
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
        a_removed_folder_is_there_for_who_has_it_open,
        an_unlinked_file_outlives_its_folder,
        a_mount_that_was_killed_is_made_anew,
        a_signal_sends_everything,
        the_server_may_be_started_again,
        only_reading,
        command_lines_are_checked,
        it_is_as_a_local_folder,
        a_lazy_mount_is_as_a_local_folder,
        lazy_files_are_here_at_once_and_elsewhere_soon,
        lazy_files_of_any_size_are_sent_together,
        what_was_closed_before_a_rename_or_fsync_is_there,
        lazy_files_keep_what_programs_set,
        dropped_files_are_never_seen,
        programs_work_lazily,
        errors_of_lazy_files_are_told_at_fsync_or_logged,
        a_lazy_mount_that_is_killed_loses_at_most_what_waited,
        the_end_of_a_lazy_mount_sends_everything,
        of_two_lazy_mounts_the_later_file_stays,
    ]
    with FileSystem(3) as FS, Mount(FS, "h") as HERE, Mount(FS, "t") as THERE, Mount(FS, "l", "lazy") as LAZY:
        return main(tests, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run_all())
