"""Every command, on real processes: what it does, prints and returns."""

import json
import os
import shlex
import subprocess
import sys

from pif_system import BIN, FileSystem, await_condition, check, flip, main_on

FS = None


def a_file(name, data):
    path = FS.local(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def names_of_folders_come_and_go():
    FS.ok("mkdir", "/d")
    FS.ok("mkdir", "-p", "/d/e/f")
    FS.ok("mkdir", "-p", "/d/e/f")
    check(FS.ok("ls", "/d") == b"e/\n", "ls shows the folder")
    FS.ok("mv", "/d/e", "/d/g")
    check([e["path"] for e in FS.json("ls", "-R", "/d")["entries"]] == ["/d/g", "/d/g/f"], "ls -R after mv")
    FS.fails(3, "not-empty|not empty", "rm", "/d")
    FS.ok("rm", "-r", "/d")
    FS.fails(3, "/d", "stat", "/d")
    FS.ok("rm", "-f", "/d")


def files_come_back_byte_for_byte():
    for size in (0, 1, 99, 100, 65536, 65537, 3_000_001):
        for options in ([], ["--record-length", "7"], ["--record-length", "100", "--width", "2"], ["--lines"]):
            data = os.urandom(size)
            FS.ok("put", *options, a_file("x", data), "/x")
            FS.ok("get", "/x", FS.local("y"))
            with open(FS.local("y"), "rb") as file:
                check(file.read() == data, f"get of {size} bytes with {options}")
            check(FS.content("/x") == data, f"cat of {size} bytes with {options}")
            stat = FS.json("stat", "/x")
            check(stat["bytes"] == size, f"stat of {size} bytes with {options}: {stat}")
    FS.ok("rm", "/x")


def streams_go_in_and_out_of_pipes():
    data = os.urandom(2_500_000)
    FS.ok("put", "-", "/stream", data=data)
    check(FS.ok("get", "/stream", "-") == data, "get -")
    with open(FS.local("out"), "wb") as out:
        out.write(b"before")
        out.flush()
        subprocess.run(FS.command("cat", "/stream", "/stream"), env=FS.env, stdout=out, check=True)
        out.write(b"after")
    with open(FS.local("out"), "rb") as file:
        check(file.read() == b"before" + data * 2 + b"after", "cat into a file that is being written")
    with open(FS.local("out"), "ab") as out:
        subprocess.run(FS.command("cat", "/stream"), env=FS.env, stdout=out, check=True)
    with open(FS.local("out"), "rb") as file:
        check(file.read() == b"before" + data * 2 + b"after" + data, "cat >> file")
    shell = f"{shlex.quote(BIN)}/pif cat /stream | head -c 10 | wc -c"
    done = subprocess.run(shell, shell=True, env=FS.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    check(done.stdout.strip() == b"10" and done.stderr == b"", f"cat into head is quiet: {done.stderr!r}")
    FS.ok("rm", "/stream")


def records_are_what_the_format_says():
    FS.ok("put", "--lines", a_file("l", b"one\ntwo\n\nfour"), "/l")
    check(FS.json("stat", "/l")["records"] == 4, "four lines")
    check(FS.ok("cat", "--records", "1:3", "/l") == b"two\n\n", "lines 1 and 2")
    check(FS.ok("cat", "--records", "3:", "/l") == b"four", "the last line lacks its end")
    FS.ok("put", "--delimited", ",", a_file("c", b"a,bb,"), "/c")
    check(FS.ok("cat", "--records", ":1", "/c") == b"a,", "a record ends with its delimiter")
    records = FS.json("cat", "--records", "0:2", "/c")["files"][0]["records"]
    check(records == [{"record": 0, "base64": "YSw="}, {"record": 1, "base64": "YmIs"}], f"{records}")
    FS.ok("put", "--record-length", "4", a_file("f", b"aaaabbbbcc"), "/f")
    check(FS.ok("cat", "--records", "1:9", "/f") == b"bbbbcc", "clipped to the file")
    check(FS.ok("cat", "--records", "7:9", "/f") == b"", "nothing behind the end")


def headers_are_kept_aside_and_given_back():
    data = b"headaaaabbbb"
    FS.ok("put", "--header", "4", "--record-length", "4", a_file("h", data), "/h")
    check(FS.content("/h") == data, "cat gives the header back")
    check(FS.ok("cat", "--records", "0:1", "/h") == b"aaaa", "rows start at record 0")
    check(FS.json("stat", "/h")["records"] == 2, "the header is no record")
    pbm = b"P4\n# x\n17 2\nABCDEF"
    FS.ok("put", "--header", "pbm", a_file("p", pbm), "/p")
    check(FS.json("stat", "/p")["format"]["record_length"] == 3, "a record is a row of the bitmap")
    check(FS.ok("get", "/p", "-") == pbm, "get gives the header back")


def trees_and_several_files_go_both_ways():
    a_file("tree/a", b"A")
    a_file("tree/sub/b", b"B" * 100_000)
    a_file("tree/sub/empty", b"")
    FS.ok("put", "-r", FS.local("tree"), "/tree")
    check(FS.content("/tree/sub/b") == b"B" * 100_000, "a file of the tree")
    FS.ok("get", "-r", "/tree", FS.local("back"))
    subprocess.run(["diff", "-r", FS.local("tree"), FS.local("back")], check=True)
    FS.ok("mkdir", "/many")
    FS.ok("put", FS.local("tree/a"), FS.local("tree/sub/b"), "/many")
    os.mkdir(FS.local("many"))
    FS.ok("get", "/many/a", "pif:/many/b", FS.local("many"))
    check(sorted(os.listdir(FS.local("many"))) == ["a", "b"], "two files in a folder")
    usage = FS.json("du", "/tree")["usage"][0]
    check((usage["bytes"], usage["files"]) == (100_001, 3), f"du: {usage}")


def put_says_with_json_what_it_stored():
    a_file("json/a", b"A" * 10)
    a_file("json/b", b"B" * 200_000)
    FS.ok("mkdir", "/json")
    stored = FS.json("put", "--record-length", "10", FS.local("json/a"), FS.local("json/b"), "/json")
    files = [(f["path"], f["records"], f["bytes"]) for f in stored["files"]]
    check(files == [("/json/a", 1, 10), ("/json/b", 20_000, 200_000)], f"{stored}")
    stored = FS.json("put", "-r", FS.local("json"), "/json")
    files = sorted(f["path"] for f in stored["files"])
    check(files == ["/json/json/a", "/json/json/b"] and stored["bytes"] == 200_010, f"{stored}")
    FS.ok("rm", "-r", "/json")


def trees_keep_the_modes_of_folders_both_ways():
    a_file("modes/shared/x", b"x")
    a_file("modes/sealed/y", b"y")
    for name, mode in (("modes", 0o700), ("modes/shared", 0o775), ("modes/sealed", 0o500)):
        os.chmod(FS.local(name), mode)
    FS.ok("put", "-r", FS.local("modes"), "/modes")
    modes = {e["path"]: e["mode"] for e in FS.json("ls", "-R", "/modes")["entries"]}
    modes["/modes"] = FS.json("stat", "/modes")["mode"]
    check((modes["/modes"], modes["/modes/shared"], modes["/modes/sealed"]) == ("0700", "0775", "0500"), f"{modes}")
    before = os.umask(0)
    FS.ok("get", "-r", "/modes", FS.local("modes2"))
    os.umask(before)
    got = [oct(os.stat(FS.local(name)).st_mode & 0o777) for name in ("modes2", "modes2/shared", "modes2/sealed")]
    check(got == ["0o700", "0o775", "0o500"], f"{got}")
    FS.ok("rm", "-r", "/modes")


def what_cannot_be_put_is_left_out_and_the_rest_goes_on():
    a_file("odd/a", b"A")
    a_file("odd/z/b", b"B")
    os.mkfifo(FS.local("odd/fifo"))
    os.symlink("nowhere", FS.local("odd/dangling"))
    os.symlink("z", FS.local("odd/link-to-folder"))
    os.symlink("a", FS.local("odd/link-to-file"))
    done = FS.run("put", "-r", FS.local("odd"), "/odd", "--json")
    said = done.stderr.decode()
    check(done.returncode == 3, f"exit {done.returncode}: {said}")
    for words in (
        "odd/fifo is neither",
        "odd/dangling is a link that leads nowhere",
        "odd/link-to-folder is a link to a folder",
    ):
        check(words in said, said)
    check(len(json.loads(done.stdout)["errors"]) == 3, f"{done.stdout}")
    there = [e["path"] for e in FS.json("ls", "-R", "/odd")["entries"]]
    check(there == ["/odd/a", "/odd/link-to-file", "/odd/z", "/odd/z/b"], f"{there}")
    FS.ok("rm", "-r", "/odd")


def one_file_is_got_under_its_own_name():
    FS.ok("put", "-", "/own.log", data=b"log")
    FS.ok("get", "/own.log", cwd=FS.temp)
    with open(FS.local("own.log"), "rb") as file:
        check(file.read() == b"log", "./own.log")
    FS.fails(3, "exists", "get", "--no-clobber", "pif:/own.log", cwd=FS.temp)
    FS.ok("rm", "/own.log")


def modes_and_owners_change():
    FS.ok("mkdir", "-m", "0750", "/home")
    FS.ok("mkdir", "-p", "-m", "u=rwx,go=", "/home/a/b")
    FS.ok("put", "-", "/home/a/file", data=b"x")
    modes = {p: FS.json("stat", p)["mode"] for p in ("/home", "/home/a", "/home/a/b", "/home/a/file")}
    check(modes == {"/home": "0750", "/home/a": "0755", "/home/a/b": "0700", "/home/a/file": "0644"}, f"{modes}")
    FS.ok("chmod", "-R", "go+rX,u-w", "/home/a")
    modes = {p: FS.json("stat", p)["mode"] for p in ("/home", "/home/a", "/home/a/b", "/home/a/file")}
    check(modes == {"/home": "0750", "/home/a": "0555", "/home/a/b": "0555", "/home/a/file": "0444"}, f"{modes}")
    FS.fails(2, "no mode", "chmod", "rw", "/home")
    FS.fails(3, "/none", "chmod", "0600", "/none")
    FS.fails(2, "no user 'nobody-of-that-name'", "chown", "nobody-of-that-name", "/home")
    FS.ok("chown", f"{os.getuid()}:{os.getgid()}", "/home")
    if os.getuid() == 0:
        FS.ok("chown", "-R", "12345:54321", "/home")
        entry = FS.json("stat", "/home/a/file")
        check((entry["owner"], entry["group"]) == (12345, 54321), f"{entry}")
    FS.ok("rm", "-r", "/home")


def listings_have_the_order_and_sizes_that_are_asked_for():
    FS.ok("mkdir", "/order")
    last = ""
    for name, size in (("b", 10), ("c", 3_000_000), ("a", 2000)):

        def is_newer(path=f"/order/{name}", data=bytes(size)):
            FS.ok("put", "-", path, data=data)
            return FS.json("stat", path)["modified"] > last

        await_condition(is_newer, "the server's clock, which counts seconds, goes on")
        last = FS.json("stat", f"/order/{name}")["modified"]

    def names(*options):
        return FS.ok("ls", *options, "/order").decode().split()

    check(names("-1") == ["a", "b", "c"] and names("-r") == ["c", "b", "a"], "by name")
    check(names("-S") == ["c", "a", "b"] and names("-Sr") == ["b", "a", "c"], "by size")
    check(names("-t") == ["a", "c", "b"] and names("-tr") == ["b", "c", "a"], "by time")
    check(FS.ok("ls", "-d", "/order") == b"/order/\n", "itself")
    check(FS.json("ls", "-d", "/order")["entries"][0]["path"] == "/order", "itself in JSON")
    check(b"2.9 MiB" in FS.ok("ls", "-lh", "/order") and b"3000000" in FS.ok("ls", "-l", "/order"), "sizes for people")
    check(b"2.9 MiB" in FS.ok("du", "-h", "/order") and b"3002010" not in FS.ok("du", "-h", "/order"), "du -h")
    check(b"GiB" in FS.ok("df", "-h"), "df -h")
    FS.ok("rm", "-r", "/order")


def a_bad_operand_does_not_keep_the_others_from_being_done():
    FS.ok("put", "-", "/good", data=b"good\n")
    for command, expected in (("cat", b"good\n"), ("ls", b"/good\n"), ("rm", b"")):
        done = FS.run(command, "/none", "/good")
        check((done.returncode, done.stdout) == (3, expected) and done.stderr.count(b"\n") == 1, f"{command}: {done}")
    FS.fails(3, "/good", "stat", "/good")  # rm has removed it
    FS.ok("put", "-", "/good", data=b"good\n")
    check(b"/good" in FS.run("stat", "/none", "/good").stdout, "stat")
    stats = json.loads(FS.run("stat", "--json", "/none", "/good").stdout)
    check(stats[0]["error"]["code"] == "not-found" and stats[1]["bytes"] == 5, f"{stats}")
    removed = json.loads(FS.run("rm", "--json", "/none", "/good").stdout)
    check(removed["removed"] == ["/good"] and removed["error"]["code"] == "not-found", f"{removed}")


def global_options_may_stand_before_any_command():
    FS.ok("put", "--lines", "-", "/unsorted", data=b"b\na\n")
    elsewhere = dict(FS.env, PIF="/nowhere")
    FS.ok("--pif", FS.folder, "-q", "sort", "/unsorted", "/sorted", env=elsewhere)
    check(FS.content("/sorted") == b"a\nb\n", "a tool")
    FS.ok(f"--pif={FS.folder}", "--route", "unix", "--data", "messages", "copy", "/unsorted", "/copied", env=elsewhere)
    check(json.loads(FS.ok("--json", "copy", "/unsorted", "/copied"))["tool"] == "pif-copy", "its report")
    FS.ok("-q", "--pif", FS.folder, "ls", "/", env=elsewhere)
    FS.ok("rm", "/unsorted", "/sorted", "/copied")


def help_lists_all_commands_and_tools():
    text = FS.ok("help").decode()
    listed = {line.split()[0] for line in text.splitlines() if line.startswith("  ")}
    programs = {name[4:] for name in os.listdir(BIN) if name.startswith("pif-")} - {
        "server",
        "lfs",
        "exec",
        "count",  # pif wc runs it
        "simulate",
        "numbers-model",
        "parity-model",
    }
    check(programs <= listed, f"not in the list: {programs - listed}")
    check(all(len(line) <= 110 for line in text.splitlines()), "a line each")
    check(BIN not in text and os.path.realpath(BIN) not in text, "each of the release's tools is described")
    check(FS.ok("help", "put") == FS.ok("put", "--help"), "help of one command")
    check(FS.ok("help", "sort") == FS.ok("sort", "--help"), "help of a tool")
    FS.fails(2, "did you mean 'sort'", "sotr", "/a", "/b")
    FS.fails(2, "did you mean 'status'", "help", "staus")


def a_check_of_order_says_in_json_where_it_ends():
    FS.ok("put", "--lines", "-", "/disorder", data=b"a\nc\nb\n")
    done = FS.run("sort", "-c", "--json", "/disorder")
    report = json.loads(done.stdout)
    check(done.returncode == 1, f"{done}")
    check(report["results"] == {"sorted": False, "records_checked": 3, "first_out_of_order": 2}, f"{report}")
    check(report["bytes_client_side"] == 6 and report["seconds"]["check"] >= 0, f"{report}")
    FS.ok("rm", "/disorder")


def a_tool_finds_something_out_and_says_it_for_people_or_programs():
    FS.ok("put", "--lines", "-", "/text", data=b"plain\n\xc3\xa4\n")
    done = FS.run("run", "example-count", "/text")
    check((done.returncode, done.stdout) == (1, b"1\n"), f"{done}")
    done = FS.run("run", "example-count", "--json", "/text")
    check(json.loads(done.stdout)["results"] == {"records_not_ascii": 1}, f"{done}")
    FS.ok("rm", "/text")


def targets_are_replaced_unless_told():
    FS.ok("put", a_file("1", b"first"), "/t")
    FS.ok("put", a_file("2", b"second"), "/t")
    check(FS.content("/t") == b"second", "put replaces")
    FS.fails(3, "exists", "put", "--no-clobber", FS.local("1"), "/t")
    check(FS.content("/t") == b"second", "--no-clobber does not")
    FS.fails(3, "exists", "get", "--no-clobber", "/t", FS.local("1"))
    FS.ok("put", FS.local("1"), "/u")
    FS.ok("mv", "/u", "/t")
    check(FS.content("/t") == b"first", "mv replaces")
    FS.ok("put", FS.local("2"), "/u")
    FS.fails(3, "exists", "mv", "-n", "/u", "/t")


def layouts_are_as_asked():
    FS.ok("put", "--width", "2", "--record-length", "10", a_file("w", bytes(100)), "/w")
    check(FS.json("stat", "/w")["width"] == 2, "width")
    nodes = ["lfs3", "lfs1"]
    FS.ok("put", "--nodes", ",".join(nodes), "--record-length", "10", FS.local("w"), "/n")
    records = FS.json("locate", "--records", "0:3", "/n")["records"]
    check([r["node"] for r in records] == ["lfs3", "lfs1", "lfs3"], f"order of nodes: {records}")
    plain = FS.json("placement", "--width", "2", "--records", "0:3")["records"]
    check(
        plain == [{"record": r["record"], "lfs": r["lfs"], "row": r["row"]} for r in records],
        "locate and placement agree",
    )
    check(len(FS.json("locate", "--records", ":", "/n")["records"]) == 10, "all of them")


def locate_shows_what_each_lfs_has():
    for options, records in (
        (["--width", "3"], 10),
        (["--bevy", "2"], 95),
        (["--width", "4"], 2),
        (["--width", "2"], 0),
    ):
        FS.ok("put", "--record-length", "10", *options, a_file("l", bytes(10 * records)), "/ranges")
        shown = FS.json("locate", "/ranges")
        check(shown["record_count"] == records and len(shown["ranges"]) == shown["width"], f"{shown}")
        single = FS.json("locate", "--records", ":", "/ranges")["records"]
        for run in shown["ranges"]:
            here = [r for r in single if r["lfs"] == run["lfs"]]
            check(run["records"] == len(here), f"{options}: how many: {run}")
            if not here:
                continue
            check((run["first"], run["last"]) == (here[0]["record"], here[-1]["record"]), f"{options}: which: {run}")
            check(
                run["rows"]["end"] == here[-1]["row"] + 1 and run["node"] == here[0]["node"], f"{options}: where: {run}"
            )
    FS.ok("put", "--record-length", "10", "--width", "3", a_file("l", bytes(100)), "/ranges")
    text = FS.ok("locate", "/ranges").decode().splitlines()
    check(
        text[0] == "/ranges: 10 records over 3 LFSs, record n is row n / 3 of LFS n mod 3"
        and text[2].endswith("0, 3, 6, 9"),
        f"{text}",
    )
    FS.ok("rm", "/ranges")


def bevies_are_a_layout_without_parity_so_far():
    FS.ok("put", "--bevy", "2", "--record-length", "10", a_file("b", bytes(range(95))), "/b")
    stat = FS.json("stat", "/b")
    check((stat["bevies"], stat["protected"]) == ([2, 2], True), f"{stat}")
    check(b"2,2 (protected)" in FS.ok("stat", "/b"), "stat says so")
    located = FS.json("locate", "--records", ":", "/b")["records"]
    placed = FS.json("placement", "--width", "4", "--bevies", "2,2", "--records", "0:10")["records"]
    check([{k: v for k, v in r.items() if k != "node"} for r in located] == placed, "locate shows the parity cells")
    check(FS.content("/b") == bytes(range(95)), "and the bytes come back")


def placement_is_figure_4_1():
    bevies, width = 4, 8

    def parity_cell(lfs, row):
        return lfs % bevies == row % bevies

    shown = FS.json("placement", "--width", "8", "--bevies", "4,4", "--records", "0:48")["records"]
    check([r["record"] for r in shown] == list(range(48)), "records 0 to 47")
    # Each round gives every bevy as many records as it has LFSs; they fill its data cells row by row.
    cells = {
        first: [(lfs, row) for row in range(20) for lfs in range(first, first + bevies) if not parity_cell(lfs, row)]
        for first in (0, 4)
    }
    for r in shown:
        turn, rest = divmod(r["record"], width)
        expected = cells[rest // bevies * bevies][turn * bevies + rest % bevies]
        check((r["lfs"], r["cell_row"]) == expected, f"{r} should be at {expected}")
        above = sum(not parity_cell(r["lfs"], row) for row in range(r["cell_row"]))
        check(r["row"] == above, f"{r}: stored rows leave no room for parity")
    groups = {}
    for r in shown:
        parity = (r["parity_lfs"], r["parity_cell_row"])
        check(r["parity_row"] == r["parity_cell_row"] // bevies, f"one parity cell in {bevies}: {r}")
        check(parity_cell(*parity) and parity[0] // bevies != r["lfs"] // bevies, f"parity in the companion bevy: {r}")
        groups.setdefault(parity, []).append(r["lfs"])
    check(all(len(set(lfss)) == len(lfss) <= bevies - 1 for lfss in groups.values()), "members are on different LFSs")


def status_and_df_know_every_lfs():
    status = FS.json("status")
    check([n["state"] for n in status["nodes"]] == ["up"] * 4, f"{status}")
    check(all(os.path.exists(f"/proc/{n['pid']}") for n in status["nodes"]), "process ids")
    check(len(FS.json("df")["nodes"]) == 4 and len(FS.json("node", "list")["nodes"]) == 4, "four nodes")
    check(b"lfs3" in FS.ok("status"), "the table names them")
    watch = FS.start("status", "--watch", "--json")
    check(json.loads(watch.stdout.readline())["cluster"] == status["cluster"], "--watch prints a document a line")
    watch.kill()
    watch.communicate()


def status_tells_what_every_daemon_did():
    FS.ok("put", "--record-length", "100", "--width", "4", "-", "/counted", data=b"c" * 4000)
    FS.ok("cat", "/counted", env=dict(FS.env, PIF_DATA="messages"))
    daemons = {d["node"]: d for d in FS.json("status")["daemons"]}
    check(sorted(daemons) == ["lfs0", "lfs1", "lfs2", "lfs3", "server"], f"{sorted(daemons)}")
    operations = {name: {o["name"]: o for o in d["operations"]} for name, d in daemons.items()}
    check(operations["server"]["create"]["count"] >= 1, "the server counts creates")
    for name in ("lfs0", "lfs1", "lfs2", "lfs3"):
        read = sum(o["bytes_out"] for o in operations[name].values())
        check(read >= 1000, f"{name} sent its part: {operations[name]}")
        check(operations[name]["seal"]["p50_us"] <= operations[name]["seal"]["p99_us"], "percentiles rise")
    watch = FS.start("status", "--watch", "0.2")
    lines = [watch.stdout.readline().decode() for _ in range(16)]
    watch.kill()
    watch.communicate()
    check(sum("ops/s" in line for line in lines) >= 1, f"--watch shows rates: {lines}")
    check(FS.run("status", "--watch", "0.001").returncode == 2, "no shorter than 0.05 s")
    FS.ok("rm", "/counted")


def every_command_has_help_version_and_dash_form():
    for name in (
        "up down destroy status init node mkdir stripe ls tree find stat rm mv cp chmod chown du df put get append cat "
        "head tail wc locate placement fsck doctor help completion run"
    ).split():
        text = FS.ok(name, "--help").decode()
        check("Examples:" in text and "--json" in text, f"pif {name} --help has examples")
        check(FS.ok(name, "--version").startswith(b"pif "), f"pif {name} --version")
        done = subprocess.run([os.path.join(BIN, f"pif-{name}"), "--help"], stdout=subprocess.PIPE, check=False)
        check(done.returncode == 0 and done.stdout.decode() == text, f"pif-{name} is pif {name}")


def unknown_commands_are_other_programs():
    tool = a_file("bin/pif-hello", b"#!/bin/sh\necho hello $1\nexit 7\n")
    os.chmod(tool, 0o755)
    done = FS.run("hello", "world", env=dict(FS.env, PATH=FS.local("bin") + ":" + os.environ["PATH"]))
    check((done.returncode, done.stdout) == (7, b"hello world\n"), f"{done}")


def a_tool_of_ones_own_runs_on_the_file_system_that_is_meant():
    elsewhere = dict(FS.env, PIF="/nowhere")
    FS.ok("put", "--lines", "-", "/text", data=b"a line\nand one\n")
    for program in ("example-upper-case", os.path.join(BIN, "example-upper-case")):
        FS.ok("run", "--pif", FS.folder, program, "-q", "/text", "/capitals", env=elsewhere)
        check(FS.content("/capitals") == b"A LINE\nAND ONE\n", f"what {program} made")
    FS.ok("rm", "/text", "/capitals")


def what_a_tool_makes_of_a_secret_is_a_secret():
    secret = a_file("secret", b"a secret\n")
    for mode in (0o600, 0o640, 0o644):
        os.chmod(secret, mode)
        FS.ok("put", "--lines", secret, "/secret")
        for words in (["run", "example-upper-case"], ["run", "example-reverse"], ["copy"], ["sort"]):
            FS.ok(*words, "-q", "/secret", "/made")
            made = FS.json("stat", "/made")["mode"]
            check(int(made, 8) == mode, f"{words} made a file of mode {made} from one of mode {mode:04o}")
    FS.ok("rm", "/secret", "/made")


def the_example_whose_workers_talk_reverses_a_file():
    lines = [b"%d\n" % i for i in range(20_000)]
    FS.ok("put", "--lines", "-", "/numbers", data=b"".join(lines))
    FS.ok("run", "example-reverse", "-q", "/numbers", "/reversed")
    check(FS.content("/reversed") == b"".join(reversed(lines)), "the last line is the first")
    FS.ok("rm", "/numbers", "/reversed")


def a_program_that_is_run_gets_its_own_arguments_and_ends_as_it_does():
    a_file("tool.sh", b'#!/bin/sh\necho $PIF $PIF_ROUTE "$@"\nexit 7\n')
    os.chmod(FS.local("tool.sh"), 0o755)
    done = FS.run("run", "--route", "ipc", "./tool.sh", "--json", "--help", "-q", "a  b", cwd=FS.temp)
    check((done.returncode, done.stdout.decode()) == (7, f"{FS.folder} ipc --json --help -q a  b\n"), f"{done}")
    FS.fails(2, "which program", "run")
    FS.fails(3, "no program tool.sh here or in PATH", "run", "tool.sh", cwd=FS.temp)
    FS.fails(3, "cannot run ./none: No such file", "run", "./none", cwd=FS.temp)
    FS.fails(3, "/nowhere", "run", "--pif", "/nowhere", "./tool.sh", cwd=FS.temp)


def fsck_and_readers_notice_a_changed_byte():
    with FileSystem(2) as other:
        other.ok("put", "-", "/x", data=os.urandom(1_000_000))
        [stored] = other.stored_files("lfs1")
        flip(stored, 70_000)
        done = other.run("fsck", "--json")
        report = json.loads(done.stdout)
        check(done.returncode == 1 and not report["clean"], f"fsck says so: {report}")
        check(
            [(f["kind"], f["path"], f["node"]) for f in report["findings"]] == [("sums", "/x", "lfs1")],
            f"where: {report}",
        )
        for way in ("descriptors", "messages"):
            done = other.run("cat", "--data", way, "/x")
            check(done.returncode == 3 and b"/x" in done.stderr, f"cat by {way} refuses it: {done.stderr}")
        check(other.run("fsck", "--no-sums").returncode == 0, "--no-sums does not read the data")
        flip(stored, 70_000)
        check(other.json("fsck")["clean"], "whole again")


def every_route_moves_the_same_bytes():
    data = os.urandom(3_000_000)
    for mode in ("--insecure-loopback", "--curve"):
        with FileSystem(2, [mode]) as other:
            for way in (
                ["--data", "descriptors"],
                ["--route", "ipc", "--data", "messages"],
                ["--route", "tcp", "--data", "messages"],
            ):
                for options in ([], ["--record-length", "100"], ["--lines"]):
                    other.ok("put", *way, *options, "-", "/x", data=data)
                    check(other.ok("cat", *way, "/x") == data, f"{mode} {way} {options}")


def an_open_file_finds_an_lfs_that_was_started_again_over_tcp():
    data = os.urandom(96 << 20)  # more than is under way at once
    with FileSystem(2, ["--insecure-loopback"]) as other:
        other.ok("put", "-", "/x", data=data)
        reader = other.start("cat", "--route", "tcp", "/x")
        begin = reader.stdout.read(1 << 20)
        before = other.json("status")
        other.kill("lfs1")
        other.ok("up", other.folder)
        check(other.json("status") != before, "it is another process")
        rest, errors = reader.communicate(timeout=60)
        check(reader.returncode == 0 and begin + rest == data, f"cat: exit {reader.returncode}: {errors!r}")


def sixty_four_lfss_come_up_and_go_down():
    with FileSystem(64) as many:
        up = json.loads(many.ok("down", many.folder, "--json"))
        check(len(up["stopped"]) == 65, "65 daemons")


def fsck_is_clean():
    FS.await_clean(30)
    check(b"clean" in FS.ok("fsck"), "fsck says so")


def run_all():
    global FS
    tests = [
        names_of_folders_come_and_go,
        files_come_back_byte_for_byte,
        streams_go_in_and_out_of_pipes,
        records_are_what_the_format_says,
        headers_are_kept_aside_and_given_back,
        trees_and_several_files_go_both_ways,
        put_says_with_json_what_it_stored,
        trees_keep_the_modes_of_folders_both_ways,
        what_cannot_be_put_is_left_out_and_the_rest_goes_on,
        one_file_is_got_under_its_own_name,
        modes_and_owners_change,
        listings_have_the_order_and_sizes_that_are_asked_for,
        a_bad_operand_does_not_keep_the_others_from_being_done,
        global_options_may_stand_before_any_command,
        help_lists_all_commands_and_tools,
        a_check_of_order_says_in_json_where_it_ends,
        a_tool_finds_something_out_and_says_it_for_people_or_programs,
        targets_are_replaced_unless_told,
        layouts_are_as_asked,
        locate_shows_what_each_lfs_has,
        bevies_are_a_layout_without_parity_so_far,
        placement_is_figure_4_1,
        status_and_df_know_every_lfs,
        status_tells_what_every_daemon_did,
        every_command_has_help_version_and_dash_form,
        unknown_commands_are_other_programs,
        a_tool_of_ones_own_runs_on_the_file_system_that_is_meant,
        the_example_whose_workers_talk_reverses_a_file,
        what_a_tool_makes_of_a_secret_is_a_secret,
        a_program_that_is_run_gets_its_own_arguments_and_ends_as_it_does,
        fsck_and_readers_notice_a_changed_byte,
        every_route_moves_the_same_bytes,
        an_open_file_finds_an_lfs_that_was_started_again_over_tcp,
        sixty_four_lfss_come_up_and_go_down,
        fsck_is_clean,
    ]
    with FileSystem(4) as FS:
        return main_on(FS, tests)


if __name__ == "__main__":
    sys.exit(run_all())
