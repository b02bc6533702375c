// A trace of all jobs of a controller, as Chrome and Perfetto read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job.pb.h"
#include "pif/base/clock.h"
#include "pif/tool/report.h"

namespace pif::tool {

class TraceFile {
 public:
  // The notes of a worker; several jobs may have one of that rank.
  void add_worker(std::uint32_t rank, const std::string& node, const job::WorkerEnd& end);
  // One document: the controller's phases, and what workers noted, on one axis of wall time.
  std::string to_json(const Report& report, const Clock& clock) const;

 private:
  struct Noted {
    std::uint32_t rank = 0;
    std::string node;
    job::WorkerEnd end;  // its spans only
  };
  std::vector<Noted> workers_;
};

}  // namespace pif::tool
