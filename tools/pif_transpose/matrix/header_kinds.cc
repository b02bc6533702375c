#include "matrix/header_kinds.h"

#include <fmt/format.h>

namespace pif::transpose {
namespace {

constexpr std::string_view kBedMagic = "\x6c\x1b";
constexpr std::size_t kBedBytes = 3;
constexpr char kBySample = '\0', kByVariant = '\1';
}  // namespace

bool is_bed(std::string_view header) {
  return header.size() == kBedBytes && header.starts_with(kBedMagic) &&
         (header[2] == kBySample || header[2] == kByVariant);
}

std::string other_bed(std::string_view header) {
  return std::string(kBedMagic) + (header[2] == kByVariant ? kBySample : kByVariant);
}

std::string pbm_header(std::uint64_t width, std::uint64_t height) { return fmt::format("P4\n{} {}\n", width, height); }

}  // namespace pif::transpose
