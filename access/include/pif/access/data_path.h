// How records travel between a process and an LFS.
#pragma once

#include <cstdint>

namespace pif::access {

enum class DataPath : std::uint8_t {
  kAuto,         // passed descriptors where the LFS is on this machine, else messages
  kDescriptors,  // descriptors or an error
  kMessages,     // always by message, over the route of the connection
};

}  // namespace pif::access
