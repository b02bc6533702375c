// Many pieces of one component by message: as few requests as their number and bytes allow, and asked again for what
// did not fit a reply. Thread-safety: the thread of the requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "pif/access/requests.h"
#include "pif/component/extents.h"

namespace pif::access {

// Adds requests for all pieces, which rise by offset and may overlap. Their memory and `pieces`, `moved` outlive the
// requests; bytes that came are added to moved. refused: gets what cannot be had of the LFS, as BulkRequest::refused,
// with the pieces that it is about; empty: it ends the requests.
using RefusedPieces = std::function<Status(std::span<const component::Extent>, Error)>;
void read_pieces_by_message(Requests& requests, LfsIndex lfs, std::span<const component::Extent> pieces,
                            std::uint64_t& moved, RefusedPieces refused = {});
// Writes them to a component that is being created, or overwrites them in a committed one; they rise, are disjoint, and
// none is empty. Their memory and `pieces` outlive the requests; so does `owner`, which may have the pieces. Requests
// for one LFS keep their order while the file is being created.
void write_pieces_by_message(Requests& requests, LfsIndex lfs, std::span<const component::ConstExtent> pieces,
                             std::uint64_t& moved, const std::shared_ptr<const void>& owner = {});

}  // namespace pif::access
