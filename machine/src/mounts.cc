#include "pif/machine/mounts.h"

#include <fstream>
#include <sstream>

namespace pif::machine {
namespace {

// A blank, a tab, a line end and a backslash are written as \040 and the like.
std::string unescaped(const std::string& text) {
  const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped = text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3);
    out += is_escaped ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'))
                      : text[i];
    if (is_escaped) i += 3;
  }
  return out;
}

}  // namespace

// Lines "ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS ... - TYPE SOURCE OPTIONS".
std::vector<Mounted> all_mounted(const std::string& root) {
  std::vector<Mounted> all;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    Mounted one;
    std::string word;
    std::istringstream words(line);
    words >> word >> word >> word >> one.root >> one.at;
    while (words >> word && word != "-") {
    }
    if (!(words >> one.type >> one.source >> one.options)) continue;
    one.root = unescaped(one.root);
    one.at = unescaped(one.at);
    one.source = unescaped(one.source);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace pif::machine
