#include "session.h"

#include <mutex>

#include "pif/base/assert.h"

namespace pif::mpi {
namespace {

struct Session {
  std::mutex lock;
  pif_connection* connection = nullptr;  // guarded by lock
};

// Never destroyed: a program may have files open until it ends.
Session& session() {
  static Session* const only = new Session;
  return *only;
}

Outcome connect(Session& s) {
  if (s.connection != nullptr) return {};
  s.connection = pif_connect(nullptr, nullptr);
  if (s.connection == nullptr) return {MPI_ERR_NO_MEM, "memory is out"};
  if (pif_error(s.connection) == PIF_OK) return {};
  Outcome out{MPI_ERR_IO, pif_error_text(s.connection)};
  pif_disconnect(s.connection);
  s.connection = nullptr;
  return out;
}

}  // namespace

Outcome ask(const std::function<std::int64_t(pif_connection*)>& call, std::int64_t* answer) {
  Session& s = session();
  const std::lock_guard guard(s.lock);
  PIF_MPI_TRY(connect(s));
  PIF_ASSERT(s.connection != nullptr);
  const std::int64_t result = call(s.connection);
  if (result < 0) return outcome_of(static_cast<int>(-result), pif_error_text(s.connection));
  if (answer != nullptr) *answer = result;
  return {};
}

}  // namespace pif::mpi
