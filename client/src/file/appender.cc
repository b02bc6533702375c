#include "file/appender.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/access/row_body.h"
#include "pif/access/row_copies.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/wire/convert.h"

namespace pif::client {

namespace {

constexpr Duration kRetryPause = std::chrono::milliseconds(2);
constexpr Duration kLookPause = std::chrono::milliseconds(100);  // for an LFS to answer again, or to be declared lost
constexpr Duration kReservePatience = std::chrono::seconds(5);   // with an LFS that others can do without
constexpr unsigned kUnknownMax = 3;  // times in a row that a sequencer which answers says `unavailable` to AppendDone

// An LFS says it whose disk fails; it is declared lost if that goes on.
bool disk_fails(Code code) { return code == Code::kIo || code == Code::kReadOnly; }

// What one attempt sends where. It goes by one view from its beginning to its end.
class AppendAttempt {
 public:
  AppendAttempt(FileState& file, std::span<const std::uint32_t> lengths, std::span<const std::byte> data, Time deadline,
                std::uint64_t& terminated_at)
      : file_(file), lengths_(lengths), data_(data), deadline_(deadline), terminated_at_(terminated_at) {}

  Result<FileLength> run(bool fill, const std::uint64_t* at_bytes) {
    const auto sequencer = file_.sequencer();
    is_impossible_ = !sequencer;
    PIF_TRY_VALUE(sequencer_, sequencer);
    PIF_TRY(reserve(fill));
    const FileLength start{reply_.start().records(), reply_.start().bytes()};
    if (auto written = write(start, at_bytes); !written) {
      give_up();
      return fail(std::move(written.error()));
    }
    PIF_TRY(done());
    if (is_delimited() && lengths_.back() > 0 && ends_with_delimiter(data_))
      terminated_at_ = start.bytes + data_.size();
    return start;
  }

  // After an error. The view says that LFSs are absent without which it cannot be done, so that waiting is no use.
  bool is_impossible() const { return is_impossible_; }
  // The records were perhaps published.
  bool may_be_done() const { return may_be_done_; }

 private:
  // All that comes before the records are published.
  Status write(const FileLength& start, const std::uint64_t* at_bytes) {
    if (at_bytes != nullptr && start.bytes != *at_bytes) {
      return fail(Code::kRetry, fmt::format("{}: the end has moved", file_.parts.path));
    }
    bool others_write = false;
    if (is_delimited()) {
      PIF_TRY_VALUE(others_write, check_terminated(start));
    }
    access::Requests requests(file_.session->links(), file_.grant);
    if (file_.parts.format.is_fixed()) {
      PIF_TRY(add_fixed(requests, start));
    } else {
      PIF_TRY(add_variable(requests, start));
    }
    PIF_TRY(file_.run(requests));
    PIF_TRY(cover(requests, start));
    if (others_write) PIF_TRY(await_and_check(start));
    if (file_.session->clock().now() < deadline_) return {};
    return fail(Code::kTimeout,
                fmt::format("{}: the time was up before the records could be published; they are not appended",
                            file_.parts.path));
  }

  Duration remaining() const { return std::max(deadline_ - file_.session->clock().now(), Duration(1)); }
  // With an LFS that gets rows: of a file with parity others may do without it by the time the range is cancelled.
  Duration patience() const {
    const Duration range = std::chrono::milliseconds(reply_.deadline_ms());
    return file_.parts.is_protected() && range > Duration::zero() ? std::min(remaining(), range) : remaining();
  }
  // The view of what has parity; else 0, which LFSs do not check.
  std::uint64_t view() const { return file_.parts.is_protected() ? file_.parts.view : 0; }

  // ---- delimited records: in the byte view one that lacks its delimiter and the next one would be one record ----

  bool is_delimited() const { return file_.parts.format.kind == RecordKind::kDelimited; }
  bool ends_with_delimiter(std::span<const std::byte> record) const {
    return !record.empty() && record.back() == std::byte{file_.parts.format.delimiter};
  }

