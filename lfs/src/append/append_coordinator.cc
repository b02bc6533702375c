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

AppendCoordinator::AppendCoordinator(LfsContext& context, Peers& peers) : context_(context), noting_(context, peers) {
  context.operations.bind<&AppendCoordinator::reserve>(*this);
  context.operations.bind<&AppendCoordinator::append_done>(*this);
  context.operations.bind<&AppendCoordinator::append_cancel>(*this);
  context.view_watchers.emplace_back([this] { adopt_view(); });
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

// A deputy may keep less than the directory knows: of a file that nobody appended to it was told nothing.
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

AppendCoordinator::File* AppendCoordinator::find(FileId file) const {
  const auto at = files_.find(file.value);
  return at == files_.end() ? nullptr : at->second.get();
}

AppendCoordinator::File* AppendCoordinator::find(std::uint64_t id, std::uint64_t number) const {
  File* const file = find(FileId(id));
  return file != nullptr && file->number == number ? file : nullptr;
}

AppendCoordinator::File* AppendCoordinator::find_in_period(std::uint64_t id, std::uint64_t period) const {
  File* const file = find(FileId(id));
  return file != nullptr && file->period == period ? file : nullptr;
}

bool AppendCoordinator::is_publishing(FileId file) const {
  const File* const found = find(file);
  return found != nullptr && (found->publishing != Publishing::kNothing || found->sent);
}

bool AppendCoordinator::is_at_rest(FileId file) const {
  const File* const found = find(file);
  return found == nullptr || (found->is_acting && !found->is_settling && found->sequencer.idle() && !found->sent &&
                              found->publishing == Publishing::kNothing && found->unsettled.empty());
}

AppendCoordinator::File& AppendCoordinator::make_file(const ComponentPtr& component, const Publication& start) {
  const auto& state = component->state;
  auto& slot = files_[component->file.value];
  PIF_ASSERT(!slot, component->file.value);
  slot.reset(new File{component,
                      Sequencer(component->shape.format, start.file_length, first_generation(state), kPatience),
                      {},
                      first_generation(state),
                      state.grants(),
                      context_.now()});
  slot->number = slot->period = ++last_period_;
  slot->start = start;
  slot->is_settled = !slot->has_parity();
  PIF_ASSERT(slot->sequencer.generation() > state.grants(), slot->sequencer.generation(), state.grants());
  return *slot;
}

// ---- reserving -----------------------------------------------------------------------------------------------------

Result<AppendCoordinator::File*> AppendCoordinator::ready_file(const Request& request, const proto::Reserve& asked) {
  PIF_TRY_VALUE(const auto component, component_of(request));
  PIF_TRY(LfsContext::check_not_older(*component));
  const FileLength known = file_length_of(asked.known());
  File* file = find(component->file);
  if (file == nullptr || !file->is_deputy()) {
    PIF_TRY_VALUE(const Publication start, start_of(*component, known));
    if (file == nullptr) file = &make_file(component, start);
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
  settle(file);
  if (!file.is_settled)
    return fail(file.trouble.value_or(Error{Code::kRetry, "the sequencer asks its deputy for the length", {}}));
  const bool begins = file.durable_generation != file.sequencer.generation();
  if (file.has_parity() && begins && file.sequencer.to_publish())
    return fail(Code::kRetry, "what was appended before is being published");
  return {};
}

void AppendCoordinator::reserve(const Request& request, const proto::Reserve& asked) {
  const auto ready = ready_file(request, asked);
  if (!ready) return context_.replies.answer(request, fail(ready.error()));
  File& file = **ready;
  const auto grant = file.sequencer.reserve(asked.records(), asked.bytes(), asked.fill(), context_.now(), request.peer);
  if (!grant) return context_.replies.answer(request, fail(grant.error()));
  PIF_ASSERT(grant->generation >= file.first_generation, grant->generation, file.first_generation);
  PIF_ASSERT(file.is_acting && file.is_settled, file.component->file.value);
  give_out(file, *grant, context_.replies.defer(request));
}

// A generation is durable before anybody gets a range of it, so that no later one is taken for it.
// So is the length it starts from, which may be done but not published yet. A deputy is bound by it like by a note.
void AppendCoordinator::give_out(File& file, const Sequencer::Grant& granted, ReplyToken token) {
  if (file.durable_generation == granted.generation) return grant(file, granted, token);
  const auto change = [g = granted.generation, p = file.sequencer.to_publish(), is_deputy = file.is_deputy(),
                       start = file.start](proto::ComponentState& state) {
    state.set_grants(std::max(state.grants(), g));
    if (p) set_published(state, *p);
    if (!is_deputy) return;
    state.set_noted_generation(std::max(state.noted_generation(), g));
    if (is_longer(start.file_length, file_length_of(state.published()))) set_published(state, start);
    if (is_longer(start.file_length, file_length_of(state.noted().file_length()))) set_noted(state, start);
  };
  const auto done = [this, id = file.component->file.value, number = file.number, period = file.period, g = granted,
                     token](const Status& status) {
    File* const found = find(id, number);
    if (!status) {
      if (found != nullptr) drop(id, status.error());
      return context_.replies.answer(token, status);
    }
    if (found != nullptr) found->durable_generation = std::max(found->durable_generation, g.generation);
    if (found == nullptr)
      return context_.replies.answer(token, Status(fail(Code::kRetry, "the sequencer is starting over")));
    if (found->period != period) return context_.replies.answer(token, Status(fail(old_view())));
    grant(*found, g, token);
  };
  context_.batch.update(file.component, change, done);
}

void AppendCoordinator::grant(File& file, const Sequencer::Grant& grant, ReplyToken token) {
  PIF_ASSERT(file.durable_generation >= grant.generation, file.durable_generation, grant.generation);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(grant.deadline - context_.now()).count();
  net::Packet packet;
  auto* reply = packet.envelope.mutable_reserve_reply();
  reply->set_ticket(grant.ticket);
  *reply->mutable_start() = wire::proto_of(grant.start);
  *reply->mutable_base() = wire::proto_of(grant.base);
  reply->set_generation(grant.generation);
  reply->set_deadline_ms(static_cast<std::uint32_t>(std::max<std::int64_t>(left, 0)));
  context_.replies.answer(token, Result<net::Packet>(std::move(packet)));
}

// ---- finishing -----------------------------------------------------------------------------------------------------

// What a deputy begins with was noted there, and is published now.
WasPublished AppendCoordinator::was_published(const proto::ComponentState& state, const File* file,
                                              const Finished& finished) {
  if (is_in(publication_of(state), finished.ticket, finished.generation)) return WasPublished::kYes;
  if (file != nullptr && is_in(file->start, finished.ticket, finished.generation)) return WasPublished::kYes;
  return lfs::was_published(state.published_tickets(), finished.generation, finished.ticket);
}

void AppendCoordinator::append_done(const Request& request, const proto::AppendDone& asked) {
  auto component = context_.published(request, FileId(asked.file()));
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  const auto& state = (*component)->state;
  Finished finished{0, asked.ticket(), asked.generation()};
  File* file = find((*component)->file);
  // What is published, or may be already, is so whatever view the client goes by.
  const WasPublished known = was_published(state, file, finished);
  if (known == WasPublished::kYes) return context_.replies.answer(context_.replies.defer(request), Status());
  const bool is_sent = file != nullptr && file->sent && is_in(*file->sent, finished.ticket, finished.generation);
  if (!is_sent) {
    auto ok = check_acting(state.shape(), (*component)->layout, asked.view());
    // kRetry would say that the range is cancelled, which is not known here.
    if (!ok && ok.error().code == Code::kRetry) ok = fail(Code::kOldView, std::move(ok.error().text));
    if (!ok) return context_.replies.answer(request, fail(std::move(ok.error())));
  }
  if (file == nullptr && state.shape().index() != 0) {  // not known to be sequenced here since LFS 0 is absent
    const bool is_noted = is_in(publication_of(state.noted()), finished.ticket, finished.generation);
    const Error why = known == WasPublished::kUnknown ? forgotten() : cancelled();
    return context_.replies.answer(context_.replies.defer(request), is_noted ? Status() : Status(fail(why)));
  }
  if (file == nullptr) file = &make_file(*component, publication_of(state));
  file->used = context_.now();
  finished.token = context_.replies.defer(request);
  wait_or_finish(*file, finished);
}

void AppendCoordinator::wait_or_finish(File& file, const Finished& finished) {
  if (file.is_settled) return finish(file, finished);
  if (file.unsettled.size() >= kUnsettledMax)
    return context_.replies.answer(finished.token, fail(Code::kBusy, "too many appends wait for their sequencer"));
  file.unsettled.push_back(finished);
  settle(file);
}

void AppendCoordinator::finish(File& file, const Finished& finished) {
  PIF_ASSERT(file.is_settled, file.component->file.value);
  const WasPublished known = was_published(file.component->state, &file, finished);
  if (known == WasPublished::kYes) return context_.replies.answer(finished.token, Status());
  if (!file.sequencer.knows(finished.ticket, finished.generation)) {
    const Error why = known == WasPublished::kUnknown ? forgotten() : cancelled();
    return context_.replies.answer(finished.token, Status(fail(why)));
  }
  const auto outcome = file.sequencer.done(finished.ticket);
  if (!outcome) return context_.replies.answer(finished.token, fail(outcome.error()));
  if (*outcome == Sequencer::Outcome::kPublished) return context_.replies.answer(finished.token, Status());
  auto& waiting = file.waiting[finished.ticket];
  if (waiting.size() >= kWaitingMax)
    return context_.replies.answer(
        finished.token, fail(Code::kBusy, fmt::format("{} wait for the end of this append already", kWaitingMax)));
  PIF_ASSERT(*outcome == Sequencer::Outcome::kWait, finished.ticket);
  waiting.push_back(finished.token);
}

void AppendCoordinator::append_cancel(const Request& request, const proto::AppendCancel& asked) {
  const auto component = context_.published(request, FileId(asked.file()));
  if (!component) return context_.replies.answer(request, fail(component.error()));
  File* const file = find((*component)->file);
  if (file != nullptr && file->sequencer.knows(asked.ticket(), asked.generation()))
    file->sequencer.give_up(asked.ticket());
  context_.replies.answer(context_.replies.defer(request), Status());
}

void AppendCoordinator::drop_peer(net::PeerId peer) {
  for (auto& [id, file] : files_) file->sequencer.give_up_owner(peer);
}

// ---- once per turn -------------------------------------------------------------------------------------------------

void AppendCoordinator::advance() {
  const Time now = context_.now();
  std::vector<std::uint64_t> over;
  for (auto& [id, file] : files_) {
    if (file->component->is_removed() || file->component->failure) {
      over.push_back(id);
      continue;
    }
    if (file->wants_to_settle()) settle(*file);
    if (file->publishing == Publishing::kNothing && now >= file->note_again) publish(*file);
    if (now >= file->tell_at) tell(*file);
    cancel(*file, file->sequencer.expire(now), {Code::kRetry, "the reserved range was cancelled: reserve again", {}});
    const bool is_quiet = file->sequencer.idle() && file->publishing == Publishing::kNothing && !file->is_settling &&
                          !file->sent && !file->wants_to_settle() && file->tell_at == kNever;
    if (is_quiet && now - file->used >= kForget) over.push_back(id);
  }
  for (const auto id : over) drop(id, {Code::kRetry, "the sequencer is starting over", {}});
}

void AppendCoordinator::publish(File& file) {
  PIF_ASSERT(file.publishing == Publishing::kNothing, file.component->file.value);
  const auto publication = file.sequencer.to_publish();
  if (!publication) return;
  PIF_ASSERT(file.is_settled && file.is_acting, file.component->file.value);  // else nothing is under way
  file.sent = publication;
  if (!has_deputy(file)) return commit(file, *publication);
  file.publishing = Publishing::kNoting;
  file.tell_at = kNever;
  // The deputy first: then what is shown here is never longer than what it keeps.
  noting_.send(*file.component, file.sequencer.generation(), publication,
               [this, id = file.component->file.value, period = file.period,
                p = *publication](const Result<Noting::Noted>& noted) {
                 File* const found = find_in_period(id, period);
                 if (found == nullptr) return;  // who settles meanwhile finds out what became of it
                 PIF_ASSERT(found->publishing == Publishing::kNoting, id);
                 if (noted) return commit(*found, p);
                 found->publishing = Publishing::kNothing;
                 found->note_again = context_.now() + kNoteAgain;
                 spdlog::warn("file {}: an append waits for the deputy: {}", id, noted.error().text);
                 // Others go by a newer view: perhaps this LFS is absent in it. Nothing is published any more.
                 if (noted.error().code == Code::kOldView) begin_period(*found);
               });
}

// Without a note: what is published here.
void AppendCoordinator::tell(File& file) {
  PIF_ASSERT(file.tell_at != kNever, file.component->file.value);
  file.tell_at = kNever;
  if (!file.is_acting || !file.is_settled || !has_deputy(file)) return;  // who settles tells
  noting_.send(*file.component, file.sequencer.generation(), std::nullopt,
               [this, id = file.component->file.value, period = file.period](const Result<Noting::Noted>& noted) {
                 File* const found = find_in_period(id, period);
                 if (found == nullptr) return;                                            // who settles tells
                 found->is_told = found->is_told || (noted && found->tell_at == kNever);  // not what came since
                 if (noted || !access::is_lost(noted.error().code)) return;
                 found->tell_at = std::min(found->tell_at, context_.now() + kNoteAgain);
               });
}

// The publication becomes durable here, and is shown.
void AppendCoordinator::commit(File& file, const Publication& publication) {
  file.publishing = Publishing::kCommitting;
  const auto change = [p = publication, is_deputy = file.is_deputy()](proto::ComponentState& state) {
    set_published(state, p);
    if (!is_deputy) return;
    set_noted(state, p);
    state.set_noted_generation(std::max(state.noted_generation(), p.generation));
  };
  context_.batch.update(file.component, change,
                        [this, id = file.component->file.value, number = file.number, period = file.period,
                         p = publication](const Status& status) {
                          File* const found = find(id, number);
                          if (found == nullptr) return;
                          if (!status) return drop(id, status.error());
                          committed(*found, p, period);
                        });
}

void AppendCoordinator::committed(File& file, const Publication& publication, std::uint64_t period) {
  PIF_ASSERT(file.publishing == Publishing::kCommitting, file.component->file.value);
  file.publishing = Publishing::kNothing;
  file.sent.reset();
  file.is_told = file.is_deputy() || !file.has_parity();
  file.used = context_.now();
  if (file.period != period) {  // a view came meanwhile: all that was under way is cancelled but this
    if (!file.is_acting) end_acting(file);
    return;
  }
  PIF_ASSERT(file.is_settled, file.component->file.value);
  if (has_deputy(file)) file.tell_at = context_.now() + kTellAfter;
  for (const auto ticket : file.sequencer.publish(publication)) {
    const auto waiting = file.waiting.find(ticket);
    if (waiting == file.waiting.end()) continue;
    for (const auto token : waiting->second) context_.replies.answer(token, Status());
    file.waiting.erase(waiting);
  }
}

void AppendCoordinator::cancel(File& file, const std::vector<std::uint64_t>& tickets, const Error& why) {
  for (const auto ticket : tickets) {
    const auto at = file.waiting.find(ticket);
    if (at == file.waiting.end()) continue;
    for (const auto token : at->second) context_.replies.answer(token, Status(fail(why)));
    file.waiting.erase(at);
  }
}

void AppendCoordinator::drop(std::uint64_t id, const Error& why) {
  const auto at = files_.find(id);
  if (at == files_.end()) return;
  for (const auto& [ticket, tokens] : at->second->waiting)
    for (const auto token : tokens) context_.replies.answer(token, Status(fail(why)));
  answer_unsettled(*at->second, why);
  files_.erase(at);
}

Time AppendCoordinator::next_deadline() const {
  Time out = kNever;
  for (const auto& [id, file] : files_) {
    out = std::min({out, file->sequencer.next_deadline(), file->tell_at});
    const bool may_go_on = file->publishing == Publishing::kNothing && !file->is_settling;
    if (may_go_on && (file->wants_to_settle() || file->sequencer.to_publish())) out = std::min(out, file->note_again);
  }
  return out;
}

}  // namespace pif::lfs
