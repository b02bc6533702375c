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
  settle_soon(file);
  if (file.is_settled) return {};
  return fail(file.trouble.value_or(Error{Code::kRetry, "the sequencer asks its deputy for the length", {}}));
}

// It is forgotten soon if nobody asks again.
AppendCoordinator::File& AppendCoordinator::settling_file(const ComponentPtr& component) {
  FilePtr file = find(component->file);
  if (file == nullptr) {
    file = make_file(component, publication_of(component->state));
    file->used = context_.now() - kForget;
  }
  file->used = std::max(file->used, context_.now() - kForget + kAskedAgain);
  return *file;
}

// It was started again since it published, and nobody knows whether the deputy has heard it.
void AppendCoordinator::tell_later(const ComponentPtr& component) {
  const auto& state = component->state;
  PIF_ASSERT(keeps_parity(state.shape()), component->file.value);
  if (state.shape().index() != 0 || state.grants() == 0 || deputy_state(*component) != wire::kViewMember) return;
  File& file = settling_file(component);
  if (file.is_settled) return;
  file.is_told = false;  // who settles tells
  look_again(file);
}

// ---- views ---------------------------------------------------------------------------------------------------------

void AppendCoordinator::view_adopted() {
  const bool is_returning = context_.view.state_of(context_.config.node) == wire::kViewReturning;
  std::vector<FilePtr> over;
  for (auto& [id, file] : files_) {
    if (!file->has_parity()) continue;
    begin_period(*file);
    const auto& shape = file->component->state.shape();
    const auto acting = acting_sequencer(file->component->layout, shape, context_.view);
    const bool is_absent = context_.view.is_absent(context_.config.node);
    file->is_acting = acting && *acting == shape.index() && !is_returning && !is_absent;
    if (!file->is_acting && file->publishing == Publishing::kNothing) over.push_back(file);
  }
  for (const FilePtr& file : over) end_acting(*file);
}

// All grants are void. Who waits for one that may be noted hears of it when it is settled whether it was.
void AppendCoordinator::begin_period(File& file) {
  PIF_ASSERT(file.has_parity(), file.component->file.value);
  file.period = ++last_period_;
  file.is_settled = file.is_settling = file.is_settle_asked = false;
  file.note_again = {};
  file.tell_at = kNever;
  file.trouble.reset();
  if (file.publishing == Publishing::kNoting) file.publishing = Publishing::kNothing;
  const auto tickets = file.sequencer.cancel_all();
  for (const auto ticket : tickets) {
    if (!file.sent || ticket > file.sent->ticket) continue;
    const auto waiting = file.waiting.find(ticket);
    if (waiting == file.waiting.end()) continue;
    for (Finished* const finished : waiting->second) {
      finished->generation = file.sent->generation;
      file.unsettled.push_back(finished);
    }
    file.waiting.erase(waiting);
  }
  cancel(file, tickets, old_view());
  PIF_ASSERT(file.waiting.empty() && file.sequencer.idle(), file.component->file.value, file.waiting.size());
  look_again(file);  // who served it until now
  context_.fibers.start<&AppendCoordinator::serve>(*this, find(file.component->file), file.period);
}

// Others decide what becomes of what was sent and is not published here.
void AppendCoordinator::end_acting(File& file) {
  PIF_ASSERT(!file.is_acting && file.publishing == Publishing::kNothing, file.component->file.value);
  for (Finished* const finished : std::exchange(file.unsettled, {})) {
    const bool is_done = was_published(file.component->state, &file, *finished) == WasPublished::kYes;
    answer(*finished, is_done ? Status() : Status(fail(old_view())));
  }
  drop(file, old_view());
}

// ---- settling ------------------------------------------------------------------------------------------------------

bool AppendCoordinator::may_settle(const File& file) const {
  if (file.publishing != Publishing::kNothing) return false;  // it becomes durable at any moment
  return !file.is_settled && !file.is_settling && file.is_acting && context_.now() >= file.note_again;
}

void AppendCoordinator::settle_soon(File& file) {
  if (!may_settle(file)) return;
  if (!has_deputy(file) && !sent_to_publish(file)) return settled(file);
  file.is_settle_asked = true;
  look_again(file);
}

// A deputy that is not a member has sequenced nothing since this LFS acts: what was sent to it stays.
std::optional<AppendCoordinator::Publication> AppendCoordinator::sent_to_publish(const File& file) const {
  const bool is_first = deputy_state(*file.component) != wire::kViewMember;
  const FileLength own = file_length_of(file.component->state.published());
  return is_first && file.sent && is_longer(file.sent->file_length, own) ? file.sent : std::nullopt;
}

