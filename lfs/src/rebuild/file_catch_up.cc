// What others wrote without this LFS, behind what it has of a file (file_restore.h).
//
// Published rows never change, so all up to the length that it knows to be published is right. Rows behind that were
// durable here, but perhaps never published, and written anew while it was absent: RowCheck finds where they begin to
// differ from what the keepers of their parity have. Those are dropped, by the catalogue first. What is missing is
// written behind the rest, like rows that are appended: until the catalogue has the new tail nobody reads it.
#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/kept_frames.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "rebuild/file_restore.h"
#include "store/covered.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

bool is_same(const proto::FileLength& a, const FileLength& b) { return file_length_of(a) == b; }

// Whether each record of such a file that has its parity here is in a page, or has a frame that counts. Any thread.
bool has_parity_of_all(const Keeper& keeper, const component::FrameIndex& index, const proto::ComponentState& state,
                       const FileLength& file_length) {
  const std::uint64_t page_rows = keeper.shape.page_rows();
  const std::uint64_t end = keeper.parity_rows(file_length);
  const auto is_kept = [&](std::size_t member, std::uint64_t j) {
    const RecordNumber record = keeper.record(member, j);
    return record >= file_length.records ||
           counted_frame(index, state, keeper.format(), file_length, record) != nullptr;
  };
  for (const Range& pages : missing_pages(state, {state.pages(), (end + page_rows - 1) / page_rows})) {
    for (std::uint64_t j = pages.begin * page_rows; j < std::min(pages.end * page_rows, end); ++j) {
      for (std::size_t member = 0; member < keeper.size(); ++member)
        if (!is_kept(member, j)) return false;
    }
  }
  return true;
}

}  // namespace

Result<FileRestore::Outcome> FileRestore::catch_up(const ComponentPtr& component) {
  if (!component->catalogued) {  // what was being appended when it was lost
    managing_.remove_soon(component->file);
    return fail(Code::kRetry, "rows that never became part of the file are removed first");
  }
  if (has_all(component->state) && is_same_shape(component->state.shape(), own_->shape))
    return note_generation(component);
  PIF_TRY(check_component(component));
  const auto lock = component->lock.try_acquire(Mode::kRestore);  // nothing else changes it meanwhile
  if (!lock.is_held())
    return fail(Code::kRetry, fmt::format("others are busy with file {} here", name_of(component->file)));
  const daemon::AtExit release([&] {
    component->frames.reset();  // some may be new
  });
  context_.components.drop_writer(*component);
  CatchUp job;
  job.needs_parity = !has_all_parity(component->state);
  const std::uint64_t bytes = bytes_on(keeper_->layout, keeper_->index, keeper_->format(), file_length_);
  PIF_TRY(context_.check_space(bytes - std::min(component->state.bytes(), bytes)));
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kWrite));
  Wanted wanted;
  wanted.files = component->files;
  if (job.needs_parity && is_of_newest(component->state.parity_generation())) {
    PIF_TRY_VALUE(job.was_parity_seen, look_at_parity(component));
    job.needs_parity = !job.was_parity_seen;
  }
  PIF_TRY(check_rows(component, job));
  PIF_TRY_VALUE(job.begin, cut_tail(*component, job.first_row));
  if (job.needs_parity) {
    PIF_TRY_VALUE(job.without, member_to_leave_out());
  }
  PIF_TRY(drop_rows(component, job));
  PIF_ASSERT(component->lock.is_held(Mode::kRestore) && job.begin.rows <= rows_, job.begin.rows, rows_);
  PIF_ASSERT(keeper_->format().is_fixed() || job.begin.rows == job.first_row, job.begin.rows, job.first_row);
  wanted.begin = job.begin;
  wanted.first = job.first_row;
  if (job.needs_parity) PIF_TRY(plan_parity(component, job, wanted));
  PIF_TRY_VALUE(const component::Tail tail, fetch(component, wanted));
  say_written();
  PIF_TRY(make_durable(component, wanted, tail));
  PIF_TRY(context_.batch.commit(component, [&](proto::ComponentState& state) { fill_in_there(state, job, tail); }));
  PIF_TRY(check_there(*component));
  return Outcome::kRestored;
}

