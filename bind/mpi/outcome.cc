#include "outcome.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "pif/base/assert.h"
#include "pif/client/pif.h"

namespace pif::mpi {
namespace {

constexpr std::size_t kCodesMax = 256;

int class_of(int code) {
  switch (code) {
    case PIF_E_INVALID: return MPI_ERR_ARG;
    case PIF_E_NOT_FOUND: return MPI_ERR_NO_SUCH_FILE;
    case PIF_E_STALE_FILE: return MPI_ERR_NO_SUCH_FILE;
    case PIF_E_EXISTS: return MPI_ERR_FILE_EXISTS;
    case PIF_E_NOT_DIRECTORY:
    case PIF_E_IS_DIRECTORY: return MPI_ERR_BAD_FILE;
    case PIF_E_PERMISSION:
    case PIF_E_BAD_CAPABILITY: return MPI_ERR_ACCESS;
    case PIF_E_BUSY: return MPI_ERR_FILE_IN_USE;
    case PIF_E_NO_SPACE: return MPI_ERR_NO_SPACE;
    case PIF_E_READ_ONLY: return MPI_ERR_READ_ONLY;
    case PIF_E_UNSUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
    default: return MPI_ERR_IO;
  }
}

// Whether the MPI has understood a new code of one of its own classes. MPICH 4.0 gives it texts that it is not of.
bool means(int code, int error_class, const std::string& text) {
  std::array<char, MPI_MAX_ERROR_STRING> said{};
  int bytes = 0, known_class = MPI_SUCCESS;
  return PMPI_Error_class(code, &known_class) == MPI_SUCCESS && known_class == error_class &&
         PMPI_Error_string(code, said.data(), &bytes) == MPI_SUCCESS && text == said.data();
}

}  // namespace

Outcome outcome_of(int code, const std::string& text) {
  PIF_ASSERT(code > 0, code);
  return {class_of(code), text.empty() ? std::string(pif_code_name(code)) : text};
}

int code_of(const Outcome& outcome) {
  static std::mutex lock;
  static std::map<std::pair<int, std::string>, int> codes;  // guarded by lock
  if (outcome.ok() || outcome.text.empty()) return outcome.error_class;
  const std::lock_guard guard(lock);
  const auto key = std::make_pair(outcome.error_class, outcome.text);
  if (const auto known = codes.find(key); known != codes.end()) return known->second;
  int code = outcome.error_class;
  if (codes.size() >= kCodesMax || PMPI_Add_error_code(outcome.error_class, &code) != MPI_SUCCESS)
    return outcome.error_class;
  const std::string text = "pif: " + outcome.text.substr(0, MPI_MAX_ERROR_STRING - 8);
  PMPI_Add_error_string(code, text.c_str());
  if (!means(code, outcome.error_class, text)) return outcome.error_class;
  codes.emplace(key, code);
  return code;
}

bool reports() {
  const char* const wish = std::getenv("PIF_MPIIO_REPORT");
  return wish != nullptr && std::strcmp(wish, "1") == 0;
}

}  // namespace pif::mpi
