#include "parity/gathering.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

Error removed() { return {Code::kStaleFile, "the file was removed meanwhile", {}}; }

}  // namespace

Gathering::Gathering(Keeping& keeping) : keeping_(keeping), context_(keeping.context) {
  context_.operations.bind<&Gathering::gather>(*this);
}

void Gathering::gather(const Request& request, const proto::Gather& asked) {
  const auto keeper = keeper_of(context_, asked.shape());
  if (!keeper) return context_.replies.answer(request, fail(keeper.error()));
  const FileLength file_length = file_length_of(asked.file_length());
  auto ready = prepare(request, *keeper);
  if (!ready) return context_.replies.answer(request, fail(std::move(ready.error())));
  const ComponentPtr component = std::move(*ready);
  const ReplyToken token = context_.replies.defer(request);
  if (!component) return context_.replies.answer(token, Status());
  if (const auto running = jobs_.find(asked.shape().file()); running != jobs_.end()) {
    running->second->tokens.push_back(token);
    return;
  }
  auto job = std::make_shared<Job>();
  job->component = component;
  job->file_length = file_length;
  job->tokens.push_back(token);
  job->is_new = component->is_open();
  job->pages = keeper->pages(file_length);
  jobs_.emplace(asked.shape().file(), job);
  component->is_keeping = true;
  if (job->is_new) component->enter(Stage::kSealing);
  if (auto begun = begin(request, *keeper, job); !begun) end(job, begun);
}

// Null: there is nothing to do.
Result<ComponentPtr> Gathering::prepare(const Request& request, const Keeper& keeper) {
  const auto& asked = request.envelope().gather();
  const FileLength file_length = file_length_of(asked.file_length());
  PIF_TRY(check_file_length(keeper.format(), file_length));
  if (keeper.parity_rows(file_length) == 0) return nullptr;
  if (const auto running = jobs_.find(asked.shape().file()); running != jobs_.end()) {
    if (running->second->file_length == file_length) return running->second->component;
    return fail(Code::kBusy, fmt::format("file {} is being gathered, with another length", asked.shape().file()));
  }
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

Status Gathering::begin(const Request& request, const Keeper& keeper, const JobPtr& job) {
  Component& component = *job->component;
  PIF_TRY(context_.components.open_parity(component, component::OpenMode::kCreate));
  job->files = component.parity;
  PIF_TRY(job->files->frames->resize(0));  // of a gather that did not come to its end
  component.frames.reset();
  MemberOptions members;
  members.file_length = job->file_length;
  members.records = {0, job->file_length.records};
  members.epoch = request.capability.epoch;
  members.by_message = job->file_length.bytes < kNearFromBytes;
  ParityPlan plan;
  plan.pages = {{0, job->pages}};
  plan.frames = {{job->pages * keeper.shape.page_rows(), keeper.parity_rows(job->file_length)}};
  const auto run = std::make_shared<ParityRun>(keeping_.peers, context_.world.storage, keeping_.works, keeper, members,
                                               plan, job->files);
  run->start(component.state.shape(),
             [this, job](const Status& status, const ParityRun::Outcome& outcome) { written(job, status, outcome); });
  return {};
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
  const auto change = [pages = job->pages, file = job->file_length](proto::ComponentState& state) {
    if (state.state() == kOpen) state.set_state(kSealed);
    *state.mutable_published() = wire::proto_of(file);
    state.set_pages(pages);
    state.set_pap_begin(0);
    state.clear_covered();
    state.set_gathered(true);
  };
  context_.batch.update(job->component, change, [this, job](const Status& committed) { end(job, committed); });
}

void Gathering::end(const JobPtr& job, const Status& status) {
  Component& component = *job->component;
  const auto running = jobs_.find(component.file.value);
  PIF_ASSERT(running != jobs_.end() && running->second == job, component.file.value);
  jobs_.erase(running);
  component.is_keeping = false;
  if (job->is_new) component.end_change();
  if (!component.is_removed()) context_.components.touch(component, context_.now());
  for (const ReplyToken token : job->tokens) context_.replies.answer(token, status);
}

}  // namespace pif::lfs
