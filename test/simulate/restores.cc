#include "simulate/restores.h"

#include <algorithm>

#include <fmt/format.h>

#include "../../lfs/src/redo/redo_log.h"
#include "../../lfs/src/store/catalogue.h"
#include "pif/kv/value.h"
#include "pif/proto/stored.pb.h"

namespace pif::simulate {
namespace {

constexpr kv::Table kNodes = 2, kNumbers = 5, kTop = 6;

proto::StoredNumbers numbers_of(const sim::RootImage& image) {
  const auto store = kv::open_memory(image.catalogue);
  return lfs::catalogue::numbers(*store).value_or(proto::StoredNumbers());
}

// The number that its LFS will present.
std::uint64_t number_of(const sim::RootImage& image) {
  const auto scratch = image.disk->copy();
  const auto storage = component::make_memory_storage(scratch);
  lfs::RedoLog log(*storage, image.folder + "/log", 64u << 20);
  (void)log.open([](const lfs::LogEntry&, std::uint64_t) { return Result<bool>(true); });
  const auto store = kv::open_memory(image.catalogue);
  std::uint64_t number = std::max(log.last_number(), numbers_of(image).number());
  (void)lfs::catalogue::each(*store, FileId(0), [&](FileId, Result<proto::ComponentState> state) {
    if (state) number = std::max(number, state->log_applied());
    return true;
  });
  return number;
}

void scan(const std::shared_ptr<kv::MemoryState>& state, kv::Table table,
          const std::function<void(std::string_view, std::string_view)>& visit) {
  const auto store = kv::open_memory(state);
  const auto transaction = store->read();
  if (!transaction) return;
  (void)(*transaction)->scan(table, {}, [&](std::string_view key, std::string_view value) {
    if (const auto payload = kv::open_value(value, "row")) visit(key, *payload);
    return true;
  });
}

std::uint64_t confirmed_of(const std::shared_ptr<kv::MemoryState>& directory, std::uint32_t node) {
  std::uint64_t confirmed = 0;
  scan(directory, kNodes, [&](std::string_view, std::string_view payload) {
    proto::StoredNode row;
    if (row.ParseFromArray(payload.data(), static_cast<int>(payload.size())) && row.node().id() == node)
      confirmed = row.confirmed();
  });
  return confirmed;
}

// Whether what the directory has durably heard of the LFS is more than this root has.
bool is_older_than_heard(const std::shared_ptr<kv::MemoryState>& directory, std::uint32_t node,
                         const sim::RootImage& image) {
  bool older = false;
  const auto incarnation = numbers_of(image).incarnation();
  scan(directory, kNodes, [&](std::string_view, std::string_view payload) {
    proto::StoredNode row;
    if (!row.ParseFromArray(payload.data(), static_cast<int>(payload.size())) || row.node().id() != node) return;
    older = (incarnation != row.confirmed() && incarnation != row.offered()) || number_of(image) < row.number();
  });
  return older;
}

// Whether a directory's history has that moment (server/src/directory/numbers.h).
bool has_moment(const std::shared_ptr<kv::MemoryState>& directory, const proto::Moment& moment) {
  std::uint64_t index = 0, end = UINT64_MAX;
  bool found = moment.run() == 0, is_last = false;
  scan(directory, kTop, [&](std::string_view key, std::string_view payload) {
    if (key == "index") index = kv::u64_of_key(payload);
  });
  scan(directory, kNumbers, [&](std::string_view key, std::string_view payload) {
    if (key.size() != 9 || key.front() != 'r') return;
    if (is_last) end = kv::u64_of_key(key.substr(1));
    is_last = kv::u64_of_key(payload) == moment.run();
    found = found || is_last;
  });
  return moment.run() == 0 || (found && (is_last ? moment.index() <= index : moment.index() < end));
}

}  // namespace

Restores::Restores(Shared& shared)
    : shared_(shared), cluster_(shared.cluster), world_(cluster_.world()), lfss_(cluster_.size()) {}

// Mostly the last one: it is what the others may not have heard of.
std::size_t Restores::some_backup(std::size_t count) { return world_.pick(2) == 0 ? count - 1 : world_.pick(count); }

void Restores::back_up() {
  if (world_.pick(3) == 0) {  // all at one moment
    server_.backups.emplace_back(world_.now(), cluster_.directory_image());
    for (unsigned i = 0; i < cluster_.size(); ++i)
      if (!lfss_[i].newest) lfss_[i].backups.emplace_back(world_.now(), cluster_.root_image(i));
    return;
  }
  const auto which = static_cast<unsigned>(world_.pick(cluster_.size() + 1));
  if (which == cluster_.size()) return server_.backups.emplace_back(world_.now(), cluster_.directory_image()), void();
  if (!lfss_[which].newest) lfss_[which].backups.emplace_back(world_.now(), cluster_.root_image(which));
}

// Whether an LFS still has what it was put back to. One that serves since has gone on: nobody can tell any more.
bool Restores::is_out(unsigned lfs) {
  Lfs& part = lfss_[lfs];
  if (!part.newest) return false;
  if (part.is_foreign || confirmed_of(cluster_.directory_image(), lfs + 1) <= numbers_of(*part.newest).incarnation())
    return true;
  if (part.must_notice)
    shared_.oracle.accuse(fmt::format("lfs{} was put back, and goes on as if nothing had happened", lfs));
  part.newest.reset();
  return false;
}

bool Restores::is_any_out() {
  if (server_.newest) return true;
  for (unsigned i = 0; i < cluster_.size(); ++i)
    if (is_out(i)) return true;
  return false;
}

void Restores::put(unsigned lfs, const sim::RootImage& image) {
  ++done;
  shared_.may_be_stale = true;
  lfss_[lfs].newest = cluster_.root_image(lfs);
  cluster_.put_root(lfs, image);
}

void Restores::restore_lfs(unsigned lfs) {
  Lfs& part = lfss_[lfs];
  if (server_.newest || is_out(lfs) || part.backups.empty()) return;
  const auto [from, image] = part.backups[some_backup(part.backups.size())];
  put(lfs, image);
  part.from = from;
  part.is_foreign = false;
  part.must_notice = is_older_than_heard(cluster_.directory_image(), lfs + 1, image);
  part.backups = {{from, image}};
  shared_.tell(fmt::format("lfs{} is what it was at {:.6f}: {}", lfs,
                           std::chrono::duration<double>(from.time_since_epoch()).count(),
                           part.must_notice ? "stale" : "nobody may know"));
  cluster_.restart_lfs(lfs);
  if (part.must_notice) return;
  lapsed_ = true;
  shared_.oracle.lapse({from, world_.now()});
}

bool Restores::restore_server() {
  if (is_any_out() || server_.backups.empty()) return false;
  const auto [from, image] = server_.backups[some_backup(server_.backups.size())];
  begin_server_restore(from, image);
  return true;
}

// LFSs have what they are to have.
void Restores::begin_server_restore(Time from, const std::shared_ptr<kv::MemoryState>& image) {
  ++done;
  shared_.may_be_stale = true;
  server_.newest = cluster_.directory_image();
  server_.lost = {from, world_.now()};
  server_.must_notice = false;
  for (unsigned i = 0; i < cluster_.size(); ++i) {
    cluster_.faults(i).heal();
    if (!cluster_.lfs_runs(i) || world_.pick(2) == 0) cluster_.restart_lfs(i);
    if (!has_moment(image, numbers_of(cluster_.root_image(i)).kept())) server_.must_notice = true;
  }
  cluster_.put_directory(*image);
  cluster_.server_faults().heal();
  cluster_.restart_server();
  shared_.tell(fmt::format("the directory is what it was at {:.6f}: {}",
                           std::chrono::duration<double>(from.time_since_epoch()).count(),
                           server_.must_notice ? "behind" : "nobody may know"));
}

// One of the LFSs becomes what it was, with the directory: it need be found stale only if the directory is not behind.
void Restores::put_back_with(const std::shared_ptr<kv::MemoryState>& directory, unsigned lfs) {
  Lfs& part = lfss_[lfs];
  const auto [from, image] = part.backups[some_backup(part.backups.size())];
  put(lfs, image);
  part.from = from;
  part.is_foreign = false;
  part.must_notice = is_older_than_heard(directory, lfs + 1, image);
  part.backups = {{from, image}};
  server_.has_unheard = server_.has_unheard || (from < server_.lost.begin && !part.must_notice);
  server_.together = std::min(server_.together.value_or(from), from);
  shared_.tell(fmt::format("with it, lfs{} is what it was at {:.6f}", lfs,
                           std::chrono::duration<double>(from.time_since_epoch()).count()));
  cluster_.restart_lfs(lfs);
}

bool Restores::restore_some() {
  if (is_any_out()) return false;
  if (server_.backups.empty() || world_.pick(4) == 0) {
    for (unsigned i = 0; i < cluster_.size(); ++i)
      if (world_.pick(2) == 0) restore_lfs(i);
    return false;
  }
  const auto [from, image] = server_.backups[some_backup(server_.backups.size())];
  server_.lost.begin = from;
  for (unsigned i = 0; i < cluster_.size(); ++i)
    if (!lfss_[i].backups.empty() && world_.pick(2) == 0) put_back_with(image, i);
  if (server_.together) server_.together = std::min(*server_.together, from);
  begin_server_restore(from, image);
  server_.is_unseen_with_lfss = server_.together && !server_.must_notice;
  if (!server_.must_notice) lapse_together();
  if (!server_.must_notice) return true;
  for (Lfs& part : lfss_) part.must_notice = false;  // nobody is asked about them
  return true;
}

void Restores::lapse_together() {
  if (!server_.together) return;
  lapsed_ = true;
  shared_.oracle.lapse({*server_.together, server_.lost.end});
  server_.together.reset();
}

void Restores::accept_all() {
  one_moment_ = server_.together && !server_.has_unheard && !lapsed_;
  lapse_together();
  for (unsigned i = 0; i < cluster_.size(); ++i) accept(i);
  accept_server();
}

void Restores::bring_all_back() {
  for (unsigned i = 0; i < cluster_.size(); ++i)
    if (lfss_[i].newest) bring_back(i);
  bring_server_back();
}

void Restores::wipe(unsigned lfs) {
  if (server_.newest || is_out(lfs)) return;
  auto image = cluster_.empty_root(lfs);
  const auto own = cluster_.root_image(lfs);
  const auto kept = world_.pick(3);
  if (kept == 1) image.catalogue = own.catalogue;
  if (kept == 2) image.disk = own.disk;
  put(lfs, image);
  lfss_[lfs].is_foreign = lfss_[lfs].must_notice = true;
  cluster_.restart_lfs(lfs);
}

void Restores::swap(unsigned one, unsigned other) {
  if (server_.newest || one == other || is_out(one) || is_out(other)) return;
  const auto first = cluster_.root_image(one), second = cluster_.root_image(other);
  put(one, second);
  put(other, first);
  for (const unsigned lfs : {one, other}) {
    lfss_[lfs].is_foreign = lfss_[lfs].must_notice = true;
    cluster_.restart_lfs(lfs);
  }
}

void Restores::bring_back(unsigned lfs) {
  cluster_.put_root(lfs, *lfss_[lfs].newest);
  lfss_[lfs].newest.reset();
  cluster_.restart_lfs(lfs);
}

void Restores::bring_server_back() {
  cluster_.put_directory(*server_.newest);
  server_.newest.reset();
  cluster_.restart_server();
}

}  // namespace pif::simulate
