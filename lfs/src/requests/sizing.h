// Answers how much of this LFS's disk files take. Whoever knows a file's id may ask: it is no secret of the file's
// readers.
#pragma once

#include "context/lfs_context.h"

namespace pif::lfs {

class Sizing {
 public:
  explicit Sizing(LfsContext& context);

  [[nodiscard]] Result<net::Packet> stored_bytes(const Request& request, const proto::StoredBytes& asked);

 private:
  LfsContext& context_;
};

}  // namespace pif::lfs
