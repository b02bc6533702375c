#include "parity/gathering.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/copied_pages.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kCopiesMax = 4096;  // that wait, of one file

Error removed() { return {Code::kStaleFile, "the file was removed meanwhile", {}}; }

}  // namespace

Gathering::Gathering(Keeping& keeping) : keeping_(keeping), context_(keeping.context) {
  context_.operations.bind<&Gathering::gather>(*this);
}

void Gathering::gather(const Request& request, const proto::Gather& asked) {
  const auto keeper = keeper_of(context_, asked.shape());
  if (!keeper) return context_.replies.answer(request, fail(keeper.error()));
  if (auto ok = context_.check_takes(asked.shape()); !ok) return context_.replies.answer(request, fail(ok.error()));
  if (auto ok = context_.check_view(asked.view()); !ok) return context_.replies.answer(request, fail(ok.error()));
  const FileLength file_length = file_length_of(asked.file_length());
  auto ready = prepare(request, *keeper);
  if (!ready) return context_.replies.answer(request, fail(std::move(ready.error())));
  const ComponentPtr component = std::move(*ready);
  const ReplyToken token = context_.replies.defer(request);
  if (!component) return context_.replies.answer(token, Status());
  if (const auto running = jobs_.find(asked.shape().file()); running != jobs_.end()) {
    running->second->asked.push_back({token, asked.view()});
    return;
  }
  auto job = std::make_shared<Job>(Job{component, *keeper, file_length, {{token, asked.view()}}});
  job->view = context_.view.index();
  job->is_new = component->is_open();
  job->pages = keeper->pages(file_length);
  jobs_.emplace(asked.shape().file(), job);
  component->is_keeping = true;
  if (job->is_new) component->enter(Stage::kSealing);
  if (auto begun = begin(request, job); !begun) end(job, begun);
}

// Null: there is nothing to do.
Result<ComponentPtr> Gathering::prepare(const Request& request, const Keeper& keeper) {
  const auto& asked = request.envelope().gather();
  const FileLength file_length = file_length_of(asked.file_length());
  PIF_TRY(check_file_length(keeper.format(), file_length));
  if (keeper.parity_rows(file_length) == 0) return nullptr;
  if (const auto running = jobs_.find(asked.shape().file()); running != jobs_.end()) {
    if (running->second->view != context_.view.index())
      return fail(Code::kRetry, fmt::format("file {} is still being gathered by an older view", asked.shape().file()));
    if (running->second->file_length == file_length) return running->second->component;
    return fail(Code::kBusy, fmt::format("file {} is being gathered, with another length", asked.shape().file()));
  }
  if (copies_.contains(asked.shape().file()))
    return fail(Code::kRetry, fmt::format("rows of file {} are still being copied here", asked.shape().file()));
  PIF_TRY(context_.check_space(keeper.bytes(file_length)));
  PIF_TRY_VALUE(const auto component, component_of(request, keeper));
  PIF_TRY(context_.check_epoch(*component, request.capability));
  const auto& state = component->state;
  if (!is_same_shape(state.shape(), asked.shape()))
    return fail(Code::kInvalid, fmt::format("file {} was begun with another format or layout", asked.shape().file()));
  const std::uint64_t rows = keeper.layout.rows(keeper.index, file_length.records);
  const Permission may_read = context_.may(Operation::kRead, *component);
  if (may_read == Permission::kLater)
    return fail(Code::kRetry, fmt::format("file {} is being sealed", asked.shape().file()));
  const bool is_sealed = may_read == Permission::kNow;
  if (!is_sealed && (rows > 0 || component->writer || component->by_append))
    return fail(Code::kInvalid, fmt::format("file {} has rows here that are not sealed", asked.shape().file()));
  const bool is_same_file = file_length_of(state.published()) == file_length && state.rows() == rows;
  const bool is_later = state.generation() > 0 || state.parity_generation() > 0;
  if (is_sealed && state.gathered() && is_same_file && !is_later) return nullptr;
  if (is_sealed && (!is_same_file || is_later || state.state() == kCommitted || state.gathered()))
    return fail(Code::kExists, fmt::format("file {} is complete here, with {} records", asked.shape().file(),
                                           state.published().records()));
  return component;
}

Result<ComponentPtr> Gathering::component_of(const Request& request, const Keeper& keeper) {
  const auto& asked = request.envelope().gather();
  const FileId file(asked.shape().file());
  auto found = context_.components.find(file);
  if (found || found.error().code != Code::kNotFound) return found;
  if (keeper.layout.rows(keeper.index, asked.file_length().records()) > 0)
    return fail(Code::kNotFound, fmt::format("file {} has no rows here, and should have: this LFS was started again "
                                             "since they were written; write the file again",
                                             name_of(file)));
  auto shape = asked.shape();
  shape.set_owner(request.capability.uid);
  return context_.components.create(shape, request.capability.epoch, context_.now());
}

