// How much of this LFS's disk files take, for who looks where space went. That is no secret of a file's readers: who
// knows its id may ask.
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
