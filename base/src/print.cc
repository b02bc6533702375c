#include "pif/base/print.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include <fmt/format.h>

#include "pif/base/path.h"
#include "pif/base/write_all.h"

namespace pif {
namespace {

// Whether a terminal shows this well-formed character, instead of doing something.
bool is_shown(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) >= 0x20 ? byte(0) != 0x7f : character == "\n" || character == "\t";
  if (character.size() == 2) return byte(0) != 0xc2 || byte(1) >= 0xa0;  // U+0080 to U+009F: control characters
  if (character.size() > 3 || byte(0) != 0xe2) return true;
  const bool marks = byte(1) == 0x80 && ((byte(2) >= 0x8e && byte(2) <= 0x8f) || (byte(2) >= 0xa8 && byte(2) <= 0xae));
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return !marks && !isolates;  // U+200E, U+200F, U+2028 to U+202E; U+2066 to U+2069
}

}  // namespace

void print_error(std::string_view text) {
  static_cast<void>(write_all(STDERR_FILENO, std::as_bytes(std::span(text)), "").has_value());
}

std::string visible(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text.substr(at));
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    at += character.size();
    if (length > 0 && is_shown(character)) {
      out += character;
    } else {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return visible(out);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

void fill_standard_streams() {
  constexpr std::array<int, 3> kFlags = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (std::size_t fd = 0; fd < kFlags.size(); ++fd) {
    const bool closed = ::fcntl(static_cast<int>(fd), F_GETFD) < 0 && errno == EBADF;
    if (closed && ::open("/dev/null", kFlags[fd]) < 0) return;  // open takes the lowest that is free: this one
  }
}

}  // namespace pif
