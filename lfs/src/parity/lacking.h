// Files of which this LFS lacks its part though it takes part again: others that it needs for them are away, or
// damaged. The PIF Server is told first, so that others who come back know that they need not wait for what is not
// here; then the catalogue has them, for an LFS that is started again serves at once. A file leaves in the same order.
// One thread.
#pragma once

#include <functional>
#include <vector>

#include "context/lfs_context.h"

namespace pif::lfs {

class LackingFiles {
 public:
  using Files = LostFiles::Lacking;
  // Asks the PIF Server; kUnavailable, perhaps at once, without it. On the loop's thread.
  using Ask = std::function<void(net::Packet, std::function<void(Result<net::Packet>)>)>;
  using Done = std::function<void(const Status&)>;  // on the loop's thread; perhaps at once

  static constexpr std::size_t kFilesMax = 65536;

  // Both outlive it.
  LackingFiles(LfsContext& context, const Ask& ask) : context_(context), ask_(ask) {}

  // All have the same order. kTooLarge: they would be more than kFilesMax.
  void add(std::vector<std::uint64_t> files, std::uint32_t order, Done done);
  // The server knows that they are lacking, and this LFS perhaps not: its root may be another one.
  void adopt(const Files& told);
  // This LFS has its part of them, in the present view.
  void remove(std::vector<std::uint64_t> files, Done done);
  bool is_busy() const { return is_busy_; }

 private:
  void tell(std::vector<std::uint64_t> files, std::uint32_t order, std::size_t first, Done done);
  void keep(Files all, const Done& done);

  LfsContext& context_;
  const Ask& ask_;
  bool is_busy_ = false;
};

// Between what is stored and what is in memory. An entry without an order counts as one of order 1.
LostFiles::Lacking lacking_of(const proto::StoredLacking& stored);
proto::StoredLacking stored_of(const LostFiles::Lacking& lacking);

}  // namespace pif::lfs
