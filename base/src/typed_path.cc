#include "pif/base/typed_path.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/path.h"

namespace pif {

Result<std::string> parse_path(std::string_view text) {
  std::string_view path = text;
  if (path.substr(0, 4) == "pif:") path.remove_prefix(4);
  if (path.empty() || path[0] != '/')
    return fail(Code::kInvalid, fmt::format("'{}' is no path in the file system; they start with /, or pif:/", text));
  std::string out;  // doubled slashes and '.' are forgiven, as a shell's words often have them
  bool ends_with_slash = false;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    ends_with_slash = slash < path.size() || part == ".";
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (!part.empty() && part != ".") out.append("/").append(part);
  }
  if (out.empty() || ends_with_slash) out += '/';
  PIF_TRY(check_path(out));
  return out;
}

}  // namespace pif
