// The one connection of this process to the file system, made when a file is opened first.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "outcome.h"

namespace pif::mpi {

class Connection {
 public:
  // Of this process. Never destroyed: an MPI program may close files while it ends.
  static Connection& instance();

  // Runs a call of pif.h with the connection, while no other thread does. Negative: it failed.
  Outcome run(const std::function<std::int64_t(pif_connection*)>& call);
  // The same; `value` is what it gave.
  Outcome run(const std::function<std::int64_t(pif_connection*)>& call, std::int64_t& value);

 private:
  Connection() = default;
  std::mutex lock_;
  pif_connection* connection_ = nullptr;  // guarded by lock_
};

}  // namespace pif::mpi
