// Whether there is a PIF Server, which knows the files and admits this LFS.
#pragma once

#include "pif/lfs/lfs.h"

namespace pif::lfs {

inline bool has_server(const Config& config) {
  const proto::Endpoints& server = config.server;
  return !server.unix_path().empty() || !server.ipc().empty() || !server.tcp().empty();
}

}  // namespace pif::lfs
