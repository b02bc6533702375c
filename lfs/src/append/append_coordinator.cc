// The sequencer of a file as LFS 0 of it runs it; the decisions are Sequencer's.
#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "append/appending.h"
#include "append/empty_component.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);  // for a grant
constexpr Duration kForget = std::chrono::seconds(60);   // a sequencer that nobody uses
constexpr std::size_t kWaitingMax = 16;                  // repeated AppendDone of one ticket
constexpr std::size_t kUnsettledMax = 1024;              // AppendDone that wait for the deputy
constexpr Duration kNoteAgain = std::chrono::milliseconds(200);

// Of a file that has no component at its LFS 0.
Result<FileLength> length_without_component(const proto::Reserve& asked) {
  PIF_TRY_VALUE(const component::Shape shape, shape_of(asked.shape()));
  PIF_TRY_VALUE(const parity::Layout layout, layout_of(asked.shape().layout()));
  const FileLength known = file_length_of(asked.known());
  if (shape.form == 0 || layout.rows(0, known.records) > 0) return FileLength();
  if (shape.format.is_fixed() && !is_fixed_file_length(shape.format.record_length, known))
    return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes, as `known` says",
                                            known.records, shape.format.record_length, known.bytes));
  return known;
}

void set_published(proto::ComponentState& state, const Sequencer::Publication& publication) {
  *state.mutable_published() = wire::proto_of(publication.file_length);
  state.set_published_ticket(publication.ticket);
  state.set_published_generation(publication.generation);
}

Sequencer::Publication publication_of(const proto::NotedLength& noted) {
  return {file_length_of(noted.file_length()), noted.ticket(), noted.generation()};
}

bool is_longer(const FileLength& a, const FileLength& b) { return a.records > b.records || a.bytes > b.bytes; }

}  // namespace

AppendCoordinator::AppendCoordinator(LfsContext& context, Peers& peers) : context_(context), noting_(context, peers) {
  context.operations.bind<&AppendCoordinator::reserve>(*this);
  context.operations.bind<&AppendCoordinator::append_done>(*this);
  context.operations.bind<&AppendCoordinator::append_cancel>(*this);
}

// A file may have no component at its LFS 0: an empty one, or one with parity whose first rows are all elsewhere. The
// first reservation makes it; of the latter the length is the directory's, which the client knows.
Result<ComponentPtr> AppendCoordinator::component_of(const Request& request) {
  const auto& asked = request.envelope().reserve();
  const FileId file(asked.file());
  auto found = context_.published(request, file);
  if (found || found.error().code != Code::kNotFound || !asked.has_shape()) return found;
  PIF_TRY_VALUE(const FileLength begun_with, length_without_component(asked));
  PIF_TRY_VALUE(auto made, make_empty(context_, asked.shape(), request.capability.epoch));
  *made->state.mutable_published() = wire::proto_of(begun_with);
  return made;
}

// Above all that were ever given out of this file, by a root that was taken back at an older state, too.
std::uint64_t AppendCoordinator::first_generation(const proto::ComponentState& state) const {
  return std::max(state.grants() + 1, context_.numbers.incarnation() << Sequencer::kIncarnationShift);
}

// A grant of an earlier sequencer of the file: only whether it was the last that was published is known.
Status AppendCoordinator::done_before(const proto::ComponentState& state, const Finished& finished) {
  const bool published =
      finished.generation == state.published_generation() && finished.ticket <= state.published_ticket();
  if (published && finished.ticket != 0) return {};
  return fail(Code::kRetry, "the reserved range was cancelled: the sequencer has started over");
}

AppendCoordinator::File& AppendCoordinator::file_of(const ComponentPtr& component) {
  PIF_ASSERT(component->state.shape().index() == 0, component->file.value);
  auto& slot = files_[component->file.value];
  if (!slot) {
    const auto& state = component->state;
    slot.reset(new File{
        component,
        Sequencer(component->shape.format, file_length_of(state.published()), first_generation(state), kPatience),
        {},
        first_generation(state),
        state.grants(),
        false,
        context_.now()});
    slot->is_settled = !Noting::is_needed(*component);
  }
  slot->used = context_.now();
  return *slot;
}

