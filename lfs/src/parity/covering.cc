#include "parity/covering.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kWaitingMax = 4096;  // per component

Error gone() { return {Code::kStaleFile, "the file was deleted meanwhile", {}}; }
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

Result<Covering::Line*> Covering::line_of(const Request& request, const proto::ComponentShape& shape,
                                          const Keeper& keeper, const FileLength& base, std::uint64_t generation) {
  PIF_TRY_VALUE(const ComponentPtr component, component_of(request, shape, keeper, base));
  PIF_TRY(context_.check_not_held(*component));
  if (generation < component->state.parity_generation()) return fail(cancelled());
  auto& line = lines_[shape.file()];
  if (!line) line = std::make_unique<Line>(Line{component, keeper, {}});
  if (line->component != component || line->waiting.size() >= kWaitingMax)
    return fail(Code::kRetry, "too much is being appended to the file here");
  line->epoch = std::max(line->epoch, request.capability.epoch);
  return line.get();
}

void Covering::cover(const Request& request, const proto::Cover& asked) {
  const auto refuse = [&](Error why) { context_.replies.answer(request, fail(std::move(why))); };
  const auto keeper = keeper_of(context_, asked.shape());
  if (!keeper) return refuse(keeper.error());
  if (auto ok = check(asked, *keeper); !ok) return refuse(std::move(ok.error()));
  auto line = line_of(request, asked.shape(), *keeper, file_length_of(asked.base()), asked.generation());
  if (!line) return refuse(std::move(line.error()));
  const FileLength file_length = file_length_of(asked.file_length());
  const std::uint64_t bytes = asked.count() * row_bytes_of(keeper->format(), file_length);
  (*line)->waiting.push_back({context_.replies.defer(request),
                              asked.view(),
                              asked.generation(),
                              file_length_of(asked.base()),
                              {},
                              {asked.first(), asked.first() + asked.count()},
                              file_length,
                              request.capability.epoch,
                              keeping_.are_few(bytes)});
}

void Covering::copy(const Request& request, const Keeper& keeper, CopiedRowsPtr rows) {
  const auto& asked = request.envelope().copy_rows();
  auto line = line_of(request, asked.shape(), keeper, file_length_of(asked.base()), asked.generation());
  if (!line) return context_.replies.answer(request, fail(std::move(line.error())));
  Waiting& one = (*line)->waiting.emplace_back();
  one.token = context_.replies.defer(request);
  one.view = asked.view();
  one.copied = std::move(rows);
  one.generation = asked.generation();
  one.base = file_length_of(asked.base());
}

void Covering::advance() {
  for (auto at = lines_.begin(); at != lines_.end();) {
    Line& line = *at->second;
    advance(line);
    const bool is_idle = line.waiting.empty() && !line.is_busy && line.syncing == 0;
    line.component->is_keeping = !is_idle;
    at = is_idle && line.fold_at == kNever ? lines_.erase(at) : std::next(at);
  }
}

Time Covering::next_deadline() const {
  Time next = kNever;
  for (const auto& [file, line] : lines_) {
    if (line->is_busy || line->component->is_restoring) continue;
    if (line->syncing == 0) next = std::min(next, line->fold_at);
    const bool waits_for_fold = line->syncing > 0 && context_.now() >= line->fold_at;
    if (!line->waiting.empty() && !waits_for_fold) return Time{};  // an executor that works at once has ended
  }
  return next;
}

void Covering::advance(Line& line) {
  const Component& c = *line.component;
  if (line.is_busy || c.is_restoring) return;  // frames are folded later
  if (c.is_removed() || c.failure) return fail_all(line, c.is_removed() ? gone() : *c.failure);
  const bool is_fold_due = context_.now() >= line.fold_at;
  if (is_fold_due && line.syncing > 0) return;  // they end first, and nothing begins
  if ((!is_fold_due && line.waiting.empty()) || !know_frames(line)) return;
  if (is_fold_due) return fold(line);
  const Waiting one = std::move(line.waiting.front());
  line.waiting.pop_front();
  if (!context_.replies.is_waiting(one.token)) return;
  if (auto ok = context_.check_view(one.view); !ok) return end(line, one, ok);
  const std::uint64_t newest = std::max(c.state.parity_generation(), line.erased);
  if (one.generation < newest) return end(line, one, fail(cancelled()));  // what it writes would not be erased any more
  if (one.generation > newest && erases(line, one)) return;
  if (one.copied) return copy(line, one);
  begin(line, one);
}

void Covering::fail_all(Line& line, const Error& why) {
  line.fold_at = kNever;
  for (const Waiting& one : std::exchange(line.waiting, {})) context_.replies.answer(one.token, fail(why));
}

