#include "pif/base/decimal.h"

#include <algorithm>

namespace pif {

std::string decimal(std::string text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::size_t zeros = std::min(text.find_first_not_of('0'), text.size());
  if (digits > 1) text.erase(0, std::min(zeros, digits - 1));
  return text;
}

}  // namespace pif
