// The sequencer of a file as LFS 0 of it runs it; the decisions are Sequencer's.
#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "append/appending.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);  // for a grant
constexpr Duration kForget = std::chrono::seconds(60);   // a sequencer that nobody uses
constexpr std::size_t kWaitingMax = 16;                  // repeated AppendDone of one ticket

void set_published(proto::ComponentState& state, const Sequencer::Publication& publication) {
  *state.mutable_published() = wire::proto_of(publication.file_length);
  state.set_published_ticket(publication.ticket);
  state.set_published_generation(publication.generation);
}

}  // namespace

AppendCoordinator::AppendCoordinator(LfsContext& context) : context_(context) {
  context.operations.bind<&AppendCoordinator::reserve>(*this);
  context.operations.bind<&AppendCoordinator::append_done>(*this);
  context.operations.bind<&AppendCoordinator::append_cancel>(*this);
}

// An empty file has no component at its LFS 0: the first reservation makes it.
Result<ComponentPtr> AppendCoordinator::component_of(const Request& request) {
  const auto& asked = request.envelope().reserve();
  const FileId file(asked.file());
  auto found = context_.published(request, file);
  if (found || found.error().code != Code::kNotFound || !asked.has_shape()) return found;
  PIF_TRY(context_.check_shape(asked.shape(), file));
  PIF_TRY(context_.check_space(0));
  PIF_TRY_VALUE(auto made, context_.components.create(asked.shape(), request.capability.epoch, context_.now()));
  // Durable before the catalogue names it; so little that it is done here.
  auto synced = component::sync(*made->files).and_then([&] {
    return context_.world.storage.sync_folder(context_.components.folder(file));
  });
  if (!synced) {
    context_.components.set_failed(*made, synced.error());
    return fail(std::move(synced.error()));
  }
  made->state.set_state(kCommitted);
  made->make_by_append();
  made->enter(Stage::kResting);
  return made;
}

// Above all that were ever given out of this file, by a root that was taken back at an older state, too.
std::uint64_t AppendCoordinator::first_generation(const proto::ComponentState& state) const {
  return std::max(state.grants() + 1, context_.numbers.incarnation() << Sequencer::kIncarnationShift);
}

// A grant of an earlier sequencer of the file: only whether it was the last that was published is known.
Status AppendCoordinator::done_before(const proto::ComponentState& state, const proto::AppendDone& asked) {
  const bool published =
      asked.generation() == state.published_generation() && asked.ticket() <= state.published_ticket();
  if (published && asked.ticket() != 0) return {};
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
  }
  slot->used = context_.now();
  return *slot;
}

void AppendCoordinator::reserve(const Request& request, const proto::Reserve& asked) {
  auto component = component_of(request);
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if ((*component)->state.shape().index() != 0)
    return context_.replies.answer(request, fail(Code::kInvalid, "appends are reserved at LFS 0 of the file"));
  if (const auto& published = (*component)->state.published(); published.records() < asked.known().records())
    return context_.replies.answer(
        request, fail(Code::kStaleNode, fmt::format("file {} has {} records here, and the directory knows of {}: "
                                                    "this LFS has lost appends",
                                                    asked.file(), published.records(), asked.known().records())));
  File& file = file_of(*component);
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
  if (asked.generation() < file.first_generation)
    return context_.replies.answer(context_.replies.defer(request), done_before((*component)->state, asked));
  const auto outcome = file.sequencer.done(asked.ticket());
  if (!outcome) return context_.replies.answer(request, fail(outcome.error()));
  if (*outcome == Sequencer::Outcome::kPublished)
    return context_.replies.answer(context_.replies.defer(request), Status());
  auto& waiting = file.waiting[asked.ticket()];
  if (waiting.size() >= kWaitingMax)
    return context_.replies.answer(
        request, fail(Code::kBusy, fmt::format("{} wait for the end of this append already", kWaitingMax)));
  PIF_ASSERT(*outcome == Sequencer::Outcome::kWait, asked.ticket());
  waiting.push_back(context_.replies.defer(request));
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
    if (!file->publishing) publish(*file);
    cancel(*file, file->sequencer.expire(now), {Code::kRetry, "the reserved range was cancelled: reserve again", {}});
    if (file->sequencer.idle() && !file->publishing && now - file->used > kForget) over.push_back(id);
  }
  for (const auto id : over) drop(id, {Code::kRetry, "the sequencer is starting over", {}});
}

void AppendCoordinator::publish(File& file) {
  PIF_ASSERT(!file.publishing, file.component->file.value);
  const auto publication = file.sequencer.to_publish();
  if (!publication) return;
  file.publishing = true;
  const auto change = [p = *publication](proto::ComponentState& state) { set_published(state, p); };
  context_.batch.update(file.component, change,
                        [this, id = file.component->file.value, p = *publication](const Status& status) {
                          const auto at = files_.find(id);
                          if (at == files_.end()) return;
                          File& f = *at->second;
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
  files_.erase(at);
}

Time AppendCoordinator::next_deadline() const {
  Time out = kNever;
  for (const auto& [id, file] : files_) out = std::min(out, file->sequencer.next_deadline());
  return out;
}

}  // namespace pif::lfs
