// The requests of LFS 0 of a file with parity to its deputy (deputy.h): notes of lengths, and questions. One thread.
#pragma once

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
  Noting(LfsContext& context, Peers& peers) : context_(context), peers_(peers) {}

  // In the view of this LFS, and with what is published there. component: of LFS 0 of a file with parity. generation:
  // the sequencer's. Errors: what the deputy or the way to it says; kOldView: it goes by a newer view. Both are called
  // by a fiber.
  [[nodiscard]] Result<Noted> send(const ComponentPtr& component, std::uint64_t generation,
                                   const std::optional<Sequencer::Publication>& noted);
  // The newest generation of a sequencer that the deputy took notes of, or acted in. Errors as of send().
  [[nodiscard]] Result<std::uint64_t> ask(const ComponentPtr& component);

 private:
  LfsContext& context_;
  Peers& peers_;
};

}  // namespace pif::lfs
