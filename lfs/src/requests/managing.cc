#include "requests/managing.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/has_server.h"
#include "pif/base/assert.h"
#include "pif/wire/file_states.h"
#include "store/catalogue.h"
#include "store/check.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kListBytesMax = 64u << 10;
constexpr std::uint32_t kListMax = 4096;
constexpr unsigned kCheckTriesMax = 5;
constexpr Duration kLookEvery = std::chrono::minutes(1);
constexpr std::size_t kEndAtOnce = 256;  // of one look into the quarantine
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
}

void Managing::end_quarantine(FileId file, std::function<void(const Status&)> done) {
  context_.batch.end_quarantine(file, [this, file, done = std::move(done)](const Status& status) {
    if (status) {
      context_.components.left_quarantine(file);
      context_.remove_files(file);
    }
    done(status);
  });
}

void Managing::restore(FileId file, std::function<void(const Status&)> done) {
  auto entry = catalogue::quarantined(context_.world.catalogue, file);
  if (!entry) return done(fail(std::move(entry.error())));
  if (!*entry) return done({});
  spdlog::warn("file {} is known again: its component comes back from quarantine", name_of(file));
  context_.batch.restore((*entry)->state(),
                         [this, state = (*entry)->state(), done = std::move(done)](const Status& status) {
                           if (status) context_.components.came_back(state);
                           done(status);
                         });
}

void Managing::quarantine(FileId file, std::function<void(const Status&)> done) {
  auto found = context_.components.find(file);
  if (!found) return done(found.error().code == Code::kNotFound ? Status() : Status(fail(std::move(found.error()))));
  if (!(*found)->catalogued)
    return remove(file, false, std::move(done));  // being made: nobody was told that it is durable
  spdlog::warn("file {} is not known to the server: its component goes into quarantine", name_of(file));
  context_.batch.quarantine(*found, [this, file, done = std::move(done)](const Status& status) {
    if (status) context_.components.went_into_quarantine(file);
    done(status);
  });
}

// Only what was made in the server's present run it must have known: a file that was given up, or removed. What it does
// not know of another run may be of a directory that was lost.
void Managing::unknown(FileId file, std::function<void(const Status&)> done) {
  auto found = context_.components.find(file);
  if (!found) return done({});
  const bool of_this_run = (*found)->is_open() || (*found)->state.run() == context_.numbers.run();
  if (!of_this_run) return quarantine(file, std::move(done));
  spdlog::info("file {} was given up: its component is removed", name_of(file));
  remove(file, true, std::move(done));
}

void Managing::tick() {
  const Time now = context_.now();
  const bool is_empty = context_.components.quarantined_count() == 0 && aside_.copies().empty();
  if (is_empty || context_.standing != Standing::kServing || now < next_look_) return;
  next_look_ = now + kLookEvery;
  const std::int64_t wall = context_.world.messenger.clock().wall_seconds();
  const bool is_short = !context_.check_space(0);
  end_old_quarantine(wall, is_short);
  remove_old_aside(wall, is_short);
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
  for (const FileId file : over) end_quarantine(file, [](const Status&) {});
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
  if (aside_removals_ > 0) return;
  const auto is_here = [this](FileId file) { return context_.components.find(file).has_value(); };
  for (const AsideCopy& copy : aside_.copies())  // the server is asked as long as it is there
    if (!is_here(copy.file)) context_.components.unsettled().try_emplace(copy.file.value, context_.now());
  for (const AsideCopy& copy : aside_.over({wall, is_short, has_server(context_.config)}, kEndAtOnce, is_here)) {
    spdlog::info("what was put aside of file {} is removed: nobody needs it", name_of(copy.file));
    auto removed = std::make_shared<Status>();
    ++aside_removals_;
    context_.world.executor.submit([removed, copy, storage = &context_.world.storage,
                                    root = context_.config.root] { *removed = remove_aside(*storage, root, copy); },
                                   [this, removed, copy] {
                                     PIF_ASSERT(aside_removals_ > 0, copy.file.value);
                                     --aside_removals_;
                                     if (!*removed) return spdlog::warn("{}", removed->error().text);
                                     aside_.forget(copy);
                                     if (!aside_.has(copy.file) && !context_.components.find(copy.file))
                                       context_.components.unsettled().erase(copy.file.value);
                                   });
  }
}