Status Gathering::begin(const Request& request, const JobPtr& job) {
  Component& component = *job->component;
  const Keeper& keeper = job->keeper;
  PIF_TRY(context_.components.open_parity(component, component::OpenMode::kCreate));
  job->files = component.parity;
  component.frames.reset();
  job->members.file_length = job->file_length;
  job->members.records = {0, job->file_length.records};
  job->members.epoch = request.capability.epoch;
  job->members.by_message = keeping_.are_few(job->file_length.bytes);
  job->plan.pages = {{0, job->pages}};
  job->plan.frames = {{job->pages * keeper.shape.page_rows(), keeper.parity_rows(job->file_length)}};
  const auto is_absent = absent_members(context_, keeper, component.state.shape());
  if (std::find(is_absent.begin(), is_absent.end(), true) == is_absent.end()) {
    PIF_TRY(job->files->frames->resize(0));  // of a gather that did not come to its end
    copy_pages(request, job);
    return {};
  }
  auto found = std::make_shared<Status>();
  keeping_.works.submit([job, is_absent, found] { *found = find_copied(*job, is_absent); },
                        [this, job, found] {
                          if (!*found) return end(job, *found);
                          if (job->component->is_removed()) return end(job, fail(removed()));
                          run(job);
                        });
  return {};
}

void Gathering::copy_pages(const Request& request, const JobPtr& job) {
  if (request.envelope().gather().copied_from().empty()) return run(job);
  const auto copied = CopiedPages::make(context_, request, job->keeper, job->pages, job->files);
  if (!copied) {
    spdlog::info("file {}: its parity is not copied: {}", name_of(job->component->file), copied.error().text);
    return run(job);
  }
  (*copied)->start(keeping_.works, [this, job](std::uint64_t pages) {
    if (job->component->is_removed()) return end(job, fail(removed()));
    const Keeper& keeper = job->keeper;
    PIF_ASSERT(pages <= job->pages, pages, job->pages);
    job->plan.pages = {{pages, job->pages}};
    const std::uint64_t left = keeper.parity_rows(job->file_length) - pages * keeper.shape.page_rows();
    const std::uint64_t row_bytes = row_bytes_of(keeper.format(), job->file_length);
    job->members.by_message = keeping_.are_few(left * keeper.size() * row_bytes);
    run(job);
  });
}

// What an earlier gather of the same file wrote may be among the frames, and is written again.
Status Gathering::find_copied(Job& job, const std::vector<bool>& is_absent) {
  const Keeper& keeper = job.keeper;
  PIF_TRY_VALUE(const component::FrameIndex index, component::scan_frames(keeper.shape.file, *job.files, 0));
  const auto frame_of = [&](RecordNumber record) {
    return index.find(record, record_bytes(keeper.format(), job.file_length, record), 0);
  };
  const CopiesNeeded needed{is_absent, job.plan.pages, job.plan.frames, job.members.records};
  PIF_TRY_VALUE(job.members.copied, find_copies(keeper, needed, job.files, frame_of));
  job.plan.end = index.end;
  job.pap_begin = front_of_frames(keeper, index, job.pages);
  PIF_ASSERT(job.pap_begin <= job.plan.end, job.pap_begin, job.plan.end);
  return {};
}

void Gathering::run(const JobPtr& job) {
  const auto is_empty = [](const Range& range) { return range.empty(); };
  const ParityPlan& plan = job->plan;
  if (std::all_of(plan.pages.begin(), plan.pages.end(), is_empty) &&
      std::all_of(plan.frames.begin(), plan.frames.end(), is_empty))
    return written(job, {}, {{}, plan.end});  // members need not be asked
  const auto run = std::make_shared<ParityRun>(keeping_.peers, context_.world.storage, keeping_.works, job->keeper,
                                               job->members, job->plan, job->files);
  run->start(job->component->state.shape(),
             [this, job](const Status& status, const ParityRun::Outcome& outcome) { written(job, status, outcome); });
}

void Gathering::written(const JobPtr& job, const Status& status, const ParityRun::Outcome& outcome) {
  if (!status) return end(job, status);
  if (job->component->is_removed()) return end(job, fail(removed()));
  const std::uint64_t bytes = job->file_length.bytes / job->component->layout.width() + outcome.end;
  if (job->is_new) {
    if (auto opened = context_.components.open_files(*job->component, component::OpenMode::kRead); !opened)
      return end(job, opened);
  }
  keeping_.seal_sync.add_parity(job->component, job->files, bytes, job->is_new,
                                [this, job](const Status& done) { synced(job, done); });
}

