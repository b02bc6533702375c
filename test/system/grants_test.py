"""What users give to workers: folders (--read, --write), files (--file), and settings that allow it (pif config)."""

import os
import re
import shutil
import subprocess
import sys

from pif_system import BIN, FileSystem, check, check_failure, main_on

FS = None
COUNT = 3
STRANGER = 54321  # a user that nobody is


def folder(name, mode=0o755):
    path = FS.local(name)
    os.makedirs(path, exist_ok=True)
    os.chmod(path, mode)
    return path


def file_in(where, name, text, mode=0o644):
    path = os.path.join(where, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def each(command, *options):
    """What the shell of each LFS's worker says."""
    return FS.ok("map", "-q", *options, command, "/in").decode().splitlines()


def refused(pattern, *options):
    FS.fails(3, pattern, "map", "-q", *options, "true", "/in")


# ---- folders ----


def nothing_is_open_that_was_not_given():
    path = file_in(folder("given"), "data", "hello\n")
    check(each(f"cat {path} || true") == [], "the file is read without a grant")
    check(each(f"cat {path}", "--read", FS.local("given")) == ["hello"] * COUNT, "it is read with one")
    check(each(f"cat {path} || true", "--read", folder("other")) == [], "another folder's grant opens it")


def what_is_given_to_read_is_only_read():
    given = folder("given")
    path = file_in(given, "data", "hello\n")
    tries = f"echo x > {path}; echo x > {given}/new; rm -f {path}; mkdir {given}/sub; true"
    each(tries, "--read", given)
    check(os.listdir(given) == ["data"] and open(path).read() == "hello\n", "a worker wrote to what it may read")
    script = file_in(given, "run", "#!/bin/sh\necho ran\n", 0o755)
    check(each(script, "--read", given) == ["ran"] * COUNT, "programs there run")
    os.unlink(script)


def what_is_given_to_write_is_written():
    given = folder("made")
    each(f"mkdir {given}/$$ && echo x > {given}/$$/a && mv {given}/$$/a {given}/$$.b", "--write", given)
    check(len(os.listdir(given)) == 2 * COUNT, "each worker makes what it wants")
    cwd = FS.run("map", "-q", "--write", "made", "ls made | wc -l", "/in", cwd=FS.temp)
    check(cwd.stdout.split() == [b"%d" % (2 * COUNT)] * COUNT, f"a relative folder is the user's: {cwd}")
    shutil.rmtree(given)


def several_are_given():
    one, two = folder("one"), folder("two")
    file_in(one, "data", "1\n")
    each(f"cat {one}/data > {two}/$$", "--read", one, "--write", two)
    check(len(os.listdir(two)) == COUNT, "each worker uses two")
    FS.fails(2, r"17 folders .* at most 16", "map", *(["--read", one] * 17), "true", "/in")


def no_grant_reaches_the_file_system():
    fs, link = FS.folder, FS.local("link")
    os.symlink(os.path.join(fs, "lfs0"), link)
    inside = os.path.join(fs, "lfs1", "data")
    places = [fs, os.path.join(fs, "lfs0"), inside, os.path.join(fs, "keys"), os.path.join(fs, "run"), "/", FS.temp]
    for place in places + [link, os.path.join(fs, "server"), os.path.join(link, "..", "keys"), "/proc"]:
        for option in ("--read", "--write"):
            why = r"it (is|has) in.*name another folder"
            if place == "/proc":
                why += "|Operation not permitted"  # nobody writes there
            refused(r"worker \d on lfs\d.*" + f"({why})", option, place)
    os.unlink(link)


def what_is_no_folder_is_refused():
    path = file_in(folder("given"), "data", "")
    refused(r"--read .*/nowhere: No such file", "--read", FS.local("nowhere"))
    refused(r"--write .*/data: Not a directory", "--write", path)
    FS.fails(2, r"--read", "map", "--read", "", "true", "/in")


def a_user_gives_only_what_is_his():
    if os.geteuid() != 0:
        return
    programs, his, ours = folder("programs"), folder("his"), folder("ours")
    os.chown(his, STRANGER, STRANGER)
    os.chmod(FS.temp, 0o755)
    for name in ("pif", "pif-map"):
        shutil.copy(os.path.join(BIN, name), programs)

    def ask(*words):
        return subprocess.run(
            [os.path.join(programs, "pif"), "map", "-q", *words, "/in"],
            env=FS.env, cwd="/", capture_output=True, timeout=60, user=STRANGER, group=STRANGER, extra_groups=[],
        )

    done = ask("--write", his, f"echo x > {his}/$$")
    check(done.returncode == 0 and len(os.listdir(his)) == COUNT, f"his own: {done}")
    check({os.stat(os.path.join(his, name)).st_uid for name in os.listdir(his)} == {STRANGER}, "as him")
    for words in (["--write", ours], ["--read", folder("secret", 0o700)]):
        done = ask(*words, "true")
        check(done.returncode == 3 and b"Permission denied" in done.stderr, f"{words}: {done}")


# ---- settings ----


def the_owner_may_forbid_grants():
    given, description = folder("given"), os.path.join(FS.folder, "pif.toml")
    check("format = 2" in open(description).read(), "nothing is set at first")
    FS.ok("config", "set", "grants", "none")
    text = open(description).read()
    check("format = 4" in text and re.search(r'^grants = "none"', text, re.M), f"pif.toml says so: {text}")
    check(FS.json("config", "list") == {"grants": "none", "worker-memory": "half"}, "it is shown")
    for option in ("--read", "--write"):
        refused(r'grants = "none".*pif config set grants any', option, given)
    check(each("echo x") == ["x"] * COUNT, "without a grant workers run")
    FS.ok("down", FS.folder)
    FS.ok("up", FS.folder)
    refused(r'grants = "none"', "--read", given)
    FS.ok("config", "set", "grants", "any")
    check("format = 2" in open(description).read(), "older programs may use it again")
    check(each("echo x", "--read", given) == ["x"] * COUNT, "LFSs heed it at once")


def settings_are_checked():
    FS.fails(2, r"'memory' is no key.*config list", "config", "set", "memory", "none")
    FS.fails(2, r"grants is any or none, not 'some'", "config", "set", "grants", "some")
    check(b"worker-memory = half" in FS.ok("config", "list"), "text")
    description = os.path.join(FS.folder, "pif.toml")
    before = open(description).read()
    file_in(FS.folder, "pif.toml", before.replace("format = 2", 'format = 4\ngrants = "few"'))
    done = FS.run("config", "list")
    file_in(FS.folder, "pif.toml", before)
    check_failure(done, ["config", "list"], 3, r'pif.toml, line \d+: grants must be "any" or "none"')


def a_program_with_a_sanitizer_runs_without_the_limit():
    given = folder("sanitized")
    source = file_in(given, "main.c", 'int puts(const char*);\nint main(void) { return puts("ran") < 0; }\n')
    program = os.path.join(given, "program")
    built = subprocess.run(["gcc", "-fsanitize=address", source, "-o", program], capture_output=True)
    if built.returncode != 0 or os.environ.get("PIF_SANITIZED"):
        return  # no sanitizer here, or this build has no limit
    FS.fails(3, r"exit code|signal", "map", "-q", "--read", given, program, "/in")
    FS.ok("config", "set", "worker-memory", "none")
    check(each(program, "--read", given) == ["ran"] * COUNT, "it runs")
    FS.ok("config", "set", "worker-memory", "half")


# ---- files ----


def files_come_along():
    path = file_in(folder("brought"), "table.txt", "one\ntwo\n")
    check(each("cat $TMPDIR/table.txt", "--file", path) == ["one", "two"] * COUNT, "each worker has it")
    big = file_in(folder("brought"), "big", "x" * (16 << 20))
    check(each("wc -c < $TMPDIR/big", "--file", big) == [str(16 << 20)] * COUNT, "16 MiB")
    FS.fails(3, r"over 16 MiB.*--read", "map", "--file", big, "--file", path, "true", "/in")
    twin = file_in(folder("given"), "table.txt", "")
    FS.fails(2, r"another one is called table.txt", "map", "--file", path, "--file", twin, "true", "/in")
    FS.fails(3, r"cannot read --file .*/missing", "map", "--file", FS.local("missing"), "true", "/in")
    FS.fails(3, r"is a folder: name a file", "map", "--file", FS.local("given"), "true", "/in")


TESTS = [
    nothing_is_open_that_was_not_given,
    what_is_given_to_read_is_only_read,
    what_is_given_to_write_is_written,
    several_are_given,
    no_grant_reaches_the_file_system,
    what_is_no_folder_is_refused,
    a_user_gives_only_what_is_his,
    the_owner_may_forbid_grants,
    settings_are_checked,
    a_program_with_a_sanitizer_runs_without_the_limit,
    files_come_along,
]

if __name__ == "__main__":
    with FileSystem(COUNT) as FS:
        FS.ok("put", "-q", "--lines", "-", "/in", data=b"a\nb\nc\n")
        sys.exit(main_on(FS, TESTS, sys.argv[1:]))
