// An LFS looks at all that it has of files with parity, one after the other: sums, rows against their parity, parity
// against its rows; and repairs what one damage in a group has made. It does so when it is asked, and by itself each
// week. A pass stands still while this LFS takes no part, or changes are held. One thread.
//
// First comes what is missing here altogether, so that others have it to compare with. Files that could not be compared
// with what others have are looked at again: a connection broke, a word of the PIF Server was under way, or the file
// was removed, and the server is to say so.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "scrub/component_mend.h"
#include "scrub/scrub_job.h"

namespace pif::lfs {

class Scrub {
 public:
  // All outlive it.
  Scrub(Keeping& keeping, Managing& managing, Reporting& reporting, LengthsAtRest& lengths, const Holding& holding);

  [[nodiscard]] Result<net::Packet> scrub(const Request& request, const proto::Scrub& asked);
  [[nodiscard]] Result<net::Packet> scrub_status(const Request& request, const proto::ScrubStatus& asked);

 private:
  using TakeEntry = std::function<void(FileId file, const Result<proto::ComponentState>& state)>;

  bool is_due() const;
  void begin_pass(std::uint64_t rate, bool only_look, bool yields);
  // On a fiber of its own, as long as this object lives.
  void serve();
  void run_pass();
  void count();
  void look_at_all();
  void look_again();
  void settle_doubts();
  void end_pass();

  // Takes the next entries of the catalogue, from file `next` on, which moves. False: there are no more. Entries that
  // are no file's, and an error of the catalogue, are of file 0.
  [[nodiscard]] bool take_entries(std::uint64_t& next, const TakeEntry& take);
  // page: of a doubt; nothing else is looked at.
  void look_at(FileId file, std::optional<std::uint64_t> page = {});
  void look_at_parts(ScrubJob& job);
  void find_length(ScrubJob& job);
  [[nodiscard]] bool ask_length(ScrubJob& job, LfsIndex lfs);
  bool may_look_again(const ScrubJob& job) const;
  void mend_lost();

  Keeping& keeping_;
  LfsContext& context_;
  const Time up_since_;
  Reporting& server_;
  LengthsAtRest& lengths_;
  const Holding& holding_;
  Duration first_after_{};  // of uptime, if there was no pass yet
  RateLimit rate_;
  ComponentMend mend_;
  daemon::Event news_;  // a pass is to begin, or has another rate
  bool is_running_ = false;
  std::unique_ptr<ScrubPass> pass_;  // under way, or the last of this run
  Time begun_{};
  Time ended_{};
  std::int64_t began_wall_ = 0;
  std::uint64_t files_ = 0, files_total_ = 0, bytes_total_ = 0;

  // The state of the pass.
  std::deque<FileId> again_;  // in the second look
  struct Lost {
    FileId file;
    std::string why;
  };
  std::deque<Lost> lost_;  // components that cannot be known, or have too few rows
};

}  // namespace pif::lfs
