#include "requests/reading.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/print.h"
#include "requests/row_reader.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kColdMax = 8192;  // reads that wait for the disk; each has a stack
constexpr unsigned kColdAtOnce = 4;     // of them under way: the executor's other threads are for syncs
constexpr unsigned kColdTriesMax = 3;   // away from the loop, while others change the component
constexpr unsigned kCopiesAtOnce = 2;

// Appenders' keepers of parity see by it whether the rows are those that they know of.
void add_generation(Result<net::Packet>& result, const Component& component) {
  if (result && result->envelope.has_read_reply())
    result->envelope.mutable_read_reply()->set_generation(component.state.generation());
}

void log_damage(const Result<net::Packet>& result) {
  if (!result && result.error().code == Code::kCorrupt) spdlog::error("{}", result.error().text);
}

// Rows of a file with parity: those who read turn to who keeps their parity while this LFS is absent, and until it is a
// member again. A daemon that keeps parity reads what is here.
Status check_gives(const LfsContext& context, const Request& request, const Component& component) {
  const auto& shape = component.state.shape();
  PIF_TRY(context.check_present(shape));
  const bool is_returning = keeps_parity(shape) && context.view.state_of(context.config.node) == wire::kViewReturning;
  if (!is_returning || (request.capability.rights & kMayManage) != 0) return {};
  return fail(Code::kUnavailable,
              fmt::format("{} returns, and is no member yet: other LFSs answer for it", context.config.name));
}

std::uint64_t bytes_sent(const Result<net::Packet>& result) { return result ? result->body.size() : 0; }

// Of what was scanned: what is charged beside the reply's body.
std::uint64_t unsent(std::uint64_t scanned, const Result<net::Packet>& result) {
  return scanned - std::min(scanned, bytes_sent(result));
}

bool waits_for_copy(const Component& component) {
  return component.lacks_copy() && !component.is_removed() && !component.failure;
}

}  // namespace

Reading::Reading(LfsContext& context) : context_(context), copies_(context.fibers, kCopiesAtOnce) {
  context_.operations.bind<&Reading::read>(*this);
  context_.operations.bind<&Reading::read_bytes>(*this);
  context_.operations.bind<&Reading::offsets>(*this);
}

Result<net::Packet> Reading::read(const Request& request, const proto::Read&) { return serve(request); }
Result<net::Packet> Reading::read_bytes(const Request& request, const proto::ReadBytes&) { return serve(request); }
Result<net::Packet> Reading::offsets(const Request& request, const proto::Offsets&) { return serve(request); }
Result<net::Packet> Reading::read_pieces(const Request& request, const proto::ReadPieces&) { return serve(request); }

Result<net::Packet> Reading::serve(const Request& request) {
  PIF_TRY_VALUE(const ComponentPtr component, context_.published(request, file_of_read(request.envelope())));
  PIF_TRY(check_gives(context_, request, *component));
  if (component->lacks_copy()) return read_cold(request, component);
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kRead));
  const auto bytes_max = LfsContext::body_bytes_max(request);
  const auto reader = component->reader->cached();
  std::uint64_t scanned = 0;
  auto result =
      answer_read(request.envelope(), {component->shape, reader, bytes_max, request.packet.body.span(), &scanned});
  context_.turns.charge(request.peer, unsent(scanned, result));
  if (!result && result.error().code == Code::kBusy) return read_cold(request, component);
  log_damage(result);
  add_generation(result, *component);
  return result;
}

// ---- what the disk has to be waited for ----------------------------------------------------------------------------

// If the component was changed while it was read, it is read again; after some tries by the loop itself, which makes
// all changes.
Result<net::Packet> Reading::read_cold(const Request& request, const ComponentPtr& component) {
  PIF_ASSERT(context_.fibers.in_fiber() && component != nullptr);
  for (unsigned tries = 0; tries < kColdTriesMax; ++tries) {
    PIF_TRY_VALUE(auto reply, try_cold(request, component));
    if (reply) return std::move(*reply);
  }
  const auto bytes_max = LfsContext::body_bytes_max(request);
  auto result =
      answer_read(request.envelope(), {component->shape, *component->reader, bytes_max, request.packet.body.span()});
  log_damage(result);
  add_generation(result, *component);
  return result;
}

Result<std::optional<net::Packet>> Reading::try_cold(const Request& request, const ComponentPtr& component) {
  PIF_TRY(wait_for_copy(component));
  PIF_TRY(wait_for_turn(request.peer));
  const Turn turn(*this);
  if (context_.now() >= request.deadline) return fail(Code::kTimeout, "the disk is busy with others' reads");
  if (waits_for_copy(*component)) return std::optional<net::Packet>();  // closed meanwhile
  PIF_TRY(make_readable(*component));
  PIF_ASSERT(component->reader && component->files, component->file.value);
  // The work has the files and their lengths for itself: the component may be changed, closed and removed meanwhile.
  const auto files = component->files;
  const component::Reader reader = *component->reader;
  const std::uint64_t changes = component->changes;
  const auto bytes_max = LfsContext::body_bytes_max(request);
  std::uint64_t scanned = 0;
  auto result = context_.disk([&] {
    return answer_read(request.envelope(), {component->shape, reader, bytes_max, request.packet.body.span(), &scanned});
  });
  cold_.charge(request.peer, std::max(scanned, bytes_sent(result)));
  PIF_TRY(make_readable(*component));
  PIF_ASSERT(component->changes >= changes, component->changes, changes);
  // A change in the middle may show in one half of a record and not in the other, or as a sum that does not hold.
  if (component->changes != changes) return std::optional<net::Packet>();
  log_damage(result);
  add_generation(result, *component);
  PIF_TRY_VALUE(net::Packet reply, std::move(result));
  return std::optional(std::move(reply));
}

