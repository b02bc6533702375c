// The prediction of a cost formula for a job: its phases, and the terms that each is the sum of. Pure values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pif/tool/calibration.h"

namespace pif::tool {

using Terms = std::vector<std::pair<std::string, double>>;  // seconds, by name

// All of them together.
double seconds_of(const Terms& terms);

struct PhasePrediction {
  std::string name;
  Terms terms;

  // The sum of all its terms.
  double seconds() const;
  // The name of the largest; empty if there is none.
  std::string largest() const;
};

struct Prediction {
  std::vector<PhasePrediction> phases;
  double writing = 0;  // seconds of them in which outputs are written, so that disks are at it already

  // Behind those before it.
  void add(std::string phase, Terms terms);
  // The sum of all phases.
  double seconds() const;
  // nullptr: there is no such phase. Valid until the next add().
  const PhasePrediction* find(const std::string& phase) const;
  // "1.30 s: spawn 0.10, sort 0.50, ..."
  std::string to_text() const;
};

// The longer of two, as where things happen at the same time.
Terms longer(Terms a, Terms b);

// A job's shape, apart from the work of its workers.
struct JobShape {
  std::uint64_t component_bytes = 0;  // that the busiest LFS makes durable
};
// `work` with what is before and after it: connect, create, spawn; start, as a term of its last phase if that is called
// kWorkPhase or kStartPhase, else as a phase; seal and commit. The kernel begins to write before the seal, but not the
// last megabytes of each LFS: for these, and for what the time of writing does not hide, the seal waits.
Prediction around_work(const Constants& constants, const JobShape& shape, const Prediction& work);

// Names of phases: all that workers do, as reports have it, and what of it is no part that the tool names.
inline constexpr const char* kWorkPhase = "work";
inline constexpr const char* kStartPhase = "start and end of workers";

}  // namespace pif::tool
