#include "lmdb_env.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lmdb_pages.h"
#include "pif/base/assert.h"
#include "pif/base/handle.h"

namespace pif::kv {
namespace {

constexpr const char* kDataFile = "/data.mdb";
constexpr const char* kLockFile = "/lock.mdb";
constexpr const char* kMakingFolder = "/making";
constexpr std::uint64_t kFullBytes = 64u << 10;  // free on a disk that is called full

Code code_of(int rc) {
  switch (rc) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID: return Code::kCorrupt;
    case MDB_PANIC:  // a write of a meta page failed before: what is stored is whole, but this process cannot go on
                     // with it
      return Code::kIo;
    case MDB_VERSION_MISMATCH: return Code::kVersion;
    case MDB_MAP_FULL: return Code::kNoSpace;
    case MDB_BAD_VALSIZE: return Code::kTooLarge;
    default: return rc > 0 ? code_from_errno(rc) : Code::kInternal;
  }
}

// Whether the disk has less room than any commit needs.
bool is_full(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return false;
  const std::uint64_t blocks = ::geteuid() == 0 ? info.f_bfree : info.f_bavail;
  return blocks * info.f_frsize < kFullBytes;
}

tl::unexpected<Error> fail_system(int error, std::string_view what, const std::string& path) {
  return fail(code_from_errno(error), fmt::format("{} {}: {}", what, path, mdb_strerror(error)));
}

Status sync_folder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail_system(errno, "cannot sync the folder", path);
  return {};
}

Result<Env> plain_open(const std::string& path, unsigned tables, std::size_t map_bytes) {
  PIF_ASSERT(map_bytes > 0);
  MDB_env* raw = nullptr;
  if (const int rc = mdb_env_create(&raw)) return fail_lmdb(rc, "cannot make a store", path);
  Env env(raw);
  mdb_env_set_maxdbs(raw, std::max(1u, tables));
  if (const int rc = mdb_env_set_mapsize(raw, map_bytes)) return fail_lmdb(rc, "cannot size the store", path);
  if (const int rc = mdb_env_open(raw, path.c_str(), 0, 0600)) return fail_lmdb(rc, "cannot open the store", path);
  return env;
}

// A new environment is made aside and moved into place, so that an empty data file is never an interrupted creation.
Status make_new(const std::string& path) {
  const std::string making = path + kMakingFolder;
  if (::mkdir(making.c_str(), 0700) != 0 && errno != EEXIST) return fail_system(errno, "cannot make the store", path);
  ::unlink((making + kDataFile).c_str());
  ::unlink((making + kLockFile).c_str());
  {
    PIF_TRY_VALUE(const Env env, plain_open(making, 1, 1u << 20));
    if (const int rc = mdb_env_sync(env.get(), 1)) return fail_lmdb(rc, "cannot sync the store", path);
  }
  if (::rename((making + kDataFile).c_str(), (path + kDataFile).c_str()) != 0) {
    return fail_system(errno, "cannot make the store", path);
  }
  ::unlink((making + kLockFile).c_str());
  ::rmdir(making.c_str());
  return sync_folder(path);
}

Status make_if_missing(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_system(errno, "cannot make the folder", path);
  struct stat info {};
  if (::stat((path + kDataFile).c_str(), &info) == 0) {
    if (info.st_size > 0) return sync_folder(path);  // which may have failed when it was made
    return fail(Code::kCorrupt, fmt::format("the store {} is truncated: its data.mdb is empty", path));
  }
  if (errno != ENOENT) return fail_system(errno, "cannot read the store", path);
  return make_new(path);
}

Result<std::vector<MDB_dbi>> open_tables(MDB_env* env, const std::string& path, const std::vector<std::string>& names) {
  MDB_txn* raw = nullptr;
  if (const int rc = mdb_txn_begin(env, nullptr, 0, &raw)) return fail_lmdb(rc, "cannot write the store", path);
  Txn txn(raw);
  std::vector<MDB_dbi> tables;
  for (const std::string& name : names) {
    MDB_dbi table = 0;
    // LMDB's own table of tables has no name.
    if (const int rc =
            mdb_dbi_open(raw, name.empty() ? nullptr : name.c_str(), name.empty() ? 0 : MDB_CREATE, &table)) {
      return fail_lmdb(rc, fmt::format("cannot open table {} of the store", name), path);
    }
    tables.push_back(table);
  }
  if (const int rc = mdb_txn_commit(txn.release())) return fail_lmdb(rc, "cannot write the store", path);
  return tables;
}

std::size_t used_bytes(MDB_env* env) {
  MDB_envinfo info{};
  MDB_stat stat{};
  mdb_env_info(env, &info);
  mdb_env_stat(env, &stat);
  return (info.me_last_pgno + 1) * stat.ms_psize;
}

Status check_length(MDB_env* env, const std::string& path) {
  const std::string file = path + kDataFile;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return fail_system(errno, "cannot read the store", path);
  const auto should_be = static_cast<off_t>(used_bytes(env));
  if (info.st_size >= should_be) return {};
  PIF_TRY_VALUE(const bool whole, all_pages_present(file));
  if (whole) return {};
  return fail(Code::kCorrupt, fmt::format("the store {} is truncated: its data.mdb has {} bytes and should have {}",
                                          path, info.st_size, should_be));
}

}  // namespace

tl::unexpected<Error> fail_lmdb(int rc, std::string_view what, const std::string& path) {
  // LMDB calls it EIO when a disk that fills up takes a part of a page.
  if (rc == ENOSPC || rc == EDQUOT || (rc == EIO && is_full(path))) {
    return fail(Code::kNoSpace,
                fmt::format("{} {}: its disk is full: remove something from that disk, or make it larger; nothing "
                            "of this change was stored",
                            what, path));
  }
  return fail(code_of(rc), fmt::format("{} {}: {}", what, path, mdb_strerror(rc)));
}

Result<OpenEnv> open_env(const std::string& path, const std::vector<std::string>& tables, const LmdbGrowth& growth) {
  PIF_TRY(make_if_missing(path));
  OpenEnv opened;
  PIF_TRY_VALUE(opened.env, plain_open(path, static_cast<unsigned>(tables.size()), growth.map_bytes));
  int dead = 0;
  mdb_reader_check(opened.env.get(), &dead);
  PIF_TRY(check_length(opened.env.get(), path));
  PIF_TRY(grow_env(opened.env.get(), growth, path));
  PIF_TRY_VALUE(opened.tables, open_tables(opened.env.get(), path, tables));
  return opened;
}

Status grow_env(MDB_env* env, const LmdbGrowth& growth, const std::string& path) {
  MDB_envinfo info{};
  mdb_env_info(env, &info);
  const std::size_t needed = 2 * used_bytes(env) + growth.headroom_bytes;
  if (info.me_mapsize >= needed) return {};
  PIF_ASSERT(info.me_mapsize > 0, needed);  // it is doubled
  std::size_t bytes = info.me_mapsize;
  while (bytes < needed) bytes *= 2;
  if (const int rc = mdb_env_set_mapsize(env, bytes)) return fail_lmdb(rc, "cannot grow the store", path);
  return {};
}

}  // namespace pif::kv