Status Reading::make_readable(Component& component) {
  PIF_TRY(check_there(component));
  if (component.older) return {};  // what was read of a dense copy that is closed now is as good
  return context_.components.open_files(component, component::OpenMode::kRead);
}

Status Reading::wait_for_turn(net::PeerId peer) {
  if (cold_.size() >= kColdMax) return fail(Code::kRetry, fmt::format("{} reads wait for the disk here", kColdMax));
  const auto id = context_.fibers.begin_wait();
  cold_.push(peer, id);
  begin_turns();
  if (context_.fibers.wait(id)) return {};
  return fail(Code::kCancelled, "the connection was closed");
}

void Reading::begin_turns() {
  while (cold_under_way_ < kColdAtOnce && !cold_.empty()) {
    ++cold_under_way_;
    PIF_ASSERT(cold_under_way_ <= kColdAtOnce, cold_under_way_);
    context_.fibers.wake(cold_.pop()->item);
  }
}

void Reading::end_turn() {
  PIF_ASSERT(cold_under_way_ > 0);
  --cold_under_way_;
  begin_turns();
  if (cold_.empty() && cold_under_way_ == 0) cold_.forgive();
}

void Reading::drop_peer(net::PeerId peer) {
  for (const auto id : cold_.drop(peer)) context_.fibers.cancel(id);
}

// ---- dense copies of older components ------------------------------------------------------------------------------

Status Reading::wait_for_copy(const ComponentPtr& component) {
  while (waits_for_copy(*component)) {
    const auto under_way = copying_.find(component->file.value);
    if (under_way == copying_.end()) {
      PIF_TRY(make_copy(component));
      continue;
    }
    const auto copying = under_way->second;
    copying->ended.wait();
    PIF_TRY(copying->result);
  }
  return check_there(*component);
}

// Nobody changes an older component, but it may be removed meanwhile.
Status Reading::make_copy(const ComponentPtr& component) {
  const auto copying = std::make_shared<Copying>(Copying{daemon::Event(context_.fibers)});
  const bool is_first = copying_.emplace(component->file.value, copying).second;
  PIF_ASSERT(component->older && is_first, component->file.value);
  const daemon::AtExit end([&] {
    copying_.erase(component->file.value);
    copying->ended.notify();
  });
  const auto slot = copies_.acquire();
  PIF_TRY(copying->result = check_room(*component));
  const std::uint64_t number = ++copies_begun_;
  auto copy = context_.disk([&, state = component->state] {
    return make_dense_copy(context_.world.storage, context_.components.root(), state, number);
  });
  PIF_TRY(copying->result = check_there(*component));
  if (copy) {
    context_.components.adopt_copy(*component, std::move(*copy));
    return {};
  }
  spdlog::error("file {} could not be made ready to be read: {}", name_of(component->file), copy.error().text);
  copying->result = fail(copy.error());
  return copying->result;
}

Status Reading::check_room(const Component& component) {
  const auto bytes = dense_copy_bytes(component.state);
  auto room = context_.check_space(bytes);
  if (room || room.error().code != Code::kNoSpace) return room;
  return fail(Code::kNoSpace, fmt::format("file {} was made before parity was kept: to be read it needs room for a "
                                          "copy of {} here, and {}",
                                          name_of(component.file), human_bytes(bytes), room.error().text));
}

// ---- descriptors ---------------------------------------------------------------------------------------------------

Result<net::Packet> Reading::attach(const Request& request) {
  const FileId file(request.envelope().attach().file());
  PIF_TRY_VALUE(const ComponentPtr component, context_.published(request, file));
  PIF_TRY(check_gives(context_, request, *component));
  if (context_.input_locks.is_worker(request.peer)) PIF_TRY(lock_input(request, component));
  PIF_TRY(wait_for_copy(component));
  return descriptors(*component);
}

// Behind all changes that came before. Those that come from now on are refused.
Status Reading::lock_input(const Request& request, const ComponentPtr& component) {
  if (context_.input_locks.has(request.peer, component->file)) return {};
  PIF_TRY_VALUE(auto held, lock_component(context_.fibers, *component, Mode::kInput, request.deadline));
  const bool is_there = context_.input_locks.is_worker(request.peer);  // else nobody waits for the answer
  if (is_there) context_.input_locks.keep(request.peer, {component, std::move(held)});
  return {};
}

Result<net::Packet> Reading::descriptors(Component& component) {
  net::Packet reply;
  *reply.envelope.mutable_attach_reply()->mutable_state() = component.shown();
  if (component.mode == component::OpenMode::kRead || !component.mode) {
    PIF_TRY(context_.components.open_files(component, component::OpenMode::kRead));
    PIF_TRY_VALUE(reply.handles, component::share(*component.files));
    return reply;
  }
  // Ours can write: others get descriptors that cannot.
  PIF_TRY_VALUE(auto files, component::open_files(context_.world.storage, context_.components.stem(component.file),
                                                  component.shape.format, component::OpenMode::kRead));
  PIF_TRY_VALUE(reply.handles, component::share(files));
  return reply;
}

}  // namespace pif::lfs
