// What comes off a wire before anybody has been asked who he is: packets of Unix sockets and frames of ZeroMQ.
#include "../../net/src/local/line.h"
#include "fuzz.h"
#include "pif/net/calls.h"

namespace {

using namespace pif;
using fuzz::must;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// A message that was understood is the same when it is sent on, and can be answered.
void check_understood(const net::Packet& packet) {
  const auto size = net::frame_size(packet);
  must(size.has_value(), "what came in one frame fits one");
  proto::Envelope again;
  const std::string bytes = packet.envelope.SerializeAsString();
  must(net::parse_envelope(bytes_of(bytes), again).has_value(), "and is understood again");
  must(again.op_case() == packet.envelope.op_case() && again.id() == packet.envelope.id(), "as the same");
  must(net::is_reply(again) == net::is_reply(packet.envelope), "a reply stays one");
  const auto answer = net::error_reply(packet.envelope, {Code::kInvalid, "no", {}}, "node");
  must(net::is_reply(answer.envelope) && answer.envelope.id() == packet.envelope.id(), "an error answers its request");
}

void check_packet(std::string_view bytes) {
  net::Packet packet;
  if (net::parse_packet(bytes_of(bytes), packet)) check_understood(packet);
}

void check_frame(std::string_view bytes) {
  net::Packet packet;
  if (net::parse_envelope(bytes_of(bytes), packet.envelope)) check_understood(packet);
}

std::string packed(const proto::Envelope& envelope, std::string_view body = {}) {
  const std::string head = envelope.SerializeAsString();
  fuzz::Output out;
  out.byte(0).word(static_cast<unsigned>(head.size())).word(0).bytes(head).bytes(body);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const bool frame = (in.byte() & 1) != 0;
  frame ? check_frame(in.rest()) : check_packet(in.rest());
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  std::vector<std::pair<std::string, std::string>> out;
  proto::Envelope request;
  request.set_version(kProtocolVersion);
  request.set_id(0x2a01);
  request.set_timeout_ms(30'000);
  request.set_credential("C1234");
  request.set_capability("F5678");
  // Every operation there is, empty: the fuzzer fills them.
  for (unsigned field = 10; field < 120; ++field) {
    proto::Envelope of = request;
    const std::string tag = Output().byte(((field << 3 | 2) & 0x7f) | 0x80).byte(field >> 4).byte(0).str();
    const std::string both = of.SerializeAsString() + tag;
    proto::Envelope parsed;
    if (!parsed.ParseFromString(both) || parsed.op_case() == proto::Envelope::OP_NOT_SET) continue;
    out.emplace_back("op-" + std::to_string(field), packed(parsed, "body"));
  }
  std::string nested;  // groups in groups: deeper than anybody reads
  for (int i = 0; i < 200; ++i) nested += "\xfb\x01";
  out.emplace_back("nested-groups", Output().byte(1).bytes("\x08\x01\x10\x05").bytes(nested).str());
  out.emplace_back("unknown-version", Output().byte(1).bytes("\x08\x02\x10\x05").str());
  out.emplace_back("length-too-long", Output().byte(0).word(0xffff).word(0xffff).bytes("x").str());
  return out;
}
