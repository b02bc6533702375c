#include "pif/wire/convert.h"

#include <fmt/format.h>

#include "pif/base/path.h"

namespace pif::wire {

Result<Format> format_of(const proto::Format& format) {
  if (format.kind() < 1 || format.kind() > 3)
    return fail(Code::kInvalid, fmt::format("record kind {} is unknown", format.kind()));
  if (format.delimiter() > 255)
    return fail(Code::kInvalid, fmt::format("delimiter {} is not a byte", format.delimiter()));
  const Format out{static_cast<RecordKind>(format.kind()), format.record_length(),
                   static_cast<std::uint8_t>(format.delimiter())};
  PIF_TRY(out.validate());
  return out;
}

Result<std::uint32_t> form_of(const proto::FileLayout& layout) {
  constexpr std::uint32_t kFormMax = 1;
  if (layout.form() > kFormMax)
    return fail(Code::kVersion, fmt::format("the file is stored in form {}: a newer pif is needed", layout.form()));
  if (layout.form() > 0 && layout.bevies().empty())
    return fail(Code::kInvalid, fmt::format("form {} needs bevies, and the file has none", layout.form()));
  return layout.form();
}

Result<parity::Layout> layout_of(const proto::FileLayout& layout) {
  PIF_TRY(form_of(layout));
  return parity::Layout::make(static_cast<std::uint32_t>(layout.nodes_size()),
                              {layout.bevies().begin(), layout.bevies().end()});
}

Result<OtherKind> other_kind_of(const proto::Other& other) {
  if (other.kind() < kOtherLink || other.kind() > kOtherBlockDevice)
    return fail(Code::kInvalid, fmt::format("unknown kind of an entry without bytes: {}", other.kind()));
  const auto kind = static_cast<OtherKind>(other.kind());
  const std::string& target = other.target();
  if (target.size() > kTargetBytesMax)
    return fail(Code::kTooLarge, fmt::format("the target of a link has {} bytes; at most {} are possible",
                                             target.size(), kTargetBytesMax));
  if ((kind == kOtherLink) == target.empty() || target.find('\0') != std::string::npos)
    return fail(Code::kInvalid, "a link, and nothing else, has a target, which is not empty and has no byte 0");
  const bool is_device = kind == kOtherCharacterDevice || kind == kOtherBlockDevice;
  if (!is_device && other.device() != 0) return fail(Code::kInvalid, "a device, and nothing else, has a number");
  return kind;
}

Error error_of(const proto::Error& error) { return {code_from_number(error.code()), error.text(), error.node()}; }

proto::Format proto_of(const Format& format) {
  proto::Format out;
  out.set_kind(static_cast<std::uint32_t>(format.kind));
  out.set_record_length(format.record_length);
  out.set_delimiter(format.delimiter);
  return out;
}

proto::FileLength proto_of(const FileLength& file_length) {
  proto::FileLength out;
  out.set_records(file_length.records);
  out.set_bytes(file_length.bytes);
  return out;
}

proto::Error proto_of(const Error& error, std::string_view node) {
  proto::Error out;
  out.set_code(static_cast<std::uint32_t>(error.code));
  out.set_text(to_utf8(error.text));
  out.set_node(error.node.empty() ? std::string(node) : error.node);
  return out;
}

}  // namespace pif::wire
