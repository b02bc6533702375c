#include <algorithm>

#include <fmt/format.h>

#include "parity/parity_pages.h"
#include "pif/base/assert.h"

namespace pif::component {
namespace {

constexpr std::size_t kLinesMax = 100;

// Whether nothing is left of a page from which all members' stretches have been taken out.
bool is_spent(const ParityShape& shape, const Page& page) {
  std::size_t begin = 0;
  if (!shape.format.is_fixed()) {
    begin = sizeof(PageHeader);
    for (const RowLengths& lengths : header_of(page))
      if (lengths.all != 0) return false;
  }
  return std::all_of(page.bytes.begin() + static_cast<std::ptrdiff_t>(begin), page.bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

void check_page(const ParityShape& shape, ParityFiles& files, std::uint64_t number, std::span<RowSource* const> sources,
                std::vector<std::string>& damages) {
  auto page = read_page(shape, files, number);
  if (!page) {
    damages.push_back(page.error().text);
    return;
  }
  bool all = !sources.empty();
  for (std::size_t member = 0; member < sources.size(); ++member) {
    if (sources[member] == nullptr) {
      all = false;
      continue;
    }
    const auto hash = remove_stretch(shape, number, *page, member, *sources[member]);
    if (hash && *hash == page->vector[member].hash) continue;
    all = false;
    const std::string line =
        hash ? other_rows(shape, number, member)
             : fmt::format("{}, member {}: {}", page_name(shape, number), member, hash.error().text);
    if (damages.size() < kLinesMax) damages.push_back(line);
  }
  if (all && !is_spent(shape, *page) && damages.size() < kLinesMax)
    damages.push_back(fmt::format("{}: it is not the XOR of its members' rows", page_name(shape, number)));
}

}  // namespace

Status check_parity(const ParityShape& shape, ParityFiles& files, std::uint64_t pages,
                    std::span<RowSource* const> sources, std::vector<std::string>& damages) {
  PIF_ASSERT(sources.empty() || sources.size() == shape.members(), sources.size(), shape.members());
  for (std::uint64_t page = 0; page < pages && damages.size() < kLinesMax; ++page)
    check_page(shape, files, page, sources, damages);
  return {};
}

}  // namespace pif::component
