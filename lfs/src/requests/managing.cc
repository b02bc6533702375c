#include "requests/managing.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/has_server.h"
#include "pif/base/assert.h"
#include "pif/wire/file_states.h"
#include "redo/check.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kListBytesMax = 64u << 10;
constexpr std::uint32_t kListMax = 4096;
constexpr unsigned kCheckTriesMax = 5;
constexpr Duration kLookEvery = std::chrono::minutes(1);
constexpr Duration kLookSoon = std::chrono::seconds(1);  // whether there is something to look at
constexpr std::size_t kSettledAtOnce = 256;              // files, in one transaction
constexpr std::size_t kEndAtOnce = 256;                  // of one look into the quarantine
constexpr std::int64_t kDaySeconds = 24 * 3600;

// How long a component stays in quarantine: one of a file that was once committed may be the only copy of it.
std::int64_t kept_seconds(const proto::ComponentState& state) {
  return state.state() == kCommitted ? 7 * kDaySeconds : kDaySeconds;
}

}  // namespace

Managing::Managing(LfsContext& context) : context_(context) {
  context.operations.bind<&Managing::settle>(*this);
  context.operations.bind<&Managing::list_components>(*this, When::kAlways);
  context.operations.bind<&Managing::check_component>(*this, When::kAlways);
  context.fibers.start<&Managing::serve>(*this);
}

Status Managing::end_quarantine(FileId file) {
  PIF_ASSERT(context_.fibers.in_fiber(), file.value);
  PIF_TRY(context_.batch.commit_end_quarantine(file));
  context_.components.left_quarantine(file);
  context_.remove_files(file);
  return {};
}

Status Managing::restore(FileId file) {
  PIF_TRY_VALUE(const auto entry, catalogue::quarantined(context_.world.catalogue, file));
  if (!entry) return {};
  spdlog::warn("file {} is known again: its component comes back from quarantine", name_of(file));
  PIF_TRY(context_.batch.commit_restore(entry->state()));
  context_.components.came_back(entry->state());
  return {};
}

Status Managing::quarantine(FileId file) {
  auto found = context_.components.find(file);
  if (!found) return found.error().code == Code::kNotFound ? Status() : Status(fail(std::move(found.error())));
  if (!(*found)->catalogued) return remove(file, false);  // being made: nobody has heard that it is durable
  spdlog::warn("file {} is not known to the server: its component goes into quarantine", name_of(file));
  PIF_TRY(context_.batch.commit_quarantine(*found));
  context_.components.went_into_quarantine(file);
  return {};
}

// Only what was made in the server's present run it must have known: a file that was given up, or removed. What it does
// not know of another run may be of a directory that was lost.
Status Managing::unknown(FileId file) {
  auto found = context_.components.find(file);
  if (!found) return {};
  const bool of_this_run = (*found)->is_open() || (*found)->state.run() == context_.numbers.run();
  if (!of_this_run) return quarantine(file);
  spdlog::info("file {} was given up: its component is removed", name_of(file));
  return remove(file, true);
}

void Managing::serve() {
  for (;;) {
    context_.fibers.sleep_until(context_.now() + (keeps_any() ? kLookSoon : kLookEvery));
    if (!keeps_any() || context_.standing != Standing::kServing || context_.now() < next_look_) continue;
    next_look_ = context_.now() + kLookEvery;
    const std::int64_t wall = context_.world.messenger.clock().wall_seconds();
    const bool is_short = !context_.check_space(0);
    end_old_quarantine(wall, is_short);
    remove_old_aside(wall, is_short);
  }
}

void Managing::end_old_quarantine(std::int64_t wall, bool is_short) {
  std::vector<FileId> over;
  const auto seen = catalogue::each_quarantined(
      context_.world.catalogue, FileId(0), [&](FileId file, const proto::StoredQuarantine& entry) {
        const bool goes_first = is_short && entry.state().state() != kCommitted;
        if (goes_first || wall - entry.since() > kept_seconds(entry.state())) over.push_back(file);
        return over.size() < kEndAtOnce;
      });
  if (!seen) spdlog::error("{}", seen.error().text);
  daemon::each(context_.fibers, over.size(), kEndAtOnce, [&](std::size_t i) {
    if (const Status ended = end_quarantine(over[i]); !ended) spdlog::error("{}", ended.error().text);
  });
}

// ---- what is aside -------------------------------------------------------------------------------------------------