void Gathering::synced(const JobPtr& job, const Status& status) {
  Component& component = *job->component;
  PIF_ASSERT(component.is_keeping && job->files != nullptr, component.file.value);
  if (component.is_removed()) return end(job, fail(removed()));
  if (!status) {
    context_.components.set_failed(component, status.error());
    spdlog::error("file {}: {}", name_of(component.file), status.error().text);
    return end(job, status);
  }
  const auto is_void = [this](const Asked& asked) { return !context_.check_view(asked.view); };
  if (std::all_of(job->asked.begin(), job->asked.end(), is_void))
    return end(job, {});  // nobody is told that it is done
  const auto change = [pages = job->pages, begin = job->pap_begin,
                       file = job->file_length](proto::ComponentState& state) {
    if (state.state() == kOpen) state.set_state(kSealed);
    *state.mutable_published() = wire::proto_of(file);
    state.set_pages(pages);
    state.set_pap_begin(begin);
    state.clear_covered();
    state.set_gathered(true);
  };
  context_.batch.update(job->component, change, [this, job](const Status& done) { committed(job, done); });
}

void Gathering::committed(const JobPtr& job, const Status& status) {
  if (status && job->pap_begin > 0)
    keeping_.works.submit([files = job->files, begin = job->pap_begin] { punch_front(*files, begin); }, [] {});
  end(job, status);
}

// All of it must have happened in the view that the request names.

void Gathering::end(const JobPtr& job, const Status& status) {
  Component& component = *job->component;
  const auto running = jobs_.find(component.file.value);
  PIF_ASSERT(running != jobs_.end() && running->second == job, component.file.value);
  jobs_.erase(running);
  component.is_keeping = false;
  if (job->is_new) component.end_change();
  if (!component.is_removed()) context_.components.touch(component, context_.now());
  for (const Asked& asked : job->asked) {
    const Status now = context_.check_view(asked.view);
    context_.replies.answer(asked.token, now ? status : now);
  }
}

// ---- copies of rows of absent members ------------------------------------------------------------------------------

Result<ComponentPtr> Gathering::component_to_copy_to(const Request& request) {
  const proto::ComponentShape& shape = request.envelope().copy_rows().shape();
  const FileId file(shape.file());
  if (jobs_.contains(file.value))
    return fail(Code::kRetry, fmt::format("file {} is being gathered here", name_of(file)));
  auto found = context_.components.find(file);
  if (!found && found.error().code == Code::kNotFound) {
    auto owned = shape;
    owned.set_owner(request.capability.uid);
    return context_.components.create(owned, request.capability.epoch, context_.now());
  }
  if (!found) return found;
  Component& component = **found;
  PIF_TRY(context_.check_epoch(component, request.capability));
  const proto::ComponentState& state = component.state;
  if (!is_same_shape(state.shape(), shape))
    return fail(Code::kInvalid, fmt::format("file {} was begun with another format or layout", name_of(file)));
  const bool is_later = state.generation() > 0 || state.parity_generation() > 0;
  if (component.by_append || is_later || state.gathered() || state.state() == kCommitted)
    return fail(Code::kExists, fmt::format("file {} is complete here: it cannot be written any more", name_of(file)));
  context_.components.touch(component, context_.now());
  return found;
}

void Gathering::copy(const Request& request, const Keeper& keeper, CopiedRowsPtr rows) {
  const std::uint64_t file = keeper.shape.file.value;
  auto found = component_to_copy_to(request);
  if (!found) return context_.replies.answer(request, fail(std::move(found.error())));
  CopyLine& line = copies_[file];
  if (!line.component) line.component = *found;
  if (line.component != *found || line.waiting.size() >= kCopiesMax)
    return context_.replies.answer(request, fail(Code::kRetry, "too many rows of the file are being copied here"));
  const Asked asked{context_.replies.defer(request), request.envelope().copy_rows().view()};
  line.waiting.push_back({asked, keeper, std::move(rows)});
  copy_next(file);
}

void Gathering::copy_next(std::uint64_t file) {
  const auto at = copies_.find(file);
  if (at == copies_.end() || at->second.is_busy) return;
  CopyLine& line = at->second;
  if (line.waiting.empty()) {
    copies_.erase(at);
    return;
  }
  CopyLine::Waiting one = std::move(line.waiting.front());
  line.waiting.pop_front();
  line.is_busy = true;
  Component& component = *line.component;
  if (component.is_removed()) return copied(file, one.asked, fail(removed()));
  if (component.failure) return copied(file, one.asked, fail(*component.failure));
  if (auto opened = context_.components.open_parity(component, component::OpenMode::kCreate); !opened)
    return copied(file, one.asked, opened);
  component.frames.reset();
  auto result = std::make_shared<Status>();
  keeping_.works.submit(
      [result, files = component.parity, keeper = one.keeper, rows = one.rows] {
        auto end = component::behind_frames(*files);
        std::vector<component::Frame> frames;
        *result = end ? add_copies(keeper, *rows, *files, *end, frames) : Status(fail(end.error()));
      },
      [this, file, asked = one.asked, result] { copied(file, asked, *result); });
}

void Gathering::copied(std::uint64_t file, const Asked& asked, const Status& status) {
  const auto at = copies_.find(file);
  PIF_ASSERT(at != copies_.end() && at->second.is_busy, file);
  at->second.is_busy = false;
  const Status now = context_.check_view(asked.view);
  context_.replies.answer(asked.token, now ? status : now);
  copy_next(file);
}

}  // namespace pif::lfs
