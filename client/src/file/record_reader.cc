// Reading fixed records.
#include "file/record_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/piece_reader.h"
#include "pieces/piece_source.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u
                                         << 10;  // below this, handing work to another thread costs more than it saves
constexpr std::uint64_t kTurnBytes = kParallelBytes / 2;  // what one thread does, at least
// Of requests that have so many bytes on average chunks are rarely shared; those go straight to their memory.
constexpr std::uint64_t kLongRequestBytes = 64u << 10;
constexpr std::uint32_t kLongRowBytes = 4096;  // from here on neighbours in memory do not disturb each other

}  // namespace

// ---- components ----------------------------------------------------------------------------------------------------

Status RecordReader::open(std::span<const LfsIndex> lfss) {
  if (file_.scattered.is_on()) return {};  // read_scattered() does it
  if (file_.creating()) {
    for (const LfsIndex lfs : lfss) PIF_TRY(file_.writer.make_readable(lfs));
    return {};
  }
  const auto is_open = [this](LfsIndex lfs) {
    return file_.component(lfs).has_reader() || file_.component(lfs).by_message();
  };
  if (std::all_of(lfss.begin(), lfss.end(), is_open)) return {};
  access::Requests attaches(file_.session->links(), file_.grant);
  add_opens(attaches, lfss);
  PIF_TRY(file_.run(attaches));
  add_parity_opens(attaches, lfss);
  return attaches.idle() ? Status() : file_.run(attaches);
}

void RecordReader::add_opens(access::Requests& requests, std::span<const LfsIndex> lfss) {
  for (const LfsIndex lfs : lfss) file_.component(lfs).open_reader(requests);
}

// What it takes to rebuild here the rows of those that are away.
void RecordReader::add_parity_opens(access::Requests& requests, std::span<const LfsIndex> lfss) {
  for (const LfsIndex lfs : lfss) {
    if (!file_.component(lfs).is_away() || !file_.parts.format.is_fixed()) continue;
    if (!near_parity_)
      near_parity_ = std::make_unique<access::NearParity>(
          file_.session->storage(), file_.parts,
          [this](LfsIndex other) -> access::ComponentAccess& { return file_.component(other); });
    near_parity_->open(requests, lfs);
    for (const LfsIndex other : near_parity_->needed(lfs)) file_.component(other).open_reader(requests);
  }
}

bool RecordReader::is_near(LfsIndex lfs) const {
  return file_.component(lfs).has_reader() || (file_.is_away(lfs) && near_parity_ && near_parity_->has(lfs));
}

Status RecordReader::read_near(const ReadPart& part) const {
  const access::ComponentAccess& component = file_.component(part.rows.lfs);
  return component.has_reader() ? access::read_direct(file_.parts, component, part) : near_parity_->read(part);
}

Status RecordReader::cannot_read_back(LfsIndex lfs) const {
  return fail(
      Code::kUnsupported,
      fmt::format("{}: what was sent by message cannot be read back before the file is committed", file_.parts.path),
      file_.node(lfs).name());
}

Status RecordReader::read_gathered(const ReadPart& part) const {
  const auto rows = file_.writer.gathered(part.rows);
  PIF_ASSERT(file_.creating(), file_.phase);
  if (rows.empty()) return cannot_read_back(part.rows.lfs);
  access::scatter(file_.parts, part, part.rows, rows);
  return {};
}

// ---- parts ---------------------------------------------------------------------------------------------------------

Status RecordReader::read_all_direct(std::span<const ReadPart> parts, std::uint64_t bytes, access::Requests& messages) {
  const auto read_one = [this](const ReadPart& part) { return read_near(part); };
  const auto recover_one = [this, &messages](const ReadPart& part, Error error) -> Status {
    if (!file_.component(part.rows.lfs).has_reader()) {
      access::read_by_message(messages, part, file_.counts.bytes_by_message);
      return {};
    }
    return access::recover(messages, file_.component(part.rows.lfs), part, file_.counts.bytes_by_message,
                           std::move(error));
  };
  PIF_ASSERT(!parts.empty(), bytes);
  if (parts.size() == 1) {
    auto status = read_one(parts[0]);
    return status ? status : recover_one(parts[0], std::move(status.error()));
  }
  std::vector<Status> outcome(parts.size());
  std::vector<std::size_t> turns;  // where each begins
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 0 || parts[i].turn != parts[i - 1].turn) turns.push_back(i);
  }
  turns.push_back(parts.size());
  PIF_ASSERT(turns.size() >= 2 && turns.front() == 0, turns.size(), parts.size());
  const auto take_turn = [&](std::size_t turn) {
    for (std::size_t i = turns[turn]; i < turns[turn + 1]; ++i) outcome[i] = read_one(parts[i]);
  };
  if (bytes >= kParallelBytes) {
    file_.session->pool().run(turns.size() - 1, take_turn);
  } else {
    for (std::size_t turn = 0; turn + 1 < turns.size(); ++turn) take_turn(turn);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!outcome[i]) PIF_TRY(recover_one(parts[i], std::move(outcome[i].error())));
  }
  return {};
}

