#include "requests/reading.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/print.h"
#include "requests/row_reader.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kColdMax = 65536;  // reads that wait for the disk; each is of a few hundred bytes
constexpr unsigned kColdAtOnce = 4;      // of them under way: the executor's other threads are for syncs
constexpr unsigned kColdTriesMax = 3;    // away from the loop, while others change the component
constexpr std::size_t kCopiesAtOnce = 2;

// Appenders' keepers of parity see by it whether the rows are those that they were told of.
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

// Else it is answered at once, if only with an error.
bool waits_for_copy(const Component& component) {
  return component.lacks_copy() && !component.is_removed() && !component.failure;
}

}  // namespace

Reading::Reading(LfsContext& context) : context_(context) {
  context.operations.bind<&Reading::read>(*this);
  context.operations.bind<&Reading::read_bytes>(*this);
  context.operations.bind<&Reading::offsets>(*this);
}

void Reading::read(const Request& request, const proto::Read&) { start(request); }
void Reading::read_bytes(const Request& request, const proto::ReadBytes&) { start(request); }
void Reading::offsets(const Request& request, const proto::Offsets&) { start(request); }
void Reading::read_pieces(const Request& request, const proto::ReadPieces&) { start(request); }

void Reading::start(const Request& request) {
  auto found = context_.published(request, file_of_read(request.envelope()));
  if (!found) return context_.replies.answer(request, fail(std::move(found.error())));
  if (auto gives = check_gives(context_, request, **found); !gives)
    return context_.replies.answer(request, fail(std::move(gives.error())));
  if ((*found)->lacks_copy()) {
    auto waiting = make_cold(request, std::move(*found));
    if (!waiting) return context_.replies.answer(request, fail(std::move(waiting.error())));
    return uncopied_.push_back(std::move(*waiting));
  }
  if (auto opened = context_.components.open_files(**found, component::OpenMode::kRead); !opened)
    return context_.replies.answer(request, fail(std::move(opened.error())));
  const auto bytes_max = LfsContext::body_bytes_max(request);
  const auto reader = (*found)->reader->cached();
  std::uint64_t scanned = 0;
  auto result =
      answer_read(request.envelope(), {(*found)->shape, reader, bytes_max, request.packet.body.span(), &scanned});
  context_.turns.charge(request.peer, unsent(scanned, result));
  if (result || result.error().code != Code::kBusy) {
    log_damage(result);
    add_generation(result, **found);
    return context_.replies.answer(request, std::move(result));
  }
  auto cold = make_cold(request, std::move(*found));
  if (!cold) return context_.replies.answer(request, fail(std::move(cold.error())));
  cold_.push(request.peer, std::move(*cold));
}

Result<std::shared_ptr<Reading::ColdRead>> Reading::make_cold(const Request& request, ComponentPtr component) {
  if (cold_.size() + uncopied_.size() >= kColdMax)
    return fail(Code::kRetry, fmt::format("{} reads wait for the disk here", kColdMax));
  auto cold = std::make_shared<ColdRead>();
  cold->token = context_.replies.defer(request);
  cold->peer = request.peer;
  cold->component = std::move(component);
  cold->asked = request.envelope();
  cold->body = net::Buffer::copy_of(request.packet.body.span());
  cold->bytes_max = LfsContext::body_bytes_max(request);
  PIF_ASSERT(cold->token != 0, cold_.size());
  return cold;
}

void Reading::begin_cold() {
  while (cold_under_way_ < kColdAtOnce && !cold_.empty()) {
    auto cold = std::move(cold_.pop()->item);
    if (!context_.replies.is_waiting(cold->token)) continue;
    if (waits_for_copy(*cold->component)) {  // closed meanwhile: made again
      uncopied_.push_back(std::move(cold));
    } else if (may_serve(*cold)) {
      submit(std::move(cold));
    }
  }
  if (cold_.empty() && cold_under_way_ == 0) cold_.forgive();
}

// Answers, and says false, if the component has gone meanwhile.
bool Reading::may_serve(const ColdRead& cold) {
  Component& c = *cold.component;
  Status may;
  if (c.is_removed()) {
    may = fail(Code::kStaleFile, "the file was deleted meanwhile");
  } else if (c.failure) {
    may = fail(*c.failure);
  } else if (!c.older) {  // what was read of a dense copy that is closed now is as good
    may = context_.components.open_files(c, component::OpenMode::kRead);
  }
  if (!may) context_.replies.answer(cold.token, may);
  return may.has_value();
}

// The work has the files and their lengths for itself: the component may be changed, closed and removed meanwhile.
void Reading::submit(std::shared_ptr<ColdRead> cold) {
  const Component& c = *cold->component;
  PIF_ASSERT(c.reader && c.files && cold->tries < kColdTriesMax, cold->tries);
  PIF_ASSERT(cold_under_way_ < kColdAtOnce, cold_under_way_);
  ++cold_under_way_;
  ++cold->tries;
  cold->changes = c.changes;
  auto work = [cold, files = c.files, shape = c.shape, reader = *c.reader] {
    cold->result = answer_read(cold->asked, {shape, reader, cold->bytes_max, cold->body.span(), &cold->scanned});
  };
  context_.world.executor.submit(std::move(work), [this, cold] { finish(cold); });
}

