"""run_examples.py BUILT EXAMPLES: runs every program of the folder EXAMPLES, built in BUILT, on a file system of its own."""

import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
from pif_system import FileSystem, check, main  # after its folder is known

BUILT, EXAMPLES = sys.argv[1:]
FS = None


def tool(name, *words, code=0):
    done = FS.run("run", os.path.join(BUILT, name), *words)
    check(done.returncode == code, f"{name} {words}: {done}")
    return done.stdout


def noop_starts_workers():
    tool("noop")


def upper_case_makes_capitals():
    tool("upper_case", "/text", "/capitals")
    check(FS.content("/capitals") == b"ONE\nTWO \xc3\xa4\nTHREE\n", "capitals")


def reverse_turns_the_order():
    tool("reverse", "/text", "/reversed")
    check(FS.content("/reversed") == b"three\ntwo \xc3\xa4\none\n", "the last line first")


def count_says_what_it_found():
    check(tool("count", "/text", code=1) == b"1\n", "for people")
    check(json.loads(tool("count", "--json", "/text", code=1))["results"] == {"records_not_ascii": 1}, "and in the report")
    tool("count", "/ascii")


def programs_in_c_make_and_read_a_file():
    for name in ("in_c", "in_c_by_pkg_config"):
        done = subprocess.run([os.path.join(BUILT, name), FS.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        check(done.returncode == 0 and done.stdout == b"3 records, mode 0600\n", f"{name}: {done}")


def every_example_was_run():
    run = {"noop", "upper_case", "reverse", "count"}
    check({os.path.splitext(name)[0] for name in os.listdir(EXAMPLES)} == run, f"{os.listdir(EXAMPLES)}")


if __name__ == "__main__":
    with FileSystem(2) as FS:
        FS.ok("put", "--lines", "-", "/text", data=b"one\ntwo \xc3\xa4\nthree\n")
        FS.ok("put", "--lines", "-", "/ascii", data=b"one\n")
        sys.exit(main([noop_starts_workers, upper_case_makes_capitals, reverse_turns_the_order, count_says_what_it_found,
                       programs_in_c_make_and_read_a_file, every_example_was_run]))
