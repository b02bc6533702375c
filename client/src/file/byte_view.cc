// Bytes across records. Over fixed records it is arithmetic; over variable ones a search for the record that holds the
// byte, with the components' own indexes.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kProbes = 16;                 // of the search, each round
constexpr std::uint64_t kZeroBytesAtOnce = 1u << 20;  // of a gap: between two looks at the clock

// ---- fixed records ----

Result<std::size_t> pread_fixed(FileState& file, std::span<std::byte> out, std::uint64_t offset) {
  const std::uint64_t length = file.parts.format.record_length;
  const std::uint64_t end_of_file = file.length.bytes();  // as known when it began; nobody makes it less
  const std::uint64_t end = offset + out.size();
  std::uint64_t at = offset;
  while (at < end) {
    const RecordNumber record = at / length;
    const auto within = static_cast<std::uint32_t>(at % length);
    const auto rest = out.subspan(at - offset);
    if (within == 0 && (rest.size() >= length || end == end_of_file)) {
      const std::uint64_t whole = std::max<std::uint64_t>(1, rest.size() / length);
      PIF_TRY(file.reader.read_known(record, rest, whole));
      at = std::min(end, (record + whole) * length);
    } else {
      const auto piece = rest.first(std::min<std::size_t>(rest.size(), length - within));
      PIF_TRY(file.reader.read_within(record, within, piece));
      at += piece.size();
    }
  }
  return out.size();
}

// A part of one record of a file being created: the record is read, changed, and written again.
Status patch_created(FileState& file, RecordNumber record, std::uint32_t within, std::span<const std::byte> in) {
  const std::size_t present = file.length.record_bytes(record);
  std::vector<std::byte> bytes(std::max<std::size_t>(present, within + in.size()));
  if (present > 0) PIF_TRY(file.reader.read(record, bytes, 1));
  std::memcpy(bytes.data() + within, in.data(), in.size());
  return file.writer.write(record, bytes);
}

// Bytes that all lie inside the file, or (being created) go on from its end.
Status pwrite_inside(FileState& file, std::span<const std::byte> in, std::uint64_t offset) {
  const std::uint64_t length = file.parts.format.record_length;
  while (!in.empty()) {
    const RecordNumber record = offset / length;
    const auto within = static_cast<std::uint32_t>(offset % length);
    std::size_t piece = std::min<std::size_t>(in.size(), length - within);
    const bool whole = within == 0 && piece >= std::max<std::size_t>(1, file.length.record_bytes(record));
    if (whole && in.size() >= length) piece = in.size() / length * length;
    if (file.creating()) {
      PIF_TRY(whole ? file.writer.write(record, in.first(piece))
                    : patch_created(file, record, within, in.first(piece)));
    } else if (whole) {
      PIF_TRY(file.overwriter.overwrite(record, in.first(piece)));
    } else {
      PIF_TRY(file.overwriter.overwrite_within(record, within, in.first(piece)));
    }
    in = in.subspan(piece);
    offset += piece;
  }
  return {};
}

// Whether zeros may go on from the end up to `offset`.
Status check_gap(const FileState& file, std::uint64_t offset) {
  const std::uint64_t end = file.length.bytes();
  if (offset <= end || offset - end <= kGapBytesMax) return {};
  return fail(Code::kTooLarge,
              fmt::format("{}: byte {} is asked for, the file ends at byte {}: a gap of {} bytes would be filled with "
                          "zeros; at most {} may be",
                          file.parts.path, offset, end, offset - end, kGapBytesMax));
}

// Zeros from the end up to `offset`.
Status fill_gap(FileState& file, std::uint64_t offset, Time deadline) {
  PIF_ASSERT(file.length.bytes() < offset, file.length.bytes(), offset);
  const std::vector<std::byte> zeros(std::min(kZeroBytesAtOnce, offset - file.length.bytes()));
  while (file.length.bytes() < offset) {
    if (file.session->clock().now() >= deadline) {
      return fail(Code::kTimeout,
                  fmt::format("{}: the time was up when zeros had been written as far as byte {} of a gap that ends "
                              "at byte {}",
                              file.parts.path, file.length.bytes(), offset));
    }
    const auto piece = std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), offset - file.length.bytes()));
    if (file.creating()) {
      PIF_TRY(pwrite_inside(file, piece, file.length.bytes()));
    } else {
      const std::uint64_t at = file.length.bytes();
      PIF_TRY(file.appender.append({}, piece, true, &at, deadline));
    }
  }
  return {};
}

