// What one LFS keeps of the parity of a file: the sums of its pages, whether they are the XOR of the members' rows, and
// whether every published row is in a page or a frame. Bad pages and missing frames are made anew out of the members'
// rows. Window by window, in bounded memory.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubPages : public std::enable_shared_from_this<ScrubPages> {
 public:
  using Done = std::function<void()>;
  // only: that page alone, of which there was a doubt.
  explicit ScrubPages(std::shared_ptr<ScrubJob> job, std::optional<std::uint64_t> only = {})
      : job_(std::move(job)), component_(job_->component), only_(only) {}
  // done: later, or before this returns.
  void start(Done done);
  void advance() { step(); }
  Time next_deadline() const { return next_try_; }

 private:
  // What a look at a page says.
  struct Verdict {
    std::uint64_t page = 0;
    bool is_bad = false;       // it is to be made anew
    bool is_doubtful = false;  // one member has other rows
    std::string why;           // of what cannot be repaired; or of what is bad
    bool is_hopeless = false;
  };

  void step();
  [[nodiscard]] bool next_window();
  void fetch();
  void fetched(const Status& status);
  void look();
  void looked();
  void gather();
  void gathered(const Status& status);
  void scan();
  void scanned();
  void write_frames();
  void frames_written(const Status& status, ParityRun::Outcome& outcome);
  void end_frames(const Status& status);
  void end();
  bool is_gone() const { return component_->is_removed() || component_->failure.has_value(); }
  void add(const std::string& text, bool is_repaired);
  MemberOptions members_of(Range parity_rows) const;
  Range rows_of(Range pages) const;
  std::uint64_t frame_bytes(Range parity_rows) const;

  // Away from the loop.
  [[nodiscard]] Result<component::ParityFiles> open(component::OpenMode mode) const;
  [[nodiscard]] Status sync() const;
  [[nodiscard]] Status read_back(std::span<const component::Frame> frames) const;
  Verdict judge(std::uint64_t page) const;
  Verdict judge_bad(std::uint64_t page, const std::string& why) const;
  [[nodiscard]] Result<component::PackedRows> stretch_of(std::uint64_t page, std::size_t member) const;
  [[nodiscard]] Result<std::vector<component::VectorEntry>> vector_of(std::uint64_t page) const;

  const std::shared_ptr<ScrubJob> job_;
  const ComponentPtr component_;
  const std::optional<std::uint64_t> only_;
  Done done_;
  bool is_busy_ = false;
  Time next_try_ = kNever;
  std::uint64_t next_ = 0;          // page
  Range window_;                    // pages
  std::vector<std::string> names_;  // of the members
  std::shared_ptr<MemberRows> rows_;
  std::optional<std::size_t> without_;  // this member is not asked in this window
  bool is_local_ = false;               // nobody is, in this window
  unsigned tries_ = 0;
  std::shared_ptr<component::ParityFiles> files_;
  std::vector<component::RowSource*> sources_;  // empty: none
  std::vector<Verdict> verdicts_;
  bool has_scanned_ = false;
  component::FrameIndex index_;
  std::vector<Range> uncovered_;  // parity rows of which a row is in no page and no frame
  std::vector<std::string> uncovered_text_;
  bool is_scanned_anew_ = false;  // once these are repaired: there were more
  std::uint64_t reserved_ = 0;    // up to there nobody else writes frames
  Time patience_{};
  Status result_;
};

}  // namespace pif::lfs
