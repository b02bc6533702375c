// What daemons watch: the description, and the cluster's key. Of daemons alone: what logs is not linked into clients.
#include <sys/stat.h>

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "description/description.h"
#include "keys/keys.h"
#include "pif/cluster/cluster.h"
#include "pif/cluster/key_file.h"

namespace pif::cluster {

namespace {

// Of the file as it is now: another number after every write, which gives the name to another file.
std::int64_t stamp_of(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return 0;
  return file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec + static_cast<std::int64_t>(file.st_ino);
}

}  // namespace

Watched::Watched(Cluster cluster)
    : cluster_(std::move(cluster)), seen_ns_(stamp_of(description_path(cluster_.folder))) {}

bool Watched::changed() {
  const std::int64_t now = stamp_of(description_path(cluster_.folder));
  if (now == seen_ns_) return false;
  seen_ns_ = now;
  auto loaded = load_cluster(cluster_.folder);
  if (!loaded) {
    spdlog::error("the description has changed, and is not taken: {}", loaded.error().text);
    return false;
  }
  cluster_ = std::move(*loaded);
  return true;
}

WatchedKeys::WatchedKeys(const Cluster& cluster, const KeyFile& keys)
    : cluster_(cluster), keys_(keys), ring_(keys.signing) {}

void WatchedKeys::look(std::int64_t now) {
  const std::int64_t stamp = stamp_of(cluster_key_path(cluster_.folder));
  if (stamp != seen_) {
    seen_ = stamp;
    auto read = load_key_file(cluster_);
    if (!read) return spdlog::error("the cluster's key may have changed, and cannot be read: {}", read.error().text);
    keys_ = *read;
  }
  apply(now);
}

void WatchedKeys::apply(std::int64_t now) {
  const std::uint64_t before = ring_.version();
  const bool is_accepted = keys_.is_changing() || keys_.has_old(now);
  ring_.set(keys_.signing, is_accepted ? keys_.accepted : std::nullopt);
  if (ring_.version() == before) return;
  spdlog::info("the cluster's key is number {}; {}", keys_.number,
               keys_.is_changing() ? "the next one is accepted, too"
               : is_accepted       ? fmt::format("the one before is accepted for {} s", keys_.until - now)
                                   : "no other is accepted");
}

}  // namespace pif::cluster
