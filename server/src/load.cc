#include "load.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/limits.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kRootMode = 0755;
constexpr std::size_t kPruneAtStart = 100'000;

Status make_new(Core& core) {
  Rows& rows = core.rows;
  PIF_TRY(rows.put_bytes(kMeta, kVersionKey, kv::key_u32(kFormatVersion)));
  PIF_TRY(rows.put_bytes(kMeta, kClusterKey, core.config.cluster));
  PIF_TRY(rows.put_bytes(kMeta, "next-id", kv::key_u64(kRootFolder + 1)));
  proto::StoredEntry root;
  root.set_type(proto::FOLDER);
  root.set_id(kRootFolder);
  root.mutable_attributes()->set_owner(core.config.owner_uid);
  root.mutable_attributes()->set_group(core.config.owner_uid);
  root.mutable_attributes()->set_mode(kRootMode);
  root.mutable_attributes()->set_modified(core.wall_ns());
  root.mutable_attributes()->set_changed(core.wall_ns());
  return rows.put_entry(kRootParent, kRootName, root);
}

Status check_meta(Core& core) {
  PIF_TRY_VALUE(const auto version, core.rows.get(kMeta, kVersionKey));
  if (!version) {
    PIF_TRY_VALUE(const std::uint64_t entries, core.rows.count(kEntries));
    if (entries > 0) return fail(Code::kCorrupt, "the directory has entries, but does not say which format they have");
    return make_new(core);
  }
  if (*version != kv::key_u32(kFormatVersion)) {
    const std::uint64_t is = version->size() == 4 ? kv::u64_of_key(std::string(4, '\0') + std::string(*version)) : 0;
    return fail(Code::kVersion, fmt::format("the directory has format version {}, this program knows {}: use the release that "
                                            "wrote it, or a newer one", is, kFormatVersion));
  }
  PIF_TRY_VALUE(const auto cluster, core.rows.get(kMeta, kClusterKey));
  if (cluster && *cluster == core.config.cluster) return {};
  return fail(Code::kInvalid, fmt::format("the directory belongs to file system {}, not to {}: look at pif.toml",
                                          cluster ? *cluster : std::string_view("(unknown)"), core.config.cluster));
}

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
    PIF_TRY(check_meta(core));
    PIF_TRY(core.ids.load());
    PIF_TRY(core.registry.load(core.now));
    PIF_TRY(load_unfinished(core));
    PIF_TRY(core.sessions.prune(core.wall, kPruneAtStart));
    return {};
  }();
  if (!loaded) core.rows.break_with(loaded.error());
  return core.rows.commit();
}

}  // namespace pif::server