  // kInvalid if the record before `start` lacks its delimiter. True: others still write it, so that it cannot be read
  // yet.
  Result<bool> check_terminated(const FileLength& start) {
    if (start.records == 0 || start.bytes == terminated_at_) return false;
    PIF_TRY_VALUE(const FileLength now, file_.length.get(true));
    if (now.records < start.records) return true;
    PIF_TRY_VALUE(const RecordBatch last, file_.reader.read_batch(start.records - 1, 1, kRecordLengthMax));
    if (ends_with_delimiter(last.data)) return false;
    return fail(Code::kInvalid,
                fmt::format("{}: the last record lacks its delimiter, so that none can follow it: write the file "
                            "again with the delimiter at its end (pif get, then pif put)",
                            file_.parts.path));
  }

  // The same for its bytes, which are `within` long: until they are published they cannot be read.
  Result<std::vector<std::byte>> read_short_last(const FileLength& start, std::size_t within) {
    const Time until = file_.session->clock().now() + patience();
    while (true) {
      PIF_TRY_VALUE(const FileLength now, file_.length.get(true));
      if (now.bytes >= start.bytes) break;
      const Time time = file_.session->clock().now();
      if (time >= until) return fail(Code::kRetry, fmt::format("{}: the end is not published yet", file_.parts.path));
      PIF_TRY(file_.session->caller().pump(std::min(until, time + kRetryPause)));
    }
    std::vector<std::byte> record(file_.parts.format.record_length);
    PIF_TRY(file_.reader.read(start.records - 1, record, 1));
    record.resize(within);
    return record;
  }

  // Until those before are published, or this range's own time is up (which AppendDone will say).
  Status await_and_check(const FileLength& start) {
    const Time until =
        std::min(deadline_, file_.session->clock().now() + std::chrono::milliseconds(reply_.deadline_ms()));
    while (true) {
      PIF_TRY_VALUE(const bool others_write, check_terminated(start));
      const Time now = file_.session->clock().now();
      if (!others_write || now >= until) return {};
      PIF_TRY(file_.session->caller().pump(std::min(until, now + kRetryPause)));
    }
  }

  Status reserve(bool fill) {
    net::Packet packet;
    proto::Reserve& reserve = *packet.envelope.mutable_reserve();
    const std::uint64_t length = file_.parts.format.record_length;
    reserve.set_file(file_.parts.file.value);
    reserve.set_records(file_.parts.format.is_fixed() ? (data_.size() + length - 1) / length : lengths_.size());
    reserve.set_bytes(data_.size());
    reserve.set_fill(fill);
    *reserve.mutable_shape() = file_.parts.shape(sequencer_);
    *reserve.mutable_known() = wire::proto_of(file_.parts.file_length);
    reserve.set_view(view());
    packet.envelope.set_capability(file_.grant.capability());
    const Duration patience = file_.parts.is_protected() ? std::min(remaining(), kReservePatience) : remaining();
    PIF_TRY_VALUE(net::Packet answer, file_.session->ask_node(file_.node(sequencer_), std::move(packet), patience));
    reply_ = answer.envelope.reserve_reply();
    return {};
  }

  // Nobody else shall wait for these records. Not once they may be published.
  void give_up() {
    net::Packet packet;
    packet.envelope.mutable_append_cancel()->set_file(file_.parts.file.value);
    packet.envelope.mutable_append_cancel()->set_ticket(reply_.ticket());
    packet.envelope.mutable_append_cancel()->set_generation(reply_.generation());
    packet.envelope.set_capability(file_.grant.capability());
    file_.session->tell_node(file_.node(sequencer_), std::move(packet));
  }

  Result<net::Packet> send_done() {
    net::Packet packet;
    proto::AppendDone& done = *packet.envelope.mutable_append_done();
    done.set_file(file_.parts.file.value);
    done.set_ticket(reply_.ticket());
    done.set_generation(reply_.generation());
    done.set_view(view());
    packet.envelope.set_capability(file_.grant.capability());
    return file_.session->ask_node(file_.node(sequencer_), std::move(packet), remaining());
  }

  Error unknown(Error error) const {
    return outcome_unknown(std::move(error), "the records were appended", file_.parts.path);
  }

