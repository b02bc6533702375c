// Which new files of a mount wait to be sent (-o lazy). A mount has an open handle and a lookup of its own of each, so
// that its content and its name stay until then. Files that are made one after another have one client, up to a batch:
// it sends them while the next client takes new ones. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "content/unsent.h"
#include "nodes/nodes.h"
#include "pif/base/clock.h"

namespace pif::mount {

class Waiting {
 public:
  static constexpr std::size_t kBatch = 256;            // files that are sent together
  static constexpr std::size_t kFilesMax = 8 * kBatch;  // beyond it a close sends first
  static constexpr std::uint64_t kBytesMax = 64u << 20;

  struct File {
    NodeId node = 0;
    Time since{};
  };

  explicit Waiting(unsigned clients) : of_(clients) {}

  UnsentBytes& bytes() { return bytes_; }
  // The client of the next file.
  unsigned next_client();
  // The caller has the client. True: a batch is full.
  bool add(unsigned client, File file);
  // The oldest first. While the caller has the client none is added.
  std::vector<File> of(unsigned client) const;
  // They are no longer waiting. The caller has the client.
  void remove(unsigned client, const std::unordered_set<NodeId>& nodes);
  bool is_empty(unsigned client) const;
  // A batch is full, or one of them waits since before `time`.
  bool is_due(unsigned client, Time time) const;
  // A close sends first.
  bool is_full() const { return files_ > kFilesMax || bytes_.is_half_full(); }

 private:
  mutable std::mutex mutex_;  // guards of_, next_, given_
  std::vector<std::vector<File>> of_;
  unsigned next_ = 0;
  std::size_t given_ = 0;  // files that next_ got one after another
  std::atomic<std::size_t> files_{0};
  UnsentBytes bytes_{kBytesMax};
};

}  // namespace pif::mount
