#include "append/append_coordinator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "append/acting.h"
#include "append/empty_component.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);  // for a grant
constexpr std::size_t kWaitingMax = 16;                  // repeated AppendDone of one ticket
constexpr std::size_t kUnsettledMax = 1024;              // AppendDone that wait for the deputy
constexpr Duration kNoteAgain = std::chrono::milliseconds(200);
constexpr Duration kTellAfter = std::chrono::milliseconds(100);  // mostly a note does before

// Of a file that has no component at the LFS that sequences it. With parity it never had one, or is gone here.
Result<FileLength> length_without_component(const LfsContext& context, const proto::Reserve& asked,
                                            const parity::Layout& layout) {
  PIF_TRY_VALUE(const component::Shape shape, shape_of(asked.shape()));
  const FileLength known = file_length_of(asked.known());
  if (shape.form == 0) return FileLength();
  PIF_TRY(context.check_has_no_part(asked.shape(), layout, known.records));
  if (shape.format.is_fixed() && !is_fixed_file_length(shape.format.record_length, known))
    return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes, as `known` says",
                                            known.records, shape.format.record_length, known.bytes));
  return known;
}

Error stale(const Component& component, std::uint64_t records, const FileLength& known) {
  return {Code::kStaleNode,
          fmt::format("file {} has {} records here, and the directory knows of {}: this LFS has lost appends",
                      component.file.value, records, known.records),
          {}};
}

Error cancelled() {
  return {Code::kRetry,
          "the reserved range was cancelled: its deadline passed, or that of a range before it, or the sequencer has "
          "started over",
          {}};
}

Error forgotten() {
  return {Code::kUnavailable,
          "whether that append was published is not known any more: so many were cancelled and begun since",
          {}};
}

bool is_in(const Sequencer::Publication& publication, std::uint64_t ticket, std::uint64_t generation) {
  return ticket != 0 && generation == publication.generation && ticket <= publication.ticket;
}

}  // namespace

void set_published(proto::ComponentState& state, const Sequencer::Publication& publication) {
  *state.mutable_published() = wire::proto_of(publication.file_length);
  state.set_published_ticket(publication.ticket);
  state.set_published_generation(publication.generation);
  add_ticket(*state.mutable_published_tickets(), publication.generation, publication.ticket);
}

void set_noted(proto::ComponentState& state, const Sequencer::Publication& publication) {
  *state.mutable_noted()->mutable_file_length() = wire::proto_of(publication.file_length);
  state.mutable_noted()->set_ticket(publication.ticket);
  state.mutable_noted()->set_generation(publication.generation);
}

Sequencer::Publication publication_of(const proto::NotedLength& noted) {
  return {file_length_of(noted.file_length()), noted.ticket(), noted.generation()};
}

Sequencer::Publication publication_of(const proto::ComponentState& state) {
  return {file_length_of(state.published()), state.published_ticket(), state.published_generation()};
}

bool is_longer(const FileLength& a, const FileLength& b) { return a.records > b.records || a.bytes > b.bytes; }

AppendCoordinator::AppendCoordinator(LfsContext& context, Peers& peers)
    : context_(context), noting_(context, peers), grants_(context.fibers) {
  context.operations.bind<&AppendCoordinator::reserve>(*this);
  context.operations.bind<&AppendCoordinator::append_done>(*this);
  context.operations.bind<&AppendCoordinator::append_cancel>(*this);
  context.view_watchers.push_back(this);
  context.fibers.start<&AppendCoordinator::watch>(*this);
}

bool AppendCoordinator::File::is_quiet() const {
  return sequencer.idle() && publishing == Publishing::kNothing && !is_settling && !sent && !wants_to_settle() &&
         tell_at == kNever;
}

// ---- who sequences -------------------------------------------------------------------------------------------------

