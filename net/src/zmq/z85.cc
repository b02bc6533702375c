#include "pif/net/z85.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "zmq/cppzmq.h"
#include "zmq/zmq_library.h"

namespace pif::net {

Result<std::string> z85_encode(std::span<const std::uint8_t> bytes) {
  PIF_ASSERT(bytes.size() % 4 == 0, bytes.size());
  PIF_TRY(load_zmq());
  std::string text(bytes.size() / 4 * 5 + 1, '\0');
  zmq_z85_encode(text.data(), bytes.data(), bytes.size());
  text.pop_back();  // the end that C strings have
  return text;
}

Status z85_decode(const std::string& text, std::span<std::uint8_t> bytes) {
  PIF_ASSERT(bytes.size() % 4 == 0, bytes.size());
  PIF_TRY(load_zmq());
  const bool fits = text.size() == bytes.size() / 4 * 5;
  if (fits && zmq_z85_decode(bytes.data(), text.c_str()) != nullptr) return {};
  return fail(Code::kInvalid, fmt::format("not {} bytes in Z85", bytes.size()));
}

}  // namespace pif::net
