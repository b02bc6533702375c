// What others wrote without this LFS, behind what it has of a file (file_restore.h).
//
// Published rows never change, so all up to the length that it knows to be published is right. Rows behind that were
// durable here, but perhaps never published, and written anew while it was absent: RowCheck finds where they begin to
// differ from what the keepers of their parity have. Those are dropped, by the catalogue first. What is missing is
// written behind the rest, like rows that are appended: until the catalogue has the new tail nobody reads it.
#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/file_restore.h"
#include "parity/kept_frames.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
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

bool FileRestore::has_all_parity() const {
  const auto& state = component_->state;
  if (keeper_->parity_rows(file_length_) == 0) return true;
  if (state.parity_generation() > 0) return is_same(state.parity_base(), file_length_);
  return state.gathered() && is_same(state.published(), file_length_);
}

bool FileRestore::has_rows() const {
  const auto& state = component_->state;
  return state.rows() >= rows_ && (!keeper_->format().is_fixed() || state.bytes() >= bytes_of(rows_, file_length_));
}

bool FileRestore::has_all() const {
  const auto& state = component_->state;
  const auto& noted = state.noted();
  const bool is_noted_published = noted.ticket() == 0 || was_published(published_tickets_, noted.generation(),
                                                                       noted.ticket()) == WasPublished::kYes;
  const bool has_noted =
      !is_deputy() || grants_ == 0 || (is_same(noted.file_length(), file_length_) && is_noted_published);
  const bool has_tickets = !knows_length() || !has_more(published_tickets_, state.published_tickets());
  return is_same(state.published(), file_length_) && has_rows() && has_noted && has_tickets && has_all_parity();
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
  if (component->stage() != Stage::kResting || component->is_keeping || component->is_restoring)
    return fail(Code::kRetry,
                fmt::format("file {} is {} here", name_of(component->file), lfs::name_of(component->stage())));
  return {};
}

void FileRestore::begin_catch_up(const ComponentPtr& component) {
  if (!component->catalogued) {  // what was being appended when it was lost
    managing_.remove(component->file, false, [](const Status&) {});
    return end(Outcome::kFailed, {Code::kRetry, "rows that never became part of the file are removed first", {}});
  }
  component_ = component;
  is_there_ = true;
  if (has_all() && is_same_shape(component_->state.shape(), own_->shape)) return note_generation();
  if (auto may = check_component(component); !may) return end(Outcome::kFailed, may.error());
  parity_lock_ = component_->lock.try_acquire(Use::kKeepParity);
  if (!parity_lock_.is_held()) return end(Outcome::kFailed, {Code::kRetry, "its parity is being written", {}});
  is_held_ = true;
  component_->is_restoring = component_->is_keeping = true;
  component_->enter(Stage::kAppending);
  context_.components.drop_writer(*component_);
  needs_parity_ = !has_all_parity();
  const std::uint64_t bytes = bytes_on(keeper_->layout, keeper_->index, keeper_->format(), file_length_);
  auto begun = context_.check_space(bytes - std::min(component_->state.bytes(), bytes));
  if (begun) begun = context_.components.open_files(*component_, component::OpenMode::kWrite);
  if (!begun) return end(Outcome::kFailed, begun.error());
  files_ = component_->files;
  if (needs_parity_ && is_of_newest(component_->state.parity_generation())) return look_at_parity();
  check_rows();
}

// Of who sequences the file, or may have to: what it gives out is above this.
void FileRestore::raise_grants(proto::ComponentState& state) const {
  if (keeper_->index == 0) state.set_grants(std::max(state.grants(), grants_));
  if (is_deputy()) state.set_noted_generation(std::max(state.noted_generation(), grants_));
}

