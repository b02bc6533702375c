#include "parity/covering.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

Error cancelled() { return {Code::kRetry, "the reserved range was cancelled: reserve again", {}}; }

}  // namespace

Covering::Covering(Keeping& keeping) : keeping_(keeping), context_(keeping.context) {
  context_.operations.bind<&Covering::cover>(*this);
}

// ---- requests ------------------------------------------------------------------------------------------------------

Status Covering::check(const proto::Cover& asked, const Keeper& keeper) {
  const FileLength file_length = file_length_of(asked.file_length());
  if (asked.count() == 0) return fail(Code::kInvalid, "a cover of no records");
  if (asked.generation() == 0) return fail(Code::kInvalid, "Cover lacks `generation`, as Reserve gave it");
  if (!asked.has_base()) return fail(Code::kInvalid, "Cover lacks `base`, as Reserve gave it");
  PIF_TRY(check_generation(asked.generation()));
  PIF_TRY(check_file_length(keeper.format(), file_length));
  PIF_TRY(check_file_length(keeper.format(), file_length_of(asked.base())));
  if (asked.count() > file_length.records || asked.first() != file_length.records - asked.count())
    return fail(Code::kInvalid, fmt::format("records {} to {} are not the last ones of a file of {}", asked.first(),
                                            asked.first() + asked.count() - 1, file_length.records));
  PIF_TRY(context_.check_takes(asked.shape()));
  PIF_TRY(context_.check_view(asked.view()));
  return context_.check_space(0);
}

// A file may have had no parity here until now: then the component is made, which nobody sees before it is in the
// catalogue.
Result<ComponentPtr> Covering::component_of(const Request& request, const proto::ComponentShape& shape,
                                            const Keeper& keeper, const FileLength& base) {
  const FileId file(shape.file());
  const auto known = context_.components.find_in_memory(file);
  const bool is_being_made = known && known->by_append && known->is_open() && !known->failure;
  if (is_being_made) context_.components.touch(*known, context_.now());
  auto found = is_being_made ? Result<ComponentPtr>(known) : context_.published(request, file);
  if (found && !is_same_shape((*found)->state.shape(), shape))
    return fail(Code::kInvalid, fmt::format("file {} has another format or layout", name_of(file)));
  if (found || found.error().code != Code::kNotFound) return found;
  PIF_TRY(context_.check_has_no_part(shape, keeper.layout, base.records));
  found = context_.components.create(shape, request.capability.epoch, context_.now());
  if (found) (*found)->make_by_append();
  return found;
}

template <typename Asked>
Result<Covering::Target> Covering::target_of(const Request& request, const Asked& asked, const Keeper& keeper) {
  const FileLength base = file_length_of(asked.base());
  PIF_TRY_VALUE(ComponentPtr component, component_of(request, asked.shape(), keeper, base));
  PIF_TRY(LfsContext::check_not_held(*component));
  if (asked.generation() < component->state.parity_generation()) return fail(cancelled());
  return Target{std::move(component), keeper, asked.view(), asked.generation(), base, request.deadline};
}

Status Covering::cover(const Request& request, const proto::Cover& asked) {
  PIF_TRY_VALUE(const Keeper keeper, keeper_of(context_, asked.shape()));
  PIF_TRY(check(asked, keeper));
  PIF_TRY_VALUE(const Target to, target_of(request, asked, keeper));
  const Records records{
      {asked.first(), asked.first() + asked.count()}, file_length_of(asked.file_length()), request.capability.epoch};
  const Status covered = add_rows(to, records);
  if (covered) plan_fold(to.component, keeper, records.file_length);
  PIF_TRY(context_.check_view(asked.view()));  // all of it must have happened in the view that the request names
  return covered;
}

Status Covering::copy(const Request& request, const Keeper& keeper, const CopiedRows& rows) {
  const auto& asked = request.envelope().copy_rows();
  PIF_TRY_VALUE(const Target to, target_of(request, asked, keeper));
  const Status copied = add_copies(to, rows);
  PIF_TRY(context_.check_view(asked.view()));
  return copied;
}

// ---- before something is written -----------------------------------------------------------------------------------

