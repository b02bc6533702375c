// The same few operations every time, while one chosen call of one disk or store fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/faults.h"
#include "simulate/history.h"

namespace pif::simulate {

struct FaultSpec {
  enum class Where : std::uint8_t {
    kLfs,       // of LFS 0, while clients work
    kServer,    // of the server, while clients work
    kLfsStart,  // of LFS 0 while it recovers after having been killed
    kServerStart,
  };
  Where where = Where::kLfs;
  sim::Fault fault = sim::Fault::kIoError;
  std::uint64_t call = 0;  // the so-many-th that this fault can happen to
  bool sticky = false;     // and all after it, until healed

  std::string to_string() const;
};

struct FaultOutcome {
  bool happened = false;            // false: there are fewer calls
  std::string failed_call;          // "sync /lfs0/..."
  std::vector<std::string> errors;  // what the clients were told, and the last words of a daemon that ended
  Outcome outcome;
};

FaultOutcome run_fault_history(const FaultSpec& wanted, const std::function<void(const std::string&)>& tell = {});

}  // namespace pif::simulate
