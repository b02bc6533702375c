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
  struct Noted {  // what the deputy has then
    proto::NotedLength length;
    proto::PublishedTickets published_tickets;
  };
  using Done = std::function<void(Result<Noted>)>;           // may come at once
  using Asked = std::function<void(Result<std::uint64_t>)>;  // may come at once

  Noting(LfsContext& context, Peers& peers) : context_(context), peers_(peers) {}

  // In the view of this LFS, and with what is published there. component: of LFS 0 of a file with parity. generation:
  // the sequencer's. Errors: what the deputy or the way to it says; kOldView: it goes by a newer view.
  void send(const Component& component, std::uint64_t generation, const std::optional<Sequencer::Publication>& noted,
            Done done);
  // The newest generation of a sequencer that the deputy took notes of, or acted in. Errors as of send().
  void ask(const Component& component, Asked asked);

 private:
  LfsContext& context_;
  Peers& peers_;
};

}  // namespace pif::lfs