void Managing::remove(FileId file, bool for_good, std::function<void(const Status&)> done) {
  if (context_.components.is_quarantined(file)) return end_quarantine(file, std::move(done));
  auto component = context_.components.find_in_memory(file);
  if (!component) {
    auto found = context_.components.find(file);
    const auto code = found ? Code::kOk : found.error().code;
    if (code == Code::kNotFound || code == Code::kStaleFile) return done({});
    if (!found) return done(fail(std::move(found.error())));
    component = std::move(*found);
  }
  if (!component->catalogued) {
    context_.components.forget(*component, for_good);
    context_.remove_files(file);
    return done({});
  }
  context_.batch.erase(component, [this, file, done = std::move(done)](const Status& status) {
    if (status) context_.remove_files(file);
    done(status);
  });
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

void Managing::settle(const Request& request, const proto::Settle& asked) {
  if (auto ok = check_word(asked); !ok) return context_.replies.answer(request, fail(std::move(ok.error())));
  const auto token = context_.replies.defer(request);
  auto left = std::make_shared<std::size_t>(1);
  auto failed = std::make_shared<Status>();
  const auto one_done = [this, token, left, failed](const Status& status) {
    if (!status && status.error().code != Code::kStaleFile) *failed = status;
    PIF_ASSERT(*left > 0, token);
    if (--*left > 0) return;
    if (!*failed) return context_.replies.answer(token, *failed);
    net::Packet reply;
    reply.envelope.mutable_settle_reply();
    context_.replies.answer(token, Result<net::Packet>(std::move(reply)));
  };
  for (const auto id : asked.removed()) {
    ++*left;
    remove(FileId(id), true, one_done);
  }
  for (const auto id : asked.unknown()) {
    ++*left;
    quarantine(FileId(id), one_done);
  }
  for (const auto id : asked.aborted()) {
    ++*left;
    unknown(FileId(id), one_done);
  }
  for (const auto id : asked.committed()) {
    if (context_.components.is_quarantined(FileId(id))) {
      ++*left;
      restore(FileId(id), one_done);
      continue;
    }
    const auto found = context_.components.find(FileId(id));
    if (!found) continue;
    if (context_.may(Operation::kFill, **found) == Permission::kNow) {  // what a member wrote that did not count
      ++*left;
      remove(FileId(id), false, one_done);
      continue;
    }
    if ((*found)->state.state() != kSealed) continue;
    ++*left;
    context_.batch.update(
        *found, [](proto::ComponentState& state) { state.set_state(kCommitted); }, one_done);
  }
  one_done({});
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
    *out->add_components() = told_state(entry.state());
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
                            *out->add_components() = told_state(*state);
                            return true;
                          }));
  return reply;
}

// A check under way. Overwrites and appends go on meanwhile: if one came between, what was found is looked at again.
struct Managing::Check {
  ComponentPtr component;
  ReplyToken token = 0;
  bool sums = false;
  unsigned tries = 0;
  std::uint64_t changes = 0;
  component::Tail tail;
  proto::ComponentState state;
  std::vector<std::string> damages;
};

void Managing::check_component(const Request& request, const proto::CheckComponent& asked) {
  auto found = context_.components.find(FileId(asked.file()));
  if (!found) return context_.replies.answer(request, fail(std::move(found.error())));
  if ((*found)->is_open())
    return context_.replies.answer(request, fail(Code::kInvalid, "the file is still being written"));
  auto check = std::make_shared<Check>();
  check->component = std::move(*found);
  check->token = context_.replies.defer(request);
  check->sums = asked.sums();
  run_check(std::move(check));
}

void Managing::run_check(std::shared_ptr<Check> check) {
  check->damages.clear();
  PIF_ASSERT(check->tries < kCheckTriesMax, check->tries);
  check->changes = check->component->changes;
  check->tail = tail_of(check->component->state);
  check->state = check->component->state;
  ++check->tries;
  auto work = [check, storage = &context_.world.storage, stem = context_.components.stem(check->component->file)] {
    check_files(*storage, stem, check->component->shape, check->tail, check->sums, check->damages);
    check_parity(*storage, stem, check->state, check->sums, check->damages);
  };
  context_.world.executor.submit(std::move(work), [this, check] { finish_check(check); });
}

void Managing::finish_check(std::shared_ptr<Check> check) {
  const Component& c = *check->component;
  PIF_ASSERT(c.changes >= check->changes, c.changes, check->changes);
  if (c.is_removed())
    return context_.replies.answer(check->token, fail(Code::kStaleFile, "the file was deleted meanwhile"));
  const bool changed = c.changes != check->changes || !(tail_of(c.state) == check->tail) ||
                       c.state.pages() != check->state.pages() || c.state.pap_begin() != check->state.pap_begin();
  if (!check->damages.empty() && changed && check->tries < kCheckTriesMax) return run_check(std::move(check));
  net::Packet reply;
  auto* out = reply.envelope.mutable_check_component_reply();
  for (const auto& damage : check->damages) {
    spdlog::error("{}", damage);
    out->add_damages(damage);
  }
  out->set_bytes(check->sums ? check->tail.bytes : 0);
  context_.replies.answer(check->token, Result<net::Packet>(std::move(reply)));
}

}  // namespace pif::lfs
