// What depends on which MPI this is built for. All else is MPI 3.1's.
#pragma once

#include <mpi.h>

// Whether the MPI has the functions with large counts, whose names end in _c (MPI 4).
#if MPI_VERSION >= 4
#define PIF_MPI_HAS_LARGE_COUNTS 1
#else
#define PIF_MPI_HAS_LARGE_COUNTS 0
#endif

// Whether MPI_File_call_errhandler() takes MPI_FILE_NULL. Open MPI 4 calls that an error of the program.
#ifdef OMPI_MAJOR_VERSION
#define PIF_MPI_CALLS_HANDLER_OF_NO_FILE 0
#else
#define PIF_MPI_CALLS_HANDLER_OF_NO_FILE 1
#endif
