// CopyRows: rows whose LFS is absent come to the LFS that keeps their parity, which holds them as frames until the LFS
// returns or pages are made of them. The Gather of a file that is being created makes them durable; so does the Cover
// of an append.
#pragma once

#include "parity/covering.h"
#include "parity/gathering.h"

namespace pif::lfs {

class Copying {
 public:
  // All outlive it.
  Copying(Keeping& keeping, Gathering& gathering, Covering& covering);

  // The same rows again add the same frames.
  [[nodiscard]] Status copy_rows(const Request& request, const proto::CopyRows& asked);

 private:
  [[nodiscard]] Status check(const Request& request, const Keeper& keeper);

  LfsContext& context_;
  Gathering& gathering_;
  Covering& covering_;
};

}  // namespace pif::lfs
