// The question how long a file is, for the LFS that knows it: its LFS 0, or the deputy of that one. docs/PROTOCOL.md
// "Append".
#pragma once

#include <functional>

#include "parity/peers.h"

namespace pif::lfs {

struct LengthAsked {
  LfsIndex lfs = 0;
  std::uint64_t file = 0;
  bool is_noted = false;      // of the deputy
  std::uint64_t view = 0;     // that who answers must go by; 0: any
  bool is_at_rest = false;    // kRetry while a range is under way
  bool is_of_deputy = false;  // the deputy lacks its part, and takes no notes before it has the answer
};
struct LengthAnswer {
  FileLength length;             // one that such a file can have
  std::uint64_t generation = 0;  // the sequencer's
  proto::PublishedTickets published_tickets;
};
[[nodiscard]] access::BulkRequest length_request(const LengthAsked& asked, const Format& format,
                                                 std::function<Status(const LengthAnswer&)> take);
// Asks, again while the LFS says kRetry, and waits for the answer. Called by a fiber.
[[nodiscard]] Result<LengthAnswer> ask_length(Peers& peers, access::Grant& grant, const LengthAsked& asked,
                                              const Format& format);

// Makes `length` the longer one of two lengths of one file, which only grows.
inline void extend(FileLength& length, const FileLength& other) {
  if (other.records > length.records || (other.records == length.records && other.bytes > length.bytes)) length = other;
}

}  // namespace pif::lfs
