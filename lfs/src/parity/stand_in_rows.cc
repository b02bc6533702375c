#include "parity/stand_in_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kBatchBytes = 2u << 20;  // of rows that are on their way to their keepers
constexpr std::uint64_t kBatchRowsMax = 64u << 10;

}  // namespace

Result<NamelessFiles> make_nameless_files(component::Storage& storage, const std::string& root,
                                          const component::Shape& shape, std::uint64_t number) {
  using component::OpenMode;
  const auto stem = fmt::format("{}/stand-in-{}-{}", scratch_folder(root), shape.file.value, number);
  NamelessFiles out;
  const auto open = [&](OpenMode mode) -> Result<std::shared_ptr<component::Files>> {
    PIF_TRY_VALUE(auto files, component::open_files(storage, stem, shape.format, mode));
    return std::make_shared<component::Files>(std::move(files));
  };
  auto writable = open(OpenMode::kCreate);
  auto readable = writable ? open(OpenMode::kRead) : writable;
  const Status removed = component::remove_files(storage, stem);  // what stays behind goes at the next start
  if (!readable) return fail(std::move(readable.error()));
  if (!removed) return fail(removed.error());
  return NamelessFiles{std::move(*writable), std::move(*readable)};
}

// ---- back --------------------------------------------------------------------------------------------------------

RowsBack::RowsBack(Keeping& keeping, AbsentRows rows, const FileLength& file_length, NamelessFiles files)
    : keeping_(keeping),
      lost_(std::move(rows)),
      file_length_(file_length),
      rows_(lost_.layout.rows(lost_.index(), file_length.records)),
      keepers_(lost_.layout.keepers(lost_.index())),
      files_(std::move(files)),
      streams_(lost_.made.format, rows_, keepers_.size(), row_bytes_of(lost_.made.format, file_length)),
      writer_(lost_.made, component::Tail(), *files_.writable) {
  PIF_ASSERT(lost_.grant != nullptr && files_.readable != nullptr, lost_.shape.file());
}

std::uint64_t RowsBack::bytes_of(const AbsentRows& rows, const FileLength& file_length) {
  const std::uint64_t count = rows.layout.rows(rows.index(), file_length.records);
  const std::uint64_t each = row_bytes_of(rows.made.format, file_length);
  return std::min(count * each, file_length.bytes) + (rows.made.format.is_fixed() ? 0 : count * sizeof(std::uint64_t));
}

void RowsBack::start(Done done) {
  done_ = std::move(done);
  step();
}

// Everything goes on from here. Work may end before the call that begins it.
void RowsBack::step() {
  if (!done_) return;
  if (failure_) {
    if (errands_ == 0 && !is_writing_) end(fail(*failure_));
    return;
  }
  if (is_writing_) return fetch_more();
  if (streams_.is_done()) return errands_ == 0 ? end(finish()) : void();
  fetch_more();
  if (is_writing_ || failure_ || !done_) return;
  auto batch = streams_.take_ready();
  if (batch.first < batch.end) write(std::move(batch));
}

