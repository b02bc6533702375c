// Pieces of a component, as tests write them down.
#pragma once

#include <string>
#include <vector>

#include "node.h"
#include "pif/pattern/runs.h"

namespace pif::lfs::test {

struct Piece {
  std::uint64_t offset = 0;
  std::string bytes;
};

inline std::string runs_of(const std::vector<Piece>& pieces) {
  patterns::RunEncoder runs;
  for (const Piece& piece : pieces) runs.add(piece.offset, piece.bytes.size());
  return runs.finish();
}

// The body of a request that writes them: runs, then bytes.
inline std::string piece_body(const std::vector<Piece>& pieces) {
  std::string body = runs_of(pieces);
  for (const Piece& piece : pieces) body += piece.bytes;
  return body;
}

inline void apply(std::string& model, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) model.replace(piece.offset, piece.bytes.size(), piece.bytes);
}

inline net::Packet overwrite_pieces_request(Peer& peer, std::uint64_t file, const std::vector<Piece>& pieces) {
  auto packet = peer.request(file, kMayRead | kMayWrite);
  proto::OverwritePieces& write = *packet.envelope.mutable_overwrite_pieces();
  write.set_file(file);
  write.set_run_bytes(static_cast<std::uint32_t>(runs_of(pieces).size()));
  packet.body = buffer_of(piece_body(pieces));
  return packet;
}

inline Status overwrite_pieces(Peer& peer, std::uint64_t file, const std::vector<Piece>& pieces) {
  PIF_TRY(peer.call(overwrite_pieces_request(peer, file, pieces)));
  return {};
}

}  // namespace pif::lfs::test
