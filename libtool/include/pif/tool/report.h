// The work of a tool and how long it took: for --report and --json, and for people. Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/tool/prediction.h"

namespace pif::tool {

struct Report {
  bool is_wanted = false;  // somebody will look at it: what it takes time to know may be found out
  bool is_quiet = false;   // -q
  bool is_json = false;    // --json: it is all that stdout gets. A tool prints nothing there, and adds results
  std::string tool;
  std::uint32_t workers = 0;
  std::uint64_t records = 0;           // of the outputs
  std::uint64_t bytes = 0;             // of the outputs
  std::uint64_t bytes_read_local = 0;  // by workers, from components on their own LFS
  std::uint64_t bytes_written_local =
      0;  // by workers, to components on their own LFS; bytes_cloned of them share blocks
  std::uint64_t bytes_cloned = 0;
  std::uint64_t bytes_moved = 0;     // of records, between nodes
  std::uint64_t bytes_messaged = 0;  // of all messages between workers, with whatever in them
  std::uint64_t bytes_client_side =
      0;  // what a program on one node would have moved: everything in, and everything out
  std::vector<std::pair<std::string, Duration>> phases;       // in the order in which they happened
  std::vector<std::pair<std::string, std::uint64_t>> counts;  // the tool's own: tokens passed, matches found

  // The phases once more, each time that one was gone through: for a trace.
  struct Lap {
    std::string phase;
    Time begin{};
    Duration time{};
  };
  std::vector<Lap> laps;

  // The tool's findings, in order: "results" of the JSON document.
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
  std::vector<std::pair<std::string, Value>> results;
  // Behind those before it. name: as scripts will look for it; one that was added before is added again.
  void add_result(std::string name, Value value) { results.emplace_back(std::move(name), std::move(value)); }

  // Parts of the phase "work", in order, as the workers took them.
  std::vector<std::pair<std::string, Duration>> parts;
  // The prediction of the tool's cost formulas for the whole job; nothing without a calibration, and `calibration` says
  // why, or when that was made (Controller::predict).
  std::optional<Prediction> prediction;
  std::string calibration;

  // A phase, or a part of the work: what was said of it, beside what it took. The last one is of all together, "total".
  struct Comparison {
    std::string part;
    std::optional<double> predicted;  // seconds
    std::optional<double> measured;
    // Where a part of over 0.2 s is off by more than a quarter of what it took: the term that says most of it. The part
    // of the total that is off most, and its term.
    std::string to_blame;
  };
  // A row for each prediction, in order; without one, for `parts` as they were measured.
  std::vector<Comparison> comparisons() const;

  // Adds to the phase, which is made if it is new. total(): of all phases.
  void add(const std::string& phase, Duration time);
  Duration total() const;

  std::string to_json() const;  // one document
  std::string to_text() const;  // a few lines for people
};

// Adds the time from its making to its end to a phase.
class PhaseTimer {
 public:
  // Report and clock outlive it.
  PhaseTimer(Report& report, std::string phase, Clock& clock)
      : report_(report), phase_(std::move(phase)), clock_(clock), start_(clock.now()) {}
  ~PhaseTimer() {
    const Duration time = clock_.now() - start_;
    report_.add(phase_, time);
    report_.laps.push_back({phase_, start_, time});
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  Report& report_;
  std::string phase_;
  Clock& clock_;
  Time start_;
};

}  // namespace pif::tool
