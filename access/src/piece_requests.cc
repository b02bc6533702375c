#include "pif/access/piece_requests.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "pif/access/rebuilt_read.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/runs.h"

namespace pif::access {

namespace {

using component::ConstExtent;
using component::Extent;

// Bytes [skip, skip + bytes) of the pieces from `first` on: where one request begins, and how far it goes.
struct Place {
  std::size_t piece = 0;
  std::size_t within = 0;  // of that piece
};

// One message's worth of pieces: their runs, the bytes they have together, where the next message begins.
struct Cut {
  std::string runs;
  std::uint64_t bytes = 0;
  Place end;
};

// How far a message may go on. Of overwrites, which say of which chunks: no more of them than the LFS takes, and no
// record is cut, for it changes whole or not at all.
class Budget {
 public:
  explicit Budget(std::uint64_t bytes) : bytes_(bytes) {}
  Budget(std::uint64_t bytes, std::uint64_t chunk_bytes)
      : bytes_(bytes),
        chunk_bytes_(chunk_bytes),
        chunks_(std::max<std::uint64_t>(1, component::kTouchedBytesMax / chunk_bytes)) {}

  bool is_used_up() const { return bytes_ == 0; }
  // Takes as much of [begin, end) as it allows, and says how much that is. Pieces rise.
  std::uint64_t take(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t size = chunk_bytes_ == 0 ? std::min(end - begin, bytes_) : take_chunks(begin, end);
    is_first_ = is_first_ && size == 0;
    bytes_ -= std::min(size, bytes_);
    return size;
  }

 private:
  std::uint64_t take_chunks(std::uint64_t begin, std::uint64_t end) {
    if (end - begin > bytes_) {  // up to the end of a chunk, which is one of a record; one long record goes whole
      const std::uint64_t last = (begin + bytes_) / chunk_bytes_ * chunk_bytes_;
      const std::uint64_t one = std::min(end, (begin / chunk_bytes_ + 1) * chunk_bytes_);
      end = std::max(begin, is_first_ ? std::max(last, one) : last);
    }
    if (begin == end) return 0;
    const std::uint64_t first = std::max(begin / chunk_bytes_, next_);
    const std::uint64_t last = (end - 1) / chunk_bytes_;
    PIF_ASSERT(first <= last + 1, first, last);
    const std::uint64_t count = std::min(last + 1 - first, chunks_);
    chunks_ -= count;
    next_ = first + count;
    return std::min(end, std::max(begin, next_ * chunk_bytes_)) - begin;
  }

  std::uint64_t bytes_;
  std::uint64_t chunk_bytes_ = 0;  // 0: chunks do not matter
  std::uint64_t chunks_ = 0;       // that may still be touched
  std::uint64_t next_ = 0;         // chunk in front of which all that are touched are counted
  bool is_first_ = true;
};

// Overlapping pieces are asked for once.
template <typename Piece>
Cut cut_from(std::span<const Piece> pieces, Place at, Budget budget) {
  patterns::RunEncoder encoder;
  std::uint64_t end = 0;  // of what is asked for
  const std::size_t most = at.piece + patterns::kWrittenPiecesMax;
  while (at.piece < std::min(pieces.size(), most) && !budget.is_used_up() &&
         encoder.bytes() + patterns::kRunBytesMax <= patterns::kRunsBytesMax) {
    const Piece& piece = pieces[at.piece];
    const std::uint64_t begin = std::max(piece.offset + at.within, end);
    const std::uint64_t stop = std::max(begin, piece.offset + piece.size);
    const std::uint64_t size = budget.take(begin, stop);
    if (size > 0) encoder.add(begin, size);
    end = std::max(end, begin + size);
    if (begin + size < stop) {
      at.within = begin + size - piece.offset;
      break;
    }
    ++at.piece;
    at.within = 0;
  }
  Cut cut;
  cut.bytes = encoder.payload();
  cut.runs = encoder.finish();
  cut.end = at;
  return cut;
}

// Walks pieces and the bytes that were read for them side by side.
class Scatter {
 public:
  Scatter(std::span<const Extent> pieces, Place at) : pieces_(pieces), at_(at) {}

  // `bytes` of the component from `offset` on.
  void take(std::uint64_t offset, std::span<const std::byte> bytes) {
    const std::uint64_t end = offset + bytes.size();
    // A piece that ends later is kept for the next bytes.
    for (std::size_t i = at_.piece; i < pieces_.size() && pieces_[i].offset < end; ++i) {
      const Extent& piece = pieces_[i];
      const std::uint64_t from = std::max(piece.offset + (i == at_.piece ? at_.within : 0), offset);
      const std::uint64_t to = std::min(piece.offset + piece.size, end);
      if (from < to) std::memcpy(piece.at + (from - piece.offset), bytes.data() + (from - offset), to - from);
      if (piece.offset + piece.size <= end && i == at_.piece) at_ = {i + 1, 0};
    }
  }

 private:
  std::span<const Extent> pieces_;
  Place at_;
};

class Reading : public std::enable_shared_from_this<Reading> {
 public:
  Reading(Requests& requests, LfsIndex lfs, std::span<const Extent> pieces, std::uint64_t& moved, RefusedPieces refused)
      : requests_(requests), lfs_(lfs), pieces_(pieces), moved_(moved), refused_(std::move(refused)) {}

  // Requests for all pieces from `at` on.
  void ask(Place at) {
    while (at.piece < pieces_.size()) {
      auto cut = std::make_shared<Cut>(cut_from(pieces_, at, Budget(kBulkBytes)));
      if (cut->bytes > 0) ask_for(at, cut);  // else it is among what is asked for already
      at = cut->end;
    }
  }

