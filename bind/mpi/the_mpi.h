// All that depends on which MPI this is compiled for: its header, without the C++ interface that MPI-3 has removed.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#if MPI_VERSION >= 4
#define PIF_MPI_LARGE_COUNTS 1  // there is a second form of each access, NAME_c
#else
#define PIF_MPI_LARGE_COUNTS 0
#endif
