// How a call ended: an error class of MPI-3.1, section 13.7, and what is known of it in words.
#pragma once

#include <cstdint>
#include <string>

#include "the_mpi.h"

namespace pif::mpi {

struct [[nodiscard]] Outcome {
  int error_class = MPI_SUCCESS;
  std::string text;  // of an error

  bool ok() const { return error_class == MPI_SUCCESS; }
};

// The outcome of what pif.h has answered with -`code`.
Outcome outcome_of(int code, const std::string& text);

// The error code that a program gets: of this class, with this text for MPI_Error_string if the MPI can do that. It
// keeps codes for ever, so the same error has the same code, and of many different ones the last have their class only.
int code_of(const Outcome& outcome);

// Whether the user wants to be told more than a program gets: PIF_MPIIO_REPORT is 1.
bool reports();

}  // namespace pif::mpi

// Returns from the function with the outcome of `call` unless that is good.
#define PIF_MPI_TRY(call)                                                       \
  do {                                                                          \
    if (::pif::mpi::Outcome outcome_ = (call); !outcome_.ok()) return outcome_; \
  } while (false)
