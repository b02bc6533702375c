// News that the LFSs have yet to get: files that were committed (a courtesy, in memory) and files that are gone (an
// intention in the "files" table, which stays until every LFS of the layout has answered).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pif/base/result.h"
#include "pif/daemon/fibers.h"
#include "pif/net/messenger.h"
#include "pif/proto/stored.pb.h"

namespace pif::server {

struct ServerContext;

inline constexpr std::size_t kSettleIdsMax = 1000;       // of one request
inline constexpr std::size_t kDoomedInMemory = 200'000;  // more stay in the table until these are done
inline constexpr std::size_t kCommittedQueued = 20'000;  // per node; an LFS asks about what it does not hear

class Outbox {
 public:
  // context outlives it, and its fibers end first: one for each node tells it what there is.
  explicit Outbox(ServerContext& context) : context_(context) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // All call these after the turn that made it so is durable.
  void committed(std::uint64_t file, const proto::FileLayout& layout);
  // `held`: not before release().
  void doomed(std::uint64_t file, const proto::FileLayout& layout, bool aborted, bool held);
  void release(std::uint64_t file);

  // At start: one doomed row of the table.
  void loaded(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall);
  // Takes up what did not fit into memory before. Between two turns: rows that are not durable yet may be taken back.
  [[nodiscard]] Status refill(std::int64_t wall);
  // Releases what was loaded with an expiry that has passed.
  void expire_held(std::int64_t wall);
  void extend_held(std::uint64_t file, std::int64_t expiry);
  // Whether somebody may have it open still: until that ends no LFS hears that it is gone. row: of a doomed file, of
  // this turn.
  bool is_held(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall) const;

  // Notes in the table what was released before its time, in the same turn, before any LFS hears of it: a server that
  // starts again must not take such a file for one that somebody has open.
  [[nodiscard]] Status store_released(std::int64_t wall);
  std::uint64_t doomed_count() const { return doomed_count_; }

 private:
  struct Doomed {
    std::vector<std::uint32_t> waiting;  // nodes
    std::int64_t expiry = 0;             // held until then at most; 0: released
    bool aborted = false;
  };
  struct Line {  // to one node
    explicit Line(daemon::Fibers& fibers) : news(fibers) {}
    bool is_empty() const { return removed.empty() && committed.empty(); }
    std::deque<std::uint64_t> removed;
    std::deque<std::uint64_t> committed;
    daemon::Event news;  // something is to be told
  };
  // The files that one request is about.
  struct Batch {
    std::vector<std::uint64_t> removed;
    std::vector<std::uint64_t> committed;
  };
  void add(std::uint64_t file, Doomed doomed);
  void add(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall);
  void queue(std::uint64_t file, const Doomed& doomed);
  Line& line_to(std::uint32_t node);

  // ---- on the node's fiber ----
  void keep_telling(std::uint32_t node);
  static Batch take(Line& line);
  // Errors: the node is to be told again of what is removed.
  [[nodiscard]] Status tell(std::uint32_t node, const Batch& batch);
  [[nodiscard]] Status send(std::uint32_t node, const Batch& batch);
  net::Packet packet_of(const Batch& batch) const;
  // Forgets in the table what everybody has been told.
  [[nodiscard]] Status note_told(std::uint32_t node, const std::vector<std::uint64_t>& files);
  void untold(std::uint32_t node, const std::vector<std::uint64_t>& files);

  ServerContext& context_;
  std::unordered_map<std::uint64_t, Doomed> doomed_;
  std::unordered_set<std::uint64_t> held_;  // of doomed_
  std::map<std::uint32_t, Line> lines_;     // by node
  std::vector<std::uint64_t> released_;     // the table does not know it yet
  std::uint64_t doomed_count_ = 0;          // rows, in memory or not
  bool more_in_table_ = false;
};

}  // namespace pif::server
