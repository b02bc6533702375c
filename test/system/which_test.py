"""Which file system: messages say it, down and destroy ask, status --all lists them; nobody else's files are
touched."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time

from pif_system import Failure, FileSystem, check, main

COUNT = 2


def on_a_terminal(fs, words, answer, env=None):
    """A command with a terminal as all its streams, which gets this answer when it asks: exit code, and what it
    printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        fs.command(*words), env=env or fs.env, cwd=fs.temp, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    text = b""
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1)[0]:
                continue
            piece = os.read(ours, 65536)
            if not piece:
                break
            text += piece
            if text.endswith(b"[yes/no] "):
                os.write(ours, answer.encode() + b"\n")
    except OSError:  # how a terminal says that nobody has it open any more
        pass
    os.close(ours)
    return process.wait(timeout=30), text.decode(errors="replace")


def by_default(fs):
    """An environment in which the file system is the user's default, and nothing else names it."""
    env = dict(fs.env)
    del env["PIF"]
    return env


def errors_say_which_file_system_it_was():
    with FileSystem(COUNT) as fs:
        fs.fails(3, rf"/none .*file system {fs.folder}\)", "stat", "/none")
        fs.fails(3, rf"/none .*file system {fs.folder}\)", "stat", "--pif", fs.folder, "/none", env=by_default(fs))
        fs.fails(3, rf"/none .*file system {fs.folder}, your default\)", "stat", "/none", env=by_default(fs), cwd="/")
        done = fs.run("rm", "/none", "/neither", env=by_default(fs), cwd="/")
        check(done.stderr.count(b"your default") == 2, f"each of several: {done}")
        fs.ok("down", fs.folder)
        fs.fails(3, rf"pif up {fs.folder}.*your default", "ls", env=by_default(fs), cwd="/")


def a_bare_down_says_which_one_and_asks_on_a_terminal():
    with FileSystem(COUNT) as fs:
        env = by_default(fs)
        code, text = on_a_terminal(fs, ["down"], "no", env)
        check(code == 3 and f"{fs.folder} (your default)" in text and "nothing was stopped" in text, f"{code}: {text}")
        check(len(fs.processes()) == COUNT + 1, "all run")
        code, text = on_a_terminal(fs, ["down"], "yes", env)
        check(code == 0 and "is down" in text and fs.processes() == [], f"{code}: {text}")
        fs.ok("up", fs.folder)
        code, text = on_a_terminal(fs, ["down", "--yes"], "no", env)
        check(code == 0 and "[yes/no]" not in text, f"--yes does not ask: {text}")
        fs.ok("up", fs.folder)
        code, text = on_a_terminal(fs, ["down", fs.folder], "no", env)
        check(code == 0 and "[yes/no]" not in text, f"who names it means it: {text}")
        fs.ok("up", fs.folder)
        done = fs.run("down", env=env)
        check(
            done.returncode == 0 and f"stopping the file system {fs.folder} (your default)".encode() in done.stderr,
            f"{done}",
        )
        check(fs.processes() == [], "without a terminal it goes on")


def up_in_a_folder_with_other_things_wants_force():
    with FileSystem(COUNT) as fs:
        other = fs.local("other")
        os.mkdir(other)
        for name in ("precious.txt", "more"):
            with open(os.path.join(other, name), "wb"):
                pass
        for command in ("up", "init"):
            fs.fails(3, r"has more and 1 more in it.*other/pif.*--force", command, other)
        check(sorted(os.listdir(other)) == ["more", "precious.txt"], "nothing was made")
        fs.ok("init", "-n", "2", "--force", other)
        fs.fails(3, "holds a file system already", "init", other)
        fs.ok("up", other)
        fs.ok("up", other)  # it is a file system now
        fs.ok("destroy", "--yes", other)
        check(
            sorted(os.listdir(other)) == ["more", "precious.txt"],
            f"what was there before is there: {os.listdir(other)}",
        )
        os.mkdir(fs.local("disk"))
        os.mkdir(fs.local("disk/lost+found"))
        fs.ok("init", fs.local("disk"))


def destroy_removes_a_file_system_and_nothing_else():
    with FileSystem(COUNT) as fs:
        fs.ok("put", "--lines", "-", "/a", data=b"a\nb\nc\n" * 1000)
        fs.ok("sort", "-q", "/a", "/b")
        fs.ok("destroy", "--yes", fs.folder)
        check(not os.path.exists(fs.folder) and fs.processes() == [], "it is gone, and its daemons")
        fs.fails(3, "your default|no file system", "ls", env=by_default(fs), cwd="/")
        check(
            fs.json("status", "--all", env=by_default(fs), cwd="/") == {"file_systems": []}, "nobody knows it any more"
        )


def destroy_asks_and_needs_somebody_to_answer():
    with FileSystem(COUNT) as fs:
        fs.ok("put", "-", "/a", data=b"a")
        fs.fails(2, "--yes", "destroy", fs.folder)
        code, text = on_a_terminal(fs, ["destroy", fs.folder], "no")
        check(code == 3 and f"{COUNT + 1} daemons running" in text and "nothing was removed" in text, f"{code}: {text}")
        check(fs.content("/a") == b"a", "all is there")
        fs.fails(3, "no pif.toml", "destroy", "--yes", fs.temp)
        code, text = on_a_terminal(fs, ["destroy", fs.folder], "yes")
        check(code == 0 and "is removed" in text and not os.path.exists(fs.folder), f"{code}: {text}")