bool Covering::know_frames(Line& line) {
  Component& c = *line.component;
  line.component->is_keeping = true;
  if (auto opened = context_.components.open_parity(c, component::OpenMode::kCreate); !opened) {
    fail_all(line, opened.error());
    return false;
  }
  if (c.frames) return true;
  line.is_busy = true;
  auto found = std::make_shared<Result<component::FrameIndex>>(fail(Code::kInternal, "not scanned"));
  keeping_.works.submit([found, files = c.parity, file = c.file,
                         begin = c.state.pap_begin()] { *found = component::scan_frames(file, *files, begin); },
                        [this, &line, found] {
                          line.is_busy = false;
                          if (!*found) return fail_all(line, found->error());
                          line.component->frames = std::move(**found);
                        });
  return c.frames && !line.is_busy;
}

// ---- one cover -----------------------------------------------------------------------------------------------------

bool Covering::may_make_pages(const Line& line) const {
  const auto is_absent = absent_members(context_, line.keeper, line.component->state.shape());
  return std::count(is_absent.begin(), is_absent.end(), true) < 2;
}

// Pages that are made at once: whole ones inside the range. Of variable records those only that follow without a gap,
// for where they begin is not known otherwise.
Range Covering::pages_of(const Line& line, const Waiting& one) const {
  auto state = line.component->state;
  begin_parity_generation(line.keeper, one.generation, one.base, state);
  const std::uint64_t whole = line.keeper.whole_records(one.file_length);
  const Range inside = cut(line.keeper.pages_inside(cut(one.records, {0, whole})), {state.pages(), ~std::uint64_t{0}});
  if (inside.empty() || state.covered_size() >= kCoveredMax) return {};
  if (!may_make_pages(line)) return {};
  if (!line.keeper.format().is_fixed() && inside.begin > end_of_pages(state)) return {};
  return inside;
}

ParityPlan Covering::plan_of(const Line& line, const Waiting& one, Range pages) const {
  const Component& c = *line.component;
  const std::uint64_t page_rows = line.keeper.shape.page_rows();
  const Range touched = cut(line.keeper.touched(one.records), {c.state.pages() * page_rows, ~std::uint64_t{0}});
  ParityPlan plan;
  plan.generation = one.generation;
  plan.end = c.frames->end;
  if (pages.empty()) {
    plan.frames = {touched};
  } else {
    plan.pages = {pages};
    plan.frames = {cut(touched, {0, pages.begin * page_rows}), cut(touched, {pages.end * page_rows, touched.end})};
  }
  return plan;
}

void Covering::begin(Line& line, const Waiting& one) {
  const Component& c = *line.component;
  PIF_ASSERT(!line.is_busy && c.parity && c.frames, c.file.value);
  const Range pages = pages_of(line, one);
  const ParityPlan plan = plan_of(line, one, pages);
  MemberOptions members;
  members.file_length = one.file_length;
  members.records = one.records;
  members.epoch = one.epoch;
  members.by_message = one.by_message;
  members.generation = one.generation;
  const auto frame_of = [&](RecordNumber record) {
    return c.frames->find(record, record_bytes(line.keeper.format(), one.file_length, record), one.generation);
  };
  const CopiesNeeded needed{absent_members(context_, line.keeper, c.state.shape()), plan.pages, plan.frames,
                            one.records};
  auto copied = find_copies(line.keeper, needed, c.parity, frame_of);
  if (!copied) return end(line, one, fail(Code::kRetry, copied.error().text));
  members.copied = std::move(*copied);
  line.is_busy = true;
  ++line.syncing;
  const auto run = std::make_shared<ParityRun>(keeping_.peers, context_.world.storage, keeping_.works, line.keeper,
                                               members, plan, c.parity);
  start_run(context_.fibers, run, c.state.shape(),
            [this, &line, one, pages](const Status& status, const ParityRun::Outcome& outcome) {
              written(line, one, pages, status, outcome);
            });
}

// What earlier generations copied behind the base of a new one goes before anything takes its place. Else one of them
// would count again when the copy that counts goes bad. It is durable when the new one's first rows are.
bool Covering::erases(Line& line, const Waiting& one) {
  Component& c = *line.component;
  PIF_ASSERT(!line.is_busy && c.parity && c.frames, c.file.value);
  const FileLength published = file_length_of(c.state.published());
  const FileLength base = one.base.records < published.records ? published : one.base;  // whatever the request says
  auto frames = take_void_frames(*c.frames, line.keeper.format(), one.generation, base);
  line.erased = one.generation;
  if (frames.empty()) return false;
  line.waiting.push_front(one);
  line.is_busy = true;
  const auto done = std::make_shared<Status>();
  keeping_.works.submit([done, frames = std::move(frames), files = c.parity] { *done = erase_frames(*files, frames); },
                        [this, &line, done] {
                          line.is_busy = false;
                          if (*done) return;
                          line.erased = 0;
                          line.component->frames.reset();
                          fail_all(line, done->error());
                        });
  return true;
}

