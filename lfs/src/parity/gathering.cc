#include "parity/gathering.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/copied_pages.h"
#include "pif/base/assert.h"

namespace pif::lfs {
Gathering::Gathering(Keeping& keeping) : keeping_(keeping), context_(keeping.context) {
  context_.operations.bind<&Gathering::gather>(*this);
}

Status Gathering::gather(const Request& request, const proto::Gather& asked) {
  PIF_TRY_VALUE(const Keeper keeper, keeper_of(context_, asked.shape()));
  const FileLength file_length = file_length_of(asked.file_length());
  PIF_TRY(check_file_length(keeper.format(), file_length));
  if (keeper.parity_rows(file_length) == 0) return {};
  PIF_TRY(context_.check_takes(asked.shape()));
  PIF_TRY(context_.check_view(asked.view()));
  PIF_TRY(context_.check_space(keeper.bytes(file_length)));
  PIF_TRY_VALUE(const ComponentPtr component, component_of(request, keeper));
  PIF_TRY_VALUE(const auto lock, lock_component(context_.fibers, *component, Mode::kKeepParity, request.deadline));
  PIF_TRY(context_.check_takes(asked.shape()));
  PIF_TRY(context_.check_view(asked.view()));
  PIF_TRY_VALUE(const bool is_done, check(request, *component, keeper));
  if (is_done) return {};

  PIF_ASSERT(component->lock.is_held(Mode::kKeepParity), component->file.value);
  const bool is_new = component->is_open();
  ComponentLock::Held sealing;
  if (is_new) sealing = component->lock.try_acquire(Mode::kSeal);
  if (is_new && !sealing.is_held())
    return fail(Code::kRetry, fmt::format("file {} is being sealed", name_of(component->file)));
  Job job{keeper, file_length, keeper.pages(file_length), {}, {}, {}};
  PIF_TRY(write(request, *component, job));
  PIF_TRY(make_durable(component, job, is_new));
  PIF_TRY(context_.check_view(asked.view()));  // nobody hears that it is done
  PIF_TRY(publish(component, job));
  context_.components.touch(*component, context_.now());
  // All of it must have happened in the view that the request names.
  return context_.check_view(asked.view());
}

Result<bool> Gathering::check(const Request& request, const Component& component, const Keeper& keeper) const {
  const auto& asked = request.envelope().gather();
  const FileLength file_length = file_length_of(asked.file_length());
  const auto& state = component.state;
  if (!is_same_shape(state.shape(), asked.shape()))
    return fail(Code::kInvalid, fmt::format("file {} was begun with another format or layout", asked.shape().file()));
  const std::uint64_t rows = keeper.layout.rows(keeper.index, file_length.records);
  if (component.is_open() && component.lock.is_held(Mode::kSeal))
    return fail(Code::kRetry, fmt::format("file {} is being sealed", asked.shape().file()));
  const bool is_sealed = component.is_whole();
  if (!is_sealed && (rows > 0 || component.writer || component.by_append))
    return fail(Code::kInvalid, fmt::format("file {} has rows here that are not sealed", asked.shape().file()));
  const bool is_same_file = file_length_of(state.published()) == file_length && state.rows() == rows;
  const bool is_later = state.generation() > 0 || state.parity_generation() > 0;
  if (is_sealed && state.gathered() && is_same_file && !is_later) return true;
  if (is_sealed && (!is_same_file || is_later || state.state() == kCommitted || state.gathered()))
    return fail(Code::kExists, fmt::format("file {} is complete here, with {} records", asked.shape().file(),
                                           state.published().records()));
  return false;
}

Result<ComponentPtr> Gathering::component_of(const Request& request, const Keeper& keeper) {
  const auto& asked = request.envelope().gather();
  const FileId file(asked.shape().file());
  auto found = context_.components.find(file);
  if (found) PIF_TRY(context_.check_epoch(**found, request.capability));
  if (found || found.error().code != Code::kNotFound) return found;
  if (keeper.layout.rows(keeper.index, asked.file_length().records()) > 0)
    return fail(Code::kNotFound, fmt::format("file {} has no rows here, and should have: this LFS was started again "
                                             "since they were written; write the file again",
                                             name_of(file)));
  auto shape = asked.shape();
  shape.set_owner(request.capability.uid);
  return context_.components.create(shape, request.capability.epoch, context_.now());
}

Status Gathering::write(const Request& request, Component& component, Job& job) {
  const Keeper& keeper = job.keeper;
  PIF_TRY(context_.components.open_parity(component, component::OpenMode::kCreate));
  job.files = component.parity;
  component.frames.reset();
  job.members.file_length = job.file_length;
  job.members.records = {0, job.file_length.records};
  job.members.epoch = request.capability.epoch;
  job.members.by_message = keeping_.are_few(job.file_length.bytes);
  job.plan.pages = {{0, job.pages}};
  job.plan.frames = {{job.pages * keeper.shape.page_rows(), keeper.parity_rows(job.file_length)}};
  const auto is_absent = absent_members(context_, keeper, component.state.shape());
  if (std::find(is_absent.begin(), is_absent.end(), true) != is_absent.end()) {
    PIF_TRY(keeping_.works.run([&] { return find_copied(job, is_absent); }));
  } else {
    PIF_TRY(job.files->frames->resize(0));  // of a gather that did not come to its end
    const std::uint64_t copied = copy_pages(request, job);
    PIF_ASSERT(copied <= job.pages, copied, job.pages);
    job.plan.pages = {{copied, job.pages}};
    const std::uint64_t left = keeper.parity_rows(job.file_length) - copied * keeper.shape.page_rows();
    const std::uint64_t row_bytes = row_bytes_of(keeper.format(), job.file_length);
    if (copied > 0) job.members.by_message = keeping_.are_few(left * keeper.size() * row_bytes);
  }
  PIF_TRY(check_there(component));
  return write_rows(component, job);
}

std::uint64_t Gathering::copy_pages(const Request& request, const Job& job) {
  if (request.envelope().gather().copied_from().empty()) return 0;
  const auto copied = CopiedPages::make(context_, request, job.keeper, job.pages, job.files);
  if (copied) return (*copied)->run(keeping_.works);
  spdlog::info("file {}: its parity is not copied: {}", name_of(job.keeper.shape.file), copied.error().text);
  return 0;
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

Status Gathering::write_rows(const Component& component, Job& job) {
  const auto is_empty = [](const Range& range) { return range.empty(); };
  const ParityPlan& plan = job.plan;
  if (std::all_of(plan.pages.begin(), plan.pages.end(), is_empty) &&
      std::all_of(plan.frames.begin(), plan.frames.end(), is_empty))
    return {};  // members need not be asked
  ParityRun run(keeping_.peers, context_.world.storage, keeping_.works, job.keeper, job.members, plan, job.files);
  PIF_TRY(run.run(component.state.shape()));
  job.plan.end = run.outcome().end;
  return check_there(component);
}

Status Gathering::make_durable(const ComponentPtr& component, const Job& job, bool is_new) {
  const std::uint64_t bytes = job.file_length.bytes / component->layout.width() + job.plan.end;
  if (is_new) PIF_TRY(context_.components.open_files(*component, component::OpenMode::kRead));
  const Status synced = keeping_.seal_sync.sync_parity(component, job.files, bytes, is_new);
  PIF_ASSERT(component->lock.is_held(Mode::kKeepParity) && job.files != nullptr, component->file.value);
  PIF_TRY(check_there(*component));
  if (synced) return {};
  context_.components.set_failed(*component, synced.error());
  spdlog::error("file {}: {}", name_of(component->file), synced.error().text);
  return synced;
}

Status Gathering::publish(const ComponentPtr& component, const Job& job) {
  PIF_TRY(context_.batch.commit(component, [&job](proto::ComponentState& state) {
    if (state.state() == kOpen) state.set_state(kSealed);
    *state.mutable_published() = wire::proto_of(job.file_length);
    state.set_pages(job.pages);
    state.set_pap_begin(job.pap_begin);
    state.clear_covered();
    state.set_gathered(true);
  }));
  if (job.pap_begin > 0)
    context_.fibers.start([&works = keeping_.works, files = job.files, begin = job.pap_begin] {
      works.run([&] { punch_front(*files, begin); });
    });
  return {};
}

// ---- copies of rows of absent members ------------------------------------------------------------------------------

Status Gathering::copy(const Request& request, const Keeper& keeper, const CopiedRowsPtr& rows) {
  PIF_TRY_VALUE(const ComponentPtr component, component_to_copy_to(request));
  PIF_TRY_VALUE(const auto lock, lock_component(context_.fibers, *component, Mode::kKeepParity, request.deadline));
  PIF_TRY(check_copy(request, *component));
  context_.components.touch(*component, context_.now());
  PIF_TRY(context_.components.open_parity(*component, component::OpenMode::kCreate));
  component->frames.reset();
  PIF_ASSERT(component->parity != nullptr, component->file.value);
  PIF_TRY(keeping_.works.run([&rows, &keeper, files = component->parity]() -> Status {
    PIF_TRY_VALUE(auto end, component::behind_frames(*files));
    std::vector<component::Frame> frames;
    return add_copies(keeper, *rows, *files, end, frames);
  }));
  return context_.check_view(request.envelope().copy_rows().view());
}

Result<ComponentPtr> Gathering::component_to_copy_to(const Request& request) {
  const proto::ComponentShape& shape = request.envelope().copy_rows().shape();
  auto found = context_.components.find(FileId(shape.file()));
  if (found) PIF_TRY(context_.check_epoch(**found, request.capability));
  if (found || found.error().code != Code::kNotFound) return found;
  auto owned = shape;
  owned.set_owner(request.capability.uid);
  return context_.components.create(owned, request.capability.epoch, context_.now());
}

Status Gathering::check_copy(const Request& request, Component& component) const {
  const proto::ComponentState& state = component.state;
  if (!is_same_shape(state.shape(), request.envelope().copy_rows().shape()))
    return fail(Code::kInvalid,
                fmt::format("file {} was begun with another format or layout", name_of(component.file)));
  const bool is_later = state.generation() > 0 || state.parity_generation() > 0;
  if (!component.by_append && !is_later && !state.gathered() && state.state() != kCommitted) return {};
  return fail(Code::kExists,
              fmt::format("file {} is complete here: it cannot be written any more", name_of(component.file)));
}

}  // namespace pif::lfs
