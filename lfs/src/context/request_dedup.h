// Which requests were carried out already: a packet that was delayed, or sent again on another connection, may come
// after later requests of the same client, and must not undo what they did.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <utility>

#include "pif/base/assert.h"

namespace pif::lfs {

// The last 65,536 of all clients. Forgotten when the LFS ends: what was under way to it then is gone, too.
class RequestDedup {
 public:
  // A session's request number; session 0: nobody knows whose it is, so nothing is remembered.
  struct Key {
    std::uint64_t session = 0;
    std::uint64_t request = 0;
    auto operator<=>(const Key&) const = default;
  };

  bool knows(const Key& key) const { return key.session != 0 && done_.contains(key); }
  void add(const Key& key) {
    if (key.session == 0 || !done_.insert(key).second) return;
    order_.push_back(key);
    PIF_ASSERT(done_.size() == order_.size() && order_.size() <= kKept + 1, done_.size(), order_.size());
    if (order_.size() <= kKept) return;
    done_.erase(order_.front());
    order_.pop_front();
  }

 private:
  static constexpr std::size_t kKept = 65'536;
  std::set<Key> done_;
  std::deque<Key> order_;
};

}  // namespace pif::lfs