Status RecordReader::read_parts(std::span<const ReadPart> parts_wanted, access::Requests* requests) {
  const std::uint64_t length = file_.parts.format.record_length;
  lfss_.clear();
  for (const ReadPart& part : parts_wanted) lfss_.push_back(part.rows.lfs);
  PIF_TRY(open(lfss_));
  access::Requests own(file_.session->links(), file_.grant);
  access::Requests& messages = requests != nullptr ? *requests : own;
  std::vector<ReadPart> direct;
  std::uint64_t bytes = 0;
  for (const ReadPart& part : parts_wanted) {
    if (!file_.component(part.rows.lfs).by_message() || is_near(part.rows.lfs)) {
      direct.push_back(part);
      bytes += part.rows.rows * length;
    } else if (file_.creating()) {
      PIF_TRY(read_gathered(part));
    } else {
      access::read_by_message(messages, part, file_.counts.bytes_by_message);
    }
  }
  PIF_TRY(messages.step());  // under way while we copy
  if (!direct.empty()) PIF_TRY(read_all_direct(direct, bytes, messages));
  file_.counts.bytes_by_descriptor += bytes;
  return requests != nullptr ? messages.step() : file_.run(messages);
}

void RecordReader::add_parts(Range records, std::byte* out, std::vector<ReadPart>& parts_wanted) {
  const std::uint64_t length = file_.parts.format.record_length;
  const std::uint32_t width = file_.width();
  const bool by_lfs = length >= kLongRowBytes;
  std::uint64_t turn = parts_wanted.empty() ? 0 : parts_wanted.back().turn + 1;
  // Cuts fall between chunks where they can, so that no chunk is read twice.
  const std::uint64_t unit =
      width * std::max<std::uint64_t>(1, component::chunk_bytes_for(file_.parts.format) / length);
  const std::uint64_t bytes = records.size() * length;
  const std::uint64_t turns = by_lfs || bytes < kParallelBytes
                                  ? 1
                                  : std::min<std::uint64_t>(file_.session->pool().threads(), bytes / kTurnBytes);
  const std::uint64_t step = std::max(unit, (records.size() / turns + unit - 1) / unit * unit);
  PIF_ASSERT(unit > 0 && step % unit == 0, unit, step, turns);
  for (RecordNumber begin = records.begin; begin < records.end;) {
    const RecordNumber end = turns == 1 ? records.end : std::min(records.end, (begin / unit * unit) + step);
    PIF_ASSERT(end > begin, begin, end, unit, step);
    access::split(file_.parts.layout, {begin, end}, ranges_);
    for (const RowRange& rows : ranges_) {
      parts_wanted.push_back({rows, out, records.begin, file_.length.now(), by_lfs ? turn++ : turn});
    }
    ++turn;
    begin = end;
  }
}

// ---- requests ------------------------------------------------------------------------------------------------------

