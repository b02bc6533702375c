#include "rebuild/file_restore.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {

std::uint64_t bytes_on(const parity::Layout& layout, LfsIndex index, const Format& format, const FileLength& length) {
  const std::uint64_t rows = layout.rows(index, length.records) + layout.parity_rows(index, length.records);
  return rows * std::min(row_bytes_of(format, length), length.bytes);
}

FileRestore::FileRestore(Keeping& keeping, Managing& managing, RateLimit& rate, proto::ListLostReply::One file,
                         Moment moment, Purpose purpose, Written written)
    : keeping_(keeping),
      context_(keeping.context),
      managing_(managing),
      rate_(rate),
      file_(std::move(file)),
      moment_(moment),
      purpose_(purpose),
      written_(std::move(written)) {}

Result<FileRestore::Outcome> FileRestore::run() {
  auto outcome = restore();
  if (!outcome && outcome.error().code == Code::kStaleFile) return Outcome::kNothing;  // it was removed
  return outcome;
}

Result<FileRestore::Outcome> FileRestore::restore() {
  PIF_ASSERT(!own_ && !keeper_, file_.file());  // once
  PIF_TRY(parse());
  PIF_TRY(find_length());
  rows_ = keeper_->layout.rows(keeper_->index, file_length_.records);
  const FileId file(file_.file());
  const auto found = context_.components.find(file);
  is_unreadable_ = !found && found.error().code == Code::kCorrupt;
  const bool has_none = purpose_ == Purpose::kMake || purpose_ == Purpose::kLook;
  if (found ? has_none : !belongs_here()) return Outcome::kNothing;
  if (purpose_ == Purpose::kLook) return fail(Code::kCancelled, "as was asked for");
  if (purpose_ != Purpose::kRebuild) context_.lost_files.begin_mending(file);
  if (found) return catch_up(*found);
  if (is_unreadable_ || purpose_ != Purpose::kRebuild) PIF_TRY(put_old_files_aside());
  return make();
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

Status FileRestore::find_length() {
  file_length_ = file_length_of(file_.file_length());
  const auto asked = who_knows_length();
  if (!asked) return take_own_length();
  const Status known = ask_length(*asked);
  if (known || known.error().code != Code::kUnavailable) return known;
  // One that is not sure to be the sequencer yet does not say; its deputy does, for a round that is not the last one.
  const bool has_deputy = *asked == 0 && !is_final() && !is_deputy();
  return has_deputy ? ask_length(parity::deputy_of(keeper_->layout)) : known;
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
Status FileRestore::ask_length(LfsIndex lfs) {
  const bool was_first = is_final() && (keeper_->index == 0 || (lfs != 0 && lack_of(0)));
  const LengthAsked asked{lfs, file_.file(), lfs != 0, moment_.view, was_first, lfs == 0 && is_first_alone()};
  PIF_TRY_VALUE(const LengthAnswer answer, lfs::ask_length(keeping_.peers, *own_->grant, asked, keeper_->format()));
  extend(file_length_, answer.length);
  are_tickets_whole_ = file_length_ == answer.length;
  grants_ = answer.generation;
  published_tickets_ = answer.published_tickets;
  return check_file_length(keeper_->format(), file_length_);
}

// Rows, parity, or the length: LFS 0 and its deputy know it of each file that was appended to. An empty disk gets it of
// all others, too.
bool FileRestore::belongs_here() const {
  PIF_ASSERT(keeper_.has_value(), file_.file());
  if (rows_ > 0 || keeper_->parity_rows(file_length_) > 0) return true;
  const bool may_lack_it = purpose_ != Purpose::kRebuild && !is_unreadable_ && grants_ == 0;
  return knows_length() && file_length_.records > 0 && !may_lack_it;
}

std::uint64_t FileRestore::bytes_of(Row rows, const FileLength& length) const {
  return fixed_component_bytes(keeper_->layout, keeper_->index, keeper_->format().record_length, rows, length);
}

MemberOptions FileRestore::member_options() const {
  MemberOptions members;
  members.file_length = file_length_;
  members.records = {0, file_length_.records};
  members.epoch = file_.epoch();
  members.by_message = keeping_.are_few(file_length_.bytes);
  return members;
}

std::shared_ptr<ParityRun> FileRestore::parity_run(const MemberOptions& members, const ParityPlan& plan,
                                                   std::shared_ptr<component::ParityFiles> files) {
  return std::make_shared<ParityRun>(keeping_.peers, context_.world.storage, keeping_.works, *keeper_, members, plan,
                                     std::move(files));
}

// ---- rows and parity -----------------------------------------------------------------------------------------------

Result<component::Tail> FileRestore::fetch(const ComponentPtr& component, const Wanted& wanted) {
  PIF_ASSERT(wanted.files != nullptr && wanted.first <= rows_, wanted.first, rows_);
  PIF_ASSERT(!wanted.parity_run || wanted.parity != nullptr, component->file.value);
  const auto rows = wanted.first == rows_
                        ? nullptr
                        : std::make_shared<RowsBack>(keeping_, own_, file_length_,
                                                     RowsBack::Place{wanted.files, wanted.begin, wanted.first}, &rate_);
  Result<component::Tail> tail = wanted.begin;
  const auto parity = std::make_shared<Status>();
  if (wanted.parity_run) {
    rate_.spend(wanted.parity_bytes, context_.now());
    const auto ended = context_.fibers.begin_wait();
    // Where all fibers are ended this object may go before that one.
    context_.fibers.start(
        [component, rows, parity, ended, run = wanted.parity_run, own = own_, &fibers = context_.fibers] {
          *parity = run->run(own->shape);
          if (*parity) *parity = check_there(*component);
          if (!*parity && rows) rows->give_up(parity->error());
          fibers.wake(ended);
        });
    if (rows) tail = rows->run();
    context_.fibers.wait(ended);
  } else if (rows) {
    tail = rows->run();
  }
  PIF_TRY(check_there(*component));
  PIF_TRY(tail);
  PIF_TRY(*parity);
  PIF_TRY(check_tail(*own_, file_length_, *tail));
  return tail;
}

void FileRestore::say_written() const {
  if (written_) written_();
}

// ---- one that is missing -------------------------------------------------------------------------------------------

// Nobody knows any more what of them counts, and in a parity file that is there already old frames would.
Status FileRestore::put_old_files_aside() {
  PIF_ASSERT(is_unreadable_ || purpose_ != Purpose::kRebuild, file_.file());
  const FileId file(file_.file());
  spdlog::warn("{}: {} does not know its component; it is made anew out of what others have", file_.path(),
               context_.config.name);
  context_.components.set_removing(file, true);
  const daemon::AtExit removed([&] { context_.components.set_removing(file, false); });
  const std::int64_t now = context_.world.messenger.clock().wall_seconds();
  PIF_TRY_VALUE(const auto put, keeping_.works.run([&] {
    return put_aside_now(context_.world.storage, context_.config.root, file, now);
  }));
  if (put) managing_.aside().add(*put);
  return {};
}

Result<FileRestore::Outcome> FileRestore::make() {
  PIF_TRY_VALUE(const ComponentPtr component, make_component());
  if (!component) return Outcome::kNothing;
  const auto lock = component->lock.try_acquire(Mode::kRestore);
  PIF_ASSERT(lock.is_held(), component->file.value);  // nobody has seen it before
  const Status filled = fill(component);
  if (filled) return Outcome::kRestored;
  if (!component->is_removed()) managing_.remove_soon(component->file);
  return fail(filled.error());
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

// All of it is durable before the catalogue has it.
Status FileRestore::fill(const ComponentPtr& component) {
  PIF_ASSERT(component->files != nullptr && component->lock.is_held(Mode::kRestore), component->file.value);
  PIF_TRY_VALUE(const Wanted wanted, all_of(*component));
  PIF_TRY_VALUE(const component::Tail tail, fetch(component, wanted));
  set_tail(component->state, tail);
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kRead));
  component->reader->set_tail(tail);
  say_written();
  PIF_TRY(keeping_.seal_sync.sync_restored(component, wanted.files, wanted.parity, tail.bytes + wanted.parity_bytes));
  PIF_TRY(check_there(*component));
  PIF_ASSERT(component->is_open(), component->file.value);
  context_.components.close_files(*component);  // they can write; nobody gets such ones of what is complete
  const bool has_parity = wanted.parity != nullptr;
  PIF_TRY(context_.batch.commit(component, [&](proto::ComponentState& state) { fill_in(state, has_parity); }));
  PIF_TRY(check_there(*component));
  PIF_ASSERT(component->is_whole(), component->file.value);
  if (is_unreadable_) context_.components.forget_unreadable();
  // It may have been removed while it was nowhere to be found here.
  context_.components.unsettled()[component->file.value] = context_.now();
  return {};
}

Result<FileRestore::Wanted> FileRestore::all_of(Component& component) {
  Wanted wanted;
  wanted.files = component.files;
  const std::uint64_t parity_rows = keeper_->parity_rows(file_length_);
  if (parity_rows == 0) return wanted;
  PIF_TRY(context_.components.open_parity(component, component::OpenMode::kCreate));
  wanted.parity = component.parity;
  wanted.parity_bytes = parity_rows * row_bytes_of(keeper_->format(), file_length_);
  const std::uint64_t pages = keeper_->pages(file_length_);
  ParityPlan plan;
  plan.pages = {{0, pages}};
  plan.frames = {{pages * keeper_->shape.page_rows(), parity_rows}};
  wanted.parity_run = parity_run(member_options(), plan, wanted.parity);
  return wanted;
}

void FileRestore::fill_in(proto::ComponentState& state, bool has_parity) const {
  state.set_state(kCommitted);
  *state.mutable_published() = wire::proto_of(file_length_);
  if (knows_length()) *state.mutable_published_tickets() = published_tickets_;
  if (keeper_->index == 0) state.set_grants(grants_);
  state.set_pages(has_parity ? keeper_->pages(file_length_) : 0);
  state.set_gathered(has_parity);
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

}  // namespace pif::lfs