bool FileRestore::has_all_parity(const proto::ComponentState& state) const {
  if (keeper_->parity_rows(file_length_) == 0) return true;
  if (state.parity_generation() > 0) return is_same(state.parity_base(), file_length_);
  return state.gathered() && is_same(state.published(), file_length_);
}

bool FileRestore::has_rows(const proto::ComponentState& state) const {
  return state.rows() >= rows_ && (!keeper_->format().is_fixed() || state.bytes() >= bytes_of(rows_, file_length_));
}

bool FileRestore::has_all(const proto::ComponentState& state) const {
  const auto& noted = state.noted();
  const bool is_noted_published = noted.ticket() == 0 || was_published(published_tickets_, noted.generation(),
                                                                       noted.ticket()) == WasPublished::kYes;
  const bool has_noted =
      !is_deputy() || grants_ == 0 || (is_same(noted.file_length(), file_length_) && is_noted_published);
  const bool has_tickets = !knows_length() || !has_more(published_tickets_, state.published_tickets());
  return is_same(state.published(), file_length_) && has_rows(state) && has_noted && has_tickets &&
         has_all_parity(state);
}

Status FileRestore::check_component(const ComponentPtr& component) const {
  const auto& state = component->state;
  if (!is_same_shape(state.shape(), own_->shape))
    return fail(Code::kCorrupt, fmt::format("file {} has another format or layout here", name_of(component->file)));
  const FileLength own = file_length_of(state.published());
  if (own.records > file_length_.records || own.bytes > file_length_.bytes)
    return fail(Code::kCorrupt,
                fmt::format("file {} has {} records, and {} were published here: what only this LFS had was given up; "
                            "replace it by an empty one (pif node replace)",
                            name_of(component->file), file_length_.records, own.records));
  return check_there(*component);
}

// Of who sequences the file, or may have to: what it gives out is above this.
void FileRestore::raise_grants(proto::ComponentState& state) const {
  if (keeper_->index == 0) state.set_grants(std::max(state.grants(), grants_));
  if (is_deputy()) state.set_noted_generation(std::max(state.noted_generation(), grants_));
}

// All rows are here, but others may have begun a generation and published nothing in it. LFSs have seen it, and take
// none below. If only the other one of LFS 0 and its deputy knew it, it would be lost with that one.
Result<FileRestore::Outcome> FileRestore::note_generation(const ComponentPtr& component) {
  if (!knows_length() || newest_generation(component->state) >= grants_) return Outcome::kNothing;
  PIF_TRY(context_.batch.commit(component, [&](proto::ComponentState& state) { raise_grants(state); }));
  PIF_TRY(check_there(*component));
  return Outcome::kRestored;
}

// Of the newest generation nothing that is here is void. A cover may have gone by without this LFS, so what is here is
// looked for, record by record: who has all needs nobody else, and others may be away, or damaged.
Result<bool> FileRestore::look_at_parity(const ComponentPtr& component) {
  PIF_TRY(context_.components.open_parity(*component, component::OpenMode::kCreate));
  const bool has_all = keeping_.works.run([&, files = component->parity, state = component->state] {
    const auto index = component::scan_frames(FileId(state.shape().file()), *files, state.pap_begin());
    return index && has_parity_of_all(*keeper_, *index, state, file_length_);
  });
  PIF_TRY(check_there(*component));
  return has_all;
}

// Whoever appends without this LFS does so in a newer generation. Such a one may have been begun, and nothing published
// in it: a view that changes is enough.
bool FileRestore::are_rows_newest(const proto::ComponentState& state) const {
  const std::uint64_t generation = state.generation();
  const auto& published = published_tickets_.generations();
  if (is_of_newest(generation)) return true;
  return are_tickets_whole_ && !published.empty() && generation >= *published.rbegin();
}

// How many of the rows that are here stay.
Status FileRestore::check_rows(const ComponentPtr& component, CatchUp& job) {
  const FileLength published = file_length_of(component->state.published());
  const Row known = keeper_->layout.rows(keeper_->index, published.records);
  const std::uint64_t length = keeper_->format().record_length;
  job.checked = std::min<Row>(known, component->state.rows());
  if (keeper_->format().is_fixed())
    job.checked = std::min(bytes_of(known, published), component->state.bytes()) / length;
  PIF_TRY_VALUE(const Row first_other, first_other_row(component, job.checked));
  PIF_ASSERT(first_other >= job.checked && first_other <= std::max(rows_, job.checked), first_other, job.checked,
             rows_);
  job.first_row = std::min(first_other, rows_);
  // A row that is to be followed by others is whole.
  if (keeper_->format().is_fixed() && job.first_row < rows_)
    job.first_row = std::min(job.first_row, component->state.bytes() / length);
  return {};
}

