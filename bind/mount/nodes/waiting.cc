#include "nodes/waiting.h"
#include "pif/base/assert.h"

namespace pif::mount {

unsigned Waiting::next_client() {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(!of_.empty() && given_ <= kBatch, of_.size(), given_);
  if (given_ == kBatch) {
    next_ = (next_ + 1) % static_cast<unsigned>(of_.size());
    given_ = 0;
  }
  PIF_ASSERT(next_ < of_.size(), next_, of_.size());
  ++given_;
  return next_;
}

bool Waiting::add(unsigned client, File file) {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(client < of_.size(), client, of_.size());
  of_[client].push_back(file);
  ++files_;
  return of_[client].size() >= kBatch;
}

std::vector<Waiting::File> Waiting::of(unsigned client) const {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(client < of_.size(), client, of_.size());
  return of_[client];
}

void Waiting::remove(unsigned client, const std::unordered_set<NodeId>& nodes) {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(client < of_.size(), client, of_.size());
  const std::size_t removed = std::erase_if(of_[client], [&](const File& file) { return nodes.contains(file.node); });
  PIF_ASSERT(removed <= files_.load(), removed, files_.load());
  files_ -= removed;
}

bool Waiting::is_empty(unsigned client) const {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(client < of_.size(), client, of_.size());
  return of_[client].empty();
}

bool Waiting::is_due(unsigned client, Time time) const {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(client < of_.size(), client, of_.size());
  const std::vector<File>& files = of_[client];
  return files.size() >= kBatch || (!files.empty() && files.front().since < time);
}

}  // namespace pif::mount
