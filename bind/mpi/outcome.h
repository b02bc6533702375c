// How an operation ended, as MPI has it: a class of errors and a text.
#pragma once

#include <string>

#include "mpi_file_api.h"
#include "pif/client/pif.h"

namespace pif::mpi {

struct Outcome {
  int error_class = MPI_SUCCESS;
  std::string text = {};

  // Whether it succeeded.
  explicit operator bool() const { return error_class == MPI_SUCCESS; }
};

// Of a call of pif.h that gave a negative code: the class of MPI-3.1 13.7 that is nearest, and the client's text.
Outcome outcome_of(int negative_code, const std::string& text);

// A code of that class whose MPI_Error_string() is the text. The same one for the same text; after some hundred texts
// it is the class itself.
int error_code_of(const Outcome& outcome);

// What an MPI function returns for it. A failure goes to the error handler of `file` first, which may end the program;
// without a file, to the handler of files that are not open (MPI_FILE_NULL).
int finish(MPI_File file, const Outcome& outcome);

}  // namespace pif::mpi