def destroy_leaves_what_is_not_the_file_systems():
    with FileSystem(COUNT) as fs:
        outside = fs.local("outside")
        os.mkdir(outside)
        with open(os.path.join(outside, "00000000000004d2.dat"), "wb"):
            pass
        foreign = [
            "notes.txt",
            "lfs0/notes.txt",
            "lfs0/data/notes.txt",
            "server/notes.txt",
            "keys/notes.txt",
            "run/notes.txt",
        ]
        for name in foreign:
            with open(os.path.join(fs.folder, name), "wb"):
                pass
        shutil.rmtree(os.path.join(fs.folder, "lfs1/scratch"))
        os.symlink(outside, os.path.join(fs.folder, "lfs1/scratch"))
        os.makedirs(os.path.join(fs.folder, "lfs1/data"), exist_ok=True)
        linked = os.path.join(fs.folder, "lfs1/data/d2")
        shutil.rmtree(linked, ignore_errors=True)
        os.symlink(outside, linked)
        removed = fs.json("destroy", "--yes", fs.folder)
        expected = sorted(os.path.join(fs.folder, name) for name in foreign + ["lfs1/scratch", "lfs1/data/d2"])
        check(sorted(removed["left"]) == expected, f"{removed['left']}")
        left = sorted(
            os.path.relpath(os.path.join(at, name), fs.folder)
            for at, folders, names in os.walk(fs.folder)
            for name in names + [f for f in folders if os.path.islink(os.path.join(at, f))]
        )
        check(left == sorted(foreign + ["lfs1/scratch", "lfs1/data/d2"]), f"only those are there: {left}")
        check(os.listdir(outside) == ["00000000000004d2.dat"], "no link was followed")


def destroy_names_roots_elsewhere_and_takes_no_others():
    with FileSystem(COUNT) as fs:
        made, other = fs.local("made"), fs.local("elsewhere")
        fs.ok("init", "-n", "3", made)
        description = os.path.join(made, "pif.toml")
        with open(description) as file:
            text = file.read()
        check('root = "lfs1"' in text, f"{text}")
        with open(description, "w") as file:
            file.write(text.replace('root = "lfs1"', f'root = "{other}"'))
        fs.ok("up", made)
        fs.ok("down", made)
        # The root of another file system, where one of its own should be.
        fs.ok("down", fs.folder)
        shutil.rmtree(os.path.join(made, "lfs2"))
        shutil.copytree(os.path.join(fs.folder, "lfs0"), os.path.join(made, "lfs2"))
        code, text = on_a_terminal(fs, ["destroy", made], "no")
        check(f"roots elsewhere that are removed, too: {other}" in text and "lfs2 is of the file system" in text, text)
        removed = fs.json("destroy", "--yes", made)
        check(not os.path.exists(other), "the root elsewhere is gone")
        check(
            os.path.exists(os.path.join(made, "lfs2/lfs.toml")) and "lfs2" in removed["untouched_roots"][0],
            f"{removed}",
        )
        fs.ok("up", fs.folder)


def destroy_goes_on_where_it_was_interrupted():
    with FileSystem(COUNT) as fs:
        fs.ok("put", "-", "/a", data=b"a")
        fs.ok("down", fs.folder)
        shutil.rmtree(os.path.join(fs.folder, "lfs0"))
        shutil.rmtree(os.path.join(fs.folder, "keys"))
        os.remove(os.path.join(fs.folder, "server/directory/data.mdb"))
        fs.ok("destroy", "--yes", fs.folder)
        check(not os.path.exists(fs.folder), "the rest is gone")


def destroy_is_for_the_owner():
    if os.geteuid() != 0:
        return
    with FileSystem(COUNT) as fs:
        os.chmod(fs.temp, 0o755)
        program, *words = fs.command("destroy", "--yes", fs.folder)
        reachable = shutil.copy(program, fs.local("pif"))  # the build may be in a folder of root's alone
        done = subprocess.run(
            [reachable, *words],
            env=dict(fs.env, HOME="/nonexistent"),
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
            user=12345,
            group=12345,
            extra_groups=[],
        )
        check(done.returncode == 3 and b"belongs to user 0" in done.stderr, f"{done}")
        fs.ok("put", "-", "/a", data=b"a")


def status_all_lists_what_the_user_has_started():
    with FileSystem(COUNT) as fs:
        second = fs.local("second")
        fs.ok("up", "-n", "1", second)
        try:

            def states():
                return [
                    (s["folder"], s["state"], s["running"], s["default"])
                    for s in fs.json("status", "--all")["file_systems"]
                ]

            check(states() == [(fs.folder, "up", COUNT + 1, True), (second, "up", 2, False)], f"{states()}")
            fs.kill("lfs0")
            fs.ok("down", second)
            check(states() == [(fs.folder, "partly up", COUNT, True), (second, "down", 0, False)], f"{states()}")
            text = fs.ok("status", "--all").decode()
            check(f"*  partly up  {COUNT} of {COUNT + 1}" in text and second in text, text)
            shutil.rmtree(second)
            check(states()[1][:2] == (second, "gone"), f"{states()}")
        finally:
            if os.path.exists(second):
                fs.run("down", second)
        if not fs.processes():
            raise Failure("the first one still runs")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                errors_say_which_file_system_it_was,
                a_bare_down_says_which_one_and_asks_on_a_terminal,
                up_in_a_folder_with_other_things_wants_force,
                destroy_removes_a_file_system_and_nothing_else,
                destroy_asks_and_needs_somebody_to_answer,
                destroy_leaves_what_is_not_the_file_systems,
                destroy_names_roots_elsewhere_and_takes_no_others,
                destroy_goes_on_where_it_was_interrupted,
                destroy_is_for_the_owner,
                status_all_lists_what_the_user_has_started,
            ]
        )
    )
