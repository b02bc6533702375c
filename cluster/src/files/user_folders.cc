#include "files/user_folders.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace pif::cluster {
namespace {

std::string home() {
  if (std::string set = environment("HOME"); !set.empty()) return set;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string user_folder(const char* variable, const std::string& in_home) {
  const std::string set = environment(variable);
  if (!set.empty() && set[0] == '/') return set + "/pif";
  const std::string own = home();
  return own.empty() ? "" : own + "/" + in_home + "/pif";
}

}  // namespace pif::cluster
