#include "parity/rows_back.h"

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
      writer_(lost_->made, place.begin, *files_) {
  PIF_ASSERT(lost_->grant != nullptr && place.begin.rows >= place.first, place.begin.rows, place.first);
}

std::uint64_t RowsBack::bytes_of(const AbsentRows& rows, const FileLength& file_length) {
  const std::uint64_t count = rows.layout.rows(rows.index(), file_length.records);
  const std::uint64_t each = row_bytes_of(rows.made.format, file_length);
  return std::min(count * each, file_length.bytes) + (rows.made.format.is_fixed() ? 0 : count * sizeof(std::uint64_t));
}

void RowsBack::start(Done done) {
  done_ = std::move(done);
  if (streams_.is_done()) return end(finish());  // there are none
  step();
}

// Everything goes on from here. Work may end before the call that begins it.
void RowsBack::step() {
  if (!done_) return;
  if (failure_) {
    if (errands_ == 0 && !is_writing_) end(fail(*failure_));
    return;
  }
  fetch_more();
  if (is_writing_) return;
  if (streams_.is_done()) return errands_ == 0 ? end({}) : void();
  auto batch = streams_.take_ready();
  if (batch.first < batch.end) write(std::move(batch));
}

void RowsBack::fetch_more() {
  while (rate_ == nullptr || rate_->is_free(keeping_.context.now())) {
    const auto piece = streams_.next();
    if (!piece) return;
    if (rate_ != nullptr) rate_->spend(piece->expected_bytes, keeping_.context.now());
    ++errands_;
    keeping_.peers.run(
        *lost_->grant, [this, &piece](access::Requests& requests) { ask(requests, piece); },
        [self = shared_from_this()](const Status& status) {
          --self->errands_;
          if (!status) return self->give_up(status.error());
          self->step();
        });
  }
}

void RowsBack::ask(access::Requests& requests, const RowStreams::PiecePtr& piece) {
  access::BulkRequest request;
  request.lfs = keepers_[piece->stream];
  request.bytes = std::max<std::uint64_t>(piece->expected_bytes, 1);
  request.patient = true;
  request.make = [self = shared_from_this(), piece] {
    net::Packet packet;
    proto::Reconstruct& asked = *packet.envelope.mutable_reconstruct();
    asked.set_file(self->lost_->shape.file());
    asked.set_index(self->lost_->index());
    asked.set_first(piece->next());
    asked.set_count(piece->span());
    *asked.mutable_file_length() = wire::proto_of(self->file_length_);
    return packet;
  };
  request.take = [self = shared_from_this(), &requests, piece](net::Packet& reply) {
    return self->take(requests, piece, reply);
  };
  requests.add(std::move(request));
}

Status RowsBack::take(access::Requests& requests, const RowStreams::PiecePtr& piece, net::Packet& reply) {
  auto taken = streams_.take(*piece, reply.envelope.read_reply().rows(), std::move(reply.body));
  if (!taken)
    return fail(taken.error().code, taken.error().text, lost_->grant->parts().nodes[keepers_[piece->stream]].name());
  if (!piece->is_complete) ask(requests, piece);
  return {};
}

void RowsBack::write(RowStreams::Batch batch) {
  PIF_ASSERT(!is_writing_, lost_->shape.file());
  if (auto space = keeping_.context.check_space(0); !space) return give_up(space.error());
  is_writing_ = true;
  const bool is_last = streams_.is_done();
  auto shared = std::make_shared<RowStreams::Batch>(std::move(batch));
  keeping_.works.submit(
      [self = shared_from_this(), shared, is_last] { self->written_ = self->write_away(*shared, is_last); },
      [self = shared_from_this()] {
        self->is_writing_ = false;
        if (!self->written_) return self->give_up(self->written_.error());
        self->step();
      });
}

Status RowsBack::write_away(const RowStreams::Batch& batch, bool is_last) {
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

// What is under way uses the files.
void RowsBack::give_up(Error error) {
  if (!failure_) failure_ = std::move(error);
  step();
}

void RowsBack::end(const Status& status) {
  const auto self = shared_from_this();  // who is told may let go of it
  const Done done = std::exchange(done_, {});
  PIF_ASSERT(done != nullptr && errands_ == 0 && !is_writing_, errands_, is_writing_);
  done(status, tail_);
}

}  // namespace pif::lfs
