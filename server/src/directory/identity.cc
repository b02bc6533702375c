#include "directory/identity.h"

#include <fmt/format.h>

#include "directory/numbers.h"
#include "pif/base/limits.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kRootMode = 0755;

// 0: the store is empty.
Result<std::uint32_t> version_of(Rows& rows) {
  PIF_TRY_VALUE(const auto version, rows.get(kMeta, kVersionKey));
  if (version && version->size() == 4)
    return static_cast<std::uint32_t>(kv::u64_of_key(std::string(4, '\0') + std::string(*version)));
  if (version) return fail(Code::kCorrupt, "the directory's format version cannot be read");
  PIF_TRY_VALUE(const std::uint64_t entries, rows.count(kEntries));
  if (entries > 0) return fail(Code::kCorrupt, "the directory has entries, but does not say which format they have");
  return 0;
}

Status check_cluster(Rows& rows, const std::string& expected) {
  PIF_TRY_VALUE(const auto cluster, rows.get(kMeta, kClusterKey));
  if (cluster && *cluster == expected) return {};
  return fail(Code::kInvalid, fmt::format("the directory belongs to file system {}, not to {}: look at pif.toml",
                                          cluster ? *cluster : std::string_view("(unknown)"), expected));
}

Status put_root_folder(Rows& rows, std::uint32_t owner_uid, std::int64_t wall_seconds) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  proto::StoredEntry root;
  root.set_type(proto::FOLDER);
  root.set_id(kRootFolder);
  root.mutable_attributes()->set_owner(owner_uid);
  root.mutable_attributes()->set_group(owner_uid);
  root.mutable_attributes()->set_mode(kRootMode);
  root.mutable_attributes()->set_modified(wall_seconds * kNanoseconds);
  root.mutable_attributes()->set_changed(wall_seconds * kNanoseconds);
  return rows.put_entry(kRootParent, kRootName, root);
}

Status put_identity(Rows& rows, const DirectoryIdentity& identity) {
  PIF_TRY(rows.put_bytes(kMeta, kVersionKey, kv::key_u32(kFormatVersion)));
  PIF_TRY(rows.put_bytes(kMeta, kClusterKey, identity.cluster));
  PIF_TRY(rows.put_bytes(kMeta, kUuidKey, identity.uuid));
  return make_numbers(rows);
}

Status in_one_turn(kv::Store& store, const std::function<Status(Rows&)>& work) {
  Rows rows(store);
  if (Status done = work(rows); !done) rows.break_with(done.error());
  return rows.commit();
}

}  // namespace

Status check_identity(Rows& rows, const DirectoryIdentity& identity) {
  PIF_TRY_VALUE(const std::uint32_t version, version_of(rows));
  if (version == 0) return fail(Code::kNotFound, "the server's directory is empty: is its disk mounted?");
  if (version != kFormatVersion && version != kWideFormat) {
    return fail(Code::kVersion,
                fmt::format("the directory has format version {}, this program knows {} and {}: {}", version,
                            kFormatVersion, kWideFormat,
                            version == kFormatBefore ? "run `pif up`, which takes it over"
                                                     : "use the release that wrote it, or a newer one"));
  }
  PIF_TRY(check_cluster(rows, identity.cluster));
  PIF_TRY_VALUE(const auto uuid, rows.get(kMeta, kUuidKey));
  if (identity.uuid.empty() || (uuid && *uuid == identity.uuid)) return {};
  return fail(Code::kInvalid,
              fmt::format("the server's directory is {}, and pif.toml says {}: is the right disk mounted?",
                          uuid ? *uuid : std::string_view("(unknown)"), identity.uuid));
}

Status make_directory(kv::Store& store, const DirectoryIdentity& identity, std::uint32_t owner_uid,
                      std::int64_t wall_seconds) {
  return in_one_turn(store, [&](Rows& rows) -> Status {
    PIF_TRY_VALUE(const std::uint32_t version, version_of(rows));
    if (version != 0) return check_identity(rows, identity);
    PIF_TRY(put_identity(rows, identity));
    return put_root_folder(rows, owner_uid, wall_seconds);
  });
}

Status adopt_directory(kv::Store& store, const DirectoryIdentity& identity) {
  return in_one_turn(store, [&](Rows& rows) -> Status {
    PIF_TRY_VALUE(const std::uint32_t version, version_of(rows));
    if (version != kFormatBefore) return check_identity(rows, identity);
    PIF_TRY(check_cluster(rows, identity.cluster));
    PIF_TRY(rows.erase(kMeta, "next-id"));  // its ids are a range of their own
    return put_identity(rows, identity);
  });
}

}  // namespace pif::server