Status AppendCoordinator::check_acting(const proto::ComponentShape& shape, const parity::Layout& layout,
                                       std::uint64_t view) {
  if (!keeps_parity(shape)) {
    if (shape.index() == 0) return {};
    return fail(Code::kInvalid, "appends are reserved and finished at LFS 0 of the file");
  }
  PIF_TRY(context_.check_view(view));
  PIF_TRY(context_.check_present(shape));
  PIF_TRY_VALUE(const LfsIndex acting, acting_sequencer(layout, shape, context_.view));
  if (acting != shape.index())
    return fail(Code::kInvalid,
                fmt::format("appends to file {} are reserved and finished at LFS {} of it in view {}, this is LFS {}",
                            shape.file(), acting, context_.view.index(), shape.index()));
  if (context_.view.state_of(context_.config.node) == wire::kViewReturning)
    return fail(Code::kRetry, fmt::format("{} is returning: appends to file {} wait until it has all lengths",
                                          context_.config.name, shape.file()));
  return {};
}

// The sequencer's file may have no component there: an empty one, or one with parity whose first rows are all
// elsewhere. The first reservation makes it; of the latter the length is the directory's, which the client knows.
Result<ComponentPtr> AppendCoordinator::component_of(const Request& request) {
  const auto& asked = request.envelope().reserve();
  const FileId file(asked.file());
  auto found = context_.published(request, file);
  if (found) {
    PIF_TRY(check_acting((*found)->state.shape(), (*found)->layout, asked.view()));
    return found;
  }
  if (found.error().code != Code::kNotFound || !asked.has_shape()) return found;
  PIF_TRY(context_.check_shape(asked.shape(), file));
  PIF_TRY_VALUE(const parity::Layout layout, layout_of(asked.shape().layout()));
  PIF_TRY(check_acting(asked.shape(), layout, asked.view()));
  PIF_TRY_VALUE(const FileLength begun_with, length_without_component(context_, asked, layout));
  PIF_TRY_VALUE(auto made, make_empty(context_, asked.shape(), request.capability.epoch));
  *made->state.mutable_published() = wire::proto_of(begun_with);
  return made;
}

// A deputy may keep less than the directory knows: of a file that nobody appended to it has heard nothing.
Result<AppendCoordinator::Publication> AppendCoordinator::start_of(const Component& c, const FileLength& known) const {
  Publication out = publication_of(c.state);
  if (c.state.shape().index() == 0) {
    if (out.file_length.records < known.records) return fail(stale(c, out.file_length.records, known));
    return out;
  }
  const Publication noted = publication_of(c.state.noted());
  const bool is_newer = noted.file_length == out.file_length && noted.generation > out.generation;
  if (is_longer(noted.file_length, out.file_length) || is_newer) out = noted;
  if (!is_longer(known, out.file_length)) return out;
  if (known.records < out.file_length.records || known.bytes < out.file_length.bytes ||
      c.layout.rows(c.state.shape().index(), known.records) > c.state.rows() || out.generation != 0)
    return fail(stale(c, out.file_length.records, known));
  if (c.shape.format.is_fixed() && !is_fixed_file_length(c.shape.format.record_length, known))
    return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes, as `known` says",
                                            known.records, c.shape.format.record_length, known.bytes));
  return Publication{known, 0, 0};
}

// Above all that were ever given out of this file, by a root that was taken back at an older state, too. LFS 0 may have
// given out generations that its deputy never heard of; they are all of one incarnation, so the deputy takes the next.
std::uint64_t AppendCoordinator::first_generation(const proto::ComponentState& state) const {
  const std::uint64_t own = context_.numbers.incarnation() << Sequencer::kIncarnationShift;
  if (!keeps_parity(state.shape())) return std::max(state.grants() + 1, own);
  const std::uint64_t seen = newest_generation(state);
  PIF_ASSERT(seen < kGenerationEnd, state.shape().file(), seen);  // whoever named it
  if (state.shape().index() == 0) return std::max(seen + 1, own);
  const std::uint64_t next = ((seen >> Sequencer::kIncarnationShift) + 1) << Sequencer::kIncarnationShift;
  return std::max(next, own);
}

AppendCoordinator::FilePtr AppendCoordinator::find(FileId file) const {
  const auto at = files_.find(file.value);
  return at == files_.end() ? nullptr : at->second;
}

bool AppendCoordinator::is_publishing(FileId file) const {
  const FilePtr found = find(file);
  return found != nullptr && (found->publishing != Publishing::kNothing || found->sent);
}

