// Reads rows, bytes and places of rows from a component's files, for the requests Read, ReadBytes, Offsets and
// ReadPieces. Nothing here knows the loop, so any thread may read.
#pragma once

#include "pif/component/component.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

struct RowSource {
  const component::Shape& shape;
  const component::Reader& reader;     // one that does not wait for the disk makes answer_read fail with kBusy instead
  std::size_t bytes_max = 0;           // of the reply's body
  std::span<const std::byte> asked{};  // the request's body
  std::uint64_t* scanned = nullptr;    // is set to what was read where that is more than the reply's body
};

// The file that one of these asks for.
FileId file_of_read(const proto::Envelope& request);
// The reply to one of these. kEndOfFile, kInvalid, kTooLarge: of the request. kCorrupt, kIo: of the files.
[[nodiscard]] Result<net::Packet> answer_read(const proto::Envelope& request, const RowSource& source);

}  // namespace pif::lfs
