#include "rebuild/rows_back.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {

Status check_tail(const AbsentRows& rows, const FileLength& file_length, const component::Tail& tail) {
  const Format& format = rows.made.format;
  const Row expected = rows.layout.rows(rows.index(), file_length.records);
  const bool is_good =
      tail.rows == expected &&
      (!format.is_fixed() ||
       tail.bytes == fixed_component_bytes(rows.layout, rows.index(), format.record_length, expected, file_length));
  if (is_good) return {};
  return fail(Code::kCorrupt,
              fmt::format("{} rows of {} bytes of LFS {} came back, of a file of {} records and {} bytes", tail.rows,
                          tail.bytes, rows.index(), file_length.records, file_length.bytes));
}

RowsBack::RowsBack(Keeping& keeping, AbsentRowsPtr rows, const FileLength& file_length, Place place, RateLimit* rate)
    : keeping_(keeping),
      lost_(std::move(rows)),
      file_length_(file_length),
      keepers_(lost_->layout.keepers(lost_->index())),
      files_(std::move(place.files)),
      rate_(rate),
      streams_(lost_->made.format, lost_->layout.rows(lost_->index(), file_length.records), keepers_.size(),
               row_bytes_of(lost_->made.format, file_length), place.first),
      writer_(lost_->made, place.begin, *files_),
      news_(keeping.context.fibers) {
  PIF_ASSERT(lost_->grant != nullptr && place.begin.rows >= place.first, place.begin.rows, place.first);
}

std::uint64_t RowsBack::bytes_of(const AbsentRows& rows, const FileLength& file_length) {
  const std::uint64_t count = rows.layout.rows(rows.index(), file_length.records);
  const std::uint64_t each = row_bytes_of(rows.made.format, file_length);
  return std::min(count * each, file_length.bytes) + (rows.made.format.is_fixed() ? 0 : count * sizeof(std::uint64_t));
}

Result<component::Tail> RowsBack::run() {
  const Status status = fetch_and_write();
  if (!status) give_up(status.error());
  while (errands_ > 0) news_.wait();  // they are this object's
  if (failure_) return fail(*failure_);
  PIF_ASSERT(streams_.is_done(), lost_->shape.file());
  return tail_;
}

Status RowsBack::fetch_and_write() {
  if (streams_.is_done()) return finish();  // there are none
  while (!streams_.is_done()) {
    const Time next = fetch_more();
    const auto batch = streams_.take_ready();
    if (batch.first == batch.end) {
      news_.wait(next);
    } else {
      PIF_TRY(keeping_.context.check_space(0));
      fetch_more();  // while this is being written
      const bool is_last = streams_.is_done();
      PIF_TRY(keeping_.works.run([&] { return write(batch, is_last); }));
    }
    if (failure_) return fail(*failure_);
  }
  return {};
}

Time RowsBack::fetch_more() {
  for (;;) {
    const Time now = keeping_.context.now();
    if (rate_ != nullptr && !rate_->is_free(now)) return rate_->next_look(now);
    const auto piece = streams_.next();
    if (!piece) return kNever;
    if (rate_ != nullptr) rate_->spend(piece->expected_bytes, now);
    ++errands_;
    // Where all fibers are ended this object may go before its fetches.
    keeping_.context.fibers.start<&RowsBack::run_errand>(*this, piece, lost_);
  }
}

void RowsBack::run_errand(const std::shared_ptr<RowStreams::Piece>& piece, const AbsentRowsPtr& rows) {
  const Status status = fetch(*piece);
  PIF_ASSERT(errands_ > 0 && rows == lost_, rows->shape.file(), errands_);
  --errands_;
  if (!status) give_up(status.error());
  news_.notify();
}

Status RowsBack::fetch(RowStreams::Piece& piece) {
  PIF_ASSERT(piece.stream < keepers_.size(), piece.stream, keepers_.size());
  while (!piece.is_complete && !failure_) {
    access::BulkRequest request;
    request.lfs = keepers_[piece.stream];
    request.bytes = std::max<std::uint64_t>(piece.expected_bytes, 1);
    request.patient = true;
    request.make = [&] {
      net::Packet packet;
      proto::Reconstruct& asked = *packet.envelope.mutable_reconstruct();
      asked.set_file(lost_->shape.file());
      asked.set_index(lost_->index());
      asked.set_first(piece.next());
      asked.set_count(piece.span());
      *asked.mutable_file_length() = wire::proto_of(file_length_);
      return packet;
    };
    request.take = [&](net::Packet& reply) { return take(piece, reply); };
    PIF_TRY(keeping_.peers.run(*lost_->grant, [&](access::Requests& requests) { requests.add(std::move(request)); }));
  }
  return {};
}

Status RowsBack::take(RowStreams::Piece& piece, net::Packet& reply) {
  auto taken = streams_.take(piece, reply.envelope.read_reply().rows(), std::move(reply.body));
  if (taken) return {};
  return fail(taken.error().code, taken.error().text, lost_->grant->parts().nodes[keepers_[piece.stream]].name());
}

Status RowsBack::write(const RowStreams::Batch& batch, bool is_last) {
  const Format& format = lost_->made.format;
  const RowStreams::Rows rows = RowStreams::assemble(format, batch);
  if (format.is_fixed()) {
    const std::uint32_t last = rows.last_bytes == format.record_length ? 0 : rows.last_bytes;
    PIF_TRY(writer_.write_rows(batch.first, batch.end - batch.first, {rows.bytes.data(), format.record_length}, last));
  } else {
    PIF_TRY(writer_.append_rows(rows.lengths, rows.bytes));
  }
  return is_last ? finish() : Status();
}

Status RowsBack::finish() {
  PIF_TRY_VALUE(tail_, writer_.finish());
  return check_tail(*lost_, file_length_, tail_);
}

void RowsBack::give_up(Error error) {
  if (!failure_) failure_ = std::move(error);
  news_.notify();
}

}  // namespace pif::lfs
