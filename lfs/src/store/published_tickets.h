// Which ranges of a file's appends were published, of whoever gave them out (proto::PublishedTickets). LFS 0 and its
// deputy keep it with the length, so that an AppendDone that comes again is answered rightly after the sequencer has
// changed. docs/PROTOCOL.md "Append".
#pragma once

#include <cstdint>

#include "pif/base/result.h"
#include "pif/proto/messages.pb.h"

namespace pif::lfs {

// kUnknown: of a generation so old that it is forgotten.
enum class WasPublished : std::uint8_t { kNo, kYes, kUnknown };

// Nothing happens with ticket 0, which names no range.
void add_ticket(proto::PublishedTickets& tickets, std::uint64_t generation, std::uint64_t ticket);
void add_tickets(proto::PublishedTickets& tickets, const proto::PublishedTickets& others);
// Whether `tickets` would be others then.
bool has_more(const proto::PublishedTickets& others, const proto::PublishedTickets& tickets);
WasPublished was_published(const proto::PublishedTickets& tickets, std::uint64_t generation, std::uint64_t ticket);
// No generation reaches it: its upper 40 bits are the index of a transaction. So the generation after the newest one
// that somebody named is never 0 again.
inline constexpr std::uint64_t kGenerationEnd = std::uint64_t{1} << 63;
// kInvalid: no sequencer gives out this generation, which a client, a peer or the catalogue names.
[[nodiscard]] Status check_generation(std::uint64_t generation);
// The newest generation that this LFS has seen, of grants, notes, rows or parity of the file.
std::uint64_t newest_generation(const proto::ComponentState& state);
// kInvalid: this is no list of tickets, as a peer must send it.
[[nodiscard]] Status check_tickets(const proto::PublishedTickets& tickets);

}  // namespace pif::lfs
