// An LFS looks at all that it has of files with parity, one after the other: sums, rows against their parity, parity
// against its rows; and repairs what one damage in a group has made. It does so when it is asked, and by itself each
// week. One thread.
//
//   kIdle -> kListing -> kCounting -> kLooking -> kWaiting -> kLooking (again) -> kDoubting -> kKeeping -> kIdle
//
// First comes what is missing here altogether, so that others have it to compare with. Files that could not be compared
// with what others have are looked at again: a connection broke, a word of the PIF Server was under way, or the file
// was removed, and the server is to say so.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "scrub/component_mend.h"
#include "scrub/scrub_files.h"
#include "scrub/scrub_missing.h"
#include "scrub/scrub_pages.h"
#include "scrub/scrub_rows.h"

namespace pif::lfs {

class Scrub {
 public:
  Scrub(Keeping& keeping, Managing& managing, Rebuild::Ask ask);

  [[nodiscard]] Result<net::Packet> scrub(const Request& request, const proto::Scrub& asked);
  [[nodiscard]] Result<net::Packet> scrub_status(const Request& request, const proto::ScrubStatus& asked);
  // Once per turn.
  void tick();
  Time next_deadline() const;

 private:
  enum class Phase : std::uint8_t { kIdle, kListing, kCounting, kLooking, kWaiting, kDoubting, kKeeping };
  // One component's.
  struct Turn {
    std::shared_ptr<ScrubJob> job;
    std::shared_ptr<ScrubFiles> files;
    std::shared_ptr<ScrubRows> rows;
    std::shared_ptr<ScrubPages> pages;
    std::unique_ptr<access::Grant> grant;  // of the question for the length
    std::optional<std::uint64_t> page;     // of a doubt: nothing else is looked at
    std::uint64_t found = 0;               // in the pass, before it
    bool is_over = false;
  };
  using TurnPtr = std::shared_ptr<Turn>;

  bool may_run() const;
  bool is_due() const;
  void begin_pass(std::uint64_t rate, bool only_look, bool yields);
  void count_some();
  void look();
  void refill();
  void start(FileId file, std::optional<std::uint64_t> page);
  void find_length(const TurnPtr& turn, LfsIndex lfs);
  void look_at_files(const TurnPtr& turn);
  void look_at_rows(const TurnPtr& turn);
  void look_at_pages(const TurnPtr& turn);
  void end_turn();
  bool may_look_again() const;
  bool lacks_rows(const TurnPtr& turn) const;
  void mend_lost();
  void end_look();
  void doubt();
  void keep();

  Keeping& keeping_;
  LfsContext& context_;
  const Time up_since_;
  Duration first_after_{};  // of uptime, if there was no pass yet
  Phase phase_ = Phase::kIdle;
  std::unique_ptr<ScrubPass> pass_;  // under way, or the last of this run
  RateLimit rate_;
  Time begun_{};
  Time ended_{};
  std::int64_t began_wall_ = 0;
  std::uint64_t files_ = 0, files_total_ = 0, bytes_total_ = 0;
  std::uint64_t next_id_ = 0;  // of the catalogue
  bool has_all_ = false;       // the catalogue's end was reached
  std::deque<FileId> queue_;
  std::deque<FileId> again_;  // in the second look
  struct Lost {
    FileId file;
    std::string why;
  };
  std::deque<Lost> lost_;  // components that cannot be known, or have too few rows
  ComponentMend mend_;
  ScrubMissing missing_;
  bool is_second_look_ = false;
  std::deque<ScrubDoubt> doubts_;
  unsigned rounds_ = 0;  // of doubts
  Time next_try_{};
  TurnPtr turn_;
};

}  // namespace pif::lfs
