// Changing records of a committed file. It goes by message: the LFS has a redo log for it.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

// A body that can be sent again shares its bytes with the request.
using SharedBytes = std::shared_ptr<std::vector<std::byte>>;

BulkRequest overwrite_request(const FileState& file, const Share& stretch, SharedBytes bytes) {
  BulkRequest request;
  request.lfs = stretch.lfs;
  request.bytes = bytes->size();
  request.patient = true;
  request.make = [id = file.parts.file.value, stretch, bytes] {
    net::Packet packet;
    proto::Overwrite& overwrite = *packet.envelope.mutable_overwrite();
    overwrite.set_file(id);
    overwrite.set_first(stretch.row);
    overwrite.set_count(stretch.rows);
    packet.body = net::Buffer::copy_of(*bytes);
    return packet;
  };
  return request;
}

}  // namespace

Status FileState::overwrite(RecordNumber first, std::span<const std::byte> in, Requests& requests) {
  const std::size_t length = parts.format.record_length;
  const std::uint64_t count = (in.size() + length - 1) / length;
  if (in.size() != (count - 1) * length + record_bytes(first + count - 1)) {
    return fail(Code::kInvalid, fmt::format("{}: records {} to {} keep their lengths: {} bytes do not fit them", parts.path,
                                            first, first + count, in.size()));
  }
  split(parts.layout, {first, first + count}, shares_);
  std::vector<Share> stretches;
  for (const Share& share : shares_) {
    data_stretches(parts.layout, share, std::max<std::uint64_t>(1, kBulkBytes / length), stretches);
    for (const Share& stretch : stretches) {
      auto bytes = std::make_shared<std::vector<std::byte>>();
      bytes->reserve(stretch.rows * length);
      for (std::uint64_t i = 0; i < stretch.rows; ++i) {
        const std::size_t from = (*record_of(parts.layout, stretch, i) - first) * length;
        const auto row = in.subspan(from, std::min(length, in.size() - from));
        bytes->insert(bytes->end(), row.begin(), row.end());
      }
      counts.bytes_by_message += bytes->size();
      requests.add(overwrite_request(*this, stretch, std::move(bytes)));
    }
  }
  return requests.step();
}

Status FileState::overwrite_all(RecordNumber first, std::span<const std::byte> in) {
  const Extent before = extent;
  Requests requests(*this);
  auto status = overwrite(first, in, requests);
  if (status) status = requests.run();
  // Of a short last record whose length has changed the LFS can only say that the bytes do not fit it.
  if (status || status.error().code != Code::kInvalid || !ends_short()) return status;
  PIF_TRY(length(true));
  return extent == before ? status : fail(Code::kRetry, std::move(status.error().text), std::move(status.error().node));
}

Status FileState::overwrite_within(RecordNumber record, std::uint32_t within, std::span<const std::byte> in) {
  const Cell cell = parts.layout.locate(record);
  auto bytes = std::make_shared<std::vector<std::byte>>(in.begin(), in.end());
  BulkRequest request;
  request.lfs = cell.lfs;
  request.bytes = in.size();
  request.patient = true;
  request.make = [id = parts.file.value, cell, within, bytes] {
    net::Packet packet;
    proto::Overwrite& overwrite = *packet.envelope.mutable_overwrite();
    overwrite.set_file(id);
    overwrite.set_first(cell.row);
    overwrite.set_count(1);
    overwrite.set_within(within);
    overwrite.set_bytes(static_cast<std::uint32_t>(bytes->size()));
    packet.body = net::Buffer::copy_of(*bytes);
    return packet;
  };
  counts.bytes_by_message += in.size();
  Requests requests(*this);
  requests.add(std::move(request));
  return requests.run();
}

Status FileState::overwrite_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                  std::span<const std::byte> data) {
  std::vector<std::uint64_t> starts(lengths.size() + 1, 0);
  for (std::size_t i = 0; i < lengths.size(); ++i) starts[i + 1] = starts[i] + lengths[i];
  split(parts.layout, {first, first + lengths.size()}, shares_);
  Requests requests(*this);
  for (const Share& share : shares_) {
    Share stretch;
    std::vector<std::uint32_t> row_lengths;
    std::vector<std::byte> rows;
    const auto send = [&] {
      if (stretch.rows == 0) return;
      auto body = std::make_shared<std::vector<std::byte>>(row_lengths.size() * sizeof(std::uint32_t) + rows.size());
      std::memcpy(body->data(), row_lengths.data(), row_lengths.size() * sizeof(std::uint32_t));
      if (!rows.empty()) std::memcpy(body->data() + row_lengths.size() * sizeof(std::uint32_t), rows.data(), rows.size());
      requests.add(overwrite_request(*this, stretch, std::move(body)));
      stretch.rows = 0;
      row_lengths.clear();
      rows.clear();
    };
    for (std::uint64_t i = 0; i < share.rows; ++i) {
      const auto record = record_of(parts.layout, share, i);
      const std::uint64_t size = record ? lengths[*record - first] : 0;
      if (!record || (stretch.rows > 0 && rows.size() + size > kBulkBytes)) send();
      if (!record) continue;
      if (stretch.rows == 0) stretch = {share.lfs, share.row + i, 0, *record, share.even};
      const auto from = data.subspan(starts[*record - first], size);
      rows.insert(rows.end(), from.begin(), from.end());
      row_lengths.push_back(static_cast<std::uint32_t>(size));
      ++stretch.rows;
    }
    send();
  }
  counts.bytes_by_message += data.size();
  return requests.run();
}

}  // namespace pif::client
