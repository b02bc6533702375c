// Pages of a file that is made as a copy of another one: those that its source has here are copied, instead of being
// made out of rows. They are the same, for a page says nothing of the file but in its sums (component/page_copy.h).
// docs/PROTOCOL.md "Copied pages" has the conditions.
#pragma once

#include <memory>

#include "context/lfs_context.h"
#include "parity/works.h"
#include "pif/component/page_copy.h"
#include "store/keeper.h"

namespace pif::lfs {

class CopiedPages : public std::enable_shared_from_this<CopiedPages> {
 public:
  using Done = std::function<void(std::uint64_t pages)>;

  // request: a Gather that names a source. keeper, files: of the file that is being made, which is to have `pages`.
  // Why there is nothing to copy: the requester may not read the source; it is laid out otherwise, or is not whole
  // here.
  [[nodiscard]] static Result<std::shared_ptr<CopiedPages>> make(LfsContext& context, const Request& request,
                                                                 const Keeper& keeper, std::uint64_t pages,
                                                                 std::shared_ptr<component::ParityFiles> files);
  // done: later, or before this returns, on the loop's thread, with the number of pages that are right now, perhaps
  // none. Why the others are not is in the log. works: outlives that.
  void start(Works& works, Done done);

  // For make().
  CopiedPages(const Keeper& keeper, FileId source, component::ParityFiles from, std::uint64_t pages,
              std::shared_ptr<component::ParityFiles> to);

 private:
  void step();
  void end();

  const FileId target_;
  const component::ParityShape shape_;  // of the source
  component::ParityFiles from_;
  const std::shared_ptr<component::ParityFiles> to_;
  component::PageCopy copy_;
  Works* works_ = nullptr;
  Result<bool> goes_on_ = true;
  Done done_;
};

}  // namespace pif::lfs
