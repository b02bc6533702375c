// Taking members' rows out of a page.
#pragma once

#include "parity/parity_entry.h"

namespace pif::component {

// page ^= the stretch of a member; variable records: its lengths, too. The stretch's hash. kCorrupt: it cannot be of
// this page.
[[nodiscard]] Result<std::uint64_t> remove_stretch(const ParityShape& shape, std::uint64_t page_number, Page& page,
                                                   std::size_t member, RowSource& source);
PageHeader header_of(const Page& page);
// "file 12, parity page 3: the rows of member 1 are not those that it was made of"
std::string other_rows(const ParityShape& shape, std::uint64_t page, std::size_t member);

}  // namespace pif::component
