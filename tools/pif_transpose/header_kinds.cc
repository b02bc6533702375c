#include "header_kinds.h"

#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace pif::transpose {
namespace {

constexpr std::string_view kBedMagic = "\x6c\x1b";
constexpr std::size_t kBedBytes = 3;
constexpr char kBySample = '\0', kByVariant = '\1';
constexpr std::string_view kPbmMagic = "P4";

// Without white space and comments at its front.
std::string_view without_blanks(std::string_view text) {
  while (!text.empty()) {
    if (text[0] == '#') {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (std::isspace(static_cast<unsigned char>(text[0])) != 0) {
      text.remove_prefix(1);
    } else {
      break;
    }
  }
  return text;
}

}  // namespace

bool is_bed(std::string_view header) {
  return header.size() == kBedBytes && header.starts_with(kBedMagic) &&
         (header[2] == kBySample || header[2] == kByVariant);
}

std::string other_bed(std::string_view header) {
  return std::string(kBedMagic) + (header[2] == kByVariant ? kBySample : kByVariant);
}

std::optional<std::uint64_t> pbm_width(std::string_view header) {
  if (!header.starts_with(kPbmMagic)) return std::nullopt;
  const std::string_view rest = without_blanks(header.substr(kPbmMagic.size()));
  std::uint64_t width = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), width);
  if (read.ec != std::errc() || width == 0) return std::nullopt;
  return width;
}

std::string pbm_header(std::uint64_t width, std::uint64_t height) {
  return fmt::format("{}\n{} {}\n", kPbmMagic, width, height);
}

}  // namespace pif::transpose
