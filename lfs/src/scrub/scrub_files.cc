#include "scrub/scrub_files.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/component/names.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kLookAgain = std::chrono::milliseconds(50);

}  // namespace

void ScrubFiles::start(Done done) {
  PIF_ASSERT(!done_ && missing_.empty(), component_->file.value);
  done_ = std::move(done);
  patience_ = job_->context().now() + kPatience;
  step();
}

// Everything goes on from here.
void ScrubFiles::step() {
  if (!done_ || is_busy_) return;
  if (is_gone()) return end();
  LfsContext& context = job_->context();
  const bool may_close = context.may(Operation::kClose, *component_) == Permission::kNow && !component_->is_keeping;
  if (!may_close && context.now() < patience_) {
    next_try_ = context.now() + kLookAgain;
    return;
  }
  next_try_ = kNever;
  if (may_close) context.components.close_files(*component_);
  look();
}

void ScrubFiles::look() {
  PIF_ASSERT(!is_busy_ && !is_gone(), component_->file.value);
  is_busy_ = true;
  job_->pass.keeping.works.submit(
      [self = shared_from_this()] {
        for (const std::string& path : component::needed_names(self->job_->stem, self->component_->shape.format)) {
          const auto file = self->job_->storage.open(path, component::OpenMode::kRead);
          if (!file && file.error().code == Code::kNotFound) self->missing_.push_back(path);
        }
      },
      [self = shared_from_this()] {
        self->is_busy_ = false;
        self->looked();
      });
}

void ScrubFiles::looked() {
  if (is_gone() || missing_.empty()) return end();
  if (job_->pass.only_look) {
    report(fail(Code::kCancelled, "as was asked for"));
    return end();
  }
  make();
}

// Here, where the component is not removed at the same time: nobody would know of files made anew then.
void ScrubFiles::make() {
  PIF_ASSERT(!is_busy_ && !component_->is_removed() && !job_->pass.only_look, component_->file.value);
  const auto made =
      component::open_files(job_->storage, job_->stem, component_->shape.format, component::OpenMode::kCreate);
  if (!made) {
    report(fail(made.error()));
    return end();
  }
  is_busy_ = true;
  auto synced = std::make_shared<Status>();
  job_->pass.keeping.works.submit(
      [self = shared_from_this(), synced] { *synced = self->job_->storage.sync_folder(self->job_->folder()); },
      [self = shared_from_this(), synced] {
        self->is_busy_ = false;
        self->report(*synced);
        self->end();
      });
}

void ScrubFiles::report(const Status& made) {
  for (const std::string& path : std::exchange(missing_, {})) {
    const std::string text = fmt::format("file {}: {} is missing; {}", name_of(component_->file), path,
                                         made ? "made anew" : "not repaired: " + made.error().text);
    if (job_->pass.report.may_log()) spdlog::warn("{}", text);
    job_->pass.report.add(component_->file, text, made.has_value());
  }
}

void ScrubFiles::end() {
  if (!done_) return;
  next_try_ = kNever;
  const Done done = std::exchange(done_, {});
  done();
}

}  // namespace pif::lfs
