#include "parity/file_restore.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

Error removed() { return {Code::kStaleFile, "the file was removed meanwhile", {}}; }

}  // namespace

std::uint64_t bytes_on(const parity::Layout& layout, LfsIndex index, const Format& format, const FileLength& length) {
  const std::uint64_t rows = layout.rows(index, length.records) + layout.parity_rows(index, length.records);
  return rows * std::min(row_bytes_of(format, length), length.bytes);
}

FileRestore::FileRestore(Keeping& keeping, Managing& managing, RateLimit& rate, proto::ListLostReply::One file,
                         Moment moment, Purpose purpose)
    : keeping_(keeping),
      context_(keeping.context),
      managing_(managing),
      rate_(rate),
      file_(std::move(file)),
      moment_(moment),
      purpose_(purpose) {}

void FileRestore::start(Done done) {
  done_ = std::move(done);
  if (auto parsed = parse(); !parsed) return end(Outcome::kFailed, parsed.error());
  find_length();
}

Status FileRestore::parse() {
  const auto& nodes = file_.layout().nodes();
  const auto here = std::find(nodes.begin(), nodes.end(), context_.config.node);
  if (here == nodes.end()) return fail(Code::kInvalid, "the PIF Server lists a file that has nothing here");
  proto::ComponentShape shape;
  shape.set_file(file_.file());
  *shape.mutable_format() = file_.format();
  *shape.mutable_layout() = file_.layout();
  shape.set_index(static_cast<std::uint32_t>(here - nodes.begin()));
  shape.set_owner(file_.owner());
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  shape.set_chunk_bytes(made.chunk_bytes);
  PIF_TRY_VALUE(keeper_, keeper_of(context_, shape));
  PIF_TRY(check_file_length(keeper_->format(), file_length_of(file_.file_length())));
  PIF_TRY_VALUE(auto grant, keeping_.peers.grant(shape, file_.epoch()));
  own_ = std::make_shared<AbsentRows>(AbsentRows{shape, made, keeper_->layout, std::move(grant)});
  return {};
}

bool FileRestore::is_deputy() const { return parity::deputy_of(keeper_->layout) == keeper_->index; }

std::optional<std::uint32_t> FileRestore::lack_of(LfsIndex lfs) const {
  for (const proto::FileLack& lack : file_.lacking())
    if (lack.node() == node_of(lfs)) return lack.order();
  return std::nullopt;
}

bool FileRestore::is_member(LfsIndex lfs) const {
  return context_.view.state_of(node_of(lfs)) == wire::kViewMember && !lack_of(lfs);
}

// Of one that lacks its part: as it was when it had it, whatever became of it since.
std::uint32_t FileRestore::order_of(LfsIndex lfs) const {
  return lack_of(lfs).value_or(context_.view.lost_order_of(node_of(lfs)));
}

// It has all that was written while that one was absent, and is not back.
bool FileRestore::was_lost_before(LfsIndex lfs) const { return is_absent(lfs) && moment_.lost_order > order_of(lfs); }

// Who knows the length while this LFS is absent: LFS 0, or its deputy, also while LFS 0 is returning, which grants
// nothing then. Nobody but this LFS, if it is one of the two, and the other one was lost before it and is no member.
// One that lacks its part of the file is none here. Of a file that nobody has opened for writing the directory knows
// it.
std::optional<LfsIndex> FileRestore::who_knows_length() const {
  if (file_.untouched()) return std::nullopt;
  const LfsIndex deputy = parity::deputy_of(keeper_->layout);
  if (keeper_->index == 0 || is_deputy()) {
    const LfsIndex other = keeper_->index == 0 ? deputy : 0;
    const bool was_before = moment_.lost_order > order_of(other);
    return !is_member(other) && was_before ? std::nullopt : std::optional(other);
  }
  return is_member(0) || (!is_member(deputy) && !is_absent(0)) ? 0 : deputy;
}

// Never shorter than the directory knows.
void FileRestore::find_length() {
  file_length_ = file_length_of(file_.file_length());
  const auto asked = who_knows_length();
  if (!asked) {
    if (auto known = take_own_length(); !known) return end(Outcome::kFailed, known.error());
    return begin();
  }
  keeping_.peers.run(
      *own_->grant,
      [self = shared_from_this(), lfs = *asked](access::Requests& requests) { self->ask_length(requests, lfs); },
      [self = shared_from_this()](const Status& status) {
        if (!status) return self->end(Outcome::kFailed, status.error());
        self->begin();
      });
}