 private:
  void ask_for(Place at, const std::shared_ptr<Cut>& cut) {
    BulkRequest request;
    request.lfs = lfs_;
    request.bytes = cut->bytes;
    request.patient = true;
    request.replaceable = refused_ && can_be_rebuilt(requests_.grant().parts());
    request.make = [self = shared_from_this(), cut] { return self->packet(*cut); };
    request.take = [self = shared_from_this(), at, cut](net::Packet& reply) { return self->take(at, *cut, reply); };
    if (refused_)
      request.refused = [self = shared_from_this(), at, cut](Error error) -> Status {
        const std::size_t end = cut->end.piece + (cut->end.within > 0 ? 1 : 0);
        return self->refused_(self->pieces_.subspan(at.piece, end - at.piece), std::move(error));
      };
    requests_.add(std::move(request));
  }

  net::Packet packet(const Cut& cut) const {
    const FileParts& parts = requests_.grant().parts();
    net::Packet packet;
    proto::ReadPieces& read = *packet.envelope.mutable_read_pieces();
    read.set_file(parts.file.value);
    if (parts.creating) *read.mutable_creating() = parts.shape(lfs_);
    packet.body = net::Buffer::copy_of(std::as_bytes(std::span(cut.runs)));
    return packet;
  }

  Status take(Place at, const Cut& cut, net::Packet& reply) {
    const auto body = reply.body.span();
    if (body.empty() || body.size() > cut.bytes)
      return fail(
          Code::kCorrupt,
          fmt::format("{}: {} bytes were asked for, {} came", requests_.grant().parts().path, cut.bytes, body.size()),
          requests_.grant().parts().nodes[lfs_].name());
    moved_ += body.size();
    PIF_TRY_VALUE(patterns::RunDecoder runs, patterns::RunDecoder::make(std::as_bytes(std::span(cut.runs)), {}));
    Scatter scatter(pieces_, at);
    std::size_t done = 0;
    patterns::RunEncoder left;  // what did not fit
    while (auto run = runs.next()) {
      for (std::uint64_t i = 0; i < run->count; ++i) {
        const std::uint64_t offset = run->offset + i * run->stride;
        const std::size_t size = std::min<std::uint64_t>(run->length, body.size() - done);
        if (size > 0) scatter.take(offset, body.subspan(done, size));
        done += size;
        if (size < run->length) left.add(offset + size, run->length - size);
      }
    }
    if (left.empty()) return {};
    auto again = std::make_shared<Cut>();
    again->bytes = left.payload();
    again->runs = left.finish();
    again->end = cut.end;
    ask_for(at, again);
    return {};
  }

  Requests& requests_;
  const LfsIndex lfs_;
  const std::span<const Extent> pieces_;
  std::uint64_t& moved_;
  const RefusedPieces refused_;
};

net::Buffer body_of(std::span<const ConstExtent> pieces, Place at, const Cut& cut) {
  net::Buffer body(cut.runs.size() + cut.bytes);
  std::memcpy(body.data(), cut.runs.data(), cut.runs.size());
  std::size_t to = cut.runs.size();
  for (; to < body.size(); at = {at.piece + 1, 0}) {
    const ConstExtent& piece = pieces[at.piece];
    const std::size_t size = std::min(piece.size - at.within, body.size() - to);
    std::memcpy(body.data() + to, piece.at + at.within, size);
    to += size;
  }
  return body;
}

net::Packet write_request(const FileParts& parts, LfsIndex lfs, std::span<const ConstExtent> pieces, Place at,
                          const Cut& cut) {
  net::Packet packet;
  const auto run_bytes = static_cast<std::uint32_t>(cut.runs.size());
  if (parts.creating) {
    proto::WritePieces& write = *packet.envelope.mutable_write_pieces();
    *write.mutable_shape() = parts.shape(lfs);
    write.set_run_bytes(run_bytes);
  } else {
    proto::OverwritePieces& write = *packet.envelope.mutable_overwrite_pieces();
    write.set_file(parts.file.value);
    write.set_run_bytes(run_bytes);
  }
  packet.body = body_of(pieces, at, cut);
  return packet;
}

}  // namespace

void read_pieces_by_message(Requests& requests, LfsIndex lfs, std::span<const Extent> pieces, std::uint64_t& moved,
                            RefusedPieces refused) {
  std::make_shared<Reading>(requests, lfs, pieces, moved, std::move(refused))->ask({});
}

void write_pieces_by_message(Requests& requests, LfsIndex lfs, std::span<const ConstExtent> pieces,
                             std::uint64_t& moved, const std::shared_ptr<const void>& owner) {
  const FileParts& parts = requests.grant().parts();
  PIF_ASSERT(!parts.creating || !parts.is_absent(lfs), lfs);
  const Budget budget =
      parts.creating ? Budget(kBulkBytes) : Budget(kBulkBytes, component::chunk_bytes_for(parts.format));
  for (Place at; at.piece < pieces.size();) {
    auto cut = std::make_shared<Cut>(cut_from(pieces, at, budget));
    PIF_ASSERT(cut->bytes > 0, lfs, at.piece, pieces.size());
    moved += cut->bytes;
    BulkRequest request;
    request.lfs = lfs;
    request.bytes = cut->bytes;
    request.in_order = parts.creating;
    request.patient = true;
    request.make = [&parts, lfs, pieces, owner, at, cut] { return write_request(parts, lfs, pieces, at, *cut); };
    requests.add(std::move(request));
    at = cut->end;
  }
}

}  // namespace pif::access
