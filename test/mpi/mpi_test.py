"""MPI programs on a file system, by the library of bind/mpi for one MPI ("mpich" or "openmpi"), and on a local file.

PIF_MPI_SEEDS=N: so many random programs; PIF_MPI_FIRST=N: from that seed on."""

import os
import re
import subprocess
import sys
import tempfile

from pif_system import BIN, FileSystem, check, main

MPI = sys.argv[1]
BUILD = os.path.dirname(BIN)
LIBRARY = os.path.join(BUILD, "lib", f"libpif-{MPI}.so")
FS = None
TEMP = ""
# What the MPI does itself for every file.
ITS_OWN = {
    "call_errhandler", "c2f", "create_errhandler", "f2c", "get_byte_offset", "get_errhandler", "get_group",
    "get_type_extent", "get_type_extent_c", "get_view", "set_errhandler",
}  # fmt: skip


def program(mpi):
    return os.path.join(BUILD, "test", "mpi", f"random_program_{mpi}")


def launch(mpi, ranks, *words, code=0):
    """What the ranks print. The library is loaded into them alone: mpiexec has no MPI to hand files on to."""
    mpiexec = {
        "mpich": ["mpiexec.mpich"],
        "openmpi": ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader"],
    }[mpi]
    loaded = [] if mpi != MPI else ["env", f"LD_PRELOAD={LIBRARY}"]
    done = subprocess.run(
        [*mpiexec, "-n", str(ranks), *loaded, *map(str, words)], env=FS.env, capture_output=True, timeout=60, text=True
    )
    check(done.returncode == code, f"{words} on {mpi}: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def all_functions_are_here():
    used = subprocess.run(["ldd", program(MPI)], capture_output=True, text=True, check=True).stdout
    library = re.search(r"=> (\S*/lib(?:mpi|mpich)\.so\S*)", used)[1]

    def names(path, prefix):
        out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        return set(re.findall(rf"^\S+ [TWV] {prefix}(\w+)$", out, re.M))

    theirs = names(library, "MPI_File_")
    check(len({name for name in theirs if not name.endswith("_c")}) == 61, f"MPI has 61, not {sorted(theirs)}")
    ours = names(LIBRARY, "MPI_File_")
    check(ours == theirs - ITS_OWN, f"missing {theirs - ITS_OWN - ours}, too many {ours - theirs}")
    check(ours == names(LIBRARY, "PMPI_File_"), "each function has both names")


def random_programs_see_what_they_see_on_a_local_file():
    first = int(os.environ.get("PIF_MPI_FIRST", "1"))
    for seed in range(first, first + int(os.environ.get("PIF_MPI_SEEDS", "20"))):
        ranks = 1 + seed % 4
        local = launch("mpich", ranks, program("mpich"), os.path.join(TEMP, f"f{seed}"), seed, 12)
        here = launch(MPI, ranks, program(MPI), f"pif:/f{seed}", seed, 12)
        for wanted, line in zip(local.splitlines(), here.splitlines()):
            check(wanted == line, f"seed {seed}, {ranks} ranks: {line!r} instead of {wanted!r}")
        check(len(local) == len(here) > 1000, f"seed {seed}: as long")
    check(FS.ok("ls", "/") == b"", "all files were deleted")


def other_files_are_the_mpis():
    local = os.path.join(TEMP, "other")
    plain = launch(MPI, 1, program(MPI), local, 1, 0)
    check("all bytes" in plain, "a program on a local file, with the library")
    check(not os.path.exists(local), "and it was deleted there")


if __name__ == "__main__":
    with FileSystem(3) as FS, tempfile.TemporaryDirectory() as TEMP:
        tests = [
            all_functions_are_here,
            random_programs_see_what_they_see_on_a_local_file,
            other_files_are_the_mpis,
        ]
        sys.exit(main(tests, sys.argv[2:]))
