"""pif search finds what grep finds."""

import os
import random
import subprocess

from pif_system import FileSystem, check

OPTIONS = ("-n", "-c", "-v", "-i", "-w", "-x", "-o", "-m3", "-A2", "-B1", "-C1", "-l", "-q")
PATTERNS = ("fox", "q[a-z]+k", "^the", "dog$", "(lazy|quick) (dog|fox)", "[0-9]{3}", "o", r"\bcat", "zebra", "a.c")
WORDS = "the quick brown fox jumps over lazy dog cat 12 345 6789 OX The".split()


def lines(rng, count):
    return "".join(" ".join(rng.choices(WORDS, k=rng.randrange(8))) + "\n" for _ in range(count)).encode()


def grep(env, *words):
    return subprocess.run(["grep", "-E", *words], env=env, capture_output=True, check=False)


def same(fs, options, patterns, names):
    """By both, of the same files: what is printed, and the exit code."""
    words = [*options, *(word for pattern in patterns for word in ("-e", pattern))]
    found = fs.run("search", *words, *("/" + name for name in names))
    wanted = grep(dict(os.environ, LC_ALL="C"), *words, *(fs.local(name) for name in names))
    where = f"search {words} {names}"
    check(found.returncode == wanted.returncode, f"{where}: exit {found.returncode}: {found.stderr!r}")
    text = wanted.stdout.replace(fs.local("").encode(), b"/")
    check(found.stdout == text, f"{where}:\n{found.stdout[:300]!r}\n{text[:300]!r}")


def random_searches(fs, rng, names):
    for _ in range(60):
        options = rng.sample(OPTIONS, rng.randrange(4))
        if "-o" in options and ({"-v", "-A2", "-B1", "-C1"} & set(options)):
            options.remove("-o")
        if "-C1" in options:  # grep takes the last of these, and search what is more exact
            options = [option for option in options if option not in ("-A2", "-B1")]
        same(fs, options, rng.sample(PATTERNS, rng.choice((1, 1, 2))), names[: rng.choice((1, 2))])


def folders(fs):
    fs.ok("mkdir", "/logs", "/logs/old")
    for name in ("a", "old/b", "c"):
        fs.ok("put", "-q", "--lines", "-", "/logs/" + name, data=f"in {name}\nfox\n".encode())
    found = fs.ok("search", "in", "/logs")
    check(found == b"/logs/a:in a\n/logs/c:in c\n/logs/old/b:in old/b\n", f"a folder: {found!r}")
    check(fs.run("search", "in", "/not-there").returncode == 3, "a file that is not there")


def long_output(fs, rng):
    """What nobody reads any more ends the command."""
    data = lines(rng, 100_000)
    fs.ok("put", "-q", "--lines", "-", "/long", data=data)
    check(fs.ok("search", "", "/long") == data, "all lines")
    with fs.start("search", "", "/long") as search:
        head = [search.stdout.readline() for _ in range(2)]
        search.stdout.close()
        check(search.wait(timeout=60) != 0, "nobody reads")
    check(head == data.splitlines(True)[:2], f"head: {head}")


def to_a_file(fs, rng):
    """What is found is the records of a file, in their order, laid out as the other."""
    env = dict(os.environ, LC_ALL="C")
    data = lines(rng, 30_000)
    with open(fs.local("in"), "wb") as file:
        file.write(data)
    for words in ([], ["--width", "1"], ["--width", "2"]):
        fs.ok("put", "-q", "--lines", *words, "-", "/in", data=data)
        for search in (["fox"], ["-v", "o"], ["zebra"], ["-o", "q[a-z]+k"], ["[0-9]{3}$"]):
            done = fs.run("search", *search, "/in", "--to", "/found")
            wanted = grep(env, *search, fs.local("in"))
            check(done.returncode == wanted.returncode and done.stdout == b"", f"{search}: {done}")
            check(fs.ok("cat", "/found") == wanted.stdout, f"{search} {words} to a file")
    fs.fails(2, "--to is for records alone", "search", "-c", "fox", "/in", "--to", "/found")
    fs.fails(2, "/in is the file that is searched", "search", "fox", "/in", "--to", "pif:/in")
    fs.fails(2, "one file", "search", "fox", "/in", "/one", "--to", "/found")


def main():
    rng = random.Random(4)
    with FileSystem(3) as fs:
        names = ("one", "two")
        for name in names:
            data = lines(rng, 500)
            with open(fs.local(name), "wb") as file:
                file.write(data)
            fs.ok("put", "-q", "--lines", "-", "/" + name, data=data)
        random_searches(fs, rng, names)
        folders(fs)
        long_output(fs, rng)
        to_a_file(fs, rng)
        check(fs.run("search", "(", "/one").returncode == 2, "what is no pattern")
        found = fs.ok("search", "-o", "--tag", "-e", "[0-9]+", "-e", "[a-z]+", "/one")
        check(all(line[:2] in (b"1\t", b"2\t") for line in found.splitlines()), "tags")
        fs.ok("put", "-q", "--record-length", "4", "-", "/fixed", data=b"abcdefabcdexabcd")
        check(fs.ok("search", "-n", "-F", "abcd", "/fixed") == b"1:abcd\n4:abcd\n", "a match lies in one record")


if __name__ == "__main__":
    main()
