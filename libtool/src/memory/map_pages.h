// Mapping what is in memory already.
#pragma once

#include <cstddef>
#include <span>

namespace pif::tool {

// Maps the pages that the kernel has in memory into this process, as a hint; of what it has not, the first page of each
// 64 KiB is read. The kernel maps up to 64 KiB around a page that is asked for: so asking for one page of each costs a
// sixth of asking for all.
void map_pages(std::span<const std::byte> bytes);

}  // namespace pif::tool
