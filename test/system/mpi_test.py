"""MPI-IO: MPI programs that know nothing of PIF, with the library for their MPI in front of it.

PIF_TWIN_SEEDS=N: so many random programs for each number of processes; PIF_TWIN_FIRST=N: from that seed on.
PIF_MPI_KILLS=N: so many processes are killed."""

import contextlib
import os
import random
import re
import shutil
import struct
import subprocess
import sys

from mounts import Mount, can_mount
from pif_system import FileSystem, check, main_on

FS = None
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PROGRAMS = os.environ.get("PIF_MPI_PROGRAMS", "")
LIBRARIES = os.environ.get("PIF_MPI_LIBRARIES", "")
# MPICH waits by spinning: with more processes than cores each step takes its turns of the scheduler.
TWINS = {
    "mpich": [(1, 8, 40), (2, 8, 25), (3, 2, 8), (4, 2, 8)],
    "openmpi": [(1, 5, 40), (2, 5, 40), (3, 5, 40), (4, 5, 40)],
}
SECONDS = 120  # and a minute for each random program


def library(mpi):
    return os.path.join(LIBRARIES, f"libpif-{mpi}.so")


def program(name, mpi):
    return os.path.join(PROGRAMS, f"mpi-{name}-{mpi}")


def is_here(mpi):
    return shutil.which(f"mpiexec.{mpi}") and os.path.exists(library(mpi)) and os.path.exists(program("twin", mpi))


MPIS = [mpi for mpi in ("mpich", "openmpi") if is_here(mpi)]


