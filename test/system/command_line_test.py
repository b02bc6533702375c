"""Words, numbers and streams that are not what a command expects: brackets, line breaks, closed descriptors, odd
folders."""

import json
import os
import pty
import re
import socket
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, main_on

FS = None


def shell(text, cwd=None):
    """A shell's command, in which $pif is the program, also if its path has a space."""
    env = dict(FS.env, pif=FS.command()[0])
    return subprocess.run(
        ["sh", "-c", text.replace("$pif", '"$pif"')],
        env=env,
        cwd=cwd or FS.temp,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )


def must(code, pattern, text, cwd=None):
    done = shell(text, cwd)
    check(done.returncode == code and pattern in done.stderr, f"{text}: {done}")
    check(done.stderr.count(b"\n") <= 1, f"{text}: stderr is not one line: {done.stderr!r}")
    return done


def write(name, data):
    with open(FS.local(name), "wb") as file:
        file.write(data)


def names_with_brackets_are_names():
    write("keep", b"precious")
    write("[keep]", b"listed")
    write("[keep,keep]", b"two")
    FS.ok("mkdir", "/brackets")
    must(0, b"", "$pif put -q keep '[keep]' '[keep,keep]' /brackets")
    check(
        FS.content("/brackets/[keep]") == b"listed" and FS.content("/brackets/[keep,keep]") == b"two",
        "each file is itself",
    )
    must(0, b"", "$pif get -q /brackets/keep '[got]'")
    must(0, b"", "$pif get -q '/brackets/[keep]' '[keep]'")
    with open(FS.local("[got]"), "rb") as got, open(FS.local("keep"), "rb") as keep:
        check(got.read() == keep.read() == b"precious", "no other file is written to")
    must(2, b"no path in the file system", "$pif rm '[/brackets/keep,/a]'")
    check(FS.content("/brackets/keep") == b"precious", "not a list of files to remove")


def run_takes_words_as_they_are():
    for words in ("ls -d '[keep]'", "-- ls -d '[keep]'", "--route unix -- ls -d '[keep]'"):
        done = must(0, b"", f"$pif run {words}")
        check(done.stdout == b"[keep]\n", f"{words}: {done}")
    must(2, b"which program", "$pif run --")


def a_closed_or_full_stderr_changes_no_exit_code():
    for code, text in [
        (0, "$pif df"),
        (3, "$pif ls /none"),
        (0, "$pif put --verbose keep /kept"),
        (2, "$pif nonsense"),
        (2, "$pif ls --nonsense"),
        (1, "$pif sort -c /disorder"),
        (3, "$pif copy /none /x"),
    ]:
        for to in ("2>&-", "2>/dev/full"):
            done = shell(f"{text} {to}")
            check(done.returncode == code and not done.stderr, f"{text} {to}: {done}")


def a_closed_stdin_or_stdout_is_an_error():
    for words in ("cat /a", "get /a -", "ls", "ls --json", "copy --json /a /out", "--version", "sort --help"):
        must(3, b"standard output", f"$pif {words} >&-")
    must(3, b"standard input", "$pif put - /never <&-")
    FS.fails(3, "/never", "stat", "/never")


def help_that_nobody_gets_is_an_error():
    for text in ("$pif --help", "$pif --version", "$pif ls --help", "$pif sort --help"):
        must(3, b"standard output", f"{text} >/dev/full")


def numbers_are_decimal():
    FS.ok("put", "-q", "--record-length", "0100", "--width", "02", "-", "/hundred", data=b"x" * 1000)
    entry = FS.json("stat", "/hundred")
    check(entry["records"] == 10 and entry["width"] == 2, f"{entry}")
    must(0, b"", "$pif transpose --columns 0800 --width 01 /hundred /columns")
    check(FS.json("stat", "/columns")["records"] == 800, "800 columns")
    must(2, b"-5", "$pif transpose --columns -5 /hundred /columns")


NO_NUMBERS = ("", " ", "-1", "+1", " 1", "1 ", "1e3", "0x10", "1.5", "99999999999999999999", "one")
ALSO = {"head": {"-1", "+1"}, "tail": {"-1", "+1"}}  # counts with a sign
NUMBER_TYPES = ("N", "P", "B", "L", "K", "DEPTH", "SECONDS", "PORT", "BYTES", "BITS", "UINT", "INT", "[-]N", "[+]N")


def numeric_options(*command):
    """Those that help names with the type of a number."""
    text = FS.ok(*command, "--help").decode()
    found = re.findall(r"^  ((?:-[\w-]+,?)+) (\S+)", text, re.MULTILINE)
    return [names.split(",")[-1] for names, type_ in found if type_.split(":")[0] in NUMBER_TYPES]


