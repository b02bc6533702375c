// The LFS's worker host: starts the workers of tools, watches them, hands the rest of a spawn tree on, and ends them
// when their controller goes away. Part of the LFS's event loop: never waits.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "context/authorizer.h"
#include "context/operations.h"
#include "pif/lfs/lfs.h"

namespace pif::lfs {

class WorkerHost {
 public:
  // Answers a request of this operation, which came at `arrived`. Best effort: a peer that is gone gets nothing.
  using Send = std::function<void(net::PeerId, net::Packet, int operation, Time arrived)>;

  // config and what world refers to outlive the host. Its operations are bound in `operations`.
  WorkerHost(const Config& config, World world, Send send, Operations& operations);
  ~WorkerHost();

  // Takes replies to its own calls, and kClosed of worker connections. Returns false for what is not its own.
  bool offer(net::Delivery& delivery);
  void tick();                 // at or after next_deadline(), and on every turn of the loop
  Time next_deadline() const;  // kNever when no job is here
  // Whom a worker's connection speaks for: the user of its job (the socket was made by this process, so the kernel
  // names this process instead). Nothing for any other peer.
  std::optional<WorkerIdentity> identity_of(net::PeerId peer) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::lfs
