// Whether the disk of this LFS fails, as its calls say (docs/PROTOCOL.md "A disk that fails"). No I/O of its own; any
// thread.
//
// Rules: (1) A write or sync that fails makes it fail until the LFS is started again: nobody knows what it holds. (2)
// A read that fails may be one bad sector, which scrub mends. kPlacesMax places within kReadsWithin are a disk that
// fails. (3) A call that takes longer than kReadMax or kChangeMax is one that is not answered; the disk fails until it
// is. (4) A full disk does not fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/component/storage.h"

namespace pif::lfs {

enum class DiskCall : std::uint8_t { kRead, kChange };

class DiskHealth {
 public:
  static constexpr std::size_t kPlacesMax = 8;
  static constexpr std::uint64_t kPlaceBytes = 1u << 20;
  static constexpr Duration kReadsWithin = std::chrono::seconds(60);
  static constexpr Duration kReadMax = std::chrono::seconds(30);
  static constexpr Duration kChangeMax = std::chrono::minutes(5);  // a sync of much
  static constexpr Duration kProbeEvery = std::chrono::seconds(5);

  // clock outlives it, and may be asked by any thread.
  explicit DiskHealth(const Clock& clock) : clock_(clock) {}

  // A call begins; end() gets what this gave, and how it ended. path: until then.
  std::uint64_t begin(DiskCall call, std::string_view path);
  void end(std::uint64_t call, std::uint64_t offset, const Status& outcome);
  // The same of a call that is over.
  void note(DiskCall call, std::string_view path, std::uint64_t offset, const Status& outcome);

  // How it fails, for people; nothing: it does not.
  std::optional<std::string> trouble() const;
  // Whether a call has failed since this was asked last.
  bool take_news();
  // Whether somebody should write and sync something, for a read has failed since the last time; then that is noted
  // here.
  bool take_probe();
  // Reads that have failed since the start.
  std::uint64_t failed_reads() const;

 private:
  struct Call {
    DiskCall kind;
    std::string_view path;
    Time began;
  };
  void note_locked(DiskCall call, std::string_view path, std::uint64_t offset, const Status& outcome);
  void forget_old_places(Time now) const;

  const Clock& clock_;
  mutable std::mutex mutex_;  // guards all below
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Call> under_way_;                               // the oldest first
  std::optional<std::string> failed_;                                     // for good
  mutable std::map<std::pair<std::string, std::uint64_t>, Time> places_;  // that could not be read; at most kPlacesMax
  std::string last_read_;
  bool has_news_ = false;
  std::uint64_t failed_reads_ = 0;
  std::uint64_t probed_reads_ = 0;  // failed_reads_ at the last probe
  Time probed_{};
};

// The storage of an LFS, whose calls are noted in `health`; what they do, and what they answer, is the inner storage's.
// Files that were adopted are of other LFSs, and not noted. inner and health outlive it and its files.
std::unique_ptr<component::Storage> watch(component::Storage& inner, DiskHealth& health);

}  // namespace pif::lfs
