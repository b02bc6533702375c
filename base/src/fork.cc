#include "pif/base/fork.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pif/base/path.h"

namespace pif {
namespace {

bool is_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit) && (text.size() == 1 || text[0] != '0');
}

}  // namespace

Result<ForkName> parse_fork(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view number = text.substr(0, slash);
  ForkName fork;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), fork.subfile);
  if (slash == std::string_view::npos || !is_number(number) || read.ec != std::errc()) {
    return fail(Code::kInvalid, fmt::format("'{}' is no fork of a file: a subfile's number, '/' and a name are needed",
                                            to_utf8(text.substr(0, 100))));
  }
  fork.name = text.substr(slash + 1);
  PIF_TRY_VALUE(const std::string_view checked, check_path(text.substr(slash)));
  if (checked.size() != fork.name.size() + 1 || fork.name.find('/') != std::string_view::npos)
    return fail(Code::kInvalid, fmt::format("{}: forks are files, and nothing is below them", to_utf8(text)));
  return fork;
}

bool may_be_fork(std::string_view path) {
  const std::size_t name = path.rfind('/');
  if (name == 0 || name == std::string_view::npos) return false;
  const std::size_t subfile = path.rfind('/', name - 1);
  return subfile != 0 && subfile != std::string_view::npos && is_number(path.substr(subfile + 1, name - subfile - 1));
}

std::string fork_text(std::uint32_t subfile, std::string_view name) { return fmt::format("{}/{}", subfile, name); }

}  // namespace pif
