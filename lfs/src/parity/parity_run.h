// A run makes pages, and frames of rows that are in none, out of the members' rows of a keeper. It goes window by
// window, in bounded memory: far rows are fetched, then the executor reads, checks, computes and writes. Nothing is
// synced, and the catalogue does not change: that is up to who runs it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "parity/member_rows.h"
#include "parity/works.h"

namespace pif::lfs {

struct ParityPlan {
  std::deque<Range> pages;  // to be made, by rising page
  // Parity rows; of their rows those get frames that hold MemberOptions::records, but for those that are copies, and
  // those of MemberOptions::without.
  std::deque<Range> frames;
  std::uint64_t generation = 0;  // of the frames
  std::uint64_t end = 0;         // of .pap: where the frames go
};

class ParityRun {
 public:
  struct Outcome {
    std::vector<component::Frame> frames;  // written
    std::uint64_t end = 0;                 // of .pap
  };

  ParityRun(Peers& peers, component::Storage& storage, Works& works, const Keeper& keeper, const MemberOptions& options,
            const ParityPlan& plan, std::shared_ptr<component::ParityFiles> files);
  // Called by a fiber, once.
  [[nodiscard]] Status run(const proto::ComponentShape& shape);
  // The frames that were written, also by a run that failed.
  Outcome& outcome() { return outcome_; }

 private:
  struct Window {
    Range pages;
    Range frames;
    bool empty() const { return pages.empty() && frames.empty(); }
  };
  Window next_window();
  std::uint64_t window_pages() const;
  // Away from the loop.
  [[nodiscard]] Status write(const Window& window);
  [[nodiscard]] Status write_frames(std::size_t member, Range parity_rows, component::RowSource& source);
  [[nodiscard]] Status check_row(RecordNumber record, std::span<const std::byte>& row) const;

  Works& works_;
  const Keeper keeper_;
  const MemberOptions options_;
  ParityPlan plan_;  // what is left of it
  std::shared_ptr<component::ParityFiles> files_;
  MemberRows rows_;
  Outcome outcome_;
};

}  // namespace pif::lfs