// No component belongs here before the first append, which makes one at LFS 0 and at its deputy.
bool FileRestore::never_had_any() const {
  const parity::Layout& layout = keeper_->layout;
  const std::uint64_t records = file_length_.records;
  const Row rows = layout.rows(keeper_->index, records) + layout.parity_rows(keeper_->index, records);
  return rows == 0 && !managing_.aside().has_rows(context_.world.storage, context_.config.root, FileId(file_.file()));
}

Status FileRestore::take_own_length() {
  if (file_.untouched()) return {};
  auto found = context_.components.find(FileId(file_.file()));
  if (!found && found.error().code == Code::kNotFound && never_had_any()) return {};
  if (!found) return fail(std::move(found.error()));
  const auto& state = (*found)->state;
  extend(file_length_, file_length_of(state.published()));
  extend(file_length_, file_length_of(state.noted().file_length()));
  grants_ = newest_generation(state);
  published_tickets_ = state.published_tickets();
  // What was noted is published now: who appended it hears so.
  const auto& noted = state.noted();
  FileLength longer = file_length_of(state.published());
  extend(longer, file_length_of(noted.file_length()));
  if (longer != file_length_of(state.published())) add_ticket(published_tickets_, noted.generation(), noted.ticket());
  are_tickets_whole_ = longer == file_length_;
  return check_file_length(keeper_->format(), file_length_);
}

// LFS 0 cannot settle with a deputy that takes part and lacks its part of the file, this LFS or another one: nor does
// it publish anything before the deputy has it.
bool FileRestore::is_first_alone() const {
  if (moment_.view == 0) return false;
  const bool lacks_it = is_deputy() || lack_of(parity::deputy_of(keeper_->layout));
  return lacks_it && context_.view.state_of(node_of(parity::deputy_of(keeper_->layout))) == wire::kViewMember;
}

// Of the deputy: what was noted there. Nothing was, if nothing was appended. It counts as published where LFS 0 has yet
// to hear of it: that is this LFS, or takes part and lacks its part of the file.
void FileRestore::ask_length(access::Requests& requests, LfsIndex lfs) {
  const bool was_first = is_final() && (keeper_->index == 0 || (lfs != 0 && lack_of(0)));
  const LengthAsked asked{lfs, file_.file(), lfs != 0, moment_.view, was_first, lfs == 0 && is_first_alone()};
  auto request = length_request(asked, keeper_->format(), [self = shared_from_this()](const LengthTold& told) {
    extend(self->file_length_, told.length);
    self->are_tickets_whole_ = self->file_length_ == told.length;
    self->grants_ = told.generation;
    self->published_tickets_ = told.published_tickets;
    return check_file_length(self->keeper_->format(), self->file_length_);
  });
  request.patient = true;
  // One that is not sure to be the sequencer yet does not say; its deputy does, for a round that is not the last one.
  request.refused = [self = shared_from_this(), &requests, lfs](Error error) -> Status {
    const bool has_deputy = lfs == 0 && !self->is_final() && !self->is_deputy();
    if (!has_deputy || error.code != Code::kUnavailable) return fail(std::move(error));
    self->ask_length(requests, parity::deputy_of(self->keeper_->layout));
    return {};
  };
  requests.add(std::move(request));
}

void FileRestore::begin() {
  const FileId file(file_.file());
  rows_ = keeper_->layout.rows(keeper_->index, file_length_.records);
  auto found = context_.components.find(file);
  is_unreadable_ = !found && found.error().code == Code::kCorrupt;
  const bool has_none = purpose_ == Purpose::kMake || purpose_ == Purpose::kLook;
  if (found ? has_none : !belongs_here()) return end(Outcome::kNothing);
  if (purpose_ == Purpose::kLook) return end(Outcome::kFailed, {Code::kCancelled, "as was asked for", {}});
  if (purpose_ != Purpose::kRebuild) context_.lost_files.begin_mending(file);
  if (found) return begin_catch_up(*found);
  if (is_unreadable_ || purpose_ != Purpose::kRebuild) return put_old_files_aside();
  make();
}

