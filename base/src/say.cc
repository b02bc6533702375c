#include "pif/base/say.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "pif/base/write_all.h"

namespace pif {

void say(std::string_view text) {
  static_cast<void>(write_all(STDERR_FILENO, std::as_bytes(std::span(text)), "").has_value());
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
  return out;
}

void fill_standard_streams() {
  constexpr std::array<int, 3> kFlags = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (std::size_t fd = 0; fd < kFlags.size(); ++fd) {
    const bool closed = ::fcntl(static_cast<int>(fd), F_GETFD) < 0 && errno == EBADF;
    if (closed && ::open("/dev/null", kFlags[fd]) < 0) return;  // open takes the lowest that is free: this one
  }
}

}  // namespace pif