bool AppendCoordinator::is_at_rest(FileId file) const {
  const FilePtr found = find(file);
  return found == nullptr || (found->is_acting && !found->is_settling && found->sequencer.idle() && !found->sent &&
                              found->publishing == Publishing::kNothing && found->unsettled.empty());
}

const AppendCoordinator::FilePtr& AppendCoordinator::make_file(const ComponentPtr& component,
                                                               const Publication& start) {
  const auto& state = component->state;
  auto& slot = files_[component->file.value];
  PIF_ASSERT(!slot, component->file.value);
  slot.reset(new File{component,
                      Sequencer(component->shape.format, start.file_length, first_generation(state), kPatience),
                      {},
                      first_generation(state),
                      state.grants(),
                      context_.now()});
  slot->period = ++last_period_;
  slot->start = start;
  slot->is_settled = !slot->has_parity();
  PIF_ASSERT(slot->sequencer.generation() > state.grants(), slot->sequencer.generation(), state.grants());
  context_.fibers.start<&AppendCoordinator::serve>(*this, slot, slot->period);
  return slot;
}

// ---- reserving -----------------------------------------------------------------------------------------------------

Result<AppendCoordinator::FilePtr> AppendCoordinator::ready_file(const Request& request, const proto::Reserve& asked) {
  PIF_TRY_VALUE(const auto component, component_of(request));
  PIF_TRY(LfsContext::check_not_older(*component));
  const FileLength known = file_length_of(asked.known());
  FilePtr file = find(component->file);
  if (file == nullptr || !file->is_deputy()) {
    PIF_TRY_VALUE(const Publication start, start_of(*component, known));
    if (file == nullptr) file = make_file(component, start);
  } else if (is_longer(known, file->sequencer.published())) {
    return fail(stale(*component, file->sequencer.published().records, known));
  }
  file->used = context_.now();
  if (!file->is_acting) return fail(Code::kRetry, "an earlier sequencer of the file is ending");
  PIF_TRY(check_ready(*file));
  return file;
}

// Whether a range may be given out. kRetry: not yet; kOldView.
Status AppendCoordinator::check_ready(File& file) {
  settle_soon(file);
  if (!file.is_settled)
    return fail(file.trouble.value_or(Error{Code::kRetry, "the sequencer asks its deputy for the length", {}}));
  const bool begins = file.durable_generation != file.sequencer.generation();
  if (file.has_parity() && begins && file.sequencer.to_publish())
    return fail(Code::kRetry, "what was appended before is being published");
  return {};
}

Result<net::Packet> AppendCoordinator::reserve(const Request& request, const proto::Reserve& asked) {
  PIF_TRY_VALUE(const FilePtr file, ready_file(request, asked));
  PIF_TRY_VALUE(const Sequencer::Grant grant,
                file->sequencer.reserve(asked.records(), asked.bytes(), asked.fill(), context_.now(), request.peer));
  PIF_ASSERT(grant.generation >= file->first_generation, grant.generation, file->first_generation);
  PIF_ASSERT(file->is_acting && file->is_settled, file->component->file.value);
  if (grant.deadline < watched_until_) grants_.notify();
  PIF_TRY(begin_generation(file, grant));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(grant.deadline - context_.now()).count();
  net::Packet packet = Replies::reply(request);
  auto* reply = packet.envelope.mutable_reserve_reply();
  reply->set_ticket(grant.ticket);
  *reply->mutable_start() = wire::proto_of(grant.start);
  *reply->mutable_base() = wire::proto_of(grant.base);
  reply->set_generation(grant.generation);
  reply->set_deadline_ms(static_cast<std::uint32_t>(std::max<std::int64_t>(left, 0)));
  return packet;
}

