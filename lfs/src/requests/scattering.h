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
  // For a committed file this is Reading::read_pieces(). For one that is being created the executor reads, as bytes
  // that were written may have left the memory.
  [[nodiscard]] Result<net::Packet> read_pieces(const Request& request, const proto::ReadPieces& asked);
  [[nodiscard]] Status sync_component(const Request& request, const proto::SyncComponent& asked);
  // Reserves room on the disk. Writes into it are not refused because the disk is nearly full.
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
  // WritePieces that were carried out. They are not durable: the files that were being filled go with this run.
  RequestDedup written_;
};

}  // namespace pif::lfs
