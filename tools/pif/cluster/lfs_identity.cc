#include "cluster/lfs_identity.h"

#include <fstream>

#include "pif/base/print.h"

namespace pif::cli {

std::map<std::string, std::string> identity_of(const std::string& path) {
  std::map<std::string, std::string> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    if (line.empty() || line[0] == '#' || equals == std::string::npos) continue;
    std::string key = one_line(line.substr(0, equals)), value = one_line(line.substr(equals + 1));
    std::erase_if(key, [](char c) { return c == ' '; });
    std::erase_if(value, [](char c) { return c == ' ' || c == '"'; });
    out[key] = value;
  }
  return out;
}

}  // namespace pif::cli