// kRetry: the end of the file has moved.
Status pwrite_fixed(FileState& file, std::span<const std::byte> in, std::uint64_t offset, Time deadline) {
  if (!file.creating() && offset < file.length.bytes()) PIF_TRY(file.check_may_overwrite());
  if (offset > file.length.bytes()) PIF_TRY(fill_gap(file, offset, deadline));
  if (file.creating()) return pwrite_inside(file, in, offset);
  const std::size_t inside = std::min<std::uint64_t>(in.size(), file.length.bytes() - offset);
  if (inside < in.size()) {
    const std::uint64_t at = file.length.bytes();
    PIF_TRY(file.appender.append({}, in.subspan(inside), true, &at, deadline));
  }
  return pwrite_inside(file, in.first(inside), offset);
}

// ---- variable records ----

using Found = FileState::RecordStart;

// The record that holds byte `offset`, which is inside the file. Dibble has no byte view; each round cuts the range of
// records to a sixteenth.
Result<Found> find_record(FileState& file, std::uint64_t offset) {
  Found low;
  RecordNumber high = file.length.records();  // starts past `offset`
  PIF_ASSERT(high > 0 && offset < file.length.bytes(), offset, high, file.length.bytes());
  while (high - low.record > 1) {
    std::vector<RecordNumber> probes;
    const std::uint64_t step = std::max<std::uint64_t>(1, (high - low.record) / kProbes);
    for (RecordNumber n = low.record + step; n < high && probes.size() < kProbes; n += step) probes.push_back(n);
    PIF_TRY_VALUE(const auto starts, file.reader.byte_offsets(probes));
    PIF_ASSERT(starts.size() == probes.size(), starts.size(), probes.size());
    for (std::size_t i = 0; i < probes.size(); ++i) {
      if (starts[i] <= offset) {
        low = {probes[i], starts[i]};
      } else {
        high = probes[i];
        break;
      }
    }
  }
  PIF_ASSERT(low.start <= offset && low.record < high, offset, low.start, low.record, high);
  return low;
}

Result<std::size_t> pread_variable(FileState& file, std::span<std::byte> out, std::uint64_t offset) {
  PIF_TRY_VALUE(Found found, find_record(file, offset));
  std::size_t done = 0;
  std::uint64_t skip = offset - found.start;
  while (done < out.size()) {
    PIF_TRY_VALUE(const RecordBatch batch, file.reader.read_batch(found.record, UINT64_MAX, skip + out.size() - done));
    if (batch.lengths.empty()) break;
    const auto bytes = std::span(batch.data).subspan(std::min<std::size_t>(skip, batch.data.size()));
    const std::size_t piece = std::min(bytes.size(), out.size() - done);
    if (piece > 0) std::memcpy(out.data() + done, bytes.data(), piece);
    done += piece;
    skip = 0;
    found.record += batch.lengths.size();
  }
  return done;
}

Status pwrite_variable(FileState& file, std::span<const std::byte> in, std::uint64_t offset) {
  if (file.creating()) {
    return fail(
        Code::kUnsupported,
        fmt::format("{}: records of variable length are written in order while the file is created", file.parts.path));
  }
  if (offset + in.size() > file.length.bytes()) {
    return fail(Code::kInvalid, fmt::format("{}: bytes {} to {} are past the end, and records keep their lengths",
                                            file.parts.path, offset, offset + in.size()));
  }
  PIF_TRY(file.check_may_overwrite());
  PIF_TRY_VALUE(Found found, find_record(file, offset));
  std::size_t done = 0;
  std::uint64_t skip = offset - found.start;
  while (done < in.size()) {
    PIF_TRY_VALUE(RecordBatch batch,
                  file.reader.read_batch(found.record, UINT64_MAX,
                                         std::min<std::uint64_t>(skip + in.size() - done, 4 * kBulkBytes)));
    if (batch.lengths.empty()) break;
    const std::size_t piece =
        std::min(batch.data.size() - std::min<std::size_t>(skip, batch.data.size()), in.size() - done);
    if (piece > 0) std::memcpy(batch.data.data() + skip, in.data() + done, piece);
    PIF_TRY(file.overwriter.overwrite_batch(found.record, batch.lengths, batch.data));
    done += piece;
    skip = 0;
    found.record += batch.lengths.size();
  }
  return {};
}

}  // namespace

