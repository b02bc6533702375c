#include "pif/base/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "pif/base/limits.h"

namespace pif {
namespace {

// A path in an error text: bytes that a terminal could trip over are written as \xHH, and long ones cut.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShownMax = 200;
  std::string out;
  for (const char c : text.substr(0, kShownMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out.push_back(c);
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > kShownMax) out += "...";
  return out;
}

Status check_name(std::string_view name, std::string_view path) {
  if (name.empty()) return fail(Code::kInvalid, fmt::format("the path '{}' has an empty name in it", quoted(path)));
  if (name == ".") {
    return fail(Code::kInvalid, fmt::format("the path '{}' has '.' in it: names are taken as they are", quoted(path)));
  }
  if (name == "..") {
    return fail(Code::kInvalid, fmt::format("the path '{}' has '..' in it: names are taken as they are", quoted(path)));
  }
  if (name.size() > kNameBytesMax) {
    return fail(Code::kTooLarge, fmt::format("a name in the path has {} bytes, the limit is {}: '{}'", name.size(),
                                             kNameBytesMax, quoted(name)));
  }
  if (name.find('\0') != std::string_view::npos) {
    return fail(Code::kInvalid, fmt::format("the path '{}' has a NUL byte in it", quoted(path)));
  }
  return {};
}

}  // namespace

// Unicode 15, table 3-7.
std::size_t character_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t left = text.size();
  const unsigned lead = at[0];
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                             : (lead & 0xf0) == 0xe0        ? 3
                             : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                            : 0;
  if (length == 0 || left < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  const unsigned second = at[1];
  const bool bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                   (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const bool is_ascii = static_cast<unsigned char>(text[at]) < 0x80;  // nearly always
    const std::size_t length = is_ascii ? 1 : character_bytes(text.substr(at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text.substr(at));
    out += length == 0 ? kReplacement : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

Result<std::string_view> check_path(std::string_view path) {
  if (path.empty()) return fail(Code::kInvalid, "the path is empty: give an absolute one, like /a/b");
  if (path.size() > kPathBytesMax) {
    return fail(Code::kTooLarge, fmt::format("the path has {} bytes, the limit is {}", path.size(), kPathBytesMax));
  }
  if (path.front() != '/') {
    return fail(Code::kInvalid, fmt::format("the path '{}' is not absolute: it must start with '/'", quoted(path)));
  }
  if (path.back() == '/') path.remove_suffix(1);
  for (std::size_t slash = 0; slash < path.size();) {
    const std::size_t next = std::min(path.find('/', slash + 1), path.size());
    PIF_TRY(check_name(path.substr(slash + 1, next - slash - 1), path));
    slash = next;
  }
  if (!is_utf8(path)) return fail(Code::kInvalid, fmt::format("the path '{}' is not UTF-8", quoted(path)));
  return path;
}

}  // namespace pif
