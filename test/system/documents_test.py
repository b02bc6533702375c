"""Documents tell what is there: each command line that they show is typed, each program compiled, and manual pages have
the options that --help has."""

import os
import re
import shlex
import subprocess
import sys

import documents
from pif_system import BIN, FileSystem, check, main

WORDS_MAX = 30

# Of lines that are not typed here: whether commands and options are there is looked up all the same.
LOOKED_UP = [
    (r"^scripts/(test|demo)", "CI's run is these two"),
    (r"^scripts/|pif bench|pif calibrate", "takes minutes"),
    (r"--hosts|pif (host|key|user|node add)|ann\.curve", "needs several hosts: test/hosts"),
    (r"^pif up /data/pif", "needs several hosts: test/hosts"),
    (r"--disk|/disk9|pif (node|server|rebuild|drill)", "a disk must be lost first: disks_test.py"),
    (r"^(edit|cmake|rm -r DIR|cp -a DIR|mv DIR)|/new/place|/backup", "a person's own steps: disks_test.py"),
    (r"mine\.cc?", "test/install builds such programs"),
    (r"PATH=", "the test's programs are in PATH"),
    (r"snapshot-all-disks|completion", "needs a program of the user's"),
    (r"pif (down|destroy)", "the lines behind it need what it ends"),
]
# (in a document, here): what a person has and the test makes smaller, or ends.
CHANGED = [("tail -f", "tail -n 3"), ("1000000000", "1000000"), ("./mytool", "example-upper-case"), ("~/fs", "fs")]


def local_files(folder):
    """What the command lines name."""
    os.makedirs(os.path.join(folder, "photos"))
    texts = {
        "web.log": "10.0.68.32 GET /page/14 200 99740\n10.0.230.241 GET /page/52 200 12302\n",
        "app.log": "one\ntwo\n",
        "more.log": "three\n",
        "photos/a": "a",
        "data": "data\n",
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    subprocess.run(["gzip", os.path.join(folder, "data")], check=True)
    for name in ("big.dat", "sort.in", "bits"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(range(256)) * 200)


def files_in_pif(fs):
    """Those that a line takes for granted."""
    fs.ok("mkdir", "/old", "/results")
    fs.ok("put", "--record-length", "512", fs.local("bits"), "/bits")
    fs.ok("put", "-q", fs.local("more.log"), "/old/a.tmp", "--lines")
    for path in ("/in", "/big.dat"):
        fs.ok("put", "-q", "--record-length", "100", fs.local("sort.in"), path)


def why_looked_up(line):
    return next((reason for pattern, reason in LOOKED_UP if re.search(pattern, line)), None)


def changed(line, fs):
    for shown, here in CHANGED:
        line = line.replace(shown, here)
    return re.sub(r"\bDIR\b", fs.folder, line)


def shell(fs, line):
    env = dict(fs.env, PATH=f"{os.path.abspath(BIN)}:{os.environ['PATH']}", PIF=fs.folder)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=fs.temp,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )


def simple_commands(line):
    """[words] of each command of a line of the shell; what is no pif command is left out."""
    found = []
    for part in re.split(r"\|\||&&|[;|]", line.replace('eval "$(', "").replace(')"', "").replace("(umask 077", "")):
        try:
            words = shlex.split(part.strip(" ()"))
        except ValueError:
            continue
        if words and words[0] == "pif":
            found.append(words[1:])
    return found


def check_known(fs, line):
    """Its commands are there, and have the options."""
    for words in simple_commands(line):
        words = words[: words.index("--")] if "--" in words else words
        deep = 2 if words[0] in ("node", "server", "host", "key", "user") else 1
        done = fs.run(*words[:deep], "--help")
        check(done.returncode == 0, f"pif {' '.join(words[:deep])} --help: {done.stderr.decode()}")
        known = documents.options_of_help(done.stdout.decode()) | common_options()
        for option in [word.split("=")[0] for word in words if word.startswith("--")]:
            check(option in known, f"`{line}` is shown, and {option} is not in its --help")
    if line.startswith("scripts/"):
        script = os.path.join(documents.ROOT, line.split()[0].rstrip(";"))
        check(os.access(script, os.X_OK), f"{script} is no program")


