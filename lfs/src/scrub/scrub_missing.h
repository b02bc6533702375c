// Files with parity of which something belongs to this LFS, and of which its catalogue has nothing; and those of which
// this LFS keeps the length, and has less than the directory knows. The PIF Server lists all files, and what is missing
// is made anew (component_mend.h).
#pragma once

#include <string>

#include "scrub/component_mend.h"
#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubMissing {
 public:
  // All outlive it.
  ScrubMissing(ScrubPass& pass, ComponentMend& mend, Reporting& reporting)
      : context_(pass.keeping.context), pass_(pass), mend_(mend), server_(reporting) {}
  // From the first file on. Called by a fiber.
  void run();

 private:
  using One = proto::ListLostReply::One;
  [[nodiscard]] Result<proto::ListLostReply> list(std::uint64_t after);
  [[nodiscard]] bool is_lost(const One& file) const;
  void mend(const One& file);
  void report(const One& file, const std::string& what, const Result<bool>& made);

  LfsContext& context_;
  ScrubPass& pass_;
  ComponentMend& mend_;
  Reporting& server_;
};

}  // namespace pif::lfs
