// A whole file system in the simulated world: one PIF Server and its LFSs, on disks in memory that outlive crashes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "pif/client/client.h"
#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/lfs/lfs.h"
#include "pif/server/server.h"
#include "sim/faults.h"
#include "sim/spawner.h"
#include "sim/world.h"

namespace pif::sim {

// A client's side: Client::connect_in(side.world(), Cluster::kServer, options), inside an actor.
class ClientSide {
 public:
  explicit ClientSide(Actor& self);
  ClientWorld world() { return {self_.messenger(), *storage_, self_.entropy()}; }

 private:
  Actor& self_;
  std::unique_ptr<component::Storage> storage_;
};

struct ClusterOptions {
  bool faulty = false;  // disks and stores obey faults(); a daemon may end with an error, in last_words()
  std::uint64_t log_bytes = 64u << 20;  // of a redo log
  std::uint32_t bevy = 0;               // server::Config::default_bevy
  bool declares_lost = false;           // the server by itself, too; else histories say who is lost
  // LFSs reach the server over a ZeroMQ-like route, which World::cut() cuts, though packets come once and in order.
  bool may_be_cut = false;
  bool is_far = false;  // LFSs have no Unix sockets: rows travel in messages, and LFSs reach each other as tcp does
};

// What a backup of an LFS's root has of one moment.
struct RootImage {
  std::string folder;  // on the disk
  std::shared_ptr<component::MemoryDisk> disk;
  std::shared_ptr<kv::MemoryState> catalogue;

  RootImage copy() const { return {folder, disk->copy(), kv::copy_memory_state(*catalogue)}; }
};

class Cluster {
 public:
  // Starts the server ("server") and LFSs "lfs0", ... as actors. Must be destroyed after the world's actors have ended
  // or before the world: it kills its own.
  Cluster(World& world, unsigned lfss, ClusterOptions options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  static constexpr const char* kServer = "sim:server";
  static proto::Endpoints endpoints(const std::string& name);
  unsigned size() const { return static_cast<unsigned>(nodes_.size()); }

  // kill -9 of the process: what was written but not synced stays (it is the kernel's). Faults set on the LFS's disk
  // are gone afterwards: it fails every call while its daemon dies, so that nothing is tidied up.
  void kill_server();
  void kill_lfs(unsigned index);
  // Power loss of its machine: what was not synced is gone.
  void crash_lfs(unsigned index);
  // The same in the middle of the n-th call from now of its disk or store; of unsynced writes any part is kept. Faulty
  // only. only_durable: of its calls that make something durable.
  void crash_lfs_at(unsigned index, std::uint64_t calls, bool only_durable);
  void crash_server_at(std::uint64_t calls, bool only_durable);
  std::uint64_t power_losses() const { return power_losses_; }  // of all LFSs
  bool server_runs() const;
  bool lfs_runs(unsigned index) const;
  Faults& faults(unsigned index) { return *nodes_[index].faults; }
  Faults& server_faults() { return *server_faults_; }
  // Why a daemon ended by itself; empty: it did not.
  const std::string& last_words() const { return last_words_; }
  // Starts it again; kills it first if it still runs.
  void restart_server();
  void restart_lfs(unsigned index);
  // Power loss; from now on it has an empty root with another uuid, which the server is to be told (ReplaceNode). It
  // does not run.
  void replace_root(unsigned index);

  // What is durable now: what its disk would have after a power loss.
  RootImage root_image(unsigned index) const { return nodes_.at(index).root.copy(); }
  std::shared_ptr<kv::MemoryState> directory_image() const { return kv::copy_memory_state(*directory_); }
  // Power loss; from now on its disk is a copy of this one, in the same place. It does not run.
  void put_root(unsigned index, const RootImage& image);
  void put_directory(const kv::MemoryState& image);
  RootImage empty_root(unsigned index) const;

  component::MemoryDisk& disk(unsigned index) { return *nodes_[index].root.disk; }
  std::string root(unsigned index) const;
  static server::DirectoryIdentity directory_identity();
  lfs::RootIdentity root_identity(unsigned index) const;
  // Stores to look at while the daemon does not run (check_root, check_directory).
  std::unique_ptr<component::Storage> open_disk(unsigned index);
  std::unique_ptr<kv::Store> open_catalogue(unsigned index);
  std::unique_ptr<kv::Store> open_directory();
  const ClusterKey& key() const { return key_; }
  Programs& programs() { return programs_; }
  World& world() { return world_; }

 private:
  struct Node {
    std::string name;
    RootImage root;
    std::shared_ptr<Faults> faults = std::make_shared<Faults>();
    ActorId actor = 0;
    unsigned replaced = 0;  // so often
  };
  void lose_power(Node& node);
  void ended(Actor& self, const Status& why);
  std::unique_ptr<kv::Store> store_of(const std::string& name, const std::shared_ptr<kv::MemoryState>& state,
                                      const std::shared_ptr<Faults>& faults);
  void start_server();
  void start_lfs(unsigned index);
  void run_server(Actor& self);
  void run_lfs(Actor& self, unsigned index);

  World& world_;
  const ClusterOptions options_;
  ClusterKey key_;
  Programs programs_;
  std::shared_ptr<kv::MemoryState> directory_;
  std::shared_ptr<Faults> server_faults_ = std::make_shared<Faults>();
  std::string last_words_;
  std::uint64_t power_losses_ = 0;
  ActorId server_actor_ = 0;
  std::vector<Node> nodes_;
  const std::atomic<bool> never_ = false;  // daemons end by being killed
};

}  // namespace pif::sim
