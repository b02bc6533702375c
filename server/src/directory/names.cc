#include "directory/names.h"

namespace pif::server {

Split split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace pif::server
