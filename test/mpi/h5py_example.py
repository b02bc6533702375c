"""h5py_example.py FILE: the parallel example of h5py's documentation: each process writes its number, all read all."""

import sys

import h5py
from mpi4py import MPI

COMM = MPI.COMM_WORLD


def main():
    with h5py.File(sys.argv[1], "w", driver="mpio", comm=COMM) as file:
        data = file.create_dataset("test", (COMM.size,), dtype="i")
        data[COMM.rank] = COMM.rank
    with h5py.File(sys.argv[1], "r", driver="mpio", comm=COMM) as file:
        return 0 if list(file["test"][:]) == list(range(COMM.size)) else 1


sys.exit(main())