Status Managing::load_aside() {
  PIF_TRY(aside_.load(context_.world.storage, context_.config.root));
  for (const AsideCopy& copy : aside_.copies())
    context_.components.unsettled().try_emplace(copy.file.value, context_.now());
  return {};
}

void Managing::learn_aside(FileId file, std::uint32_t state) {
  if (!aside_.has(file)) return;
  switch (state) {
    case wire::kFilePending: return aside_.learn(file, Aside::Word::kPending);
    case wire::kFileCommitted: aside_.learn(file, Aside::Word::kCommitted); break;
    case wire::kFileRemoved:
    case wire::kFileGivenUp: aside_.learn(file, Aside::Word::kGone); break;
    case wire::kFileUnknown: aside_.learn(file, Aside::Word::kUnknown); break;
    default: return;
  }
  next_look_ = std::min(next_look_, context_.now());
}

void Managing::remove_old_aside(std::int64_t wall, bool is_short) {
  const auto is_here = [this](FileId file) { return context_.components.find(file).has_value(); };
  for (const AsideCopy& copy : aside_.copies())  // the server is asked as long as it is there
    if (!is_here(copy.file)) context_.components.unsettled().try_emplace(copy.file.value, context_.now());
  for (const AsideCopy& copy : aside_.over({wall, is_short, has_server(context_.config)}, kEndAtOnce, is_here)) {
    spdlog::info("what was put aside of file {} is removed: nobody needs it", name_of(copy.file));
    const Status removed =
        context_.disk([&] { return remove_aside(context_.world.storage, context_.config.root, copy); });
    if (!removed) {
      spdlog::warn("{}", removed.error().text);
      continue;
    }
    aside_.forget(copy);
    if (!aside_.has(copy.file) && !is_here(copy.file)) context_.components.unsettled().erase(copy.file.value);
  }
}

Status Managing::remove(FileId file, bool for_good) {
  if (context_.components.is_quarantined(file)) return end_quarantine(file);
  auto component = context_.components.find_in_memory(file);
  if (!component) {
    auto found = context_.components.find(file);
    const auto code = found ? Code::kOk : found.error().code;
    if (code == Code::kNotFound || code == Code::kStaleFile) return {};
    PIF_TRY_VALUE(component, std::move(found));
  }
  if (component->catalogued)
    PIF_TRY(context_.batch.commit_erase(component));
  else
    context_.components.forget(*component, for_good);
  context_.remove_files(file);
  return {};
}

// Words about files come from a server that this LFS goes along with, or from a person, who bears no moment.
Status Managing::check_word(const proto::Settle& asked) {
  if (!asked.has_moment()) return {};
  if (!context_.numbers.is_of_server(asked.moment()))
    return fail(Code::kStaleServer,
                fmt::format("{} goes along with another server, or a later moment of this one", context_.config.name));
  context_.numbers.note_moment(asked.moment());
  return {};
}

// All files of it share transactions.
Result<net::Packet> Managing::settle(const Request& request, const proto::Settle& asked) {
  PIF_TRY(check_word(asked));
  Status failed;
  const auto settle_each = [&](const auto& files, Status (Managing::*one)(FileId)) {
    daemon::each(context_.fibers, static_cast<std::size_t>(files.size()), kSettledAtOnce, [&](std::size_t i) {
      Status settled = (this->*one)(FileId(files.Get(static_cast<int>(i))));
      if (!settled && settled.error().code != Code::kStaleFile) failed = std::move(settled);
    });
  };
  settle_each(asked.removed(), &Managing::remove_for_good);
  settle_each(asked.unknown(), &Managing::quarantine);
  settle_each(asked.aborted(), &Managing::unknown);
  settle_each(asked.committed(), &Managing::commit);
  PIF_TRY(failed);
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_settle_reply();
  return reply;
}

Status Managing::commit(FileId file) {
  if (context_.components.is_quarantined(file)) return restore(file);
  const auto found = context_.components.find(file);
  if (!found) {
    if (found.error().code == Code::kNotFound) context_.components.note_committed_without(file);
    return {};
  }
  const ComponentPtr component = *found;
  // What a member wrote that did not count.
  if (component->is_open() && !component->by_append && component->lock.may_acquire(Mode::kFill)) {
    context_.components.note_committed_without(file);
    return remove(file, false);
  }
  if (component->state.state() != kSealed) return {};
  return context_.batch.commit(component, [](proto::ComponentState& state) { state.set_state(kCommitted); });
}