// Rows that are here, and not known to be published. In one generation no row is given out twice: where all are here,
// and nothing newer was published, they are right. Nobody else needs to be asked, who may be away: a page that has them
// may have rows of an LFS that was lost before this one, and that waits for them.
Result<Row> FileRestore::first_other_row(const ComponentPtr& component, Row checked) {
  const auto& state = component->state;
  const Range range{checked, std::min<Row>(state.rows(), rows_)};
  if (range.empty()) return checked;
  if (has_rows(state) && are_rows_newest(state)) return range.end;
  std::vector<std::optional<LfsIndex>> keepers;
  for (const LfsIndex lfs : keeper_->layout.keepers(keeper_->index))
    keepers.push_back(was_lost_before(lfs) ? std::nullopt : std::optional<LfsIndex>(lfs));
  rate_.spend(range.size() * (keeper_->format().is_fixed() ? keeper_->format().record_length : 0), context_.now());
  const AbsentRowsPtr own = own_;
  RowCheck check(
      keeping_, *own->grant,
      RowCheck::Rows{*keeper_, range, file_length_, std::move(keepers), *component->reader, component->files});
  auto found = check.run();
  PIF_TRY(check_there(*component));
  return found;
}

// What stays. A short row that is published stays until the longer one is in its place.
Result<component::Tail> FileRestore::cut_tail(const Component& component, Row first_row) const {
  const component::Tail own = tail_of(component.state);
  Row rows = std::min(own.rows, first_row);
  std::uint64_t bytes = own.bytes;
  if (keeper_->format().is_fixed()) {
    const std::uint64_t length = keeper_->format().record_length;
    const FileLength published = file_length_of(component.state.published());
    const Row known = keeper_->layout.rows(keeper_->index, published.records);
    bytes = std::max(first_row * length, bytes_of(known, published));
    bytes = std::min({bytes, own.bytes, bytes_of(rows_, file_length_)});
    rows = (bytes + length - 1) / length;
  } else if (rows == 0) {
    bytes = 0;
  } else if (rows < own.rows) {
    PIF_TRY(component.reader->read_ends(rows, 0, std::span(&bytes, 1)));
  }
  if (rows == own.rows && bytes == own.bytes) return own;
  return tail_at(component.shape, *component.reader, rows, bytes);
}

// A member whose rows stay as they are here: it is absent, and was lost before this LFS. kUnavailable: others are
// absent.
Result<std::optional<std::size_t>> FileRestore::member_to_leave_out() const {
  std::optional<std::size_t> without;
  for (std::size_t i = 0; i < keeper_->size(); ++i) {
    const LfsIndex lfs = keeper_->members.lfs[i];
    if (!is_absent(lfs)) continue;
    if (without || !was_lost_before(lfs))
      return fail(Code::kUnavailable,
                  fmt::format("file {} has its parity here of rows on {}, which is lost, too",
                              name_of(keeper_->shape.file), own_->grant->parts().nodes[lfs].name()));
    without = i;
  }
  return without;
}

// The catalogue forgets first what is about to be written over.
Status FileRestore::drop_rows(const ComponentPtr& component, const CatchUp& job) {
  const bool drops_pages = job.needs_parity && !job.without && component->state.covered_size() > 0;
  if (job.begin == tail_of(component->state) && !drops_pages) return {};
  PIF_TRY(context_.batch.commit(component, [&](proto::ComponentState& state) {
    set_tail(state, job.begin);
    if (drops_pages) state.clear_covered();
  }));
  return check_there(*component);
}

// ---- parity --------------------------------------------------------------------------------------------------------

