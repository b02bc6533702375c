// Components that are filled in pieces, in any order and by several: writing, reading back what is there so far, making
// it durable, taking room for it. Their sums are made when they are sealed (writing.h).
#pragma once

#include "context/lfs_context.h"
#include "context/request_dedup.h"
#include "requests/reading.h"
#include "requests/writing.h"

namespace pif::lfs {

class Scattering {
 public:
  // They outlive it.
  Scattering(LfsContext& context, Writing& writing, Reading& reading);

  [[nodiscard]] Result<net::Packet> write_pieces(const Request& request, const proto::WritePieces& asked);
  // Of a committed file: what Reading::read_pieces() says. Of one that is being created: by the executor, for what was
  // written may have left the memory.
  [[nodiscard]] Result<net::Packet> read_pieces(const Request& request, const proto::ReadPieces& asked);
  [[nodiscard]] Status sync_component(const Request& request, const proto::SyncComponent& asked);
  // Room on the disk. What is written there is not refused any more because the disk is nearly full.
  [[nodiscard]] Status preallocate(const Request& request, const proto::Preallocate& asked);

 private:
  // Open, with files and without a writer, so that all that was written is in them; null: nobody has written anything
  // here.
  [[nodiscard]] Result<ComponentPtr> to_read(const Request& request, const proto::ComponentShape& shape);
  // Open, and the disk has the room that is asked for.
  [[nodiscard]] Result<ComponentPtr> to_reserve(const Request& request, const proto::Preallocate& asked);

  LfsContext& context_;
  Writing& writing_;
  Reading& reading_;
  // WritePieces that were carried out. Of no use to a later run: what was being filled then is gone.
  RequestDedup written_;
};

}  // namespace pif::lfs
