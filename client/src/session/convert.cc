#include "pif/client/convert.h"

namespace pif::client {

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

Result<Format> format_of(const proto::Format& format) {
  if (format.kind() > 255 || format.delimiter() > 255) return fail(Code::kInvalid, "unknown record format");
  const Format out{static_cast<RecordKind>(format.kind()), format.record_length(),
                   static_cast<std::uint8_t>(format.delimiter())};
  PIF_TRY(out.validate());
  return out;
}

Result<parity::Layout> layout_of(const proto::FileLayout& layout) {
  return parity::Layout::make(static_cast<std::uint32_t>(layout.nodes_size()),
                              std::vector<std::uint32_t>(layout.bevies().begin(), layout.bevies().end()));
}

}  // namespace pif::client
