#include "load.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "directory/identity.h"
#include "pif/base/assert.h"
#include "pif/kv/value.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

constexpr std::size_t kPruneAtStart = 100'000;

// Files whose creation or deletion was under way.
Status load_unfinished(ServerContext& context) {
  std::vector<std::pair<std::uint64_t, proto::StoredFile>> unfinished;
  bool good = true;
  proto::StoredFile row;
  PIF_TRY(context.rows.scan(kFiles, {}, [&](std::string_view key, std::string_view payload) {
    good = row.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
    if (good && row.state() == kDoomed) context.outbox.loaded(kv::u64_of_key(key), row, context.wall);
    if (good && row.state() == kPending) unfinished.emplace_back(kv::u64_of_key(key), row);
    return good;
  }));
  if (!good) return fail(Code::kCorrupt, "the directory's table files has a value that is no message");
  for (const auto& [id, file] : unfinished) {
    context.pending[id] = file.session();
    for (const auto& member : file.members()) {
      if (member.session() == 0 || context.shared.files_of(member.session()).contains(id))
        return fail(Code::kCorrupt, fmt::format("file {} has members that cannot be: run `pif-server check`", id));
      context.shared.add(id, member.session(), false);
    }
  }
  for (const auto& [id, file] : unfinished) {
    const std::uint32_t owner = file.entry().attributes().owner();
    context.sessions.absent(file.session(), owner, context.now).creating.insert(id);
    for (const auto& member : file.members()) {
      if (member.state() != wire::kMemberWriting) continue;
      Session& session = context.sessions.absent(member.session(), owner, context.now);
      PIF_ASSERT(session.creating.contains(id), id, session.id);
    }
  }
  if (!unfinished.empty() || context.outbox.doomed_count() > 0) {
    spdlog::info("{} files were being created, {} removed", unfinished.size(), context.outbox.doomed_count());
  }
  return {};
}

}  // namespace

Status load(ServerContext& context) {
  context.now = context.started = context.clock.now();
  context.wall = context.clock.wall_seconds();
  Status loaded = [&]() -> Status {
    PIF_TRY(check_identity(context.rows, {context.config.cluster, context.config.uuid}));
    PIF_TRY(context.numbers.load(context.world.entropy));
    PIF_TRY(context.registry.load(context.now));
    PIF_TRY(load_unfinished(context));
    PIF_TRY(context.locks.load(context.sessions, context.now, context.wall));
    PIF_TRY(context.sessions.prune(context.wall, kPruneAtStart));
    return {};
  }();
  if (loaded) loaded = context.numbers.stamp();
  if (!loaded) context.rows.break_with(loaded.error());
  return context.rows.commit();
}

}  // namespace pif::server