def what_is_no_number_is_wrong_usage_for_every_option():
    operands = {"sort": ["/a", "/x"], "copy": ["/a", "/x"], "transpose": ["/a", "/x"], "put": ["keep", "/x"]}
    operands.update({"compress": ["/a", "/x"], "decompress": ["/a", "/x"]})
    others = {"placement": ["--width", "1", "--records", "0:1"], "key rotate": [FS.folder], "user add": ["nobody"]}
    operands.update(others, **{"init": ["new"], "up": ["new"], "snapshot-hold": ["true"], "host up": [FS.folder]})
    operands.update({"mkdir": ["/x"], "stripe": ["/folder"], "protect": ["/a"], "forks": ["/a"]})
    operands.update({"bench": ["--smoke", "--only", "nothing"], "head": ["/a"], "tail": ["/a"], "tree": ["/"]})
    operands.update({"rebuild": ["lfs0"], "scrub": []})
    tried = 0
    for command, rest in operands.items():
        for option in numeric_options(*command.split()):
            for value in NO_NUMBERS:
                if value in ALSO.get(command, ()):
                    continue
                kept = [word for i, word in enumerate(rest) if option not in (word, *rest[max(i - 1, 0) : i])]
                done = FS.run(*command.split(), option, value, *kept, timeout=30)
                check(done.returncode == 2, f"{command} {option} {value!r} {kept}: {done}")
                tried += 1
    check(tried > 300, f"only {tried} were tried")
    check(not os.path.exists(FS.local("new")), "nothing was made")
    FS.fails(3, "/x", "stat", "/x")


def head_and_tail_count_as_the_local_ones():
    data = b"".join(b"%d\n" % i for i in range(1, 11))
    for name, content in (("ten", data), ("open", data[:-1]), ("one", b"x"), ("empty", b""), ("blank", b"\n\n\n")):
        write(name, content)
        FS.ok("put", "-q", "--record-length", "1", FS.local(name), f"/{name}")
        for command in ("head", "tail"):
            for option in ("-n", "-c"):
                for sign in ("", "-", "+"):
                    for count in ("0", "1", "2", "3", "9", "10", "11", "20", "21", "1000000000000"):
                        words = [command, option, sign + count]
                        right = subprocess.run([*words, FS.local(name)], stdout=subprocess.PIPE, check=True).stdout
                        check(FS.ok(*words, f"/{name}") == right, f"{words} of {name}")
    check(FS.ok("tail", "-r", "+3", "/ten") == data[2:] and FS.ok("head", "-r", "-3", "/ten") == data[:-3], "records")
    FS.ok("rm", "/ten", "/open", "/one", "/empty", "/blank")


def an_option_with_an_empty_value_is_wrong_usage():
    for words in (
        "find / -size ''",
        "find / -newer ''",
        "find / -name ''",
        "cat --records '' /a",
        "put --header '' keep /x",
        "ls --pif '' /",
        "rm --pif '' /a",
        "mkdir -m '' /x",
        "copy --report '' /a /x",
        "copy --pif '' /a /x",
        "transpose --columns 8 --rows '' /a /x",
        "sort -k '' /a /x",
    ):
        done = must(2, b"", f"$pif {words}")
        check(b"empty value" in done.stderr or b"missing" in done.stderr, f"{words}: {done}")
    must(0, b"", "$pif status --watch 2>&1 | head -c 1 >/dev/null")
    FS.fails(3, "/x", "stat", "/x")


def memory_is_a_number_of_bytes():
    for tool in ("sort", "transpose --columns 800"):
        for bytes_ in ("99999999999999999999999", "-5", "-5G", "abc", "0100", "1K"):
            must(2, b"--memory", f"$pif {tool} --memory {bytes_} /hundred /never")
        must(0, b"", f"$pif {tool} --memory 0100M /hundred /out")


def a_list_of_nodes_leaves_the_other_words():
    for tool in ("sort", "copy", "transpose --columns 800"):
        must(0, b"", f"$pif {tool} --nodes lfs1,lfs0 /hundred /out")
        nodes = FS.json("stat", "/out")["nodes"]
        check(nodes == [2, 1], f"{tool}: {nodes}")
        must(2, b"--nodes", f"$pif {tool} --nodes '' /hundred /out")
    must(2, b"--nodes", "$pif put --nodes '' keep /out")


