"""Words, numbers and streams that are not what a command expects: brackets, line breaks, closed descriptors, odd folders."""

import json
import os
import socket
import subprocess
import sys

from pif_system import FileSystem, check, main

FS = None


def shell(text, cwd=None):
    """A shell's command, in which $pif is the program."""
    env = dict(FS.env, pif=FS.command()[0])
    return subprocess.run(["sh", "-c", text], env=env, cwd=cwd or FS.temp, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          check=False)


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
    check(FS.content("/brackets/[keep]") == b"listed" and FS.content("/brackets/[keep,keep]") == b"two", "each file is itself")
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
    for code, text in [(0, "$pif df"), (3, "$pif ls /none"), (0, "$pif put --verbose keep /kept"), (2, "$pif nonsense"),
                       (2, "$pif ls --nonsense"), (1, "$pif sort -c /disorder"), (3, "$pif copy /none /x")]:
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
        must(2, b"no LFS", f"$pif {tool} --nodes '' /hundred /out")
    must(2, b"--nodes", "$pif put --nodes '' keep /out")


def what_is_printed_with_json_is_one_document():
    for text in ("ls /none", "cat /none", "copy /none /x", "sort -c /none", "copy --report /none/report /a /copied", "cat /a /none",
                 "ls /a /none", "ls / /none", "cat /folder"):
        done = must(3, b"", f"$pif {text} --json")
        error = json.loads(done.stdout)["error"]
        check(error["code"] and error["text"], f"{text}: {error}")
    check(json.loads(must(3, b"", "$pif cat /disorder /none --json").stdout)["files"][0]["path"] == "/disorder", "what was read is there")
    check(json.loads(must(3, b"", "$pif ls /a /none --json").stdout)["entries"][0]["path"] == "/a", "what was listed is there")
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
    must(0, b"", "$pif copy pif://a /./folder//copied/")
    FS.ok("rm", "/folder/copied")
    must(2, b"no path in the file system", "$pif copy a /copied")


def a_check_takes_no_options_of_an_output():
    for words in ("--width 2", "--nodes lfs0", "--merge token -u", "--no-clobber", "--bevy 0"):
        must(2, b"excludes", f"$pif sort -c {words} /a")


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
        code = main([names_with_brackets_are_names, run_takes_words_as_they_are, a_closed_or_full_stderr_changes_no_exit_code,
                     a_closed_stdin_or_stdout_is_an_error, help_that_nobody_gets_is_an_error, numbers_are_decimal,
                     memory_is_a_number_of_bytes, a_list_of_nodes_leaves_the_other_words, what_is_printed_with_json_is_one_document,
                     a_folder_that_is_not_utf_8_is_no_obstacle_or_refused, messages_are_one_line_and_name_the_program,
                     tools_forgive_in_paths_what_pif_forgives, a_check_takes_no_options_of_an_output, a_local_file_has_a_name,
                     the_doctor_waits_for_nobody])
        if code:
            FS.show_logs()
    return code


if __name__ == "__main__":
    sys.exit(run_all())