// A generation is durable before anybody gets a range of it, so that no later one is taken for it.
// So is the length it starts from, which may be done but not published yet. A deputy is bound by it like by a note.
Status AppendCoordinator::begin_generation(const FilePtr& file, const Sequencer::Grant& granted) {
  if (file->durable_generation == granted.generation) return {};
  const std::uint64_t period = file->period;
  const auto change = [g = granted.generation, p = file->sequencer.to_publish(), is_deputy = file->is_deputy(),
                       start = file->start](proto::ComponentState& state) {
    state.set_grants(std::max(state.grants(), g));
    if (p) set_published(state, *p);
    if (!is_deputy) return;
    state.set_noted_generation(std::max(state.noted_generation(), g));
    if (is_longer(start.file_length, file_length_of(state.published()))) set_published(state, start);
    if (is_longer(start.file_length, file_length_of(state.noted().file_length()))) set_noted(state, start);
  };
  const Status committed = context_.batch.commit(file->component, change);
  if (!committed) drop(*file, committed.error());
  PIF_TRY(committed);
  if (file->is_over) return fail(Code::kRetry, "the sequencer is starting over");
  file->durable_generation = std::max(file->durable_generation, granted.generation);
  if (file->period != period) return fail(old_view());
  PIF_ASSERT(file->durable_generation >= granted.generation, file->durable_generation, granted.generation);
  return {};
}

// ---- finishing -----------------------------------------------------------------------------------------------------

// What a deputy begins with was noted there, and is published now.
WasPublished AppendCoordinator::was_published(const proto::ComponentState& state, const File* file,
                                              const Finished& finished) {
  if (is_in(publication_of(state), finished.ticket, finished.generation)) return WasPublished::kYes;
  if (file != nullptr && is_in(file->start, finished.ticket, finished.generation)) return WasPublished::kYes;
  return lfs::was_published(state.published_tickets(), finished.generation, finished.ticket);
}

Status AppendCoordinator::append_done(const Request& request, const proto::AppendDone& asked) {
  PIF_TRY_VALUE(const ComponentPtr component, context_.published(request, FileId(asked.file())));
  const auto& state = component->state;
  Finished finished{asked.ticket(), asked.generation()};
  FilePtr file = find(component->file);
  PIF_ASSERT(file == nullptr || !file->is_over, component->file.value);
  // What is published, or may be already, is so whatever view the client goes by.
  const WasPublished known = was_published(state, file.get(), finished);
  if (known == WasPublished::kYes) return {};
  const bool is_sent = file != nullptr && file->sent && is_in(*file->sent, finished.ticket, finished.generation);
  if (!is_sent) {
    auto ok = check_acting(state.shape(), component->layout, asked.view());
    // kRetry would say that the range is cancelled, which is not known here.
    if (!ok && ok.error().code == Code::kRetry) return fail(Code::kOldView, std::move(ok.error().text));
    PIF_TRY(std::move(ok));
  }
  if (file == nullptr && state.shape().index() != 0) {  // not known to be sequenced here since LFS 0 is absent
    if (is_in(publication_of(state.noted()), finished.ticket, finished.generation)) return {};
    return fail(known == WasPublished::kUnknown ? forgotten() : cancelled());
  }
  if (file == nullptr) file = make_file(component, publication_of(state));
  file->used = context_.now();
  take(*file, finished);
  return wait_for_result(file, finished, request.deadline);
}

void AppendCoordinator::take(File& file, Finished& finished) {
  if (file.is_settled) return finish(file, finished);
  if (file.unsettled.size() >= kUnsettledMax)
    return answer(finished, fail(Code::kBusy, "too many appends wait for their sequencer"));
  file.unsettled.push_back(&finished);
  settle_soon(file);
}

void AppendCoordinator::finish(File& file, Finished& finished) {
  PIF_ASSERT(file.is_settled, file.component->file.value);
  const WasPublished known = was_published(file.component->state, &file, finished);
  if (known == WasPublished::kYes) return answer(finished, {});
  if (!file.sequencer.knows(finished.ticket, finished.generation))
    return answer(finished, fail(known == WasPublished::kUnknown ? forgotten() : cancelled()));
  const auto outcome = file.sequencer.done(finished.ticket);
  if (!outcome) return answer(finished, fail(outcome.error()));
  if (*outcome == Sequencer::Outcome::kPublished) return answer(finished, {});
  auto& waiting = file.waiting[finished.ticket];
  if (waiting.size() >= kWaitingMax)
    return answer(finished, fail(Code::kBusy, fmt::format("{} wait for the end of this append already", kWaitingMax)));
  PIF_ASSERT(*outcome == Sequencer::Outcome::kWait, finished.ticket);
  waiting.push_back(&finished);
  grants_.notify();  // what follows it may have been given up
  look_again(file);
}