def what_is_printed_with_json_is_one_document():
    for text in (
        "ls /none",
        "cat /none",
        "copy /none /x",
        "sort -c /none",
        "copy --report /none/report /a /copied",
        "cat /a /none",
        "ls /a /none",
        "ls / /none",
        "cat /folder",
    ):
        done = must(3, b"", f"$pif {text} --json")
        error = json.loads(done.stdout)["error"]
        check(error["code"] and error["text"], f"{text}: {error}")
    check(
        json.loads(must(3, b"", "$pif cat /disorder /none --json").stdout)["files"][0]["path"] == "/disorder",
        "what was read is there",
    )
    check(
        json.loads(must(3, b"", "$pif ls /a /none --json").stdout)["entries"][0]["path"] == "/a",
        "what was listed is there",
    )
    check(json.loads(FS.ok("ls", "--json", "/folder")) == {"entries": []}, "nothing is a document, too")
    for word in ("--json", "--verbose"):
        must(2, b"--report -", f"$pif copy {word} --report - /a /copied")
    FS.fails(3, "/copied", "stat", "/copied")


def a_folder_that_is_not_utf_8_is_no_obstacle_or_refused():
    odd = os.path.join(os.fsencode(FS.temp), b"odd\xff")
    os.mkdir(odd)
    must(0, b"", "$pif copy /a /from-odd && $pif rm /from-odd", cwd=odd)
    must(2, b"not UTF-8", "$pif up \"$(printf 'new\\377')\"")
    must(2, b"not UTF-8", "$pif up new", cwd=odd)
    check(not os.path.exists(os.path.join(os.fsencode(FS.temp), b"new\xff")), "it was not made")


def messages_are_one_line_and_name_the_program():
    for tool in ("sort", "copy", "transpose"):
        done = must(2, b"--nonsense", f"$pif {tool} --nonsense /a /b")
        check(done.stderr.startswith(b"pif-" + tool.encode() + b": ") and b"--help" in done.stderr, f"{done}")
        must(3, b"no", f"$pif {tool} \"$(printf '/a\\nb')\" /b")


def tools_forgive_in_paths_what_pif_forgives():
    must(0, b"", "$pif copy pif://a /./folder//copied")
    FS.ok("rm", "/folder/copied")
    must(2, b"no path in the file system", "$pif copy a /copied")


def a_check_takes_no_options_of_an_output():
    for words in ("--width 2", "--nodes lfs0", "--merge token -u", "--no-clobber", "--bevy 0"):
        must(2, b"excludes", f"$pif sort -c {words} /a")


def local_names_may_be_as_long_as_names_can_be():
    FS.ok("mkdir", "/long")
    names = ["n" * length for length in (246, 247, 255)]
    for name in names:
        FS.ok("put", "-q", "-", f"/long/{name}", data=name.encode())
        FS.ok("get", "-q", f"/long/{name}", FS.local(name))
        with open(FS.local(name), "rb") as file:
            check(file.read() == name.encode(), f"a name of {len(name)} bytes")
    FS.ok("get", "-r", "/long", FS.local("long"))
    check(sorted(os.listdir(FS.local("long"))) == sorted(names), "and all of a folder")


def a_file_that_cannot_be_got_does_not_keep_the_others():
    FS.ok("mkdir", "/some")
    for name in "abc":
        FS.ok("put", "-q", "-", f"/some/{name}", data=name.encode())
    os.makedirs(FS.local("got/some/b/in-the-way"))
    done = FS.run("get", "-r", "--json", "/some", FS.local("got"))
    check(done.returncode == 3 and b"got/some/b" in done.stderr, f"{done}")
    check(sorted(f["path"] for f in json.loads(done.stdout)["files"]) == ["/some/a", "/some/c"], f"{done}")
    check(os.path.isfile(FS.local("got/some/a")) and os.path.isfile(FS.local("got/some/c")), "the others are there")