Result<FileState::RecordStart> FileState::record_at_byte(std::uint64_t offset) {
  PIF_ASSERT(offset < length.bytes(), offset, length.bytes());
  if (!parts.format.is_fixed()) return find_record(*this, offset);
  const RecordNumber record = offset / parts.format.record_length;
  return RecordStart{record, record * parts.format.record_length};
}

Result<std::size_t> FileState::pread(std::span<std::byte> out, std::uint64_t offset) {
  if (parts.placed) {
    PIF_TRY(check_not_ended());
    return placed.pread(out, offset);
  }
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (scattered.is_on()) {
    PIF_TRY_VALUE(const std::size_t bytes, scattered.readable(offset, out.size()));
    PIF_ASSERT(bytes <= out.size(), offset, bytes, out.size());
    PIF_TRY(scattered.read(offset, out.first(bytes)));
    return bytes;
  }
  const bool may_be_past = out.size() > length.bytes() || offset > length.bytes() - out.size();
  if (!length.is_known() || may_be_past) PIF_TRY(length.get(true));
  if (out.empty() || offset >= length.bytes()) return 0;
  const auto part = out.first(std::min<std::uint64_t>(out.size(), length.bytes() - offset));
  return parts.format.is_fixed() ? pread_fixed(*this, part, offset) : pread_variable(*this, part, offset);
}

Result<std::size_t> FileState::pwrite(std::span<const std::byte> in, std::uint64_t offset) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  PIF_TRY(check_may_write());
  if (in.empty()) return 0;
  if (in.size() > kFileBytesMax || offset > kFileBytesMax - in.size()) {
    return fail(Code::kTooLarge, fmt::format("{}: {} bytes at byte {} are asked for; a file has at most {} bytes",
                                             parts.path, in.size(), offset, kFileBytesMax));
  }
  if (scattered.is_possible() && (scattered.is_on() || offset != length.bytes())) {
    PIF_TRY(check_not_done());
    PIF_TRY(scattered.begin());
    PIF_TRY(scattered.clear_gap(offset));
    PIF_TRY(scattered.write(offset, in));
    return in.size();
  }
  const Time deadline = session->clock().now() + session->timeout();
  PIF_TRY(length.get(true));
  if (!parts.format.is_fixed()) {
    PIF_TRY(pwrite_variable(*this, in, offset));
    return in.size();
  }
  PIF_TRY(check_gap(*this, offset));
  while (true) {
    auto status = pwrite_fixed(*this, in, offset, deadline);
    if (status) return in.size();
    if (status.error().code != Code::kRetry || session->clock().now() >= deadline)
      return fail(std::move(status.error()));
  }
}

// An append goes only where the end still is: of several that lengthen the file, each byte is appended by one.
Status FileState::lengthen(std::uint64_t bytes) {
  PIF_ASSERT(!creating() && parts.format.is_fixed(), bytes);
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  const Time deadline = session->clock().now() + session->timeout();
  while (true) {
    PIF_TRY(length.get(true));
    if (bytes <= length.bytes()) return {};
    PIF_TRY(check_gap(*this, bytes));
    auto status = fill_gap(*this, bytes, deadline);
    if (status) return {};
    if (status.error().code != Code::kRetry || session->clock().now() >= deadline)
      return fail(std::move(status.error()));
  }
}

Status FileState::resize(std::uint64_t bytes) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (!creating() || kind.adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created gets another length", parts.path));
  PIF_TRY(check_piece_end(bytes));
  PIF_TRY(finish_operations());
  if (bytes == length.bytes()) return {};
  PIF_TRY(check_not_done());
  PIF_TRY(scattered.begin());
  if (is_shared()) return scattered.resize_shared(bytes);
  return scattered.resize(bytes);
}

}  // namespace pif::client
