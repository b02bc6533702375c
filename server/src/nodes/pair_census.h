// How many files with parity lie on no pair of bevies that the server makes for new files. They were made while too few
// LFSs were there, or with LFSs that somebody named; the loss of one LFS of each pair may take them. The table is gone
// through in steps, again and again, so that the number may be some seconds old. One thread.
#pragma once

#include "context/server_context.h"
#include "pif/parity/pairs.h"

namespace pif::server {

class PairCensus {
 public:
  // A step, at each tick.
  void step(ServerContext& context);

 private:
  [[nodiscard]] Result<bool> is_off_pairs(ServerContext& context, std::uint64_t id, const proto::StoredFile& file);

  std::vector<parity::BevyPair> pairs_;  // of this pass
  std::uint64_t next_ = 0;               // file
  std::uint64_t found_ = 0;              // in this pass
  Time not_before_{};
};

// Those of the default size; none: there is no such size, or there are too few LFSs.
std::vector<parity::BevyPair> default_pairs(const ServerContext& context);

}  // namespace pif::server