  // Until the sequencer of the newest view goes by it, and has settled what was begun before: then what it says of a
  // ticket is final. False: that was not before the deadline.
  bool await_sequencer() {
    while (file_.session->clock().now() < deadline_) {
      const bool has_looked = file_.look_anew(remaining()).has_value();
      if (const auto sequencer = file_.sequencer(); has_looked && sequencer) {
        sequencer_ = *sequencer;
        net::Packet packet;
        packet.envelope.mutable_length()->set_file(file_.parts.file.value);
        packet.envelope.mutable_length()->set_view(view());
        packet.envelope.set_capability(file_.grant.capability());
        const Duration patience = std::min(remaining(), kReservePatience);
        if (file_.session->ask_node(file_.node(sequencer_), std::move(packet), patience)) return true;
      }
      const Time now = file_.session->clock().now();
      if (!file_.session->caller().pump(std::min(deadline_, now + kLookPause))) return false;
    }
    return false;
  }

  // kOldView does not say whether the records are published, and neither does silence, nor a disk that fails. With
  // parity another LFS knows it when they are: it is asked, and says kRetry only if they never will be.
  Status done() {
    may_be_done_ = true;
    auto answer = send_done();
    unsigned unknowns = 0;
    while (!answer && is_undecided(answer.error().code)) {
      PIF_ASSERT(unknowns < kUnknownMax, unknowns);
      Error why = answer.error();
      if (disk_fails(why.code)) PIF_TRY(file_.session->caller().pump(look_again_at()));
      if (!access::is_lost(why.code)) why.code = Code::kUnavailable;
      if (!file_.parts.is_protected() || !await_sequencer()) return fail(unknown(std::move(why)));
      answer = send_done();
      if (answer || answer.error().code != Code::kUnavailable) {
        unknowns = 0;
        continue;
      }
      // It has just said how long the file is: so old is the ticket that nobody knows of it any more.
      if (++unknowns == kUnknownMax) return fail(unknown(std::move(answer.error())));
      PIF_TRY(file_.session->caller().pump(look_again_at()));
    }
    return answer ? Status() : fail(std::move(answer.error()));
  }

  bool is_undecided(Code code) const {
    return code == Code::kOldView || access::is_lost(code) || (file_.parts.is_protected() && disk_fails(code));
  }
  Time look_again_at() const { return std::min(deadline_, file_.session->clock().now() + kLookPause); }

  // Rows of an absent LFS: those who keep their parity get them.
  Status copy(access::Requests& requests, const access::RowRange& piece, const access::RowBody& body) {
    file_.counts.bytes_by_message += body.size();
    access::CopyOptions options;
    options.generation = reply_.generation();
    options.base = wire::file_length_of(reply_.base());
    options.timeout = patience();
    const Status added = access::add_copies(requests, piece, body, options);
    is_impossible_ = !added;
    return added;
  }

  Status send(access::Requests& requests, const access::RowRange& piece, access::RowBody rows_of_piece,
              std::uint32_t within) {
    PIF_ASSERT(within == 0 || piece.rows == 1, within, piece.rows);
    if (file_.parts.is_absent(piece.lfs)) return copy(requests, piece, rows_of_piece);
    const auto body = std::make_shared<const access::RowBody>(std::move(rows_of_piece));
    file_.counts.bytes_by_message += body->size();
    access::BulkRequest request;
    request.lfs = piece.lfs;
    request.bytes = body->size();
    request.timeout = patience();
    request.make = [this, piece, within, body] {
      net::Packet packet;
      proto::AppendRows& rows = *packet.envelope.mutable_append_rows();
      rows.set_file(file_.parts.file.value);
      rows.set_first(piece.row);
      rows.set_count(piece.rows);
      rows.set_generation(reply_.generation());
      rows.set_within(within);
      *rows.mutable_shape() = file_.parts.shape(piece.lfs);
      *rows.mutable_base() = reply_.base();
      packet.body = body->to_buffer();
      return packet;
    };
    requests.add(std::move(request));
    return {};
  }

  // The bytes that fill up the last record, which is at `last` and has `within` already. Of an absent LFS the whole
  // longer record goes to its keeper.
  Status add_fill(access::Requests& requests, const FileLength& start, std::uint32_t within,
                  std::span<const std::byte> fill) {
    const RecordNumber record = start.records - 1;
    const Cell last = file_.parts.layout.locate(record);
    access::RowBody body;
    if (file_.parts.is_absent(last.lfs)) {
      PIF_TRY_VALUE(body.data, read_short_last(start, within));
      if (!file_.parts.is_absent(last.lfs)) body.data.clear();  // it came back meanwhile, and has these bytes
    }
    body.data.insert(body.data.end(), fill.begin(), fill.end());
    return send(requests, {last.lfs, last.row, 1, record, true}, std::move(body), within);
  }