Status Covering::know_frames(Component& c) {
  PIF_TRY(context_.components.open_parity(c, component::OpenMode::kCreate));
  if (c.frames) return {};
  auto found = keeping_.works.run([file = c.file, files = c.parity, begin = c.state.pap_begin()] {
    return component::scan_frames(file, *files, begin);
  });
  PIF_TRY(check_there(c));
  PIF_TRY_VALUE(c.frames, std::move(found));
  return context_.components.open_parity(c, component::OpenMode::kCreate);  // they may have been closed
}

Status Covering::prepare(const Target& to) {
  Component& c = *to.component;
  if (context_.now() >= to.deadline) return fail(Code::kRetry, "nobody waits for this any more");
  for (;;) {
    PIF_TRY(check_there(c));
    PIF_TRY(know_frames(c));
    PIF_TRY(context_.check_view(to.view));
    const std::uint64_t newest = std::max(c.state.parity_generation(), c.frames_erased);
    if (to.generation < newest) return fail(cancelled());  // what it writes would not be erased any more
    if (to.generation == newest) return {};
    PIF_TRY(erase_cancelled(to));
  }
}

// What earlier generations copied behind the base of a new one goes before anything takes its place. Else one of them
// would count again when the copy that counts goes bad. It is durable when the new one's first rows are.
Status Covering::erase_cancelled(const Target& to) {
  Component& c = *to.component;
  PIF_ASSERT(c.parity && c.frames, c.file.value);
  const FileLength published = file_length_of(c.state.published());
  const FileLength base = to.base.records < published.records ? published : to.base;  // whatever the request says
  auto frames = take_void_frames(*c.frames, to.keeper.format(), to.generation, base);
  c.frames_erased = to.generation;
  if (frames.empty()) return {};
  const Status erased =
      keeping_.works.run([&frames, files = c.parity] { return erase_frames(*files, std::move(frames)); });
  if (erased) return {};
  c.frames_erased = 0;
  c.frames.reset();
  return erased;
}

// ---- one cover -----------------------------------------------------------------------------------------------------

Status Covering::add_rows(const Target& to, const Records& records) {
  PIF_TRY_VALUE(auto lock, lock_component(context_.fibers, *to.component, Mode::kAddParity, to.deadline));
  PIF_TRY_VALUE(const Range pages, write(to, records));
  ComponentLock::relax(lock, Mode::kSyncParity);  // the next one is written meanwhile
  PIF_TRY(make_durable(to, pages));
  return enter(to, pages);
}

bool Covering::may_make_pages(const Component& component, const Keeper& keeper) const {
  const auto is_absent = absent_members(context_, keeper, component.state.shape());
  return std::count(is_absent.begin(), is_absent.end(), true) < 2;
}

// Pages that are made at once: whole ones inside the range. Of variable records those only that follow without a gap,
// for where they begin is not known otherwise.
Range Covering::pages_of(const Target& to, const Records& records) const {
  auto state = to.component->state;
  begin_parity_generation(to.keeper, to.generation, to.base, state);
  const std::uint64_t whole = to.keeper.whole_records(records.file_length);
  const Range inside = cut(to.keeper.pages_inside(cut(records.range, {0, whole})), {state.pages(), ~std::uint64_t{0}});
  if (inside.empty() || state.covered_size() >= kCoveredMax) return {};
  if (!may_make_pages(*to.component, to.keeper)) return {};
  if (!to.keeper.format().is_fixed() && inside.begin > end_of_pages(state)) return {};
  return inside;
}

ParityPlan Covering::plan_of(const Target& to, const Records& records, Range pages) const {
  const Component& c = *to.component;
  const std::uint64_t page_rows = to.keeper.shape.page_rows();
  const Range touched = cut(to.keeper.touched(records.range), {c.state.pages() * page_rows, ~std::uint64_t{0}});
  ParityPlan plan;
  plan.generation = to.generation;
  plan.end = c.frames->end;
  if (pages.empty()) {
    plan.frames = {touched};
  } else {
    plan.pages = {pages};
    plan.frames = {cut(touched, {0, pages.begin * page_rows}), cut(touched, {pages.end * page_rows, touched.end})};
  }
  return plan;
}

