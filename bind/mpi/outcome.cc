#include "outcome.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

namespace pif::mpi {
namespace {

constexpr std::size_t kTextsMax = 500;  // an MPI forgets no code

int class_of(int code) {
  switch (code) {
    case PIF_E_NOT_FOUND: return MPI_ERR_NO_SUCH_FILE;
    case PIF_E_EXISTS: return MPI_ERR_FILE_EXISTS;
    case PIF_E_PERMISSION: return MPI_ERR_ACCESS;
    case PIF_E_READ_ONLY: return MPI_ERR_READ_ONLY;
    case PIF_E_NO_SPACE: return MPI_ERR_NO_SPACE;
    case PIF_E_BUSY: return MPI_ERR_FILE_IN_USE;
    case PIF_E_IS_DIRECTORY:
    case PIF_E_NOT_DIRECTORY: return MPI_ERR_BAD_FILE;
    case PIF_E_UNSUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
    case PIF_E_INVALID:
    case PIF_E_TOO_LARGE:
    case PIF_E_END_OF_FILE: return MPI_ERR_ARG;
    default: return MPI_ERR_IO;
  }
}

// Where the MPI does not call the handler of files that are not open: one of the program's own is not called.
void end_if_fatal(const Outcome& outcome, int code) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_File_get_errhandler(MPI_FILE_NULL, &handler);
  if (handler != MPI_ERRORS_ARE_FATAL) return;
  std::fprintf(stderr, "%s\n", outcome.text.c_str());
  PMPI_Abort(MPI_COMM_WORLD, code);
}

}  // namespace

Outcome outcome_of(int negative_code, const std::string& text) { return {class_of(-negative_code), "pif: " + text}; }

int error_code_of(const Outcome& outcome) {
  static std::mutex lock;
  static std::map<std::pair<int, std::string>, int> known;
  if (outcome || outcome.text.empty()) return outcome.error_class;
  const std::string text = outcome.text.substr(0, MPI_MAX_ERROR_STRING - 1);
  const std::lock_guard held(lock);
  if (const auto found = known.find({outcome.error_class, text}); found != known.end()) return found->second;
  int code = outcome.error_class;
  if (known.size() >= kTextsMax || PMPI_Add_error_code(outcome.error_class, &code) != MPI_SUCCESS)
    return outcome.error_class;
  PMPI_Add_error_string(code, text.c_str());
  known[{outcome.error_class, text}] = code;
  return code;
}

int finish(MPI_File file, const Outcome& outcome) {
  if (outcome) return MPI_SUCCESS;
  const int code = error_code_of(outcome);
  if (file != MPI_FILE_NULL || PIF_MPI_CALLS_HANDLER_OF_NO_FILE)
    PMPI_File_call_errhandler(file, code);
  else
    end_if_fatal(outcome, code);
  return code;
}

}  // namespace pif::mpi