// All rows are here, but others may have begun a generation and published nothing in it. LFSs have seen it, and take
// none below. If only the other one of LFS 0 and its deputy knew it, it would be lost with that one.
void FileRestore::note_generation() {
  if (!knows_length() || newest_generation(component_->state) >= grants_) return end(Outcome::kNothing);
  const auto change = [self = shared_from_this()](proto::ComponentState& state) { self->raise_grants(state); };
  context_.batch.update(component_, change, [self = shared_from_this()](const Status& committed) {
    if (self->component_->is_removed()) return self->end(Outcome::kNothing);
    if (!committed) return self->end(Outcome::kFailed, committed.error());
    self->end(Outcome::kRestored);
  });
}

// Of the newest generation nothing that is here is void. A cover may have gone by without this LFS, so what is here is
// looked for, record by record: who has all needs nobody else, and others may be away, or damaged.
void FileRestore::look_at_parity() {
  if (auto opened = context_.components.open_parity(*component_, component::OpenMode::kCreate); !opened)
    return end(Outcome::kFailed, opened.error());
  auto has_all = std::make_shared<bool>(false);
  keeping_.works.submit(
      [has_all, files = component_->parity, keeper = *keeper_, state = component_->state, length = file_length_] {
        const auto index = component::scan_frames(FileId(state.shape().file()), *files, state.pap_begin());
        *has_all = index && has_parity_of_all(keeper, *index, state, length);
      },
      [self = shared_from_this(), has_all] {
        if (self->component_->is_removed()) return self->end(Outcome::kNothing);
        self->was_parity_seen_ = *has_all;
        self->needs_parity_ = !*has_all;
        self->check_rows();
      });
}

// Whoever appends without this LFS does so in a newer generation. Such a one may have been begun, and nothing published
// in it: a view that changes is enough.
bool FileRestore::are_rows_newest() const {
  const std::uint64_t generation = component_->state.generation();
  const auto& published = published_tickets_.generations();
  if (is_of_newest(generation)) return true;
  return are_tickets_whole_ && !published.empty() && generation >= *published.rbegin();
}

// Rows that are here, and not known to be published. In one generation no row is given out twice: where all are here,
// and nothing newer was published, they are right. Nobody else needs to be asked, who may be away: a page that has them
// may have rows of an LFS that was lost before this one, and that waits for them.
void FileRestore::check_rows() {
  const auto& state = component_->state;
  const FileLength published = file_length_of(state.published());
  const Row known = keeper_->layout.rows(keeper_->index, published.records);
  const std::uint64_t length = keeper_->format().record_length;
  checked_ = std::min<Row>(known, state.rows());
  if (keeper_->format().is_fixed()) checked_ = std::min(bytes_of(known, published), state.bytes()) / length;
  const Range range{checked_, std::min<Row>(state.rows(), rows_)};
  if (range.empty()) return checked({}, checked_);
  if (has_rows() && are_rows_newest()) return checked({}, range.end);
  std::vector<std::optional<LfsIndex>> keepers;
  for (const LfsIndex lfs : keeper_->layout.keepers(keeper_->index))
    keepers.push_back(was_lost_before(lfs) ? std::nullopt : std::optional<LfsIndex>(lfs));
  rate_.spend(range.size() * (keeper_->format().is_fixed() ? length : 0), context_.now());
  RowCheck::Rows rows{*keeper_, range, file_length_, std::move(keepers), *component_->reader, files_};
  std::make_shared<RowCheck>(keeping_, *own_->grant, std::move(rows))
      ->start(
          [self = shared_from_this()](const Status& status, Row first_other) { self->checked(status, first_other); });
}

void FileRestore::checked(const Status& status, Row first_other) {
  if (component_->is_removed()) return end(Outcome::kNothing);
  if (!status) return end(Outcome::kFailed, status.error());
  PIF_ASSERT(first_other >= checked_ && first_other <= std::max(rows_, checked_), first_other, checked_, rows_);
  first_row_ = std::min(first_other, rows_);
  const std::uint64_t length = keeper_->format().record_length;
  // A row that is to be followed by others is whole.
  if (keeper_->format().is_fixed() && first_row_ < rows_)
    first_row_ = std::min(first_row_, component_->state.bytes() / length);
  auto tail = cut_tail();
  if (!tail) return end(Outcome::kFailed, tail.error());
  begin_ = *tail;
  drop_rows();
}

