#include "parity-model/cluster.h"

#include <fmt/format.h>

namespace pif::parity_model {

std::string Label::to_string() const {
  constexpr std::array<const char*, 4> kNames = {"D0", "D1", "P", "Q"};
  std::string out = text;
  if (number >= 0) out += fmt::format(" {}", number);
  if (node >= 0) out += fmt::format(" at {}", kNames[static_cast<std::size_t>(node)]);
  return out;
}

}  // namespace pif::parity_model
