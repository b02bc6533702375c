#include "connection.h"

namespace pif::mpi {

Connection& Connection::instance() {
  static auto* const one = new Connection();
  return *one;
}

Outcome Connection::run(const std::function<std::int64_t(pif_connection*)>& call) {
  std::int64_t value = 0;
  return run(call, value);
}

Outcome Connection::run(const std::function<std::int64_t(pif_connection*)>& call, std::int64_t& value) {
  const std::lock_guard held(lock_);
  if (connection_ == nullptr) {
    connection_ = pif_connect(nullptr, nullptr);
    if (connection_ == nullptr) return {MPI_ERR_NO_MEM, "pif: memory is out"};
    if (pif_error(connection_) != PIF_OK) {
      const Outcome outcome = outcome_of(-pif_error(connection_), pif_error_text(connection_));
      pif_disconnect(connection_);
      connection_ = nullptr;
      return outcome;
    }
  }
  value = call(connection_);
  if (value >= 0) return {};
  return outcome_of(static_cast<int>(value), pif_error_text(connection_));
}

}  // namespace pif::mpi
