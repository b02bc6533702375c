// The files that a component must have, whatever is in them: one that was removed is made again, empty, and what should
// be in it is found to be missing afterwards (scrub_rows.h, scrub_pages.h). First all that the LFS has open of the
// component is closed. A file that was removed under the running LFS would be repaired where nobody finds it again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubFiles : public std::enable_shared_from_this<ScrubFiles> {
 public:
  using Done = std::function<void()>;
  explicit ScrubFiles(std::shared_ptr<ScrubJob> job) : job_(std::move(job)), component_(job_->component) {}
  // done: later, or before this returns.
  void start(Done done);
  // Goes on once nobody uses the component.
  void advance() { step(); }
  Time next_deadline() const { return next_try_; }

 private:
  void step();
  void look();
  void looked();
  void make();
  void report(const Status& made);
  void end();
  bool is_gone() const { return component_->is_removed() || component_->failure.has_value(); }

  const std::shared_ptr<ScrubJob> job_;
  const ComponentPtr component_;
  Done done_;
  bool is_busy_ = false;
  Time next_try_ = kNever;
  Time patience_{};
  std::vector<std::string> missing_;  // paths
};

}  // namespace pif::lfs
