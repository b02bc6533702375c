// The bytes of docs/PROTOCOL.md "Example" and "Rights". They are what version 1 is: if this fails, peers of another
// build no longer understand this one.
#include <array>
#include <string>

#include <catch2/catch.hpp>

#include "pif/base/capability.h"
#include "pif/proto/messages.pb.h"

using namespace pif;

namespace {

std::string bytes_of(std::string_view hex) {
  std::string out;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() == 2) out += static_cast<char>(std::stoi(std::exchange(digits, {}), nullptr, 16));
  }
  return out;
}

proto::Envelope envelope() {
  proto::Envelope out;
  out.set_version(1);
  out.set_id(0x2a01);
  return out;
}

}  // namespace

TEST_CASE("the documented request, reply and error are what is sent") {
  auto request = envelope();
  request.set_timeout_ms(30'000);
  request.mutable_read()->set_file(77);
  request.mutable_read()->set_first(1000);
  request.mutable_read()->set_count(3);
  REQUIRE(request.SerializeAsString() == bytes_of("08 01 10 81 54 18 b0 ea 01 f2 03 07 08 4d 10 e8 07 18 03"));

  auto reply = envelope();
  reply.mutable_read_reply()->set_rows(3);
  REQUIRE(reply.SerializeAsString() == bytes_of("08 01 10 81 54 fa 03 02 08 03"));

  auto error = envelope();
  error.mutable_error()->set_code(21);
  error.mutable_error()->set_text("row 1000 is past the end");
  error.mutable_error()->set_node("lfs0");
  REQUIRE(error.SerializeAsString() ==
          bytes_of("08 01 10 81 54 3a 22 08 15 12 18") + "row 1000 is past the end" + bytes_of("1a 04 6c 66 73 30"));
}

TEST_CASE("the documented capability is what the documented key makes") {
  ClusterKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
  REQUIRE(mint(key, Capability{FileId(77), 1000, kMayRead, 2, 1'700'000'000}) ==
          bytes_of("46 4d 00 00 00 00 00 00 00 e8 03 00 00 01 00 00 00 02 00 00 00 00 00 00 00 00 f1 53 65 00 00 00 00 "
                   "77 57 42 8d 45 63 ec a7 e8 25 32 45 48 0b db 2c"));
  const auto credential = mint(key, Credential{SessionId(5), 1000, {1000, 27}, 1'700'000'000});
  REQUIRE(credential.size() == 39 + 4 * 2);
}
