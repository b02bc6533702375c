// What LFS 0 of a file with parity tells its deputy (deputy.h), and asks it. One thread.
#pragma once

#include <functional>
#include <optional>

#include "append/sequencer.h"
#include "context/lfs_context.h"
#include "parity/peers.h"

namespace pif::lfs {

class Noting {
 public:
  using Done = std::function<void(Result<proto::NotedLength>)>;  // what the deputy has then; may come at once

  Noting(LfsContext& context, Peers& peers) : context_(context), peers_(peers) {}

  static bool is_needed(const Component& component) { return keeps_parity(component.state.shape()); }
  // component: of LFS 0. generation: the sequencer's. Nothing to note: only asks. Errors: what the deputy or the way to
  // it says.
  void send(const Component& component, std::uint64_t generation, const std::optional<Sequencer::Publication>& noted,
            Done done);

 private:
  LfsContext& context_;
  Peers& peers_;
};

}  // namespace pif::lfs