def command(mpi, processes, *words, preloaded=True, **more):
    """An MPI job on this machine."""
    variables = {"PIF": FS.folder, **more}
    if preloaded:
        variables["LD_PRELOAD"] = library(mpi)
    if mpi == "mpich":
        options = [word for name, value in variables.items() for word in ("-genv", name, value)]
    else:
        options = ["--allow-run-as-root", "--oversubscribe"]
        options += [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    return [f"mpiexec.{mpi}", *options, "-n", str(processes), *words]


def run(mpi, processes, *words, code=0, seconds=SECONDS, **more):
    """What a job printed, which ended so."""
    done = subprocess.run(
        command(mpi, processes, *words, **more),
        env=FS.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
        check=False,
    )
    said = done.stdout.decode(errors="replace")
    check((done.returncode == 0) == (code == 0), f"{mpi}, {processes} processes: {words}: {done.returncode}: {said}")
    return said


def random_programs_do_the_same_on_both():
    for mpi in MPIS:
        for processes, seeds, steps in TWINS[mpi]:
            seeds = int(os.environ.get("PIF_TWIN_SEEDS", seeds))
            first = int(os.environ.get("PIF_TWIN_FIRST", 10 * processes))
            local, name = FS.local(f"twin-{mpi}"), f"/twin-{mpi}"
            # Open MPI's own file component loses its shared pointers when files are opened again; its ROMIO does not.
            romio = {"OMPI_MCA_io": "romio321"} if mpi == "openmpi" else {}
            words = [program("twin", mpi), local, f"pif:{name}", str(first), str(seeds), str(steps)]
            said = run(mpi, processes, *words, seconds=SECONDS + 60 * seeds, **romio)
            check(f"{seeds} programs" in said, f"{mpi} ran {seeds} programs: {said}")
            with open(local, "rb") as file:
                check(file.read() == FS.content(name), f"{mpi}, {processes} processes: the last file is the same")


def it_means_what_is_written():
    for mpi in MPIS:
        for processes in (1, 2 if mpi == "mpich" else 3):
            run(mpi, processes, program("meaning", mpi), f"pif:/meaning-{mpi}")


def a_job_that_dies_leaves_no_new_file():
    for mpi in MPIS:
        said = run(mpi, 2, program("meaning", mpi), f"pif:/died-{mpi}", "die", code=1)
        check("wrote" in said, f"it wrote before it died: {said}")
        FS.fails(3, "there is no", "stat", f"/died-{mpi}")


def all_processes_learn_of_a_lost_lfs():
    for mpi in MPIS:
        run(mpi, 2, program("meaning", mpi), f"pif:/lost-{mpi}", "lose", str(FS.pid_of("lfs1")))
        FS.ok("up", FS.folder)
        FS.fails(3, "there is no", "stat", f"/lost-{mpi}")


def without_the_library_the_name_is_none_of_pifs():
    for mpi in MPIS:
        said = run(mpi, 1, program("meaning", mpi), "pif:/unseen", code=1, preloaded=False)
        check("not so" in said, f"the MPI alone knows no such file: {said}")
        FS.fails(3, "there is no", "stat", "/unseen")


def a_report_tells_what_was_moved():
    for mpi in MPIS:
        said = run(mpi, 2, program("meaning", mpi), f"pif:/told-{mpi}", PIF_MPIIO_REPORT="1")
        moved = re.search(rf"pif: /told-{mpi}: 2 processes: 0 reads of 0 bytes, 2 writes of 8 bytes, [0-9.]+ s", said)
        check(moved, f"the first file's report: {said}")
        check(f"pif: /told-{mpi} exists" in said, f"an error is told in words: {said}")


def no_file_system_is_an_error_of_the_program():
    for mpi in MPIS:
        said = run(mpi, 1, program("meaning", mpi), "pif:/x", code=1, PIF_MPIIO_REPORT="1", PIF=FS.local("nowhere"))
        check("nowhere" in said, f"it says which was looked for: {said}")


def hdf5_makes_and_changes_its_files():
    if not os.path.exists(program("hdf5", "openmpi")):
        print("skipped: no HDF5 for Open MPI (libhdf5-openmpi-dev)")
        return
    run("openmpi", 3, program("hdf5", "openmpi"), "pif:/data.h5")
    check(FS.content("/data.h5")[:8] == b"\x89HDF\r\n\x1a\n", "it is an HDF5 file")


def fortran_programs_use_the_same_names():
    for mpi in MPIS:
        if not os.path.exists(program("fortran", mpi)):
            print(f"skipped: no Fortran for {mpi}")
            continue
        run(mpi, 2, program("fortran", mpi), f"pif:/fortran-{mpi}")
        numbers = struct.unpack("=2i", FS.content(f"/fortran-{mpi}"))
        check(numbers == (1000, 1001), f"{mpi}: what Fortran wrote: {numbers}")


def threads_use_files_at_once():
    for mpi in MPIS:
        run(mpi, 2, program("threads", mpi), f"pif:/threads-{mpi}")


def python_with_h5py():
    for python in (sys.executable, "/usr/bin/python3"):
        words = [python, "-c", "import h5py, mpi4py"]
        if subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    return None


def h5py_makes_and_reads_a_file():
    python = python_with_h5py()
    if python is None or "openmpi" not in MPIS:  # Debian's is of Open MPI
        print("skipped: no h5py with MPI (python3-h5py-mpi)")
        return
    run("openmpi", 2, python, os.path.join(SOURCE, "test/mpi/h5py_example.py"), "pif:/h5py.h5")
    check(FS.content("/h5py.h5")[:8] == b"\x89HDF\r\n\x1a\n", "it is an HDF5 file")


def pnetcdf_uses_a_mount():
    if not os.path.exists(program("pnetcdf", "openmpi")) or not can_mount():
        print("skipped: no PnetCDF (libpnetcdf-dev), or no mounts")
        return
    with Mount(FS, "mounted") as folder:
        run("openmpi", 2, program("pnetcdf", "openmpi"), f"{folder}/data.nc")
    check(FS.content("/data.nc")[:4] == b"CDF\5", "it is a netCDF file")


def kill_within(job, victim, rnd):
    """Kills a rank, an LFS or the server some time after both ranks have said who they are; what the job printed."""
    ranks, said = [], ""
    while len(ranks) < 2:
        line = job.stdout.readline().decode(errors="replace")
        check(line, f"the job ended before its ranks said who they are: {said}")
        said += line
        ranks += [int(pid) for pid in re.findall(r"^process (\d+)$", line, re.M)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(rnd.uniform(0, 0.4))
    if victim == "rank":
        with contextlib.suppress(ProcessLookupError):
            os.kill(rnd.choice(ranks), 9)
    else:
        FS.kill("server" if victim == "server" else f"lfs{rnd.randrange(4)}")
        FS.ok("up", FS.folder)
    return said + job.communicate(timeout=SECONDS)[0].decode(errors="replace")


def a_kill_leaves_no_file_or_a_whole_one():
    rnd = random.Random(int(os.environ.get("PIF_MPI_KILLS_SEED", "5")))
    calls = 40
    length = calls * 64 * 2 * 1000
    whole = bytes((at * 31 + at // 4096) % 256 for at in range(length))
    outcomes = []
    for i in range(int(os.environ.get("PIF_MPI_KILLS", "6"))):
        mpi, victim, name = MPIS[i % len(MPIS)], ("rank", "lfs", "server")[i // len(MPIS) % 3], f"/killed{i}"
        words = command(mpi, 2, program("kills", mpi), f"pif:{name}", str(calls))
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        job = subprocess.Popen(words, env=FS.env, **pipes)
        said = kill_within(job, victim, rnd)
        check("know of an error" not in said, f"{mpi}, {victim}: all ranks know of an error at the call: {said}")
        is_there = FS.run("stat", name).returncode == 0
        outcomes.append((victim, job.returncode == 0, is_there))
        check(is_there or job.returncode != 0, f"{mpi}, {victim}: a job without an error left no file: {said}")
        if is_there:
            check(FS.content(name) == whole, f"{mpi}, {victim}: the file is there, and not whole")
            FS.ok("rm", name)
    print(f"# {len(outcomes)} kills, {sum(is_there for _, _, is_there in outcomes)} files, all whole")


def symbols(path):
    done = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, check=True)
    return set(re.findall(r" [TW] (P?MPI_File_\w+)", done.stdout.decode()))


def mpi_itself(mpi):
    """The MPI's own library, which ours needs."""
    done = subprocess.run(["ldd", library(mpi)], stdout=subprocess.PIPE, check=True)
    return re.search(r"libmpi(?:ch)?\.so\S* => (\S+)", done.stdout.decode()).group(1)


def the_table_has_all_functions():
    with open(os.path.join(SOURCE, "bind/mpi/functions.h")) as file:
        table = file.read()
    parts = dict(re.findall(r"#define PIF_MPI_(\w+)\(X\)((?:.*\\\n)*.*)\n", table))
    names = {part: set(re.findall(r"X\((\w+)", text)) for part, text in parts.items()}
    all_names = set().union(*names.values())
    check(len(all_names) == 61 == sum(len(some) for some in names.values()), f"61 functions: {len(all_names)}")
    for mpi in MPIS:
        theirs, ours = symbols(mpi_itself(mpi)), symbols(library(mpi))
        for prefix in ("MPI_File_", "PMPI_File_"):
            of_them = {name[len(prefix) :] for name in theirs if name.startswith(prefix)}
            of_us = {name[len(prefix) :] for name in ours if name.startswith(prefix)}
            large = {name for name in of_them if name.endswith("_c")}
            check(of_them - large == all_names, f"{mpi}: other functions: {(of_them - large) ^ all_names}")
            wanted = (all_names - names["OWN"]) | {name for name in large if name[:-2] not in names["OWN"]}
            check(of_us == wanted, f"{mpi}: ours are others: {of_us ^ wanted}")


if __name__ == "__main__":
    if not MPIS:
        print("skipped: neither mpich nor openmpi is installed, or their libraries are not built")
        sys.exit(77)
    print(f"MPIs: {', '.join(MPIS)}", flush=True)
    tests = [
        the_table_has_all_functions,
        random_programs_do_the_same_on_both,
        it_means_what_is_written,
        a_job_that_dies_leaves_no_new_file,
        without_the_library_the_name_is_none_of_pifs,
        a_report_tells_what_was_moved,
        no_file_system_is_an_error_of_the_program,
        hdf5_makes_and_changes_its_files,
        fortran_programs_use_the_same_names,
        threads_use_files_at_once,
        h5py_makes_and_reads_a_file,
        pnetcdf_uses_a_mount,
        a_kill_leaves_no_file_or_a_whole_one,
        all_processes_learn_of_a_lost_lfs,
    ]
    with FileSystem(4) as FS:
        sys.exit(main_on(FS, tests, sys.argv[1:]))
