"""Tools whose program the LFSs do not have: it is brought to them, and runs there."""

import os
import shutil
import stat
import subprocess
import sys

from brought import make_build, run_nameless
from pif_system import BIN, FileSystem, check, main

COUNT = 4
FS = None
STRANGER = 54321  # a user that nobody is
NOOP = os.path.join(BIN, "example-noop")


def kept(lfs):
    """Programs that an LFS keeps: paths."""
    folder = os.path.join(FS.folder, lfs, "programs")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []


def all_kept():
    return [kept(f"lfs{i}") for i in range(COUNT)]


def fresh():
    """A file system whose LFSs have no programs."""
    FS.ok("down", FS.folder)
    FS.ok("up", FS.folder)
    check(all_kept() == [[]] * COUNT, f"a start forgets programs: {all_kept()}")


def says(done, *texts):
    error = done.stderr.decode(errors="replace")
    check(done.returncode == 3, f"exit {done.returncode}: {error}")
    check(error.count("\n") == 1, f"not one line: {error!r}")
    for text in texts:
        check(text in error, f"{error!r} has no {text!r}")


def works(done):
    check(done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode(errors='replace')}")


def a_program_that_is_where_it_is_named_is_not_brought():
    fresh()
    works(subprocess.run([NOOP], env=FS.env, stderr=subprocess.PIPE, timeout=120, check=False))
    check(all_kept() == [[]] * COUNT, f"{all_kept()}")


def a_program_that_is_not_there_is_brought_once():
    fresh()
    make_build(NOOP, FS.local("tool"))
    works(run_nameless(FS.local("tool"), env=FS.env))
    first = all_kept()
    check([len(programs) for programs in first] == [1] * COUNT, f"{first}")
    times = [os.stat(programs[0]).st_mtime_ns for programs in first]
    make_build(NOOP, FS.local("tool"))
    works(run_nameless(FS.local("tool"), env=FS.env))
    check(all_kept() == first, "nothing is brought again")
    check([os.stat(programs[0]).st_mtime_ns for programs in first] == times, "nothing is written again")
    fresh()


def another_build_at_its_path_is_not_run():
    fresh()
    make_build(NOOP, FS.local("tool"))
    shutil.copy("/bin/false", FS.local("tool (deleted)"))
    works(run_nameless(FS.local("tool"), env=FS.env))
    check([len(programs) for programs in all_kept()] == [1] * COUNT, f"{all_kept()}")
    # That build, under the name that the kernel gives: it need not be brought.
    fresh()
    make_build(NOOP, FS.local("tool"))
    shutil.copy(NOOP, FS.local("tool (deleted)"))
    works(run_nameless(FS.local("tool"), env=FS.env))
    check(all_kept() == [[]] * COUNT, f"{all_kept()}")
    os.unlink(FS.local("tool (deleted)"))


def a_tool_that_was_brought_does_its_work():
    fresh()
    FS.ok("put", "-", "/in", data=b"one\ntwo\n" * 20000)
    make_build(os.path.join(BIN, "pif-copy"), FS.local("tool"))
    works(run_nameless(FS.local("tool"), "/in", "/out", env=FS.env))
    check(FS.content("/out") == b"one\ntwo\n" * 20000, "the copy is right")


def a_program_that_is_too_long_is_refused_before_it_is_sent():
    fresh()
    make_build(NOOP, FS.local("tool"), size=65 << 20)
    says(run_nameless(FS.local("tool"), env=FS.env), "has 65 MiB", "at most 64 MiB", "lfs")
    check(all_kept() == [[]] * COUNT, f"{all_kept()}")


def what_is_kept_is_the_lfss_alone():
    fresh()
    make_build(NOOP, FS.local("tool"))
    works(run_nameless(FS.local("tool"), env=FS.env))
    for i in range(COUNT):
        (program,) = kept(f"lfs{i}")
        folder = os.stat(os.path.dirname(program))
        check(stat.S_IMODE(folder.st_mode) == 0o700, f"{oct(folder.st_mode)}")
        check(os.stat(program).st_uid == os.geteuid(), "it belongs to the LFS")
        check(os.stat(program).st_mode & 0o222 == 0, "nobody may write to it")


def a_program_of_another_user_runs_as_that_user_only():
    if os.geteuid() != 0:
        return
    fresh()
    os.chmod(FS.temp, 0o755)
    stranger = {"user": STRANGER, "group": STRANGER, "extra_groups": [], "cwd": "/"}
    make_build(NOOP, FS.local("tool"), size=6 << 20)  # the same build id, other bytes
    works(run_nameless(FS.local("tool"), env=FS.env, **stranger))
    theirs = all_kept()
    check([len(programs) for programs in theirs] == [1] * COUNT, f"{theirs}")
    make_build(NOOP, FS.local("tool"))
    works(run_nameless(FS.local("tool"), env=FS.env))
    check([len(programs) for programs in all_kept()] == [2] * COUNT, "the owner's own program was brought")
    make_build(NOOP, FS.local("tool"), size=6 << 20)
    works(run_nameless(FS.local("tool"), env=FS.env, **stranger))
    check([len(programs) for programs in all_kept()] == [2] * COUNT, "nothing is brought again")


def a_path_that_its_user_may_not_see_is_not_there():
    if os.geteuid() != 0:
        return
    fresh()
    os.chmod(FS.temp, 0o755)
    hidden = FS.local("hidden")
    os.mkdir(hidden, 0o700)
    make_build(NOOP, os.path.join(hidden, "tool"))
    shutil.copy(NOOP, os.path.join(hidden, "tool (deleted)"))
    done = run_nameless(
        os.path.join(hidden, "tool"), env=FS.env, user=STRANGER, group=STRANGER, extra_groups=[], cwd="/"
    )
    works(done)
    check([len(programs) for programs in all_kept()] == [1] * COUNT, "it was brought, for he cannot run what is there")
    shutil.rmtree(hidden)


def a_missing_library_is_named():
    fresh()
    make_build(os.environ["PIF_NEEDS_LIBRARY"], FS.local("tool"))
    env = dict(FS.env, LD_LIBRARY_PATH=os.path.dirname(os.environ["PIF_LIBRARY"]))
    says(run_nameless(FS.local("tool"), env=env), os.path.basename(os.environ["PIF_LIBRARY"]), "worker", "on lfs")


if __name__ == "__main__":
    with FileSystem(COUNT) as FS:
        sys.exit(
            main(
                [
                    a_program_that_is_where_it_is_named_is_not_brought,
                    a_program_that_is_not_there_is_brought_once,
                    another_build_at_its_path_is_not_run,
                    a_tool_that_was_brought_does_its_work,
                    a_program_that_is_too_long_is_refused_before_it_is_sent,
                    what_is_kept_is_the_lfss_alone,
                    a_program_of_another_user_runs_as_that_user_only,
                    a_path_that_its_user_may_not_see_is_not_there,
                    a_missing_library_is_named,
                ],
                sys.argv[1:],
            )
        )
