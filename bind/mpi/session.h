// The connection of this process to the file system: one, made when it is first needed, for all files and threads.
#pragma once

#include <cstdint>
#include <functional>

#include "outcome.h"
#include "pif/client/pif.h"

namespace pif::mpi {

// Calls `call` with the connection, one thread at a time; what is negative of its answer becomes the outcome, the rest
// goes to `answer`. MPI_ERR_IO: there is no file system, or it cannot be reached. It stays until the process ends.
Outcome ask(const std::function<std::int64_t(pif_connection*)>& call, std::int64_t* answer = nullptr);

// The answer of a call that gives a file, as a number for ask().
inline std::int64_t answer_of(pif_connection* connection, const pif_file* file) {
  return file != nullptr ? 0 : -pif_error(connection);
}

}  // namespace pif::mpi