void AppendCoordinator::settle(const FilePtr& file, std::uint64_t period) {
  File& f = *file;
  PIF_ASSERT(f.has_parity() && f.sequencer.idle(), f.component->file.value);
  PIF_ASSERT(is_current(f, period) && may_settle(f), f.component->file.value);
  f.is_settling = true;
  f.is_settle_asked = false;
  for (;;) {  // until there is nothing longer
    if (const auto sent = sent_to_publish(f)) {
      if (!settle_at(file, period, *sent, {})) return;
      continue;
    }
    if (!has_deputy(f)) return settled(f);
    const Publication own = publication_of(f.component->state);
    const bool is_empty = own.file_length.records == 0 && own.ticket == 0;
    const auto said = noting_.send(f.component, f.sequencer.generation(), is_empty ? std::nullopt : std::optional(own));
    if (!is_current(f, period)) return;
    if (!said && said.error().code == Code::kRetry) {
      // If the deputy refuses it because it has acted, or LFS 0 of another run, this one goes above them.
      const auto generation = noting_.ask(f.component);
      if (!is_current(f, period)) return;
      if (!generation || *generation < f.sequencer.generation()) return not_settled(f, said.error());
      f.sequencer.begin(f.sequencer.published(), *generation + 1);
      continue;
    }
    if (!said) return not_settled(f, said.error());
    const auto news = news_of(f, *said);
    if (!news) return not_settled(f, news.error());
    if (!*news) return settled(f);
    if (!settle_at(file, period, **news, said->published_tickets)) return;
  }
}

// A length that was sent to the deputy may have been shown, or will be. But none was that was noted there before this
// sequencer went on without it, and gave out its rows to others.
Result<std::optional<AppendCoordinator::Publication>> AppendCoordinator::news_of(const File& file,
                                                                                 const Noting::Noted& said) const {
  PIF_ASSERT(file.is_settling && !file.is_settled && file.sequencer.idle(), file.component->file.value);
  const auto& state = file.component->state;
  const Publication noted = publication_of(said.length);
  const Publication own = publication_of(state);
  const bool is_void = noted.generation != 0 && noted.generation < state.grants();
  if (is_void && is_longer(noted.file_length, own.file_length))
    spdlog::warn("file {}: the deputy has {} records noted of generation {}, which {} went on without",
                 state.shape().file(), noted.file_length.records, noted.generation, context_.config.name);
  const bool is_behind = !is_void && is_longer(noted.file_length, own.file_length);
  if (is_behind && !file.component->catalogued)  // made by who asks for a range now
    PIF_TRY(context_.check_has_no_part(state.shape(), file.component->layout, noted.file_length.records));
  if (is_behind) return noted;
  if (has_more(said.published_tickets, state.published_tickets())) return own;
  return std::nullopt;
}

bool AppendCoordinator::settle_at(const FilePtr& file, std::uint64_t period, const Publication& publication,
                                  const proto::PublishedTickets& tickets) {
  PIF_ASSERT(file->is_settling && file->is_acting, file->component->file.value);
  const Status committed = context_.batch.commit(file->component, [&](proto::ComponentState& state) {
    if (is_longer(publication.file_length, file_length_of(state.published()))) set_published(state, publication);
    add_tickets(*state.mutable_published_tickets(), tickets);
  });
  if (!committed) drop(*file, committed.error());
  if (!is_current(*file, period)) return false;
  file->sent.reset();
  return true;
}

void AppendCoordinator::settled(File& file) {
  PIF_ASSERT(!file.is_settled && file.sequencer.idle(), file.component->file.value);
  const FileLength kept = file_length_of(file.component->state.published());
  const bool is_behind = is_longer(kept, file.sequencer.published());
  file.sequencer.begin(is_behind ? kept : file.sequencer.published(), file.sequencer.generation());
  file.sent.reset();
  file.is_settling = file.is_settle_asked = false;
  file.is_settled = true;
  file.is_told = true;  // by the note, or there is none to tell
  file.trouble.reset();
  for (Finished* const finished : std::exchange(file.unsettled, {})) finish(file, *finished);
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
  for (Finished* const finished : std::exchange(file.unsettled, {})) answer(*finished, fail(why));
}

}  // namespace pif::lfs
