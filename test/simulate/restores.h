// Parts that are put back to what they were, as somebody does who restores a backup: an LFS's disk with its catalogue,
// or the server's directory. Knows what each of them must notice, and what may be lost unseen.
#pragma once

#include <optional>
#include <vector>

#include "simulate/shared.h"

namespace pif::simulate {

class Restores {
 public:
  explicit Restores(Shared& shared);

  // ---- strikes; each does nothing where it would make two parts old at once that prove each other's age ----
  void back_up();
  void restore_lfs(unsigned lfs);
  // True: it was restored, and all LFSs have been started that did not run.
  bool restore_server();
  void wipe(unsigned lfs);
  void swap(unsigned one, unsigned other);

  // ---- what became of it ----
  struct Lfs {
    std::vector<std::pair<Time, sim::RootImage>> backups;
    std::optional<sim::RootImage> newest;  // set: what it has is not that
    Time from{};                           // how old that is
    bool must_notice = false;              // the directory bears what it has not
    bool is_foreign = false;               // another one's, or nothing: it must not start
  };
  struct Server {
    std::vector<std::pair<Time, std::shared_ptr<kv::MemoryState>>> backups;
    std::shared_ptr<kv::MemoryState> newest;
    Span lost;
    bool must_notice = false;
  };
  const Lfs& lfs(unsigned index) const { return lfss_[index]; }
  const Server& server() const { return server_; }
  bool has_lapsed() const { return lapsed_; }  // an LFS may have gone on from an old root
  void bring_back(unsigned lfs);
  void bring_server_back();
  void accept(unsigned lfs) { lfss_[lfs].newest.reset(); }
  void accept_server() { server_.newest.reset(); }

  std::uint64_t done = 0;      // restores, wipes and swaps
  std::uint64_t noticed = 0;   // of them; the others were younger than the last report
  std::uint64_t accepted = 0;  // taken as they were

 private:
  bool is_out(unsigned lfs);
  bool is_any_out();
  void put(unsigned lfs, const sim::RootImage& image);
  std::size_t some_backup(std::size_t count);

  Shared& shared_;
  sim::Cluster& cluster_;
  sim::World& world_;
  std::vector<Lfs> lfss_;
  Server server_;
  bool lapsed_ = false;
};

}  // namespace pif::simulate
