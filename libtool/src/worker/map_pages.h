// Mapping pages that are in memory already.
#pragma once

#include <cstddef>
#include <span>

namespace pif::tool {

// Maps pages that are in memory already, as a hint. The kernel maps what is around a page that is asked for, up to 64
// KiB; asked for each page, it takes six times as long.
void map_pages(std::span<const std::byte> bytes);

}  // namespace pif::tool