namespace {

struct Clipped {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

// What a file of this length has of `count` records from `first`, which is not past its end.
Clipped clip_to(const FileLength& file_length, std::uint32_t length, RecordNumber first, std::uint64_t count) {
  PIF_ASSERT(first <= file_length.records, first, file_length.records);
  const std::uint64_t records = std::min(count, file_length.records - first);
  if (records == 0) return {};
  return {records, (records - 1) * length + fixed_record_bytes(length, file_length, first + records - 1)};
}

}  // namespace

Result<std::uint64_t> RecordReader::clip(RecordNumber first, std::size_t out_bytes, std::uint64_t count) {
  const FileParts& parts = file_.parts;
  if (!parts.format.is_fixed()) {
    return fail(Code::kInvalid, fmt::format("{}: records of variable length are read in batches", parts.path));
  }
  const std::uint64_t wanted = count > UINT64_MAX - first ? UINT64_MAX : first + count;
  const auto known = file_.length.is_known() ? std::optional(file_.length.now()) : std::nullopt;
  PIF_TRY_VALUE(const FileLength now, file_.length.for_records(wanted));
  if (first > now.records) return fail(file_.past_end(first).error());
  const std::uint32_t length = parts.format.record_length;
  const Clipped clipped = clip_to(now, length, first, count);
  PIF_ASSERT(clipped.records <= count, clipped.records, count);
  if (clipped.bytes <= out_bytes) return clipped.records;
  if (known && first <= known->records) {  // the memory is for the length that the caller knows
    const Clipped before = clip_to(*known, length, first, count);
    if (before.bytes <= out_bytes) {
      file_.length.go_by(*known);
      return before.records;
    }
  }
  return fail(Code::kInvalid, fmt::format("{}: {} bytes of memory for {} records of {} bytes", parts.path, out_bytes,
                                          clipped.records, length));
}

Result<std::uint64_t> RecordReader::read(RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  PIF_TRY(file_.check_usable());
  PIF_TRY(file_.keep_rights());
  if (file_.scattered.is_on()) return read_scattered(first, out, count);
  PIF_TRY_VALUE(const std::uint64_t records, clip(first, out.size(), count));
  if (records == 0) return records;
  auto status = read_known(first, out, records);
  if (status) return records;
  const bool may_scatter = status.error().code == Code::kUnsupported && file_.scattered.is_possible();
  if (!may_scatter) return fail(std::move(status.error()));
  PIF_TRY(file_.scattered.begin());  // then what was sent can be read back
  return read_scattered(first, out, records);
}

Result<std::uint64_t> RecordReader::read_scattered(RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  const std::uint64_t length = file_.parts.format.record_length;
  if (first > kFileBytesMax / length) return fail(file_.past_end(first).error());
  const std::uint64_t most = std::min<std::uint64_t>(count, (out.size() + length - 1) / length);
  const std::size_t wanted = std::min<std::uint64_t>(out.size(), most * length);
  PIF_TRY_VALUE(const std::size_t bytes, file_.scattered.readable(first * length, wanted));
  PIF_ASSERT(bytes <= wanted && wanted <= out.size(), bytes, wanted, out.size());
  PIF_TRY(file_.scattered.read(first * length, out.first(bytes)));
  return (bytes + length - 1) / length;
}

Status RecordReader::read_known(RecordNumber first, std::span<std::byte> out, std::uint64_t records) {
  return file_.in_newest_view([&] { return read_once(first, out, records); });
}

Status RecordReader::read_once(RecordNumber first, std::span<std::byte> out, std::uint64_t records) {
  PIF_ASSERT(records > 0, first);
  if (records == 1) {  // the fast path of single records: no allocation, no lock
    const Cell cell = file_.parts.layout.locate(first);
    const access::ComponentAccess& component = file_.component(cell.lfs);
    const std::size_t bytes = file_.length.record_bytes(first);  // at its LFS it may be longer by now
    PIF_ASSERT(bytes <= out.size(), first, bytes, out.size());
    const bool is_shown = component.has_reader() && !file_.writer.has_unshown(cell.lfs);
    if (is_shown && component.reader().read_bytes(cell.row * file_.parts.format.record_length, out.first(bytes))) {
      file_.counts.bytes_by_descriptor += bytes;
      return {};
    }
  }
  parts_.clear();
  add_parts({first, first + records}, out.data(), parts_);
  return read_parts(parts_, nullptr);
}

Status RecordReader::read_many(std::span<File::ReadRequest> requests) {
  PIF_TRY(file_.check_usable());
  PIF_TRY(file_.keep_rights());
  if (file_.creating() || requests.size() == 1) return read_each(requests);
  std::vector<component::Extent> pieces;  // of the byte view
  std::uint64_t bytes = 0;
  for (File::ReadRequest& request : requests) {
    PIF_TRY_VALUE(request.done, clip(request.first, request.out.size(), request.count));
    if (request.done == 0) continue;
    const std::uint64_t length = file_.parts.format.record_length;
    const RecordNumber last = request.first + request.done - 1;
    const std::size_t size = (request.done - 1) * length + file_.length.record_bytes(last);
    PIF_ASSERT(size <= request.out.size(), request.first, size, request.out.size());
    pieces.push_back({request.first * length, size, request.out.data()});
    bytes += size;
  }
  if (bytes >= pieces.size() * kLongRequestBytes) return read_each(requests);
  return PieceReader(file_, fill_from_list(std::move(pieces)), true).run();
}

Status RecordReader::read_each(std::span<File::ReadRequest> requests) {
  if (file_.scattered.is_on()) {
    for (File::ReadRequest& request : requests) {
      PIF_TRY_VALUE(request.done, read_scattered(request.first, request.out, request.count));
    }
    return {};
  }
  std::vector<ReadPart> all;
  for (File::ReadRequest& request : requests) {
    PIF_TRY_VALUE(request.done, clip(request.first, request.out.size(), request.count));
    add_parts({request.first, request.first + request.done}, request.out.data(), all);
  }
  return file_.in_newest_view([&] { return read_parts(all, nullptr); });
}

// ---- within one record ---------------------------------------------------------------------------------------------

Status RecordReader::read_within_by_message(const Cell& cell, std::uint64_t offset, std::span<std::byte> out) {
  const FileParts& parts = file_.parts;
  access::Requests requests(file_.session->links(), file_.grant);
  access::BulkRequest request;
  request.lfs = cell.lfs;
  request.bytes = out.size();
  request.make = [&parts, offset, out] {
    net::Packet packet;
    proto::ReadBytes& read = *packet.envelope.mutable_read_bytes();
    read.set_file(parts.file.value);
    read.set_offset(offset);
    read.set_bytes(out.size());
    return packet;
  };
  Status refused;
  request.take = [this, &cell, &refused, out](net::Packet& reply) -> Status {
    if (reply.body.size() < out.size() && access::can_be_rebuilt(file_.parts)) {
      refused = fail(Code::kEndOfFile, "it has less of the record", file_.node(cell.lfs).name());
      return {};
    }
    if (reply.body.size() != out.size()) {
      return fail(Code::kCorrupt,
                  fmt::format("{}: {} bytes instead of {}", file_.parts.path, reply.body.size(), out.size()),
                  file_.node(cell.lfs).name());
    }
    std::memcpy(out.data(), reply.body.data(), out.size());
    file_.counts.bytes_by_message += out.size();
    return {};
  };
  request.replaceable = access::can_be_rebuilt(parts);
  request.refused = [&parts, &refused](Error error) -> Status {
    if (!access::can_rebuild(parts, error)) return fail(std::move(error));
    refused = fail(std::move(error));
    return {};
  };
  requests.add(std::move(request));
  PIF_TRY(file_.run(requests));
  if (refused) return {};
  return read_within_rebuilt(cell, offset, out, refused.error());
}

// The whole record is rebuilt: `offset` is of .dat.
Status RecordReader::read_within_rebuilt(const Cell& cell, std::uint64_t offset, std::span<std::byte> out,
                                         const Error& why) {
  const FileParts& parts = file_.parts;
  const std::uint64_t length = parts.format.record_length;
  const RecordNumber record = parts.layout.record_at(cell);
  PIF_ASSERT(offset >= cell.row * length && offset + out.size() <= (cell.row + 1) * length, offset, out.size());
  std::vector<std::byte> whole(length);
  access::Requests requests(file_.session->links(), file_.grant);
  access::read_rebuilt(requests, {{cell.lfs, cell.row, 1, record, true}, whole.data(), record, file_.length.now(), 0},
                       file_.counts.bytes_by_message, why);
  PIF_TRY(file_.run(requests));
  std::memcpy(out.data(), whole.data() + (offset - cell.row * length), out.size());
  return {};
}

Status RecordReader::read_within(RecordNumber record, std::uint32_t within, std::span<std::byte> out) {
  return file_.in_newest_view([&] { return read_within_once(record, within, out); });
}

Status RecordReader::read_within_once(RecordNumber record, std::uint32_t within, std::span<std::byte> out) {
  const Cell cell = file_.parts.layout.locate(record);
  PIF_ASSERT(within + out.size() <= file_.parts.format.record_length, record, within, out.size());
  const std::uint64_t offset = cell.row * file_.parts.format.record_length + within;
  PIF_TRY(open(std::span(&cell.lfs, 1)));
  access::ComponentAccess& component = file_.component(cell.lfs);
  if (!component.by_message()) {
    auto status = component.reader().read_bytes(offset, out);
    if (!status && !file_.creating()) {
      access::Requests attach(file_.session->links(), file_.grant);
      PIF_TRY(access::note_silent_disk(attach, cell.lfs, status.error()));
      component.attach_again(attach);
      PIF_TRY(file_.run(attach));
    }
    if (!status && component.has_reader()) status = component.reader().read_bytes(offset, out);
    if (status) {
      file_.counts.bytes_by_descriptor += out.size();
      return {};
    }
  }
  if (!file_.creating()) return read_within_by_message(cell, offset, out);
  std::vector<std::byte> whole(file_.parts.format.record_length);
  PIF_TRY(read_gathered({{cell.lfs, cell.row, 1, record, true}, whole.data(), record, {}, 0}));
  std::memcpy(out.data(), whole.data() + within, out.size());
  return {};
}

}  // namespace pif::client