void Reading::finish(const std::shared_ptr<ColdRead>& cold) {
  PIF_ASSERT(cold_under_way_ > 0 && cold->result, cold_under_way_);
  --cold_under_way_;
  cold_.charge(cold->peer, std::max(cold->scanned, bytes_sent(*cold->result)));
  if (!may_serve(*cold)) return;
  const Component& c = *cold->component;
  PIF_ASSERT(c.changes >= cold->changes, c.changes, cold->changes);
  // A change in the middle may show in one half of a record and not in the other, or as a sum that does not hold.
  if (c.changes != cold->changes) {
    if (cold->tries < kColdTriesMax) return cold_.push(cold->peer, cold);
    cold->result = answer_read(cold->asked, {c.shape, *c.reader, cold->bytes_max,
                                             cold->body.span()});  // nobody changes it in the middle of this
  }
  log_damage(*cold->result);
  add_generation(*cold->result, c);
  context_.replies.answer(cold->token, std::move(*cold->result));
}

void Reading::attach(const Request& request) {
  auto component = context_.published(request, FileId(request.envelope().attach().file()));
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if (auto gives = check_gives(context_, request, **component); !gives)
    return context_.replies.answer(request, fail(std::move(gives.error())));
  if (!context_.input_locks.is_worker(request.peer) && !(*component)->lacks_copy()) {
    return context_.replies.answer(context_.replies.defer(request), descriptors(**component));
  }
  if (context_.input_locks.is_worker(request.peer)) context_.input_locks.add((*component)->file, request.peer);
  attaching_.push_back({context_.replies.defer(request), std::move(*component)});
}

void Reading::begin_copies() {
  std::vector<ComponentPtr> wanted;
  for (const auto& read : uncopied_) wanted.push_back(read->component);
  for (const Attaching& one : attaching_) wanted.push_back(one.component);
  for (const ComponentPtr& component : wanted) {
    if (copying_.size() >= kCopiesAtOnce) break;
    const bool is_begun = std::find(copying_.begin(), copying_.end(), component) != copying_.end();
    if (waits_for_copy(*component) && !is_begun) begin_copy(component);
  }
  std::erase_if(uncopied_, [this](std::shared_ptr<ColdRead>& read) {
    if (waits_for_copy(*read->component)) return !context_.replies.is_waiting(read->token);
    const net::PeerId peer = read->peer;
    cold_.push(peer, std::move(read));
    return true;
  });
}

Status Reading::check_room(const Component& component) {
  const auto bytes = dense_copy_bytes(component.state);
  auto room = context_.check_space(bytes);
  if (room || room.error().code != Code::kNoSpace) return room;
  return fail(Code::kNoSpace, fmt::format("file {} was made before parity was kept: to be read it needs room for a "
                                          "copy of {} here, and {}",
                                          name_of(component.file), human_bytes(bytes), room.error().text));
}

// The work has the component's state for itself: nobody changes an older one, but it may be removed meanwhile.
void Reading::begin_copy(const ComponentPtr& component) {
  if (const auto room = check_room(*component); !room) return refuse_waiting(*component, room.error());
  copying_.push_back(component);
  PIF_ASSERT(component->older && copying_.size() <= kCopiesAtOnce, component->file.value, copying_.size());
  auto made = std::make_shared<Result<DenseCopy>>();
  auto work = [made, storage = &context_.world.storage, root = context_.components.root(), state = component->state,
               number = ++copies_begun_] { *made = make_dense_copy(*storage, root, state, number); };
  context_.world.executor.submit(std::move(work), [this, component, made] { end_copy(component, std::move(*made)); });
}

void Reading::end_copy(const ComponentPtr& component, Result<DenseCopy> copy) {
  const auto ended = std::erase(copying_, component);
  PIF_ASSERT(ended == 1, component->file.value, ended);
  if (component->is_removed() || component->failure) return;  // all that wait are told in this turn
  if (copy) return context_.components.adopt_copy(*component, std::move(*copy));
  spdlog::error("file {} could not be made ready to be read: {}", name_of(component->file), copy.error().text);
  refuse_waiting(*component, copy.error());
}

void Reading::refuse_waiting(const Component& component, const Error& why) {
  for (const auto& read : uncopied_)
    if (read->component.get() == &component) context_.replies.answer(read->token, Status(fail(why)));
  for (const Attaching& one : attaching_)
    if (one.component.get() == &component) context_.replies.answer(one.token, Status(fail(why)));
}

void Reading::advance() {
  begin_copies();
  begin_cold();
  std::erase_if(attaching_, [&](const Attaching& one) {
    if (!context_.replies.is_waiting(one.token)) return true;
    if (one.component->is_removed()) {
      context_.replies.answer(one.token, fail(Code::kStaleFile, "the file was deleted meanwhile"));
      return true;
    }
    const Permission may_copy = context_.may(Operation::kCopy, *one.component);
    if (may_copy == Permission::kLater) return false;
    if (waits_for_copy(*one.component)) return false;
    const auto& failure = one.component->failure;
    PIF_ASSERT(failure || may_copy == Permission::kNow, one.component->file.value, one.component->stage());
    context_.replies.answer(one.token, failure ? fail(*failure) : descriptors(*one.component));
    return true;
  });
}

Result<net::Packet> Reading::descriptors(Component& component) {
  net::Packet reply;
  *reply.envelope.mutable_attach_reply()->mutable_state() = component.told();
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
