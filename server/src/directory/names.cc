#include "directory/names.h"

#include "pif/base/assert.h"

namespace pif::server {

Split split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  PIF_ASSERT(slash < path.size(), path.size());
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace pif::server
