// Checks the parity of a file that one LFS keeps in frames: every published row that belongs here is in a page or a
// frame. Rows that are in none are copied from their LFSs.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubFrames {
 public:
  explicit ScrubFrames(ScrubJob& job) : job_(job), component_(job.component) {}
  // Called by a fiber, once.
  void run();

 private:
  // Parity rows of which a row is in no page and no frame; and what to tell of each row.
  struct Uncovered {
    std::deque<Range> rows;
    std::vector<std::string> texts;
  };
  [[nodiscard]] Result<component::FrameIndex> scan();
  [[nodiscard]] Result<component::FrameIndex> scan_file(std::uint64_t begin) const;  // away from the loop
  Uncovered find_uncovered(const component::FrameIndex& index) const;
  // patience: until when it waits for others. Nothing: they have written there since, and it is to be scanned again.
  [[nodiscard]] std::optional<Status> copy(const std::deque<Range>& rows, Time patience);
  // kBusy: others write its parity until then. Nothing: it is gone.
  [[nodiscard]] Result<ComponentLock::Held> lock(Time patience) const;
  [[nodiscard]] Status write_frames(const ParityPlan& plan, std::uint64_t reserved);
  std::uint64_t frame_bytes(Range parity_rows) const;
  // Away from the loop.
  [[nodiscard]] Status read_back(std::span<const component::Frame> frames) const;

  ScrubJob& job_;
  const ComponentPtr component_;
};

}  // namespace pif::lfs