Status FileRestore::plan_parity(const ComponentPtr& component, CatchUp& job, Wanted& wanted) {
  PIF_ASSERT(job.needs_parity && wanted.parity == nullptr, component->file.value);
  PIF_TRY(context_.components.open_parity(*component, component::OpenMode::kCreate));
  wanted.parity = component->parity;
  PIF_TRY_VALUE(const component::FrameIndex index, keeping_.works.run([&, begin = component->state.pap_begin()] {
    return component::scan_frames(component->file, *wanted.parity, begin);
  }));
  PIF_TRY(check_there(*component));
  PIF_ASSERT(index.end >= component->state.pap_begin(), index.end, component->state.pap_begin());
  job.pap_end = index.end;
  MemberOptions members = member_options();
  members.without = job.without;
  wanted.parity_run = parity_run(members, plan_of(component->state, job), wanted.parity);
  const std::uint64_t parity_rows = keeper_->parity_rows(file_length_);
  const std::uint64_t kept = std::min(parity_rows, component->state.pages() * keeper_->shape.page_rows());
  wanted.parity_bytes = (parity_rows - kept) * row_bytes_of(keeper_->format(), file_length_);
  return {};
}

// Behind the pages that are of published rows everything is made anew. Where a member is absent that was lost before
// this LFS, its rows have frames or pages here, which stay; the others' get frames.
ParityPlan FileRestore::plan_of(const proto::ComponentState& now, const CatchUp& job) const {
  auto state = now;
  ParityPlan plan;
  plan.generation = std::max(grants_, state.parity_generation());
  plan.end = job.pap_end;
  if (job.without) begin_parity_generation(*keeper_, plan.generation, file_length_, state);  // as at the end
  const std::uint64_t page_rows = keeper_->shape.page_rows();
  const std::uint64_t parity_rows = keeper_->parity_rows(file_length_);
  const std::uint64_t pages = job.without ? state.pages() : std::max(keeper_->pages(file_length_), state.pages());
  if (pages > state.pages()) plan.pages = {{state.pages(), pages}};
  const Range behind{pages * page_rows, parity_rows};
  if (!job.without && !behind.empty()) plan.frames = {behind};
  for (Range& range : missing_pages(state, {pages, (parity_rows + page_rows - 1) / page_rows})) {
    if (!job.without) break;
    plan.frames.push_back(cut({range.begin * page_rows, range.end * page_rows}, behind));
  }
  return plan;
}

// ---- the end -------------------------------------------------------------------------------------------------------

Status FileRestore::make_durable(const ComponentPtr& component, const Wanted& wanted, const component::Tail& tail) {
  const Status synced =
      keeping_.seal_sync.sync_restored(component, wanted.files, wanted.parity, tail.bytes + wanted.parity_bytes);
  PIF_TRY(check_there(*component));
  PIF_ASSERT(component->lock.is_held(Mode::kRestore), component->file.value);
  if (synced) return {};
  context_.components.set_failed(*component, synced.error());
  spdlog::error("file {}: {}", name_of(component->file), synced.error().text);
  return synced;
}

void FileRestore::fill_in_there(proto::ComponentState& state, const CatchUp& job, const component::Tail& tail) const {
  PIF_ASSERT(!job.needs_parity || !job.was_parity_seen, file_.file());
  const std::uint64_t generation = std::max(grants_, state.parity_generation());
  set_tail(state, tail);
  state.set_state(kCommitted);
  *state.mutable_published() = wire::proto_of(file_length_);
  if (knows_length()) add_tickets(*state.mutable_published_tickets(), published_tickets_);
  raise_grants(state);
  state.set_generation(std::max(state.generation(), grants_));
  if (job.needs_parity) {
    if (job.without) {
      begin_parity_generation(*keeper_, generation, file_length_, state);
    } else {
      state.set_pages(std::max(state.pages(), keeper_->pages(file_length_)));
      state.set_pap_begin(job.pap_end);
      state.clear_covered();
    }
    state.set_gathered(true);
    state.set_parity_generation(generation);
    *state.mutable_parity_base() = wire::proto_of(file_length_);
  }
  if (job.was_parity_seen) *state.mutable_parity_base() = wire::proto_of(file_length_);
  if (!is_deputy()) return;
  // What it had noted before may have been given up meanwhile.
  state.mutable_noted()->Clear();
  *state.mutable_noted()->mutable_file_length() = wire::proto_of(file_length_);
}

}  // namespace pif::lfs