Result<Range> Covering::write(const Target& to, const Records& records) {
  const std::uint64_t bytes = records.range.size() * row_bytes_of(to.keeper.format(), records.file_length);
  for (bool by_message = keeping_.are_few(bytes);; by_message = true) {
    PIF_TRY(prepare(to));
    const Range pages = pages_of(to, records);
    PIF_ASSERT(pages.empty() || pages.begin >= to.component->state.pages(), pages.begin, pages.end);
    const Status written = write(to, records, pages, by_message);
    if (written) return pages;
    // Perhaps others write in the place of these rows, whose range was cancelled: members know it, descriptors do not.
    if (by_message || written.error().code != Code::kCorrupt) return fail(written.error());
  }
}

Status Covering::write(const Target& to, const Records& records, Range pages, bool by_message) {
  Component& c = *to.component;
  PIF_ASSERT(c.parity && c.frames, c.file.value);
  const ParityPlan plan = plan_of(to, records, pages);
  MemberOptions members;
  members.file_length = records.file_length;
  members.records = records.range;
  members.epoch = records.epoch;
  members.by_message = by_message;
  members.generation = to.generation;
  const auto frame_of = [&](RecordNumber record) {
    return c.frames->find(record, record_bytes(to.keeper.format(), records.file_length, record), to.generation);
  };
  const CopiesNeeded needed{absent_members(context_, to.keeper, c.state.shape()), plan.pages, plan.frames,
                            records.range};
  auto copied = find_copies(to.keeper, needed, c.parity, frame_of);
  if (!copied) return fail(Code::kRetry, copied.error().text);
  members.copied = std::move(*copied);
  ParityRun run(keeping_.peers, context_.world.storage, keeping_.works, to.keeper, members, plan, c.parity);
  const Status written = run.run(c.state.shape());
  add_written(c, written, run.outcome().frames, run.outcome().end);
  return written;
}

// What of them was written, if that failed, is seen when they are read.
void Covering::add_written(Component& c, const Status& status, std::span<const component::Frame> frames,
                           std::uint64_t end) {
  PIF_ASSERT(c.lock.is_held(Mode::kAddParity), c.file.value);
  ++c.frame_writes;
  if (!status) c.frames.reset();
  if (!c.frames) return;
  for (const auto& frame : frames) c.frames->frames.emplace(frame.record, frame);
  c.frames->end = std::max(c.frames->end, end);
}

Status Covering::make_durable(const Target& to, Range pages) {
  Component& c = *to.component;
  PIF_ASSERT(c.lock.is_held(Mode::kSyncParity), c.file.value);
  PIF_TRY(check_there(c));
  const bool is_new = !c.catalogued;
  Status synced = is_new ? context_.components.open_files(c, component::OpenMode::kRead) : Status();
  if (synced) synced = context_.components.open_parity(c, component::OpenMode::kCreate);
  const std::uint64_t bytes = to.keeper.format().is_fixed()
                                  ? pages.size() * to.keeper.shape.page_rows() * c.shape.format.record_length
                                  : pages.size() << 16;
  if (synced) synced = keeping_.seal_sync.sync_parity(to.component, c.parity, bytes, is_new);
  PIF_TRY(check_there(c));
  if (synced) return {};
  context_.components.set_failed(c, synced.error());
  spdlog::error("file {}: {}", name_of(c.file), synced.error().text);
  return fail(*c.failure);
}

Status Covering::enter(const Target& to, Range pages) {
  Component& c = *to.component;
  if (to.generation < c.state.parity_generation()) return fail(cancelled());
  if (to.generation == c.state.parity_generation() && pages.empty() && c.catalogued) return {};
  return context_.batch.commit(to.component, [&](proto::ComponentState& state) {
    begin_parity_generation(to.keeper, to.generation, to.base, state);
    if (to.generation == state.parity_generation()) add_covered(pages, to.generation, state);
    if (state.state() == kOpen) state.set_state(kCommitted);
  });
}

// ---- copies of rows of absent members ------------------------------------------------------------------------------

// As a cover's own frames they lie behind the others, and are synced by the cover.
Status Covering::add_copies(const Target& to, const CopiedRows& rows) {
  PIF_TRY_VALUE(const auto lock, lock_component(context_.fibers, *to.component, Mode::kAddParity, to.deadline));
  PIF_TRY(prepare(to));
  Component& c = *to.component;
  std::uint64_t end = c.frames->end;
  std::vector<component::Frame> frames;
  const Status added =
      keeping_.works.run([&, files = c.parity] { return lfs::add_copies(to.keeper, rows, *files, end, frames); });
  add_written(c, added, frames, end);
  return added;
}

}  // namespace pif::lfs
