// What all parts of one history share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "simulate/oracle.h"
#include "simulate/plan.h"

namespace pif::simulate {

class Absences;
class Contents;
class Restores;
class Together;

struct Shared {
  const Plan& plan;
  sim::Cluster& cluster;
  Oracle& oracle;
  Paths& paths;
  std::function<void(const std::string&)> tell;
  std::uint64_t operations = 0;  // done, whatever their end
  std::uint64_t failed = 0;
  std::uint64_t files_made = 0;
  std::vector<std::string> errors;  // that clients were told
  Restores* restores = nullptr;     // of histories that have them
  Absences* absences = nullptr;     // of histories with bevies
  Contents* contents = nullptr;     // the same
  Together* together = nullptr;     // of histories whose clients fill files together
  bool may_be_stale = false;        // a part was put back: errors may say so
  bool may_seem_corrupt = false;    // data has rotted, or reads were cut short: errors may say so
};

}  // namespace pif::simulate
