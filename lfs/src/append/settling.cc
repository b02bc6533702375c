// How a sequencer settles: when it begins, and again in each view. append_coordinator.h has the rules.
//
// LFS 0 notes its own length with a generation at the deputy, which from then on refuses older ones, and goes by the
// longer of both. If the deputy is absent, what was sent to it counts: it may have been noted, so it is published. An
// acting deputy goes by what it keeps: it takes no notes while it acts.
//
// Whatever stands still, and goes on with an older view: LFS 0 publishes nothing, for its notes are refused, or wait
// for a deputy that has not got the newer view yet (NoteLength.view). A deputy that acts in an older view publishes
// what LFS 0 hears of, for LFS 0 begins with a note that the deputy takes in the newer view only. LFS 0 that acts
// alone in an older view: the deputy is no member before LFS 0 has answered for the length in a view that has it back.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "append/acting.h"
#include "append/append_coordinator.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"

namespace pif::lfs {
namespace {

constexpr Duration kNoteAgain = std::chrono::milliseconds(200);
constexpr Duration kAskedAgain = std::chrono::seconds(5);  // the length, by whom was refused

}  // namespace

Error AppendCoordinator::old_view() const {
  return {Code::kOldView,
          fmt::format("who takes part has changed (view {} at {}): look who sequences the file now, and ask there",
                      context_.view.index(), context_.config.name),
          {}};
}

std::uint32_t AppendCoordinator::deputy_state(const Component& component) const {
  const auto deputy = parity::deputy_of(component.layout);
  return context_.view.state_of(component.state.shape().layout().nodes(static_cast<int>(deputy)));
}

bool AppendCoordinator::has_deputy(const File& file) const {
  return file.has_parity() && !file.is_deputy() && !wire::is_absent(deputy_state(*file.component));
}

Status AppendCoordinator::check_settled(const ComponentPtr& component) {
  const auto& state = component->state;
  PIF_ASSERT(keeps_parity(state.shape()), component->file.value);
  if (is_publishing(component->file))
    return fail(Code::kRetry, fmt::format("the length of file {} is about to grow", component->file.value));
  // Nothing was ever noted, or the deputy knows nothing that this LFS does not.
  if (state.shape().index() != 0 || state.grants() == 0 || deputy_state(*component) != wire::kViewMember) return {};
  File& file = settling_file(component);
  settle(file);
  if (file.is_settled) return {};
  return fail(file.trouble.value_or(Error{Code::kRetry, "the sequencer asks its deputy for the length", {}}));
}

// It is forgotten soon if nobody asks again.
AppendCoordinator::File& AppendCoordinator::settling_file(const ComponentPtr& component) {
  File* file = find(component->file);
  if (file == nullptr) {
    file = &make_file(component, publication_of(component->state));
    file->used = context_.now() - kForget;
  }
  file->used = std::max(file->used, context_.now() - kForget + kAskedAgain);
  return *file;
}

// It was started again since it published, and nobody knows whether the deputy was told.
void AppendCoordinator::tell_later(const ComponentPtr& component) {
  const auto& state = component->state;
  PIF_ASSERT(keeps_parity(state.shape()), component->file.value);
  if (state.shape().index() != 0 || state.grants() == 0 || deputy_state(*component) != wire::kViewMember) return;
  File& file = settling_file(component);
  if (!file.is_settled) file.is_told = false;  // who settles tells
}

// ---- views ---------------------------------------------------------------------------------------------------------

void AppendCoordinator::adopt_view() {
  const bool is_returning = context_.view.state_of(context_.config.node) == wire::kViewReturning;
  std::vector<File*> over;
  for (auto& [id, file] : files_) {
    if (!file->has_parity()) continue;
    begin_period(*file);
    const auto& shape = file->component->state.shape();
    const auto acting = acting_sequencer(file->component->layout, shape, context_.view);
    const bool is_absent = context_.view.is_absent(context_.config.node);
    file->is_acting = acting && *acting == shape.index() && !is_returning && !is_absent;
    if (!file->is_acting && file->publishing == Publishing::kNothing) over.push_back(file.get());
  }
  for (File* const file : over) end_acting(*file);
}

// All grants are void. Who waits for one that may be noted hears of it when it is settled whether it was.
void AppendCoordinator::begin_period(File& file) {
  PIF_ASSERT(file.has_parity(), file.component->file.value);
  file.period = ++last_period_;
  file.is_settled = file.is_settling = false;
  file.note_again = {};
  file.tell_at = kNever;
  file.trouble.reset();
  if (file.publishing == Publishing::kNoting) file.publishing = Publishing::kNothing;
  const auto tickets = file.sequencer.cancel_all();
  for (const auto ticket : tickets) {
    if (!file.sent || ticket > file.sent->ticket) continue;
    const auto waiting = file.waiting.find(ticket);
    if (waiting == file.waiting.end()) continue;
    for (const auto token : waiting->second) file.unsettled.push_back({token, ticket, file.sent->generation});
    file.waiting.erase(waiting);
  }
  cancel(file, tickets, old_view());
  PIF_ASSERT(file.waiting.empty() && file.sequencer.idle(), file.component->file.value, file.waiting.size());
}

// Others decide what becomes of what was sent and is not published here.
void AppendCoordinator::end_acting(File& file) {
  PIF_ASSERT(!file.is_acting && file.publishing == Publishing::kNothing, file.component->file.value);
  for (const Finished& finished : std::exchange(file.unsettled, {})) {
    const bool is_done = was_published(file.component->state, &file, finished) == WasPublished::kYes;
    context_.replies.answer(finished.token, is_done ? Status() : Status(fail(old_view())));
  }
  drop(file.component->file.value, old_view());
}

// ---- settling ------------------------------------------------------------------------------------------------------

void AppendCoordinator::settle(File& file) {
  if (file.is_settled || file.is_settling || !file.is_acting || context_.now() < file.note_again) return;
  if (file.publishing != Publishing::kNothing) return;  // it becomes durable at any moment
  PIF_ASSERT(file.has_parity() && file.sequencer.idle(), file.component->file.value);
  file.is_settling = true;
  const Publication own = publication_of(file.component->state);
  // A deputy that is not a member has sequenced nothing since this LFS acts: what was sent to it stays.
  const bool is_first = deputy_state(*file.component) != wire::kViewMember;
  if (is_first && file.sent && is_longer(file.sent->file_length, own.file_length))
    return settle_at(file, *file.sent, {});
  if (!has_deputy(file)) return settled(file);
  const bool is_empty = own.file_length.records == 0 && own.ticket == 0;
  noting_.send(*file.component, file.sequencer.generation(), is_empty ? std::nullopt : std::optional(own),
               [this, id = file.component->file.value, period = file.period](const Result<Noting::Noted>& noted) {
                 File* const found = find_in_period(id, period);
                 if (found == nullptr) return;
                 if (noted) return settle_with(*found, *noted);
                 if (noted.error().code == Code::kRetry) return ask_generation(*found, noted.error());
                 not_settled(*found, noted.error());
               });
}

// What the deputy was told of may have been shown, or will be. But of what was noted there before this sequencer went
// on without it, and gave out its rows to others, nothing was.
void AppendCoordinator::settle_with(File& file, const Noting::Noted& said) {
  PIF_ASSERT(file.is_settling && !file.is_settled && file.sequencer.idle(), file.component->file.value);
  const auto& state = file.component->state;
  const Publication noted = publication_of(said.length);
  const Publication own = publication_of(state);
  const bool is_void = noted.generation != 0 && noted.generation < state.grants();
  if (is_void && is_longer(noted.file_length, own.file_length))
    spdlog::warn("file {}: the deputy has {} records noted of generation {}, which {} went on without",
                 state.shape().file(), noted.file_length.records, noted.generation, context_.config.name);
  const bool is_behind = !is_void && is_longer(noted.file_length, own.file_length);
  if (is_behind && !file.component->catalogued) {  // made by who asks for a range now
    const auto is_new = context_.check_has_no_part(state.shape(), file.component->layout, noted.file_length.records);
    if (!is_new) return not_settled(file, is_new.error());
  }
  if (!is_behind && !has_more(said.published_tickets, state.published_tickets())) return settled(file);
  settle_at(file, is_behind ? noted : own, said.published_tickets);
}

void AppendCoordinator::settle_at(File& file, const Publication& publication, const proto::PublishedTickets& tickets) {
  PIF_ASSERT(file.is_settling && file.is_acting, file.component->file.value);
  const auto change = [publication, tickets](proto::ComponentState& state) {
    if (is_longer(publication.file_length, file_length_of(state.published()))) set_published(state, publication);
    add_tickets(*state.mutable_published_tickets(), tickets);
  };
  context_.batch.update(
      file.component, change,
      [this, id = file.component->file.value, number = file.number, period = file.period](const Status& committed) {
        File* const found = find(id, number);
        if (found == nullptr) return;
        if (!committed) return drop(id, committed.error());
        if (found->period != period) return;
        found->sent.reset();
        found->is_settling = false;
        settle(*found);  // which finds nothing longer
      });
}

void AppendCoordinator::settled(File& file) {
  PIF_ASSERT(file.is_settling && !file.is_settled && file.sequencer.idle(), file.component->file.value);
  const FileLength kept = file_length_of(file.component->state.published());
  const bool is_behind = is_longer(kept, file.sequencer.published());
  file.sequencer.begin(is_behind ? kept : file.sequencer.published(), file.sequencer.generation());
  file.sent.reset();
  file.is_settling = false;
  file.is_settled = true;
  file.is_told = true;  // by the note, or there is none to tell
  file.trouble.reset();
  for (const Finished& finished : std::exchange(file.unsettled, {}))
    if (context_.replies.is_waiting(finished.token)) finish(file, finished);
}

// The note was refused. If it is because the deputy has acted, or LFS 0 of another run, this one goes above them.
void AppendCoordinator::ask_generation(File& file, const Error& why) {
  noting_.ask(*file.component, [this, id = file.component->file.value, period = file.period,
                                why](const Result<std::uint64_t>& generation) {
    File* const found = find_in_period(id, period);
    if (found == nullptr) return;
    if (!generation || *generation < found->sequencer.generation()) return not_settled(*found, why);
    found->sequencer.begin(found->sequencer.published(), *generation + 1);
    found->is_settling = false;
    settle(*found);
  });
}

void AppendCoordinator::not_settled(File& file, const Error& why) {
  PIF_ASSERT(file.is_settling && !file.is_settled, file.component->file.value);
  file.is_settling = false;
  file.note_again = context_.now() + kNoteAgain;
  const bool is_old = why.code == Code::kOldView;
  const bool is_final = is_old || why.code == Code::kNotFound;  // nothing becomes of it by waiting
  file.trouble = Error{
      is_final ? why.code : Code::kRetry,
      fmt::format("the length of file {} is settled with its deputy first: {}", file.component->file.value, why.text),
      why.node};
  if (!is_old) return;
  context_.peer_list.want();  // and the view with them
  answer_unsettled(file, *file.trouble);
}

void AppendCoordinator::answer_unsettled(File& file, const Error& why) {
  for (const Finished& finished : std::exchange(file.unsettled, {}))
    context_.replies.answer(finished.token, Status(fail(why)));
}

}  // namespace pif::lfs
