#include "local/line.h"

#include <fmt/format.h>

namespace pif::net {
namespace {

constexpr std::size_t kLengthBytes = 4;  // of a packet's header, in front of it

}  // namespace

Status parse_envelope(std::span<const std::byte> frame, proto::Envelope& out) {
  if (frame.size() > kHeaderBytesMax)
    return fail(Code::kTooLarge,
                fmt::format("a header of {} bytes is over the limit of {}", frame.size(), kHeaderBytesMax));
  // A message that breaks off still gives the fields before the break, so the sender often gets an answer.
  const bool whole = out.ParseFromArray(frame.data(), static_cast<int>(frame.size()));
  if (out.version() != kProtocolVersion)
    return fail(Code::kVersion,
                fmt::format("protocol version {} is not known here, only {}", out.version(), kProtocolVersion));
  if (!whole) return fail(Code::kInvalid, "the header is not a well-formed message");
  if (out.op_case() == proto::Envelope::OP_NOT_SET && !out.has_error() && !out.working())
    return fail(Code::kUnsupported, "an operation that this version does not know");
  return {};
}

Status parse_packet(std::span<const std::byte> bytes, Packet& out) {
  if (bytes.size() < kLengthBytes) return fail(Code::kInvalid, "a packet without the length of its header");
  std::size_t head = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) head |= static_cast<std::size_t>(bytes[i]) << (8 * i);
  bytes = bytes.subspan(kLengthBytes);
  if (head > bytes.size()) return fail(Code::kInvalid, "the header is longer than its packet");
  PIF_TRY(parse_envelope(bytes.first(head), out.envelope));
  out.body = Buffer::copy_of(bytes.subspan(head));
  return {};
}

Result<std::size_t> frame_size(const Packet& packet) {
  const std::size_t size = packet.envelope.ByteSizeLong();
  if (size > kHeaderBytesMax)
    return fail(Code::kTooLarge, fmt::format("a header of {} bytes is over the limit of {}", size, kHeaderBytesMax));
  if (packet.body.size() > kBodyBytesMax)
    return fail(Code::kTooLarge,
                fmt::format("a body of {} bytes is over the limit of {}", packet.body.size(), kBodyBytesMax));
  return size;
}

}  // namespace pif::net