  Status add_fixed(access::Requests& requests, const FileLength& start) {
    const std::size_t length = file_.parts.format.record_length;
    std::span<const std::byte> rest = data_;
    if (const std::uint64_t missing = start.records * length - start.bytes; missing > 0) {
      const auto fill = rest.first(std::min<std::size_t>(missing, rest.size()));
      PIF_TRY(add_fill(requests, start, static_cast<std::uint32_t>(length - missing), fill));
      rest = rest.subspan(fill.size());
    }
    const std::uint64_t count = (rest.size() + length - 1) / length;
    const std::uint64_t rows_max = access::rows_per_message(file_.parts.format.record_length);
    std::vector<access::RowRange> ranges;
    access::split(file_.parts.layout, {start.records, start.records + count}, ranges);
    for (const access::RowRange& range : ranges) {
      for (const access::RowRange& piece : access::pieces_of(file_.parts.layout, range, rows_max))
        PIF_TRY(send(requests, piece, {{}, access::gather(file_.parts, piece, start.records, rest)}, 0));
    }
    return {};
  }

  Status add_variable(access::Requests& requests, const FileLength& start) {
    std::vector<std::uint64_t> starts(lengths_.size() + 1, 0);
    for (std::size_t i = 0; i < lengths_.size(); ++i) starts[i + 1] = starts[i] + lengths_[i];
    PIF_ASSERT(starts.back() == data_.size(), starts.back(), data_.size());
    std::vector<access::RowRange> ranges;
    access::split(file_.parts.layout, {start.records, start.records + lengths_.size()}, ranges);
    for (const access::RowRange& range : ranges) {
      access::RowRange piece{range.lfs, range.row, 0, range.record, false};
      access::RowBody rows;
      const auto flush = [&]() -> Status {
        PIF_ASSERT(!rows.lengths.empty(), range.lfs, range.rows);
        piece.rows = rows.lengths.size();
        PIF_TRY(send(requests, piece, std::exchange(rows, {}), 0));
        piece.row += piece.rows;
        return {};
      };
      for (std::uint64_t i = 0; i < range.rows; ++i) {
        const RecordNumber record = access::record_of(file_.parts.layout, range, i);
        PIF_ASSERT(record - start.records < lengths_.size(), record, start.records, lengths_.size());
        const std::uint32_t size = lengths_[record - start.records];
        if (!rows.lengths.empty() && rows.data.size() + size > kBulkBytes) PIF_TRY(flush());
        rows.lengths.push_back(size);
        const auto bytes = data_.subspan(starts[record - start.records], size);
        rows.data.insert(rows.data.end(), bytes.begin(), bytes.end());
      }
      PIF_TRY(flush());
    }
    return {};
  }

  // ---- parity: its keepers read the rows when these are durable ----

  FileLength end_of(const FileLength& start) const {
    const auto& format = file_.parts.format;
    if (format.is_fixed()) return fixed_file_length(format.record_length, start.bytes + data_.size());
    return {start.records + lengths_.size(), start.bytes + data_.size()};
  }

  std::vector<LfsIndex> keepers_of(Range records) const {
    const parity::Layout& layout = file_.parts.layout;
    std::vector<bool> is_keeper(layout.width());
    std::vector<LfsIndex> keepers;
    for (RecordNumber n = records.begin; n < records.end && keepers.size() < layout.width(); ++n) {
      const LfsIndex lfs = layout.parity_of(layout.locate(n)).lfs;
      PIF_ASSERT(lfs < layout.width(), n, lfs, layout.width());
      if (!is_keeper[lfs]) keepers.push_back(lfs);
      is_keeper[lfs] = true;
    }
    return keepers;
  }

