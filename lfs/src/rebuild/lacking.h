// Files of which this LFS lacks its part though it takes part again: others that it needs for them are away, or
// damaged. The PIF Server hears of them first, so that others who come back know that they need not wait for what is
// not here; then the catalogue has them, for an LFS that is started again serves at once. A file leaves in the same
// order. One thread.
#pragma once

#include <functional>
#include <vector>

#include "context/lfs_context.h"
#include "requests/reporting.h"

namespace pif::lfs {

class LackingFiles {
 public:
  using Files = LostFiles::Lacking;
  static constexpr std::size_t kFilesMax = 65536;

  // Both outlive it.
  LackingFiles(LfsContext& context, Reporting& reporting) : context_(context), server_(reporting) {}

  // Each is called by a fiber, by one at a time.
  // All have the same order. kTooLarge: they would be more than kFilesMax.
  [[nodiscard]] Status add(const std::vector<std::uint64_t>& files, std::uint32_t order);
  // The server knows that they are lacking, and this LFS perhaps not: its root may be another one.
  [[nodiscard]] Status adopt(const Files& known);
  // This LFS has its part of them, in the present view.
  [[nodiscard]] Status remove(const std::vector<std::uint64_t>& files);

 private:
  // order 0: they are not lacking any more.
  [[nodiscard]] Status tell_server(const std::vector<std::uint64_t>& files, std::uint32_t order);
  [[nodiscard]] Status keep(const Files& all);

  LfsContext& context_;
  Reporting& server_;
};

// Between what is stored and what is in memory. An entry without an order counts as one of order 1.
LostFiles::Lacking lacking_of(const proto::StoredLacking& stored);
proto::StoredLacking stored_of(const LostFiles::Lacking& lacking);

}  // namespace pif::lfs