void AppendCoordinator::reserve(const Request& request, const proto::Reserve& asked) {
  auto component = component_of(request);
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if (auto ok = LfsContext::check_not_older(**component); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  if ((*component)->state.shape().index() != 0)
    return context_.replies.answer(request, fail(Code::kInvalid, "appends are reserved at LFS 0 of the file"));
  if (const auto& published = (*component)->state.published(); published.records() < asked.known().records())
    return context_.replies.answer(
        request, fail(Code::kStaleNode, fmt::format("file {} has {} records here, and the directory knows of {}: "
                                                    "this LFS has lost appends",
                                                    asked.file(), published.records(), asked.known().records())));
  File& file = file_of(*component);
  if (auto ready = check_ready(file); !ready) return context_.replies.answer(request, fail(std::move(ready.error())));
  const auto grant = file.sequencer.reserve(asked.records(), asked.bytes(), asked.fill(), context_.now(), request.peer);
  if (!grant) return context_.replies.answer(request, fail(grant.error()));
  PIF_ASSERT(grant->generation >= file.first_generation, grant->generation, file.first_generation);
  const auto token = context_.replies.defer(request);
  if (file.durable_generation == grant->generation) return this->grant((*component)->file.value, *grant, token);
  // A generation is durable before anybody gets a range of it, so that no later one is taken for it.
  // So is the length it starts from, which may be done but not published yet.
  const auto change = [g = grant->generation, p = file.sequencer.to_publish()](proto::ComponentState& state) {
    state.set_grants(std::max(state.grants(), g));
    if (!p) return;
    set_published(state, *p);
  };
  context_.batch.update(*component, change,
                        [this, id = (*component)->file.value, g = *grant, token](const Status& status) {
                          if (!status) {
                            drop(id, status.error());
                            return context_.replies.answer(token, status);
                          }
                          if (const auto at = files_.find(id); at != files_.end())
                            at->second->durable_generation = std::max(at->second->durable_generation, g.generation);
                          this->grant(id, g, token);
                        });
}

void AppendCoordinator::grant(std::uint64_t id, const Sequencer::Grant& grant, ReplyToken token) {
  const auto at = files_.find(id);
  if (at == files_.end())
    return context_.replies.answer(token, Status(fail(Code::kRetry, "the sequencer is starting over")));
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

void AppendCoordinator::append_done(const Request& request, const proto::AppendDone& asked) {
  auto component = context_.published(request, FileId(asked.file()));
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if ((*component)->state.shape().index() != 0)
    return context_.replies.answer(request, fail(Code::kInvalid, "appends are finished at LFS 0 of the file"));
  File& file = file_of(*component);
  const Finished finished{context_.replies.defer(request), asked.ticket(), asked.generation()};
  if (file.is_settled) return finish(file, finished);
  if (file.unsettled.size() >= kUnsettledMax)
    return context_.replies.answer(finished.token, fail(Code::kBusy, "too many appends wait for their sequencer"));
  file.unsettled.push_back(finished);
  settle(file);
}

void AppendCoordinator::finish(File& file, const Finished& finished) {
  PIF_ASSERT(file.is_settled, file.component->file.value);
  if (finished.generation < file.first_generation)
    return context_.replies.answer(finished.token, done_before(file.component->state, finished));
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
  const auto at = files_.find(asked.file());
  if (at != files_.end() && asked.generation() >= at->second->first_generation)
    at->second->sequencer.give_up(asked.ticket());
  context_.replies.answer(context_.replies.defer(request), Status());
}

void AppendCoordinator::drop_peer(net::PeerId peer) {
  for (auto& [id, file] : files_) file->sequencer.give_up_owner(peer);
}

void AppendCoordinator::advance() {
  const Time now = context_.now();
  std::vector<std::uint64_t> over;
  for (auto& [id, file] : files_) {
    if (file->component->is_removed() || file->component->failure) {
      over.push_back(id);
      continue;
    }
    if (!file->is_settled && !file->unsettled.empty()) settle(*file);
    if (!file->publishing && now >= file->note_again) publish(*file);
    cancel(*file, file->sequencer.expire(now), {Code::kRetry, "the reserved range was cancelled: reserve again", {}});
    if (file->sequencer.idle() && !file->publishing && !file->is_settling && file->unsettled.empty() &&
        now - file->used > kForget)
      over.push_back(id);
  }
  for (const auto id : over) drop(id, {Code::kRetry, "the sequencer is starting over", {}});
}

void AppendCoordinator::publish(File& file) {
  PIF_ASSERT(!file.publishing, file.component->file.value);
  const auto publication = file.sequencer.to_publish();
  if (!publication) return;
  file.publishing = true;
  if (!Noting::is_needed(*file.component)) return commit(file, *publication);
  // The deputy first: then what is shown here is never longer than what it keeps.
  noting_.send(*file.component, file.sequencer.generation(), publication,
               [this, id = file.component->file.value, p = *publication](const Result<proto::NotedLength>& noted) {
                 const auto at = files_.find(id);
                 if (at == files_.end()) return;
                 if (noted) return commit(*at->second, p);
                 at->second->publishing = false;
                 at->second->note_again = context_.now() + kNoteAgain;
                 spdlog::warn("file {}: an append waits for the deputy: {}", id, noted.error().text);
               });
}

// The publication becomes durable here, and is shown.
void AppendCoordinator::commit(File& file, const Sequencer::Publication& publication) {
  PIF_ASSERT(file.publishing, file.component->file.value);
  const auto change = [p = publication](proto::ComponentState& state) { set_published(state, p); };
  context_.batch.update(file.component, change,
                        [this, id = file.component->file.value, p = publication](const Status& status) {
                          const auto at = files_.find(id);
                          if (at == files_.end()) return;
                          File& f = *at->second;
                          PIF_ASSERT(f.publishing && f.is_settled, id);
                          f.publishing = false;
                          if (!status) return drop(id, status.error());
                          for (const auto ticket : f.sequencer.publish(p)) {
                            const auto waiting = f.waiting.find(ticket);
                            if (waiting == f.waiting.end()) continue;
                            for (const auto token : waiting->second) context_.replies.answer(token, Status());
                            f.waiting.erase(waiting);
                          }
                          f.used = context_.now();
                        });
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
  for (const Finished& finished : at->second->unsettled) context_.replies.answer(finished.token, Status(fail(why)));
  files_.erase(at);
}

Time AppendCoordinator::next_deadline() const {
  Time out = kNever;
  for (const auto& [id, file] : files_) {
    out = std::min(out, file->sequencer.next_deadline());
    const bool waits = !file->unsettled.empty() || (!file->publishing && file->sequencer.to_publish());
    if (waits && !file->is_settling) out = std::min(out, file->note_again);
  }
  return out;
}

// ---- settling ------------------------------------------------------------------------------------------------------

// Whether a range may be given out. kRetry: not yet.
Status AppendCoordinator::check_ready(File& file) {
  if (!file.is_settled) {
    settle(file);
    return fail(Code::kRetry, file.trouble.empty() ? "the sequencer asks its deputy for the length" : file.trouble);
  }
  const bool begins = file.durable_generation != file.sequencer.generation();
  if (Noting::is_needed(*file.component) && begins && file.sequencer.to_publish())
    return fail(Code::kRetry, "what was appended before is being published");
  return {};
}

// A sequencer that begins goes by the longer of its own length and the deputy's: what the deputy was told of may have
// been shown, or will be. From then on the deputy takes no notes of earlier ones.
void AppendCoordinator::settle(File& file) {
  if (file.is_settled || file.is_settling || context_.now() < file.note_again) return;
  file.is_settling = true;
  noting_.send(*file.component, file.sequencer.generation(), std::nullopt,
               [this, id = file.component->file.value](const Result<proto::NotedLength>& noted) {
                 const auto at = files_.find(id);
                 if (at == files_.end()) return;
                 File& f = *at->second;
                 if (noted) return settle_with(f, publication_of(*noted));
                 f.is_settling = false;
                 f.note_again = context_.now() + kNoteAgain;
                 f.trouble =
                     fmt::format("the length of file {} is settled with its deputy first: {}", id, noted.error().text);
               });
}

void AppendCoordinator::settle_with(File& file, const Sequencer::Publication& noted) {
  PIF_ASSERT(file.is_settling && !file.is_settled && file.sequencer.idle(), file.component->file.value);
  if (!is_longer(noted.file_length, file.sequencer.published())) return settled(file);
  const auto change = [noted](proto::ComponentState& state) { set_published(state, noted); };
  context_.batch.update(file.component, change, [this, id = file.component->file.value](const Status& committed) {
    const auto at = files_.find(id);
    if (at == files_.end()) return;
    if (!committed) return drop(id, committed.error());
    File& f = *at->second;
    f.sequencer = Sequencer(f.component->shape.format, file_length_of(f.component->state.published()),
                            f.first_generation, kPatience);
    settled(f);
  });
}

void AppendCoordinator::settled(File& file) {
  PIF_ASSERT(file.is_settling && !file.is_settled && file.sequencer.idle(), file.component->file.value);
  file.is_settling = false;
  file.is_settled = true;
  for (const Finished& finished : std::exchange(file.unsettled, {}))
    if (context_.replies.is_waiting(finished.token)) finish(file, finished);
}

}  // namespace pif::lfs