  // Keepers that are absent gather when they are rebuilt.
  Status cover(access::Requests& requests, const FileLength& start) {
    if (!file_.parts.layout.has_parity() || file_.parts.file_layout.form() != 1) return {};
    const FileLength end = end_of(start);
    const bool is_filled = file_.parts.format.is_fixed() && start.bytes % file_.parts.format.record_length != 0;
    const Range records{start.records - (is_filled ? 1 : 0), end.records};
    for (const LfsIndex lfs : keepers_of(records)) {
      if (file_.parts.is_absent(lfs)) continue;
      access::BulkRequest request;
      request.lfs = lfs;
      request.timeout = patience();
      request.make = [this, lfs, records, end] {
        net::Packet packet;
        proto::Cover& cover = *packet.envelope.mutable_cover();
        *cover.mutable_shape() = file_.parts.shape(lfs);
        cover.set_first(records.begin);
        cover.set_count(records.size());
        cover.set_generation(reply_.generation());
        *cover.mutable_base() = reply_.base();
        *cover.mutable_file_length() = wire::proto_of(end);
        cover.set_view(view());
        return packet;
      };
      requests.add(std::move(request));
    }
    return file_.run(requests);
  }

  FileState& file_;
  std::span<const std::uint32_t> lengths_;
  std::span<const std::byte> data_;
  const Time deadline_;
  std::uint64_t& terminated_at_;
  LfsIndex sequencer_ = 0;
  proto::ReserveReply reply_;
  bool is_impossible_ = false;
  bool may_be_done_ = false;
};

}  // namespace

// An attempt has ended so, and published nothing. Whether another one may do better: an LFS goes by a newer view, or
// was silent, or its disk fails, and will be declared lost if that goes on.
bool Appender::follow_view(const Error& error, bool is_impossible, Time deadline, Duration& pause) {
  const bool is_old = error.code == Code::kOldView;
  const bool may_pass = file_.parts.is_protected() && (disk_fails(error.code) || access::is_lost(error.code));
  if (!is_old && !may_pass) return false;
  const auto looked = file_.look_anew(deadline - file_.session->clock().now());
  const bool has_changed = looked && *looked;
  pause = has_changed ? kRetryPause : kLookPause;
  return is_old || has_changed || !is_impossible;
}

Result<FileLength> Appender::append(std::span<const std::uint32_t> lengths, std::span<const std::byte> data, bool fill,
                                    const std::uint64_t* at_bytes, Time until) {
  PIF_TRY(file_.check_usable());
  PIF_TRY(file_.keep_rights());
  PIF_TRY(file_.check_may_write());
  if (file_.creating()) {
    return fail(Code::kInvalid, fmt::format("{}: append is for committed files; write to this one", file_.parts.path));
  }
  if (data.empty() && lengths.empty()) return file_.length.get(true);
  Session& session = *file_.session;
  const Time deadline = std::min(until, session.clock().now() + session.timeout());
  Duration next_pause = kRetryPause;  // longer each time: an LFS that is back takes rows once it has caught up
  for (bool renewed = false;;) {
    AppendAttempt attempt(file_, lengths, data, deadline, terminated_at_);
    auto start = attempt.run(fill, at_bytes);
    if (start) {
      if (!file_.length.get(true)) file_.length.forget();  // the records are there, whoever does not answer now
      return start;
    }
    const bool expired = start.error().code == Code::kBadCapability && !renewed;
    if (expired) {
      PIF_TRY(file_.grant.renew());
      renewed = true;
    }
    bool again = start.error().code == Code::kRetry || expired;
    if (at_bytes != nullptr && again) {
      PIF_TRY_VALUE(const FileLength end, file_.length.get(true));
      if (end.bytes != *at_bytes) return fail(Code::kRetry, start.error().text, start.error().node);
    }
    PIF_ASSERT(next_pause >= kRetryPause && next_pause <= kLookPause);
    Duration pause = next_pause;
    next_pause = std::min(2 * next_pause, kLookPause);
    if (!again && !attempt.may_be_done() && session.clock().now() < deadline)
      again = follow_view(start.error(), attempt.is_impossible(), deadline, pause);
    const Time now = session.clock().now();
    if (!again && now < deadline) return fail(file_.removed_or(std::move(start.error())));
    if (now >= deadline) return start;  // which says why
    PIF_TRY(session.caller().pump(std::min(deadline, now + pause)));
    if (session.clock().now() >= deadline) return start;  // which says why
  }
}

}  // namespace pif::client