// What stays. A short row that is published stays until the longer one is in its place.
Result<component::Tail> FileRestore::cut_tail() const {
  const component::Tail own = tail_of(component_->state);
  Row rows = std::min(own.rows, first_row_);
  std::uint64_t bytes = own.bytes;
  if (keeper_->format().is_fixed()) {
    const std::uint64_t length = keeper_->format().record_length;
    const FileLength published = file_length_of(component_->state.published());
    const Row known = keeper_->layout.rows(keeper_->index, published.records);
    bytes = std::max(first_row_ * length, bytes_of(known, published));
    bytes = std::min({bytes, own.bytes, bytes_of(rows_, file_length_)});
    rows = (bytes + length - 1) / length;
  } else if (rows == 0) {
    bytes = 0;
  } else if (rows < own.rows) {
    PIF_TRY(component_->reader->read_ends(rows, 0, std::span(&bytes, 1)));
  }
  if (rows == own.rows && bytes == own.bytes) return own;
  return tail_at(component_->shape, *component_->reader, rows, bytes);
}

// The catalogue forgets first what is about to be written over.
void FileRestore::drop_rows() {
  for (std::size_t i = 0; i < keeper_->size() && needs_parity_; ++i) {
    if (!is_absent(keeper_->members.lfs[i])) continue;
    const LfsIndex lfs = keeper_->members.lfs[i];
    if (without_ || !was_lost_before(lfs))
      return end(Outcome::kFailed, {Code::kUnavailable,
                                    fmt::format("file {} has its parity here of rows on {}, which is lost, too",
                                                name_of(component_->file), own_->grant->parts().nodes[lfs].name()),
                                    {}});
    without_ = i;
  }
  const bool drops_pages = needs_parity_ && !without_ && component_->state.covered_size() > 0;
  if (begin_ == tail_of(component_->state) && !drops_pages) return go_on();
  const auto change = [tail = begin_, drops_pages](proto::ComponentState& state) {
    set_tail(state, tail);
    if (drops_pages) state.clear_covered();
  };
  context_.batch.update(component_, change, [self = shared_from_this()](const Status& status) {
    if (self->component_->is_removed()) return self->end(Outcome::kNothing);
    if (!status) return self->end(Outcome::kFailed, status.error());
    if (self->component_->failure) return self->end(Outcome::kFailed, *self->component_->failure);
    self->go_on();
  });
}

void FileRestore::go_on() {
  PIF_ASSERT(is_held_ && component_->stage() == Stage::kAppending && begin_.rows <= rows_, begin_.rows, rows_);
  PIF_ASSERT(keeper_->format().is_fixed() || begin_.rows == first_row_, begin_.rows, first_row_);
  is_begun_ = true;
  tail_ = begin_;
  if (first_row_ < rows_) begin_rows(begin_, first_row_);
  if (auto begun = begin_missing_parity(); !begun) return fail_with(begun.error());
  step();
}

// ---- parity --------------------------------------------------------------------------------------------------------

Status FileRestore::begin_missing_parity() {
  if (!needs_parity_) return {};
  PIF_TRY(context_.components.open_parity(*component_, component::OpenMode::kCreate));
  parity_ = component_->parity;
  auto found = std::make_shared<Result<component::FrameIndex>>(fail(Code::kInternal, "not scanned"));
  ++errands_;
  keeping_.works.submit(
      [found, files = parity_, file = component_->file, begin = component_->state.pap_begin()] {
        *found = component::scan_frames(file, *files, begin);
      },
      [self = shared_from_this(), found] {
        --self->errands_;
        if (!*found) return self->fail_with(found->error());
        if (self->failure_ || self->component_->is_removed()) return self->step();
        self->plan_parity((*found)->end);
      });
  return {};
}

