#include "pif/access/row_copies.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pif/access/rebuilt_read.h"
#include "pif/base/assert.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::access {

namespace {

// Where each row of the body begins, and where the last one ends; only a short last record is shorter than the others.
std::vector<std::size_t> offsets_of(const FileParts& parts, const RowRange& rows, const RowBody& body) {
  std::vector<std::size_t> offsets(rows.rows + 1, 0);
  for (std::uint64_t i = 0; i < rows.rows; ++i) {
    const std::size_t length = parts.format.is_fixed() ? parts.format.record_length : body.lengths[i];
    offsets[i + 1] = std::min(offsets[i] + length, body.data.size());
    PIF_ASSERT(parts.format.is_fixed() || offsets[i + 1] == offsets[i] + length, i, offsets[i], length);
  }
  PIF_ASSERT(offsets.back() == body.data.size(), offsets.back(), body.data.size(), rows.rows);
  return offsets;
}

RowBody rows_of_keeper(const RowRange& rows, const KeptRows& kept, const RowBody& body,
                       std::span<const std::size_t> offsets) {
  RowBody part;
  for (std::uint64_t i = kept.first - rows.row; i < rows.rows; i += kept.step) {
    if (!body.lengths.empty()) part.lengths.push_back(body.lengths[i]);
    const auto row = std::span(body.data).subspan(offsets[i], offsets[i + 1] - offsets[i]);
    part.data.insert(part.data.end(), row.begin(), row.end());
  }
  return part;
}

net::Packet copy_packet(const FileParts& parts, LfsIndex lfs, const KeptRows& kept, const CopyOptions& options,
                        const RowBody& body) {
  net::Packet packet;
  proto::CopyRows& copy = *packet.envelope.mutable_copy_rows();
  *copy.mutable_shape() = parts.shape(kept.keeper);
  copy.set_index(lfs);
  copy.set_first(kept.first);
  copy.set_count(kept.count);
  copy.set_generation(options.generation);
  if (options.generation != 0) *copy.mutable_base() = wire::proto_of(options.base);
  copy.set_view(parts.view);
  packet.body = body.to_buffer();
  return packet;
}

}  // namespace

Status check_keeper(const FileParts& parts, LfsIndex lfs, Row row) {
  PIF_ASSERT(parts.is_absent(lfs) && parts.layout.has_parity(), lfs, parts.view);
  const LfsIndex keeper = parts.layout.parity_of({lfs, row}).lfs;
  if (!parts.is_absent(keeper)) return {};
  const auto said = [&](LfsIndex of) {
    const proto::NodeInfo& node = parts.nodes[of];
    return fmt::format("{} is {}", node.name(), wire::view_state_name(node.view_state()));
  };
  return fail(Code::kUnavailable,
              fmt::format("{}: record {} cannot be written: {}, and {}, which keeps its parity: see pif status",
                          parts.path, parts.layout.record_at({lfs, row}), said(lfs), said(keeper)),
              parts.nodes[lfs].name());
}

Status add_copies(Requests& requests, const RowRange& rows, const RowBody& body, const CopyOptions& options) {
  const FileParts& parts = requests.grant().parts();
  PIF_ASSERT(rows.rows > 0 && parts.creating == (options.generation == 0), rows.rows, options.generation);
  PIF_ASSERT(parts.format.is_fixed() ? body.lengths.empty() : body.lengths.size() == rows.rows, body.lengths.size(),
             rows.rows);
  const std::vector<KeptRows> by = by_keeper(parts.layout, rows);
  for (const KeptRows& kept : by) PIF_TRY(check_keeper(parts, rows.lfs, kept.first));
  const std::vector<std::size_t> offsets = offsets_of(parts, rows, body);
  for (const KeptRows& kept : by) {
    const auto part = std::make_shared<const RowBody>(rows_of_keeper(rows, kept, body, offsets));
    BulkRequest request;
    request.lfs = kept.keeper;
    request.bytes = part->size();
    request.timeout = options.timeout;
    request.in_order = options.in_order;
    request.patient = parts.creating;
    request.make = [&parts, lfs = rows.lfs, kept, options, part] {
      return copy_packet(parts, lfs, kept, options, *part);
    };
    request.refused = [&parts](Error error) -> Status { return fail(explain_old_view(parts, std::move(error))); };
    requests.add(std::move(request));
  }
  return {};
}

Error explain_old_view(const FileParts& parts, Error error) {
  if (error.code != Code::kOldView || !parts.creating) return error;
  error.text = fmt::format("{}: an LFS was lost, or came back, while the file was written: write it again ({})",
                           parts.path, error.text);
  return error;
}

}  // namespace pif::access
