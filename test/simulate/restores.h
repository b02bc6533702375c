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

  // ---- strikes; each does nothing where parts are old already that prove its age ----
  void back_up();
  void restore_lfs(unsigned lfs);
  // True: it was restored, and all LFSs have been started that did not run.
  bool restore_server();
  // Any of the parts, each to any moment. True as above.
  bool restore_some();
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
    // When LFSs were put back with it: the oldest moment of all.
    std::optional<Time> together{};
    // Nobody need have noticed. The newer roots belong to another history by now: they cannot be brought back alone.
    bool is_unseen_with_lfss = false;
    // One of them lacks what it did before the directory's moment, and the directory had not heard of it.
    bool has_unheard = false;
  };
  const Lfs& lfs(unsigned index) const { return lfss_[index]; }
  const Server& server() const { return server_; }
  bool has_lapsed() const { return lapsed_; }  // an LFS may have gone on from an old root
  void bring_back(unsigned lfs);
  void bring_server_back();
  void accept(unsigned lfs) { lfss_[lfs].newest.reset(); }
  void accept_server() { server_.newest.reset(); }
  // The directory and all LFSs that were put back with it are kept. What is not marked must be of one moment.
  void accept_all();
  void bring_all_back();
  bool must_be_of_one_moment() const { return one_moment_; }

  std::uint64_t done = 0;      // restores, wipes and swaps
  std::uint64_t noticed = 0;   // of them; the others were younger than the last report
  std::uint64_t accepted = 0;  // taken as they were

 private:
  bool is_out(unsigned lfs);
  bool is_any_out();
  void put(unsigned lfs, const sim::RootImage& image);
  std::size_t some_backup(std::size_t count);
  void begin_server_restore(Time from, const std::shared_ptr<kv::MemoryState>& image);
  // The directory was put back with some LFSs: what was done since may be undone.
  void lapse_together();
  void put_back_with(const std::shared_ptr<kv::MemoryState>& directory, unsigned lfs);

  Shared& shared_;
  sim::Cluster& cluster_;
  sim::World& world_;
  std::vector<Lfs> lfss_;
  Server server_;
  bool lapsed_ = false;
  bool one_moment_ = false;
};

}  // namespace pif::simulate
