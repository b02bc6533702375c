// The functions of the MPI below this library, by their names.
#pragma once

#include <dlfcn.h>

#include "mpi_file_api.h"

namespace pif::mpi {

// The next definition of a name behind this library's own. The program is linked with an MPI, or does not run.
template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace pif::mpi

// The MPI's own function of that name; looked up once.
#define PIF_REAL(name)                                                                          \
  ([] {                                                                                         \
    static const auto found = ::pif::mpi::real<decltype(&MPI_File_##name)>("PMPI_File_" #name); \
    return found;                                                                               \
  }())
