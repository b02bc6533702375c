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

class CopiedPages {
 public:
  // request: a Gather that names a source. keeper, files: of the file that is being made, which is to have `pages`.
  // Why there is nothing to copy: the requester may not read the source; it is laid out otherwise, or is not whole
  // here.
  [[nodiscard]] static Result<std::unique_ptr<CopiedPages>> make(LfsContext& context, const Request& request,
                                                                 const Keeper& keeper, std::uint64_t pages,
                                                                 std::shared_ptr<component::ParityFiles> files);
  // The number of pages that are right now, perhaps none. Why the others are not is in the log. Called by a fiber.
  std::uint64_t run(Works& works);

  // For make().
  CopiedPages(const Keeper& keeper, FileId source, component::ParityFiles from, std::uint64_t pages,
              std::shared_ptr<component::ParityFiles> to);

 private:
  const FileId target_;
  const component::ParityShape shape_;  // of the source
  component::ParityFiles from_;
  const std::shared_ptr<component::ParityFiles> to_;
  component::PageCopy copy_;
};

}  // namespace pif::lfs