def on_a_terminal(*words):
    """What a command prints on a terminal, both streams; its exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        FS.command(*words), env=FS.env, cwd=FS.temp, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # how a terminal says that nobody has it open any more
        pass
    os.close(ours)
    return process.wait(timeout=30), text


def control_characters_reach_no_terminal():
    name = "\x1b[2J\x07evil\nname\u009b"
    FS.ok("mkdir", "/odd")
    FS.ok("put", "-q", "-", f"/odd/{name}", data=b"x")
    check(FS.ok("ls", "/odd") == f"{name}\n".encode(), "a program gets the name as it is")
    quoted = rb"$'\x1b[2J\x07evil\nname\xc2\x9b'"
    for words in (
        ["ls", "/odd"],
        ["ls", "-l", "/odd"],
        ["ls", "-R", "/"],
        ["stat", f"/odd/{name}"],
        ["du", f"/odd/{name}"],
    ):
        code, text = on_a_terminal(*words)
        check(code == 0 and quoted[2:] in text and b"\x1b" not in text and b"\x07" not in text, f"{words}: {text}")
    code, text = on_a_terminal("copy", "--explain", f"/odd/{name}", "/x")
    check(code == 0 and rb"source: /odd/\x1b[2J" in text and b"\x1b" not in text, f"{text}")
    for words in (
        ["cat", f"/none/{name}"],
        ["get", "/none/" + name, "x"],
        ["sort", f"/odd/no{name}", "/x"],
        ["ls", f"--{name}"],
        [name],
        ["put", name, "/x"],
        ["rm", f"/odd/{name}/x"],
    ):
        done = FS.run(*words)
        check(
            done.returncode in (2, 3) and b"\x1b" not in done.stderr and b"\x07" not in done.stderr, f"{words}: {done}"
        )
        check(rb"\x1b" in done.stderr, f"{words}: {done}")
    FS.ok("rm", "-r", "/odd")


def progress_leaves_the_terminal_before_anything_is_said():
    FS.ok("put", "-q", "--lines", "-", "/text", data=b"\xc3\xa4 line\n" * 2_000_000)
    code, text = on_a_terminal("run", "example-count", "/text")
    check(code == 1, f"{code}: {text}")
    shown = text.replace(b"\r\n", b"\n").rsplit(b"\x1b[K", 1)[-1]
    check(shown == b"2000000\n", f"{text}")
    FS.ok("rm", "/text")


def progress_is_in_bytes():
    FS.ok("put", "-q", "--record-length", "100000", "-", "/few", data=b"r" * 60_000_000)

    def shares_and_rates():
        code, text = on_a_terminal("run", "example-reverse", "/few", "/reversed")
        check(code == 0, f"{code}: {text}")
        return [rate for share, rate in re.findall(rb"(\d+) %  (\d+) MiB/s", text) if int(share) >= 20]

    rates = await_condition(shares_and_rates, "a run that is shown when a part of it is done")
    check(all(int(rate) > 0 for rate in rates), f"{rates}")
    FS.ok("rm", "/few", "/reversed")


def a_local_file_has_a_name():
    must(2, b"no name", "$pif get /a ''")


def the_doctor_waits_for_nobody():
    """A server that accepts no connection: its queue is full."""
    deaf = socket.socket()
    deaf.bind(("127.0.0.1", 0))
    deaf.listen(0)
    address = deaf.getsockname()
    waiting = []
    for _ in range(4):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(address)
        waiting.append(one)
    said = next(os.path.join(folder, "server.tcp") for folder, _, names in os.walk(FS.folder) if "server.tcp" in names)
    with open(said, encoding="ascii") as file:
        line = file.read()
    try:
        with open(said, "w", encoding="ascii") as file:
            file.write(line.replace(line.split()[0], f"tcp://127.0.0.1:{address[1]}"))
        done = FS.run("doctor", timeout=30)
        check(done.returncode == 1 and b"nobody listens" in done.stdout, f"{done}")
    finally:
        with open(said, "w", encoding="ascii") as file:
            file.write(line)
        for one in [deaf, *waiting]:
            one.close()


def run_all():
    global FS
    with FileSystem(2, ["--curve"]) as FS:
        FS.ok("put", "-q", "-", "/a", data=b"a" * 100_000)
        FS.ok("put", "-q", "--lines", "-", "/disorder", data=b"a\nc\nb\n")
        FS.ok("mkdir", "/folder")
        return main_on(
            FS,
            [
                names_with_brackets_are_names,
                run_takes_words_as_they_are,
                a_closed_or_full_stderr_changes_no_exit_code,
                a_closed_stdin_or_stdout_is_an_error,
                help_that_nobody_gets_is_an_error,
                numbers_are_decimal,
                what_is_no_number_is_wrong_usage_for_every_option,
                head_and_tail_count_as_the_local_ones,
                an_option_with_an_empty_value_is_wrong_usage,
                memory_is_a_number_of_bytes,
                a_list_of_nodes_leaves_the_other_words,
                what_is_printed_with_json_is_one_document,
                a_folder_that_is_not_utf_8_is_no_obstacle_or_refused,
                messages_are_one_line_and_name_the_program,
                tools_forgive_in_paths_what_pif_forgives,
                a_check_takes_no_options_of_an_output,
                a_local_file_has_a_name,
                local_names_may_be_as_long_as_names_can_be,
                a_file_that_cannot_be_got_does_not_keep_the_others,
                control_characters_reach_no_terminal,
                progress_leaves_the_terminal_before_anything_is_said,
                progress_is_in_bytes,
                the_doctor_waits_for_nobody,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