// Rows, parity, or the length: LFS 0 and its deputy know it of each file that was appended to. An empty disk gets it of
// all others, too.
bool FileRestore::belongs_here() const {
  PIF_ASSERT(keeper_.has_value(), file_.file());
  if (rows_ > 0 || keeper_->parity_rows(file_length_) > 0) return true;
  const bool may_lack_it = purpose_ != Purpose::kRebuild && !is_unreadable_ && grants_ == 0;
  return knows_length() && file_length_.records > 0 && !may_lack_it;
}

// Nobody knows any more what of them counts, and in a parity file that is there already old frames would.
void FileRestore::put_old_files_aside() {
  PIF_ASSERT(!component_ && (is_unreadable_ || purpose_ != Purpose::kRebuild), file_.file());
  const FileId file(file_.file());
  spdlog::warn("{}: {} does not know its component; it is made anew out of what others have", file_.path(),
               context_.config.name);
  context_.components.set_removing(file, true);
  auto put = std::make_shared<Result<std::optional<AsideCopy>>>(std::nullopt);
  keeping_.works.submit(
      [put, file, storage = &context_.world.storage, root = context_.config.root,
       now = context_.world.messenger.clock().wall_seconds()] { *put = put_aside_now(*storage, root, file, now); },
      [self = shared_from_this(), put, file] {
        self->context_.components.set_removing(file, false);
        if (!*put) return self->end(Outcome::kFailed, put->error());
        if (**put) self->managing_.aside().add(***put);
        self->make();
      });
}

void FileRestore::make() {
  auto made = make_component();
  if (!made) return end(Outcome::kFailed, made.error());
  if (*made == nullptr) return end(Outcome::kNothing);
  component_ = std::move(*made);
  files_ = component_->files;
  PIF_ASSERT(files_ != nullptr && component_->stage() == Stage::kFilling, component_->file.value);
  is_begun_ = true;
  if (rows_ > 0) begin_rows({}, 0);
  if (auto begun = begin_parity(); !begun) return fail_with(begun.error());
  step();
}

// Null: there is nothing to do.
Result<ComponentPtr> FileRestore::make_component() {
  const FileId file(file_.file());
  const auto found = context_.components.find(file);
  if (found || found.error().code == Code::kStaleFile) return nullptr;
  if (found.error().code != (is_unreadable_ ? Code::kCorrupt : Code::kNotFound)) return fail(found.error());
  PIF_TRY(context_.check_space(bytes_on(keeper_->layout, keeper_->index, keeper_->format(), file_length_)));
  PIF_TRY_VALUE(auto made, context_.components.create(own_->shape, file_.epoch(), context_.now()));
  context_.components.unsettled().erase(file.value);  // it is no creator's, who might have given it up
  return made;
}

void FileRestore::begin_rows(const component::Tail& begin, Row first) {
  PIF_ASSERT(files_ != nullptr && !rows_back_ && first < rows_, first, rows_);
  rows_back_ = std::make_shared<RowsBack>(keeping_, own_, file_length_, RowsBack::Place{files_, begin, first}, &rate_);
  ++errands_;
  rows_back_->start([self = shared_from_this()](const Status& status, const component::Tail& tail) {
    --self->errands_;
    self->tail_ = tail;
    if (!status) return self->fail_with(status.error());
    self->step();
  });
}

Status FileRestore::begin_parity() {
  const std::uint64_t parity_rows = keeper_->parity_rows(file_length_);
  if (parity_rows == 0) return {};
  PIF_TRY(context_.components.open_parity(*component_, component::OpenMode::kCreate));
  parity_ = component_->parity;
  MemberOptions members;
  members.file_length = file_length_;
  members.records = {0, file_length_.records};
  members.epoch = file_.epoch();
  members.by_message = keeping_.are_few(file_length_.bytes);
  ParityPlan plan;
  const std::uint64_t pages = keeper_->pages(file_length_);
  plan.pages = {{0, pages}};
  plan.frames = {{pages * keeper_->shape.page_rows(), parity_rows}};
  parity_bytes_ = parity_rows * row_bytes_of(keeper_->format(), file_length_);
  run_parity(members, plan);
  return {};
}