void AppendCoordinator::answer(Finished& finished, Status result) {
  PIF_ASSERT(!finished.result, finished.ticket);
  finished.result = std::move(result);
  context_.fibers.wake(finished.wait);
}

Status AppendCoordinator::wait_for_result(const FilePtr& file, Finished& finished, Time deadline) {
  const daemon::AtExit leave([&] {
    std::erase(file->unsettled, &finished);
    const auto at = file->waiting.find(finished.ticket);
    if (at != file->waiting.end() && std::erase(at->second, &finished) > 0 && at->second.empty())
      file->waiting.erase(at);
  });
  while (!finished.result) {
    PIF_ASSERT(!file->is_over, finished.ticket);  // else drop() has answered it
    finished.wait = context_.fibers.begin_wait();
    if (!context_.fibers.wait(finished.wait, deadline) && !finished.result)
      return fail(Code::kUnavailable, "whether that append is published was not known in time");
  }
  return std::move(*finished.result);
}

Status AppendCoordinator::append_cancel(const Request& request, const proto::AppendCancel& asked) {
  PIF_TRY_VALUE(const ComponentPtr component, context_.published(request, FileId(asked.file())));
  const FilePtr file = find(component->file);
  if (file == nullptr || !file->sequencer.knows(asked.ticket(), asked.generation())) return {};
  file->sequencer.give_up(asked.ticket());
  grants_.notify();
  return {};
}

void AppendCoordinator::drop_peer(net::PeerId peer) {
  for (auto& [id, file] : files_) file->sequencer.give_up_owner(peer);
  grants_.notify();
}

void AppendCoordinator::watch() {
  for (;;) {
    watched_until_ = kNever;
    for (auto& [id, file] : files_) {
      const auto cancelled = file->sequencer.expire(context_.now());
      cancel(*file, cancelled, {Code::kRetry, "the reserved range was cancelled: reserve again", {}});
      PIF_ASSERT(file->sequencer.next_deadline() > context_.now(), id);
      watched_until_ = std::min(watched_until_, file->sequencer.next_deadline());
    }
    grants_.wait(watched_until_);
  }
}

void AppendCoordinator::cancel(File& file, const std::vector<std::uint64_t>& tickets, const Error& why) {
  for (const auto ticket : tickets) {
    const auto at = file.waiting.find(ticket);
    if (at == file.waiting.end()) continue;
    for (Finished* const finished : at->second) answer(*finished, fail(why));
    file.waiting.erase(at);
  }
  if (!tickets.empty()) look_again(file);
}

void AppendCoordinator::drop(File& file, const Error& why) {
  if (file.is_over) return;
  const FilePtr self = find(file.component->file);
  PIF_ASSERT(self.get() == &file, file.component->file.value);
  for (const auto& [ticket, waiting] : std::exchange(file.waiting, {}))
    for (Finished* const finished : waiting) answer(*finished, fail(why));
  answer_unsettled(file, why);
  PIF_ASSERT(file.waiting.empty() && file.unsettled.empty(), file.component->file.value);
  file.is_over = true;
  files_.erase(file.component->file.value);
  look_again(file);
}

// ---- who serves a file ---------------------------------------------------------------------------------------------

void AppendCoordinator::serve(const FilePtr& file, std::uint64_t period) {
  while (is_current(*file, period)) {
    context_.fibers.settle();  // what is finished in one turn is published together
    if (!is_current(*file, period)) return;
    const Time now = context_.now();
    const bool has_ended = file->component->is_removed() || file->component->failure;
    if (has_ended || (file->is_quiet() && now - file->used >= kForget))
      return drop(*file, {Code::kRetry, "the sequencer is starting over", {}});
    const bool may_publish = file->publishing == Publishing::kNothing && now >= file->note_again;
    if (may_settle(*file) && (file->wants_to_settle() || file->is_settle_asked))
      settle(file, period);
    else if (may_publish && file->sequencer.to_publish())
      publish(file, period);
    else if (now >= file->tell_at)
      tell(file, period);
    else
      wait_for_work(*file);
  }
}

