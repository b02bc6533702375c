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

#include "context/registry.h"
#include "directory/rows.h"
#include "pif/net/calls.h"

namespace pif::server {

inline constexpr std::size_t kSettleIdsMax = 1000;       // of one request
inline constexpr std::size_t kDoomedInMemory = 200'000;  // more stay in the table until these are done
inline constexpr std::size_t kCommittedQueued = 20'000;  // per node; an LFS asks about what it does not hear

class Outbox {
 public:
  Outbox(const Config& config, net::Messenger& messenger, Rows& rows, const Registry& registry)
      : config_(config), messenger_(messenger), rows_(rows), registry_(registry), calls_(messenger) {}

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

  bool offer(net::Delivery& delivery) { return calls_.offer(delivery); }
  // Notes in the table what was released before its time, in the same turn, before any LFS hears of it: a server that
  // starts again must not take such a file for one that somebody has open.
  [[nodiscard]] Status store_released(std::int64_t wall);
  // Forgets in the table what everybody has answered; in a turn.
  [[nodiscard]] Status apply_answers();
  // Sends what may be sent.
  void pump(Time now, std::int64_t wall, const proto::Moment& moment);
  Time next_deadline() const { return calls_.next_deadline(); }
  std::uint64_t doomed_count() const { return doomed_count_; }

 private:
  struct Doomed {
    std::vector<std::uint32_t> waiting;  // nodes
    std::int64_t expiry = 0;             // held until then at most; 0: released
    bool aborted = false;
  };
  struct Line {  // to one node
    std::deque<std::uint64_t> removed;
    std::deque<std::uint64_t> committed;
    bool under_way = false;
    Time not_before{};
  };
  struct Answer {
    std::uint32_t node;
    std::vector<std::uint64_t> removed;
    bool good;
  };
  void add(std::uint64_t file, Doomed doomed);
  void add(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall);
  void queue(std::uint64_t file, const Doomed& doomed);
  void send(std::uint32_t node, const Node& known, Line& line, Time now, std::int64_t wall,
            const proto::Moment& moment);
  [[nodiscard]] Status apply(Answer& answer);
  void untold(const std::vector<std::uint64_t>& files, std::uint32_t node);

  const Config& config_;
  net::Messenger& messenger_;
  Rows& rows_;
  const Registry& registry_;
  net::Calls calls_;
  std::unordered_map<std::uint64_t, Doomed> doomed_;
  std::unordered_set<std::uint64_t> held_;  // of doomed_
  std::map<std::uint32_t, Line> lines_;     // by node
  std::vector<Answer> answers_;
  std::vector<std::uint64_t> released_;  // the table does not know it yet
  std::uint64_t doomed_count_ = 0;       // rows, in memory or not
  bool more_in_table_ = false;
};

}  // namespace pif::server
