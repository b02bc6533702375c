// Which LFSs a new file gets, in which order and in which bevies; what of that its folder decides; and how long it may
// be said to be.
#pragma once

#include "context/registry.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/proto/messages.pb.h"

namespace pif::server {

// From width, nodes, bevies and bevy of `ask`. Nodes that are named keep their order; else the file begins on the node
// whose turn it is: `turn` rises by one from file to file. With bevies one LFS of a pair of companions may be absent in
// the view, where others do not suffice. kInvalid says what does not fit and what would; kUnavailable: no LFS is up,
// one that was asked for by name is down, or two companions are absent. default_bevy: unless `ask` says something of
// bevies.
[[nodiscard]] Result<proto::FileLayout> choose_layout(const proto::Create& ask, const Registry& registry,
                                                      std::uint32_t default_bevy, std::uint64_t turn, Time now);

// The request, in which the parts that `ask.inherits` leaves to the folder are taken from there, as far as the folder
// has them.
proto::Create inherit(const proto::Create& ask, const proto::Striping& striping);
// Whether a folder may get it: check_striping(), and every node is known. It need not be up, and files may be wider
// than there are LFSs now: that is looked at when a file is made.
[[nodiscard]] Status check_new_striping(const proto::Striping& striping, const Registry& registry,
                                        std::uint32_t default_bevy);

// said: the length of a file, by a client's word. kInvalid: files of that format cannot have it.
[[nodiscard]] Status check_file_length(const proto::Format& format, const proto::FileLength& said);

}  // namespace pif::server