void RowsBack::fetch_more() {
  while (const auto piece = streams_.next()) {
    ++errands_;
    keeping_.peers.run(
        *lost_.grant, [this, &piece](access::Requests& requests) { ask(requests, piece); },
        [self = shared_from_this()](const Status& status) {
          --self->errands_;
          if (!status) return self->fail_with(status.error());
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
    asked.set_file(self->lost_.shape.file());
    asked.set_index(self->lost_.index());
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
    return fail(taken.error().code, taken.error().text, lost_.grant->parts().nodes[keepers_[piece->stream]].name());
  if (!piece->is_complete) ask(requests, piece);
  return {};
}

void RowsBack::write(RowStreams::Batch batch) {
  PIF_ASSERT(!is_writing_, lost_.shape.file());
  if (auto space = keeping_.context.check_space(0); !space) return fail_with(space.error());
  is_writing_ = true;
  auto shared = std::make_shared<RowStreams::Batch>(std::move(batch));
  keeping_.works.submit([self = shared_from_this(), shared] { self->written_ = self->write_away(*shared); },
                        [self = shared_from_this()] {
                          self->is_writing_ = false;
                          if (!self->written_) return self->fail_with(self->written_.error());
                          self->step();
                        });
}

Status RowsBack::write_away(const RowStreams::Batch& batch) {
  const Format& format = lost_.made.format;
  const RowStreams::Rows rows = RowStreams::assemble(format, batch);
  if (!format.is_fixed()) return writer_.append_rows(rows.lengths, rows.bytes);
  const std::uint32_t last = rows.last_bytes == format.record_length ? 0 : rows.last_bytes;
  return writer_.write_rows(batch.first, batch.end - batch.first, {rows.bytes.data(), format.record_length}, last);
}

Status RowsBack::finish() {
  PIF_TRY_VALUE(tail_, writer_.finish());
  const Format& format = lost_.made.format;
  const bool is_good =
      tail_.rows == rows_ &&
      (!format.is_fixed() ||
       tail_.bytes == fixed_component_bytes(lost_.layout, lost_.index(), format.record_length, rows_, file_length_));
  if (is_good) return {};
  return fail(Code::kCorrupt,
              fmt::format("{} rows of {} bytes of LFS {} came back, of a file of {} records and {} bytes", tail_.rows,
                          tail_.bytes, lost_.index(), file_length_.records, file_length_.bytes));
}

// What is under way comes to its end first: it uses the files.
void RowsBack::fail_with(Error error) {
  if (!failure_) failure_ = std::move(error);
  step();
}

void RowsBack::end(const Status& status) {
  const Done done = std::exchange(done_, {});
  PIF_ASSERT(done != nullptr && errands_ == 0 && !is_writing_, errands_, is_writing_);
  done(status, tail_);
}

// ---- away --------------------------------------------------------------------------------------------------------

RowsAway::RowsAway(Keeping& keeping, AbsentRows rows, std::shared_ptr<component::Files> files,
                   const component::Tail& tail, std::uint64_t view)
    : keeping_(keeping),
      lost_(std::move(rows)),
      files_(std::move(files)),
      reader_(lost_.made, tail, *files_),
      view_(view),
      keepers_(lost_.layout.keepers(lost_.index())) {
  PIF_ASSERT(lost_.grant != nullptr && view_ > 0, lost_.shape.file(), view_);
}

void RowsAway::read_next() {
  if (next_ == reader_.tail().rows) return end({});
  PIF_ASSERT(next_ < reader_.tail().rows, next_, reader_.tail().rows);
  keeping_.works.submit([self = shared_from_this()] { self->read_status_ = self->read(); },
                        [self = shared_from_this()] {
                          if (!self->read_status_) return self->end(self->read_status_);
                          self->send();
                        });
}

Status RowsAway::read() {
  parts_.assign(keepers_.size(), {});
  return lost_.made.format.is_fixed() ? read_fixed() : read_variable();
}

Status RowsAway::read_fixed() {
  const std::uint64_t length = lost_.made.format.record_length;
  const component::Tail& tail = reader_.tail();
  const std::uint64_t each = std::max<std::uint64_t>(kBulkBytes / length, 1);  // of a keeper
  const std::uint64_t all = std::clamp<std::uint64_t>(kBatchBytes / length, 1, kBatchRowsMax);
  const std::uint64_t count = std::min({tail.rows - next_, each * keepers_.size(), all});
  std::vector<std::byte> rows(count * length);
  PIF_TRY(reader_.read_rows(next_, count, {rows.data(), length}));
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_last = next_ + i + 1 == tail.rows;
    const std::uint64_t bytes = is_last ? tail.bytes - (tail.rows - 1) * length : length;
    add(next_ + i, std::span(rows).subspan(i * length, bytes));
  }
  next_ += count;
  return {};
}

Status RowsAway::read_variable() {
  const std::uint64_t most = std::min(reader_.tail().rows - next_, kBatchRowsMax);
  std::vector<std::uint64_t> ends(most + 1);
  PIF_TRY(reader_.read_ends(next_, most, ends));
  const auto taken = [&](std::uint64_t count) { return ends[count] - ends[0] + count * sizeof(std::uint32_t); };
  std::uint64_t count = 1;
  while (count < most && taken(count + 1) <= kBulkBytes) ++count;
  std::vector<std::byte> data(ends[count] - ends[0]);
  if (!data.empty()) PIF_TRY(reader_.read_bytes(ends[0], data));
  for (std::uint64_t i = 0; i < count; ++i)
    add(next_ + i, std::span(data).subspan(ends[i] - ends[0], ends[i + 1] - ends[i]));
  next_ += count;
  return {};
}

void RowsAway::add(Row row, std::span<const std::byte> bytes) {
  Part& part = parts_[row % parts_.size()];
  if (part.count == 0) part.first = row;
  PIF_ASSERT(row == part.first + part.count * parts_.size(), row, part.first, part.count);
  ++part.count;
  if (!lost_.made.format.is_fixed()) part.lengths.push_back(static_cast<std::uint32_t>(bytes.size()));
  part.data.insert(part.data.end(), bytes.begin(), bytes.end());
}

void RowsAway::send() {
  keeping_.peers.run(
      *lost_.grant,
      [this](access::Requests& requests) {
        for (std::size_t i = 0; i < parts_.size(); ++i)
          if (parts_[i].count > 0) ask(requests, i);
      },
      [self = shared_from_this()](const Status& status) {
        if (!status) return self->end(status);
        self->read_next();
      });
}

void RowsAway::ask(access::Requests& requests, std::size_t stream) {
  access::BulkRequest request;
  request.lfs = keepers_[stream];
  request.bytes = parts_[stream].data.size() + parts_[stream].lengths.size() * sizeof(std::uint32_t);
  request.patient = true;
  request.make = [self = shared_from_this(), stream] {
    const Part& part = self->parts_[stream];
    net::Packet packet;
    proto::CopyRows& copy = *packet.envelope.mutable_copy_rows();
    *copy.mutable_shape() = self->lost_.shape;
    copy.mutable_shape()->set_index(self->keepers_[stream]);
    copy.set_index(self->lost_.index());
    copy.set_first(part.first);
    copy.set_count(part.count);
    copy.set_view(self->view_);
    const auto lengths = std::as_bytes(std::span(part.lengths));
    packet.body = net::Buffer(lengths.size() + part.data.size());
    std::copy(part.data.begin(), part.data.end(), std::copy(lengths.begin(), lengths.end(), packet.body.data()));
    return packet;
  };
  requests.add(std::move(request));
}

void RowsAway::end(const Status& status) {
  const Done done = std::exchange(done_, {});
  PIF_ASSERT(done != nullptr, lost_.shape.file());
  done(status);
}

}  // namespace pif::lfs
