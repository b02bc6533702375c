#include "load.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "directory/identity.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::size_t kPruneAtStart = 100'000;

// Files whose creation or deletion was under way.
Status load_unfinished(Core& core) {
  std::vector<std::pair<std::uint64_t, proto::StoredFile>> unfinished;
  bool good = true;
  proto::StoredFile row;
  PIF_TRY(core.rows.scan(kFiles, {}, [&](std::string_view key, std::string_view payload) {
    good = row.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
    if (good && row.state() == kDoomed) core.outbox.loaded(kv::u64_of_key(key), row, core.wall);
    if (good && row.state() == kPending) unfinished.emplace_back(kv::u64_of_key(key), row);
    return good;
  }));
  if (!good) return fail(Code::kCorrupt, "the directory's table files has a value that is no message");
  for (const auto& [id, file] : unfinished) {
    core.pending[id] = file.session();
    Session& creator = core.sessions.absent_creator(file.session(), file.entry().attributes().owner(), core.now);
    creator.creating.insert(id);
  }
  if (!unfinished.empty() || core.outbox.doomed_count() > 0) {
    spdlog::info("{} files were being created, {} removed", unfinished.size(), core.outbox.doomed_count());
  }
  return {};
}

}  // namespace

Status load(Core& core) {
  core.now = core.started = core.clock.now();
  core.wall = core.clock.wall_seconds();
  Status loaded = [&]() -> Status {
    PIF_TRY(check_identity(core.rows, {core.config.cluster, core.config.uuid}));
    PIF_TRY(core.numbers.load(core.world.entropy));
    PIF_TRY(core.registry.load(core.now));
    PIF_TRY(load_unfinished(core));
    PIF_TRY(core.sessions.prune(core.wall, kPruneAtStart));
    return {};
  }();
  if (loaded) loaded = core.numbers.stamp();
  if (!loaded) core.rows.break_with(loaded.error());
  return core.rows.commit();
}

}  // namespace pif::server
