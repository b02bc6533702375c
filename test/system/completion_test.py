"""Shells complete command lines of pif: the scripts parse, and complete words as somebody who presses Tab gets them."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time

from pif_system import BIN, FileSystem, check, main

FS = None
SHELLS = ("bash", "zsh", "fish")
PROMPT = b"ready> "


def script(shell):
    path = FS.local("completion." + shell)
    with open(path, "wb") as file:
        file.write(FS.ok("completion", shell))
    return path


def env():
    return dict(FS.env, PATH=BIN + ":" + os.environ["PATH"], TERM="dumb", PS1=PROMPT.decode(), HOME=FS.temp)


def scripts_parse():
    for shell in SHELLS:
        path = script(shell)
        if shutil.which(shell) is None:
            continue
        done = subprocess.run(
            [shell, "-n", path], env=env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False
        )
        check(done.returncode == 0 and done.stderr == b"", f"{shell} -n: {done}")
    FS.fails(2, "SHELL", "completion", "csh")


def what_is_built_to_be_installed_is_what_is_printed():
    folder = os.path.join(os.path.dirname(os.path.realpath(BIN)), "completion")
    if not os.path.isdir(folder):
        return  # an installed pif
    for shell, name in (("bash", "pif"), ("zsh", "_pif"), ("fish", "pif.fish")):
        with open(os.path.join(folder, name), "rb") as file:
            check(file.read() == FS.ok("completion", shell), f"{name}")


def asked(*words):
    return [line.split("\t")[0] for line in FS.ok("complete", "--", *words).decode().splitlines()]


def names_of_the_file_system_are_completed():
    check(asked("ls", "/da") == ["/data/"] and asked("ls", "pif:/da") == ["pif:/data/"], "a folder")
    check(
        asked("cat", "/data/") == ["/data/one.txt", "/data/other.txt", "/data/sub/", "/data/with blank"],
        "what is in it, not hidden",
    )
    check(asked("cat", "/data/.") == ["/data/.hidden"], "and those")
    check(asked("cat", "/data/o") == ["/data/one.txt", "/data/other.txt"], "those that begin so")
    check(asked("sort", "/data/one") == ["/data/one.txt"], "for a tool, too")
    check("--key" in asked("sort", "--k"), "and its options")
    check(
        asked("put", "/data/on") == ["/data/one.txt", ":files"] and asked("up", "x") == [":folders"],
        "local names are the shell's",
    )
    check(
        asked("ls", "--pif", FS.folder, "/da") == ["/data/"] and asked("ls", "--pif=/nowhere", "/da") == [],
        "of the one that is meant",
    )
    check(asked("ls", "relative") == [] and asked("ls", "/none/x") == [], "nothing is silence")


def nothing_is_said_when_no_file_system_is_there():
    done = FS.run("complete", "--", "ls", "/", env=dict(FS.env, PIF="/nowhere"))
    check((done.returncode, done.stdout, done.stderr) == (0, b"", b""), f"{done}")


class Bash:
    """An interactive shell with the script, and a terminal to type on."""

    def __enter__(self):
        ours, theirs = pty.openpty()
        self.terminal = ours
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            env=env(),
            cwd=FS.temp,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.run(f"bind 'set bell-style none'; source {script('bash')}")
        return self

    def __exit__(self, *ignored):
        os.close(self.terminal)
        self.process.kill()
        self.process.wait(timeout=30)

    def run(self, typed):
        """What the line prints when it is done."""
        os.write(self.terminal, typed.encode() + b"; echo the''end\n")
        text, deadline = b"", time.monotonic() + 60
        while b"theend\r\n" not in text:
            check(time.monotonic() < deadline, f"bash does not answer to {typed!r}: {text!r}")
            if select.select([self.terminal], [], [], 1)[0]:
                text += os.read(self.terminal, 65536)
        return text.replace(b"\r\n", b"\n").split(b"echo the''end\n", 1)[-1]


def bash_completes_what_is_typed():
    with Bash() as bash:
        for typed, printed in (
            ("pif cat /data/on\t", b"one\n"),
            ("pif cat /data/wi\t", b"blank\n"),
            ("pif hea\t/data/one.txt", b"one\n"),
            ("pif ls --rou\tunix /da\tsub", b"deep.txt\n"),
            ("pif cat pif:/data/on\t", b"one\n"),
            (f"pif ls --pif={FS.folder[:-1]}\t /data/su\t", b"deep.txt\n"),
            ("pif ls /data/sub\tde\t", b"/data/sub/deep.txt\n"),
        ):
            text = bash.run(typed)
            check(printed in text, f"{typed!r}: {text!r}")
        text = bash.run("pif put loc\t /data/stored && pif cat /data/stored")
        check(b"local file" in text, f"a local name: {text!r}")


def fish_completes_what_is_typed():
    if shutil.which("fish") is None:
        return
    for typed, words in (
        ("pif cat /data/o", ["/data/one.txt", "/data/other.txt"]),
        ("pif sta", ["stat", "status"]),
        ("pif ls --route u", ["unix"]),
    ):
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script('fish')}; complete -C '{typed}'"],
            env=env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=True,
        )
        found = [line.split("\t")[0] for line in done.stdout.decode().splitlines()]
        check(sorted(found) == words, f"{typed!r}: {done}")


def run_all():
    global FS
    with FileSystem(2) as FS:
        FS.ok("mkdir", "-p", "/data/sub")
        for name, data in (
            ("one.txt", b"one\n"),
            ("other.txt", b"other\n"),
            ("with blank", b"blank\n"),
            (".hidden", b"h"),
            ("sub/deep.txt", b"d"),
        ):
            FS.ok("put", "-q", "-", "/data/" + name, data=data)
        with open(FS.local("local.txt"), "wb") as file:
            file.write(b"local file\n")
        return main(
            [
                scripts_parse,
                what_is_built_to_be_installed_is_what_is_printed,
                names_of_the_file_system_are_completed,
                nothing_is_said_when_no_file_system_is_there,
                bash_completes_what_is_typed,
                fish_completes_what_is_typed,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