// Files put aside are listed, too; nothing is known of them but the id, and the bytes of their rows.
Result<net::Packet> Managing::list_quarantine(const Request& request) {
  const auto& asked = request.envelope().list_components();
  std::map<FileId, proto::StoredQuarantine> found;
  std::size_t bytes = 0;
  bool has_more = false;
  PIF_TRY(catalogue::each_quarantined(context_.world.catalogue, FileId(asked.after() + 1),
                                      [&](FileId file, const proto::StoredQuarantine& entry) {
                                        has_more = found.size() >= kListMax || bytes >= kListBytesMax;
                                        if (has_more) return false;
                                        bytes += entry.ByteSizeLong();
                                        found.emplace(file, entry);
                                        return true;
                                      }));
  const FileId last = has_more ? found.rbegin()->first : FileId(UINT64_MAX);
  for (const AsideCopy& copy : aside_.copies()) {
    if (copy.file.value <= asked.after() || copy.file > last) continue;
    proto::StoredQuarantine& entry = found[copy.file];
    if (entry.state().shape().has_layout()) continue;  // in quarantine as well
    entry.mutable_state()->mutable_shape()->set_file(copy.file.value);
    entry.mutable_state()->set_bytes(entry.state().bytes() +
                                     row_bytes(context_.world.storage, context_.config.root, copy));
    if (entry.since() == 0) entry.set_since(copy.since);
  }
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_list_components_reply();
  for (const auto& [file, entry] : found) {
    if (out->components_size() >= static_cast<int>(kListMax)) {
      has_more = true;
      break;
    }
    *out->add_components() = shown_state(entry.state());
    out->add_since(entry.since());
  }
  out->set_more(has_more);
  return reply;
}

Result<net::Packet> Managing::list_components(const Request& request, const proto::ListComponents& asked) {
  if (asked.quarantined() && asked.after() != UINT64_MAX) return list_quarantine(request);
  const auto limit = std::clamp<std::uint32_t>(asked.limit(), 1, kListMax);
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_list_components_reply();
  if (asked.after() == UINT64_MAX) return reply;  // no id is greater
  std::size_t bytes = 0;
  PIF_TRY(catalogue::each(context_.world.catalogue, FileId(asked.after() + 1),
                          [&](FileId file, Result<proto::ComponentState> state) {
                            if (out->components_size() >= static_cast<int>(limit) || bytes >= kListBytesMax) {
                              out->set_more(true);
                              return false;
                            }
                            if (!state) {  // the checker must see that it is there
                              spdlog::error("{}", state.error().text);
                              if (file.value == 0) return true;  // what is no file's has no place in a list by ids
                              state = proto::ComponentState();
                              state->mutable_shape()->set_file(file.value);
                            }
                            bytes += state->ByteSizeLong();
                            *out->add_components() = shown_state(*state);
                            return true;
                          }));
  return reply;
}

Result<net::Packet> Managing::check_component(const Request& request, const proto::CheckComponent& asked) {
  PIF_TRY_VALUE(const ComponentPtr component, context_.components.find(FileId(asked.file())));
  if (component->is_open()) return fail(Code::kInvalid, "the file is still being written");
  Check check = look(*component, asked.sums());
  for (unsigned tries = 1; !check.damages.empty() && !check.is_firm && tries < kCheckTriesMax; ++tries) {
    if (component->is_removed()) break;
    check = look(*component, asked.sums());
  }
  PIF_TRY(check_there(*component));
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_check_component_reply();
  for (const auto& damage : check.damages) {
    spdlog::error("{}", damage);
    out->add_damages(damage);
  }
  out->set_bytes(check.bytes);
  return reply;
}

Managing::Check Managing::look(const Component& component, bool sums) {
  PIF_ASSERT(!component.is_open(), component.file.value);
  Check check;
  const std::uint64_t changes = component.changes;
  const proto::ComponentState state = component.state;
  const component::Tail tail = tail_of(state);
  context_.disk([&, stem = context_.components.stem(component.file)] {
    check_files(context_.world.storage, stem, component.shape, tail, sums, check.damages);
    check_parity(context_.world.storage, stem, state, sums, check.damages);
  });
  PIF_ASSERT(component.changes >= changes, component.changes, changes);
  check.bytes = sums ? tail.bytes : 0;
  check.is_firm = component.changes == changes && tail_of(component.state) == tail &&
                  component.state.pages() == state.pages() && component.state.pap_begin() == state.pap_begin();
  return check;
}

}  // namespace pif::lfs
