// The LFS's worker host: starts the workers of tools, watches them, hands the rest of a spawn tree on, and ends them
// when their controller goes away.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "context/authorizer.h"
#include "context/operations.h"
#include "pif/daemon/caller.h"
#include "pif/daemon/fibers.h"
#include "pif/lfs/lfs.h"

namespace pif::lfs {

class WorkerHost {
 public:
  // Called for each worker's connection that is one no more.
  using OnGone = std::function<void(net::PeerId worker)>;

  // config and what world refers to outlive the host. Its operations are bound in `operations`. It lives as long as
  // any of fibers.
  WorkerHost(const Config& config, World world, daemon::Fibers& fibers, daemon::Caller& caller, Operations& operations,
             OnGone on_gone);
  ~WorkerHost();

  // The connection is gone: a worker's, perhaps.
  void closed(net::PeerId peer);
  // A worker's connection speaks for the user of its job. (This process made the socket, so the kernel names this
  // process instead.) Nothing for any other peer.
  std::optional<WorkerIdentity> identity_of(net::PeerId peer) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::lfs
