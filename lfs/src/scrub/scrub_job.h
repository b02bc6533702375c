// The state of the scrub of one component: whose it is, how much may be read, and what was found. One thread; all that
// waits is called by the fiber of the pass.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "parity/keeping.h"
#include "rebuild/rate_limit.h"
#include "requests/holding.h"

namespace pif::lfs {

// The findings of a pass so far.
struct ScrubReport {
  static constexpr std::size_t kDamagesMax = 100;  // that are reported
  struct Damage {
    std::uint64_t file = 0;
    std::string text;
    bool is_repaired = false;
  };
  std::uint64_t found = 0;
  std::uint64_t repaired = 0;
  std::vector<Damage> damages;  // the first
  struct Missed {
    std::uint64_t files = 0;
    std::string why;  // of the first
  };
  std::map<std::string, Missed> missed;  // files that were not wholly compared, by the LFS that was missed

  bool may_log() const { return found < 10 * kDamagesMax; }
  void add(FileId file, std::string text, bool is_repaired) {
    ++found;
    repaired += is_repaired ? 1 : 0;
    if (damages.size() < kDamagesMax) damages.push_back({file.value, std::move(text), is_repaired});
  }
};

// A page, all of whose sums hold, of which one member has other rows. It is looked at again at the end of the pass: the
// member's own scrub repairs it.
struct ScrubDoubt {
  FileId file;
  std::uint64_t page = 0;

  bool operator==(const ScrubDoubt&) const = default;
};

// Whether this LFS serves, and is a member.
bool takes_part(const LfsContext& context);

// The state of a pass. It outlives all that runs of it.
struct ScrubPass {
  Keeping& keeping;
  RateLimit& rate;
  daemon::Event& news;  // somebody asked for another rate
  const Holding& holding;
  LengthsAtRest& lengths;
  bool only_look = false;
  ScrubReport report;
  std::vector<ScrubDoubt> doubts;
  bool yields = false;                 // to foreground work: nobody waits for it
  bool is_second_look = false;         // at files that could not be compared
  bool is_last_look = false;           // what is doubtful now is a damage
  Time went_on{};                      // last
  std::map<std::uint32_t, Time> away;  // nodes that did not answer: until when they are not asked again
  std::uint64_t bytes = 0;             // looked at

  // Once, however often its file is looked at.
  void add_doubt(const ScrubDoubt& doubt) {
    if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) doubts.push_back(doubt);
  }
  // Whether this LFS takes part, and no changes are held.
  bool may_run() const { return takes_part(keeping.context) && !holding.is_asked(); }
  // Until then, and until the pass may run.
  void wait_until(Time then) const;
  // Before something changes: until the pass may run.
  void await_leave() const { wait_until(keeping.context.now()); }
  // Until the next window may begin.
  void pace();
};

// One component, as it was at the beginning of its turn.
struct ScrubJob {
  static constexpr Duration kAwayFor = std::chrono::seconds(20);

  ScrubPass& pass;  // on the loop's thread only
  component::Storage& storage;
  const std::string stem;
  ComponentPtr component;
  Keeper keeper;
  FileLength published;
  std::map<std::string, std::string> missed;  // LFSs with which it was not wholly compared: why not, the first time
  bool is_doubtful = false;                   // whether there is such a file
  bool is_worth_another = false;              // look: what was missed may be there a moment later

  LfsContext& context() const { return pass.keeping.context; }
  std::uint32_t node_of(LfsIndex lfs) const { return component->state.shape().layout().nodes(static_cast<int>(lfs)); }
  std::string name_of(LfsIndex lfs) const {
    const proto::NodeInfo* const known = context().peer_list.find(node_of(lfs));
    return known != nullptr ? known->name() : "node " + std::to_string(node_of(lfs));
  }
  // The node does not take part at present, or did not answer a moment ago.
  bool is_away(LfsIndex lfs) const {
    const auto found = pass.away.find(node_of(lfs));
    return context().view.is_absent(node_of(lfs)) || (found != pass.away.end() && context().now() < found->second);
  }
  // Another has removed its component, or has none, as if the file was removed: the PIF Server knows.
  void miss(const std::string& name, const Error& why) {
    is_doubtful = is_doubtful || why.code == Code::kNotFound || why.code == Code::kStaleFile;
    is_worth_another = true;
    missed.try_emplace(name, why.text);
  }
  void miss_away(LfsIndex lfs) {
    const bool is_absent = context().view.is_absent(node_of(lfs));
    is_worth_another = is_worth_another || !is_absent;
    missed.try_emplace(name_of(lfs), is_absent ? "it is lost or being rebuilt" : "it did not answer");
  }
  void note_away(LfsIndex lfs) { pass.away[node_of(lfs)] = context().now() + kAwayFor; }
  std::string folder() const { return stem.substr(0, stem.rfind('/')); }
  std::uint64_t row_bytes() const { return row_bytes_of(keeper.format(), published); }
  bool is_gone() const { return component->is_removed() || component->failure.has_value(); }
  // text: it says which file.
  void report(const std::string& text, bool is_repaired) const;
  void spend(std::uint64_t bytes) const {
    pass.bytes += bytes;
    pass.rate.spend(bytes, context().now());
  }
};

}  // namespace pif::lfs
