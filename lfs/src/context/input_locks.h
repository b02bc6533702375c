// Components that workers have as inputs: nobody changes them meanwhile. The PIF Server refuses writers of a file that
// a tool holds, but not those who got their capability before and whose lease it has forgotten (a broken connection, a
// restart).
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "pif/base/assert.h"
#include "pif/base/ids.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

class InputLocks {
 public:
  using IsWorker = std::function<bool(net::PeerId)>;  // whether it is the connection of a worker that lives

  explicit InputLocks(IsWorker is_worker) : is_worker_(std::move(is_worker)) {}

  bool is_worker(net::PeerId peer) const { return is_worker_(peer); }
  // Until the worker ends.
  void add(FileId file, net::PeerId worker) {
    std::erase_if(holders_, [this](const auto& held) { return !is_held(held.second); });
    PIF_ASSERT(worker != 0 && file.value != 0, file.value);
    holders_[file.value].insert(worker);
  }
  bool is_held(FileId file) const {
    const auto found = holders_.find(file.value);
    return found != holders_.end() && is_held(found->second);
  }

 private:
  bool is_held(const std::set<net::PeerId>& workers) const {
    return std::any_of(workers.begin(), workers.end(), is_worker_);
  }

  IsWorker is_worker_;
  std::unordered_map<std::uint64_t, std::set<net::PeerId>> holders_;  // by file
};

}  // namespace pif::lfs
