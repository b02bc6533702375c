// Waits until processes say that they serve (pif/cluster/notify.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::cli {

class ReadyListener {
 public:
  [[nodiscard]] static Result<ReadyListener> open();
  // The value of $NOTIFY_SOCKET for the processes that are waited for.
  const std::string& address() const { return address_; }
  // Waits, until somebody has said so or `patience` is over; who has, all that came by then.
  std::vector<pid_t> wait(std::chrono::milliseconds patience) const;

 private:
  ReadyListener(UniqueFd socket, std::string address) : socket_(std::move(socket)), address_(std::move(address)) {}
  pid_t receive() const;  // 0: nothing is there

  UniqueFd socket_;
  std::string address_;
};

}  // namespace pif::cli