// Behind the pages that are of published rows everything is made anew. Where a member is absent that was lost before
// this LFS, its rows have frames or pages here, which stay; the others' get frames.
void FileRestore::plan_parity(std::uint64_t pap_end) {
  auto state = component_->state;
  const std::uint64_t generation = std::max(grants_, state.parity_generation());
  if (without_) begin_parity_generation(*keeper_, generation, file_length_, state);  // as at the end
  const std::uint64_t page_rows = keeper_->shape.page_rows();
  const std::uint64_t parity_rows = keeper_->parity_rows(file_length_);
  const std::uint64_t pages = without_ ? state.pages() : std::max(keeper_->pages(file_length_), state.pages());
  PIF_ASSERT(pap_end >= state.pap_begin(), pap_end, state.pap_begin());
  pap_end_ = pap_end;
  MemberOptions members;
  members.file_length = file_length_;
  members.records = {0, file_length_.records};
  members.epoch = file_.epoch();
  members.by_message = keeping_.are_few(file_length_.bytes);
  members.without = without_;
  ParityPlan plan;
  plan.generation = generation;
  plan.end = pap_end;
  if (pages > state.pages()) plan.pages = {{state.pages(), pages}};
  const Range behind{pages * page_rows, parity_rows};
  if (!without_ && !behind.empty()) plan.frames = {behind};
  for (Range& range : missing_pages(state, {pages, (parity_rows + page_rows - 1) / page_rows})) {
    if (!without_) break;
    plan.frames.push_back(cut({range.begin * page_rows, range.end * page_rows}, behind));
  }
  parity_bytes_ =
      (parity_rows - std::min(parity_rows, state.pages() * page_rows)) * row_bytes_of(keeper_->format(), file_length_);
  run_parity(members, plan);
}

// ---- the end -------------------------------------------------------------------------------------------------------

void FileRestore::sync_there() {
  keeping_.seal_sync.add_restored(component_, files_, parity_, new_bytes(),
                                  [self = shared_from_this()](const Status& status) { self->synced_there(status); });
}

void FileRestore::synced_there(const Status& status) {
  if (component_->is_removed()) return end(Outcome::kNothing);
  if (!status) {
    context_.components.set_failed(*component_, status.error());
    spdlog::error("file {}: {}", name_of(component_->file), status.error().text);
    return end(Outcome::kFailed, status.error());
  }
  const auto change = [self = shared_from_this()](proto::ComponentState& state) { self->fill_in_there(state); };
  context_.batch.update(component_, change, [self = shared_from_this()](const Status& committed) {
    if (self->component_->is_removed()) return self->end(Outcome::kNothing);
    if (!committed) return self->end(Outcome::kFailed, committed.error());
    self->end(Outcome::kRestored);
  });
}

void FileRestore::fill_in_there(proto::ComponentState& state) const {
  const std::uint64_t generation = std::max(grants_, state.parity_generation());
  set_tail(state, tail_);
  state.set_state(kCommitted);
  *state.mutable_published() = wire::proto_of(file_length_);
  if (knows_length()) add_tickets(*state.mutable_published_tickets(), published_tickets_);
  raise_grants(state);
  state.set_generation(std::max(state.generation(), grants_));
  if (needs_parity_) {
    if (without_) {
      begin_parity_generation(*keeper_, generation, file_length_, state);
    } else {
      state.set_pages(std::max(state.pages(), keeper_->pages(file_length_)));
      state.set_pap_begin(pap_end_);
      state.clear_covered();
    }
    state.set_gathered(true);
    state.set_parity_generation(generation);
    *state.mutable_parity_base() = wire::proto_of(file_length_);
  }
  if (was_parity_seen_) *state.mutable_parity_base() = wire::proto_of(file_length_);
  if (!is_deputy()) return;
  // What it had noted before may have been given up meanwhile.
  state.mutable_noted()->Clear();
  *state.mutable_noted()->mutable_file_length() = wire::proto_of(file_length_);
}

void FileRestore::release() {
  if (!is_held_) return;
  is_held_ = false;
  rows_back_.reset();
  component_->is_restoring = component_->is_keeping = false;
  if (component_->is_removed()) return parity_lock_.release();
  component_->frames.reset();  // some may be new
  component_->end_change();
  parity_lock_.release();
}

}  // namespace pif::lfs