// As a cover's own frames they lie behind the others, and are synced by the cover.
void Covering::copy(Line& line, const Waiting& one) {
  const Component& c = *line.component;
  PIF_ASSERT(!line.is_busy && c.parity && c.frames && one.copied, c.file.value);
  struct Written {
    Status status;
    std::uint64_t end = 0;
    std::vector<component::Frame> frames;
  };
  auto out = std::make_shared<Written>();
  out->end = c.frames->end;
  line.is_busy = true;
  keeping_.works.submit(
      [out, rows = one.copied, files = c.parity, keeper = line.keeper] {
        out->status = add_copies(keeper, *rows, *files, out->end, out->frames);
      },
      [this, &line, one, out] {
        line.is_busy = false;
        add_written(line, out->status, out->frames, out->end);
        end(line, one, out->status);
      });
}

// What of them was written, if that failed, is seen when they are read.
void Covering::add_written(Line& line, const Status& status, std::span<const component::Frame> frames,
                           std::uint64_t end) {
  Component& c = *line.component;
  ++c.frame_writes;
  if (!status) c.frames.reset();
  if (!c.frames) return;
  for (const auto& frame : frames) c.frames->frames.emplace(frame.record, frame);
  c.frames->end = std::max(c.frames->end, end);
}

void Covering::written(Line& line, const Waiting& one, Range pages, const Status& status,
                       const ParityRun::Outcome& outcome) {
  Component& c = *line.component;
  line.is_busy = false;
  add_written(line, status, outcome.frames, outcome.end);
  if (!status) {
    --line.syncing;
    if (one.by_message || status.error().code != Code::kCorrupt) return end(line, one, status);
    // Perhaps others write in the place of these rows, whose range was cancelled: members know it, descriptors do not.
    line.waiting.push_front(one);
    line.waiting.front().by_message = true;
    return;
  }
  if (c.is_removed()) return synced(line, one, pages, {});
  const bool is_new = !c.catalogued;
  auto opened = is_new ? context_.components.open_files(c, component::OpenMode::kRead) : Status();
  if (opened) opened = context_.components.open_parity(c, component::OpenMode::kCreate);
  if (!opened) return synced(line, one, pages, opened);
  const std::uint64_t bytes = line.keeper.format().is_fixed()
                                  ? pages.size() * line.keeper.shape.page_rows() * c.shape.format.record_length
                                  : pages.size() << 16;
  keeping_.seal_sync.add_parity(line.component, c.parity, bytes, is_new,
                                [this, &line, one, pages](const Status& done) { synced(line, one, pages, done); });
}

void Covering::synced(Line& line, const Waiting& one, Range pages, const Status& status) {
  Component& c = *line.component;
  PIF_ASSERT(line.syncing > 0, c.file.value);
  --line.syncing;
  if (c.is_removed()) return end(line, one, fail(gone()));
  if (!status) {
    context_.components.set_failed(c, status.error());
    spdlog::error("file {}: {}", name_of(c.file), status.error().text);
    return end(line, one, fail(*c.failure));
  }
  if (one.generation < c.state.parity_generation()) return end(line, one, fail(cancelled()));
  if (one.generation == c.state.parity_generation() && pages.empty() && c.catalogued) return end(line, one, {});
  ++line.syncing;
  const auto change = [keeper = line.keeper, one, pages](proto::ComponentState& state) {
    begin_parity_generation(keeper, one.generation, one.base, state);
    if (one.generation == state.parity_generation()) add_covered(pages, one.generation, state);
    if (state.state() == kOpen) state.set_state(kCommitted);
  };
  context_.batch.update(line.component, change, [this, &line, one](const Status& done) {
    --line.syncing;
    Component& component = *line.component;
    if (component.stage() == Stage::kFilling && !component.is_open()) component.enter(Stage::kResting);
    end(line, one, done);
  });
}

// All of it must have happened in the view that the request names.
void Covering::end(Line& line, const Waiting& one, const Status& status) {
  const Status now = context_.check_view(one.view);
  context_.replies.answer(one.token, now ? status : now);
  if (status && !one.copied) plan_fold(line, one.file_length);
}

}  // namespace pif::lfs