void AppendCoordinator::wait_for_work(File& file) {
  Time until = file.is_quiet() ? file.used + kForget : file.tell_at;
  const bool wants = file.sequencer.to_publish() || file.wants_to_settle() || file.is_settle_asked;
  if (wants && file.is_acting && file.publishing == Publishing::kNothing) until = std::min(until, file.note_again);
  PIF_ASSERT(until > context_.now(), file.component->file.value);  // else there is work
  file.wait = context_.fibers.begin_wait();
  file.component->changed.add(file.wait);  // it may be removed
  context_.fibers.wait(file.wait, until);
  file.component->changed.remove(file.wait);
}

// The deputy notes it first: then what is shown here is never longer than what it keeps.
void AppendCoordinator::publish(const FilePtr& file, std::uint64_t period) {
  File& f = *file;
  PIF_ASSERT(f.publishing == Publishing::kNothing, f.component->file.value);
  PIF_ASSERT(f.is_settled && f.is_acting, f.component->file.value);  // else nothing is under way
  const Publication publication = *f.sequencer.to_publish();
  f.sent = publication;
  if (has_deputy(f) && !note(file, period, publication)) return;
  PIF_ASSERT(is_current(f, period), f.component->file.value);
  f.publishing = Publishing::kCommitting;
  const auto change = [p = publication, is_deputy = f.is_deputy()](proto::ComponentState& state) {
    set_published(state, p);
    if (!is_deputy) return;
    set_noted(state, p);
    state.set_noted_generation(std::max(state.noted_generation(), p.generation));
  };
  const Status committed = context_.batch.commit(f.component, change);
  if (!committed) return drop(f, committed.error());
  if (!f.is_over) published(f, period, publication);
}

bool AppendCoordinator::note(const FilePtr& file, std::uint64_t period, const Publication& publication) {
  File& f = *file;
  f.publishing = Publishing::kNoting;
  f.tell_at = kNever;
  const auto noted = noting_.send(f.component, f.sequencer.generation(), publication);
  if (!is_current(f, period)) return false;  // who settles meanwhile finds out what became of it
  PIF_ASSERT(f.publishing == Publishing::kNoting, f.component->file.value);
  if (noted) return true;
  f.publishing = Publishing::kNothing;
  f.note_again = context_.now() + kNoteAgain;
  spdlog::warn("file {}: an append waits for the deputy: {}", f.component->file.value, noted.error().text);
  // Others go by a newer view: perhaps this LFS is absent in it. Nothing is published any more.
  if (noted.error().code == Code::kOldView) begin_period(f);
  return false;
}

// The publication is durable here, and shown.
void AppendCoordinator::published(File& file, std::uint64_t period, const Publication& publication) {
  PIF_ASSERT(file.publishing == Publishing::kCommitting, file.component->file.value);
  file.publishing = Publishing::kNothing;
  file.sent.reset();
  file.is_told = file.is_deputy() || !file.has_parity();
  file.used = context_.now();
  if (file.period != period) {  // a view came meanwhile: all that was under way is cancelled but this
    if (!file.is_acting) return end_acting(file);
    return look_again(file);
  }
  PIF_ASSERT(file.is_settled, file.component->file.value);
  if (has_deputy(file)) file.tell_at = context_.now() + kTellAfter;
  for (const auto ticket : file.sequencer.publish(publication)) {
    const auto at = file.waiting.find(ticket);
    if (at == file.waiting.end()) continue;
    for (Finished* const finished : at->second) answer(*finished, {});
    file.waiting.erase(at);
  }
}

// Without a note: what is published here.
void AppendCoordinator::tell(const FilePtr& file, std::uint64_t period) {
  File& f = *file;
  PIF_ASSERT(f.tell_at != kNever, f.component->file.value);
  f.tell_at = kNever;
  if (!f.is_acting || !f.is_settled || !has_deputy(f)) return;  // who settles tells
  const auto noted = noting_.send(f.component, f.sequencer.generation(), std::nullopt);
  if (!is_current(f, period)) return;  // who settles tells
  f.is_told = f.is_told || noted.has_value();
  if (!noted && access::is_lost(noted.error().code)) f.tell_at = context_.now() + kNoteAgain;
}

}  // namespace pif::lfs