void FileRestore::run_parity(const MemberOptions& members, const ParityPlan& plan) {
  PIF_ASSERT(parity_ != nullptr, component_->file.value);
  rate_.spend(parity_bytes_, context_.now());
  ++errands_;
  const auto run = std::make_shared<ParityRun>(keeping_.peers, context_.world.storage, keeping_.works, *keeper_,
                                               members, plan, parity_);
  start_run(keeping_.context.fibers, run, own_->shape,
            [self = shared_from_this()](const Status& status, const ParityRun::Outcome&) {
              --self->errands_;
              if (!status) return self->fail_with(status.error());
              self->step();
            });
}

// Everything goes on from here. Work may end before the call that begins it.
void FileRestore::step() {
  if (!is_begun_ || is_sealing_ || !done_) return;
  if (!failure_ && component_->is_removed()) failure_ = removed();
  if (errands_ > 0) return failure_ && rows_back_ ? rows_back_->give_up(*failure_) : void();
  if (failure_) return end(Outcome::kFailed, *failure_);
  seal();
}

std::uint64_t FileRestore::bytes_of(Row rows, const FileLength& length) const {
  return fixed_component_bytes(keeper_->layout, keeper_->index, keeper_->format().record_length, rows, length);
}

void FileRestore::seal() {
  if (auto good = check_tail(*own_, file_length_, tail_); !good) return fail_with(good.error());
  is_sealing_ = true;
  rows_back_.reset();
  if (is_there_) return sync_there();
  set_tail(component_->state, tail_);
  auto opened = context_.components.open_files(*component_, component::OpenMode::kRead);
  if (!opened) return end(Outcome::kFailed, opened.error());
  component_->reader->set_tail(tail_);
  component_->enter(Stage::kSealing);
  keeping_.seal_sync.add_restored(component_, files_, parity_, new_bytes(),
                                  [self = shared_from_this()](const Status& status) { self->synced(status); });
}

void FileRestore::synced(const Status& status) {
  if (!status) return end(Outcome::kFailed, status.error());
  if (component_->is_removed()) return end(Outcome::kNothing);
  context_.components.close_files(*component_);  // they can write; nobody gets such ones of what is complete
  const auto change = [self = shared_from_this()](proto::ComponentState& state) { self->fill_in(state); };
  context_.batch.update(component_, change, [self = shared_from_this()](const Status& committed) {
    Component& component = *self->component_;
    if (component.is_removed()) return self->end(Outcome::kNothing);
    if (!committed) return self->end(Outcome::kFailed, committed.error());
    component.end_change();
    if (self->is_unreadable_) self->context_.components.forget_unreadable();
    // It may have been removed while it was nowhere to be found here.
    self->context_.components.unsettled()[component.file.value] = self->context_.now();
    self->end(Outcome::kRestored);
  });
}

void FileRestore::fill_in(proto::ComponentState& state) const {
  state.set_state(kCommitted);
  *state.mutable_published() = wire::proto_of(file_length_);
  if (knows_length()) *state.mutable_published_tickets() = published_tickets_;
  if (keeper_->index == 0) state.set_grants(grants_);
  state.set_pages(parity_ ? keeper_->pages(file_length_) : 0);
  state.set_gathered(parity_ != nullptr);
  if (grants_ > 0) {
    // All of it is published, and so is of no generation before the newest, whose base may be far behind. Rows of that
    // one may still come, to LFS 0 too, before it has begun a newer one.
    state.set_generation(grants_);
    state.set_parity_generation(grants_);
    *state.mutable_parity_base() = wire::proto_of(file_length_);
  }
  if (!is_deputy()) return;
  // LFS 0 publishes nothing more before it is noted here, which was refused until now.
  *state.mutable_noted()->mutable_file_length() = wire::proto_of(file_length_);
  state.set_noted_generation(grants_);
}

// What is under way comes to its end first: it uses the files.
void FileRestore::fail_with(Error error) {
  if (!failure_) failure_ = std::move(error);
  step();
}

void FileRestore::end(Outcome outcome, const Error& error) {
  if (!done_) return;
  const bool is_half = outcome != Outcome::kRestored && component_ && !component_->is_removed();
  if (is_there_) {
    release();
  } else if (is_half) {
    managing_.remove(component_->file, false, [](const Status&) {});
  }
  const Done done = std::exchange(done_, {});
  const bool is_gone = outcome == Outcome::kFailed && error.code == Code::kStaleFile;
  done(is_gone ? Outcome::kNothing : outcome, error);
}

}  // namespace pif::lfs
