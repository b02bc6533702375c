#include "managing.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "catalogue.h"
#include "check.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kListBytesMax = 64u << 10;
constexpr std::uint32_t kListMax = 4096;
constexpr unsigned kCheckTriesMax = 5;

}  // namespace

void Managing::remove_files(FileId file) {
  auto result = std::make_shared<Status>();
  core_.components.set_removing(file, true);
  core_.world.executor.submit(
      [result, storage = &core_.world.storage, stem = core_.components.stem(file)] {
        *result = component::remove_files(*storage, stem);
      },
      [this, result, file] {
        core_.components.set_removing(file, false);
        // What stays behind is an orphan, which the next start removes.
        if (!*result) spdlog::warn("file {}: {}", name_of(file), result->error().text);
      });
}

void Managing::remove(FileId file, bool for_good, std::function<void(const Status&)> done) {
  auto component = core_.components.find_in_memory(file);
  if (!component) {
    auto found = core_.components.find(file);
    const auto code = found ? Code::kOk : found.error().code;
    if (code == Code::kNotFound || code == Code::kStaleFile) return done({});
    if (!found) return done(fail(std::move(found.error())));
    component = std::move(*found);
  }
  if (!component->catalogued) {
    core_.components.forget(*component, for_good);
    remove_files(file);
    return done({});
  }
  core_.batch.erase(component, [this, file, done = std::move(done)](const Status& status) {
    if (status) remove_files(file);
    done(status);
  });
}

void Managing::settle(const Request& request) {
  if (auto ok = core_.allow_management(request); !ok) return core_.replies.answer(request, fail(std::move(ok.error())));
  const auto token = core_.replies.defer(request);
  auto left = std::make_shared<std::size_t>(1);
  auto failed = std::make_shared<Status>();
  const auto one_done = [this, token, left, failed](const Status& status) {
    if (!status && status.error().code != Code::kStaleFile) *failed = status;
    if (--*left > 0) return;
    if (!*failed) return core_.replies.answer(token, *failed);
    net::Packet reply;
    reply.envelope.mutable_settle_reply();
    core_.replies.answer(token, Result<net::Packet>(std::move(reply)));
  };
  const auto& asked = request.envelope().settle();
  for (const auto id : asked.removed()) {
    ++*left;
    remove(FileId(id), true, one_done);
  }
  for (const auto id : asked.committed()) {
    const auto found = core_.components.find(FileId(id));
    if (!found || (*found)->state.state() != kSealed) continue;
    ++*left;
    core_.batch.update(*found, [](proto::ComponentState& state) { state.set_state(kCommitted); }, one_done);
  }
  one_done({});
}

Result<net::Packet> Managing::list_components(const Request& request) {
  PIF_TRY(core_.allow_management(request));
  const auto& asked = request.envelope().list_components();
  const auto limit = std::clamp<std::uint32_t>(asked.limit(), 1, kListMax);
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_list_components_reply();
  if (asked.after() == UINT64_MAX) return reply;  // no id is greater
  std::size_t bytes = 0;
  PIF_TRY(catalogue::each(core_.world.catalogue, FileId(asked.after() + 1), [&](FileId file, Result<proto::ComponentState> state) {
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
    *out->add_components() = std::move(*state);
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
  std::vector<std::string> damages;
};

void Managing::check_component(const Request& request) {
  if (auto ok = core_.allow_management(request); !ok) return core_.replies.answer(request, fail(std::move(ok.error())));
  auto found = core_.components.find(FileId(request.envelope().check_component().file()));
  if (!found) return core_.replies.answer(request, fail(std::move(found.error())));
  if ((*found)->is_open()) return core_.replies.answer(request, fail(Code::kInvalid, "the file is still being written"));
  auto check = std::make_shared<Check>();
  check->component = std::move(*found);
  check->token = core_.replies.defer(request);
  check->sums = request.envelope().check_component().sums();
  run_check(std::move(check));
}

void Managing::run_check(std::shared_ptr<Check> check) {
  check->damages.clear();
  check->changes = check->component->changes;
  check->tail = tail_of(check->component->state);
  ++check->tries;
  auto work = [check, storage = &core_.world.storage, stem = core_.components.stem(check->component->file)] {
    check_files(*storage, stem, check->component->shape, check->tail, check->sums, check->damages);
  };
  core_.world.executor.submit(std::move(work), [this, check] { finish_check(check); });
}

void Managing::finish_check(std::shared_ptr<Check> check) {
  const Component& c = *check->component;
  if (c.removed) return core_.replies.answer(check->token, Status(fail(Code::kStaleFile, "the file was deleted meanwhile")));
  const bool changed = c.changes != check->changes || !(tail_of(c.state) == check->tail);
  if (!check->damages.empty() && changed && check->tries < kCheckTriesMax) return run_check(std::move(check));
  net::Packet reply;
  auto* out = reply.envelope.mutable_check_component_reply();
  for (const auto& damage : check->damages) {
    spdlog::error("{}", damage);
    out->add_damages(damage);
  }
  out->set_bytes(check->sums ? check->tail.bytes : 0);
  core_.replies.answer(check->token, Result<net::Packet>(std::move(reply)));
}

}  // namespace pif::lfs