def every_command_line_can_be_typed():
    with FileSystem(4) as fs:
        local_files(fs.temp)
        files_in_pif(fs)
        typed = 0
        for block, line in documents.all_typed_lines():
            where = f'{block.document} "{block.heading}": `{line}`'
            if why_looked_up(line):
                check_known(fs, line)
                continue
            done = shell(fs, changed(line, fs))
            check(done.returncode == 0, f"{where}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
            typed += 1
        check(typed > 20, f"only {typed} lines were typed")


# ---- programs ----

def programs_that_are_shown_compile():
    """The build compiles examples/ and shown_programs.cc: what documents show is there, letter by letter."""
    compiled = [documents.read("test/system/shown_programs.cc")]
    compiled += [documents.read(f"examples/{name}") for name in os.listdir(os.path.join(documents.ROOT, "examples"))]
    shown = 0
    for document in documents.DOCUMENTS:
        for block in documents.code_blocks(document):
            for piece in re.split(r"\n\n", "\n".join(block.lines).strip("\n")):
                indented = "\n".join("    " + line if line else "" for line in piece.split("\n"))
                is_there = any(piece in text or indented in text for text in compiled)
                check(is_there, f'{document} "{block.heading}" shows what no build compiles:\n{piece}')
                shown += 1
    check(shown > 10, f"only {shown} pieces of programs were found")


# ---- prose ----


def sentences_are_short():
    """At most 30 words, as docs/TESTING.md promises."""
    long = [
        f"{document}: {sentence}"
        for document in documents.DOCUMENTS
        for sentence in documents.sentences(document)
        if len(sentence.split()) > WORDS_MAX
    ]
    check(not long, f"sentences of more than {WORDS_MAX} words:\n" + "\n".join(long))


# ---- manual pages ----

# Every page may tell of these, and pif(1) tells of them for all.
def common_options():
    return documents.options_of_page(documents.page("pif")) | {"--help", "--version"}


def names_of_commands(fs):
    """Commands and tools that `pif help` lists."""
    without_others = dict(fs.env, PATH="/usr/bin:/bin")  # of whoever runs the test
    return re.findall(r"^  ([a-z-]+) ", fs.ok("help", env=without_others).decode(), re.M)


def help_of(program, *words):
    done = subprocess.run([os.path.join(BIN, program), *words, "--help"], stdout=subprocess.PIPE, check=False)
    check(done.returncode == 0, f"{program} {' '.join(words)} --help: exit {done.returncode}")
    return done.stdout.decode()


def helps_of(program, *words):
    """--help of a command or program, and of the commands below it."""
    text = help_of(program, *words)
    below = re.split(r"^Subcommands:?$", text, flags=re.M)
    names = re.findall(r"^  ([a-z-]+) ", below[1], re.M) if len(below) > 1 else []
    return [text] + [help_of(program, *words, name) for name in names]


def options_of(program, *words):
    return set().union(*map(documents.options_of_help, helps_of(program, *words)))


def manual_pages_have_the_options_of_help():
    with FileSystem(1) as fs:
        common = common_options()
        pages = {}
        found = {name: options_of("pif", name) for name in names_of_commands(fs)}
        found["lfs"] = options_of("pif-lfs")
        found["server"] |= options_of("pif-server")
        for name, options in found.items():
            check(documents.has_page(f"pif-{name}"), f"there is no page pif-{name}")
            text = documents.page(f"pif-{name}")
            lacking = options - common - documents.options_of_page(text)
            check(not lacking, f"pif-{name} has {sorted(lacking)}, and its manual page does not tell of them")
            pages.setdefault(text, set()).update(options)
        everywhere = common.union(*pages.values())
        for text, options in pages.items():
            unknown = documents.told_options(text) - everywhere
            title = text.split("\n", 1)[0]
            check(not unknown, f"{title} tells of {sorted(unknown)}, which no command has")


TESTS = [
    every_command_line_can_be_typed,
    programs_that_are_shown_compile,
    sentences_are_short,
    manual_pages_have_the_options_of_help,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
