#include "stand_in/stand_in_rows.h"

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

RowsAway::RowsAway(Keeping& keeping, AbsentRowsPtr rows, std::shared_ptr<component::Files> files,
                   const component::Tail& tail, std::uint64_t view)
    : keeping_(keeping),
      lost_(std::move(rows)),
      files_(std::move(files)),
      reader_(lost_->made, tail, *files_),
      view_(view),
      keepers_(lost_->layout.keepers(lost_->index())) {
  PIF_ASSERT(lost_->grant != nullptr && view_ > 0, lost_->shape.file(), view_);
}

Status RowsAway::run() {
  while (next_ < reader_.tail().rows) {
    PIF_TRY(keeping_.works.run<&RowsAway::read>(*this));
    PIF_TRY(keeping_.peers.run<&RowsAway::ask_all>(*lost_->grant, *this));
  }
  PIF_ASSERT(next_ == reader_.tail().rows, next_, reader_.tail().rows);
  return {};
}

void RowsAway::ask_all(access::Requests& requests) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].count > 0) ask(requests, i);
}

Status RowsAway::read() {
  parts_.assign(keepers_.size(), {});
  return lost_->made.format.is_fixed() ? read_fixed() : read_variable();
}

Status RowsAway::read_fixed() {
  const std::uint64_t length = lost_->made.format.record_length;
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
  if (!lost_->made.format.is_fixed()) part.lengths.push_back(static_cast<std::uint32_t>(bytes.size()));
  part.data.insert(part.data.end(), bytes.begin(), bytes.end());
}

void RowsAway::ask(access::Requests& requests, std::size_t stream) {
  access::BulkRequest request;
  request.lfs = keepers_[stream];
  request.bytes = parts_[stream].data.size() + parts_[stream].lengths.size() * sizeof(std::uint32_t);
  request.patient = true;
  request.make = [this, stream] {
    const Part& part = parts_[stream];
    net::Packet packet;
    proto::CopyRows& copy = *packet.envelope.mutable_copy_rows();
    *copy.mutable_shape() = lost_->shape;
    copy.mutable_shape()->set_index(keepers_[stream]);
    copy.set_index(lost_->index());
    copy.set_first(part.first);
    copy.set_count(part.count);
    copy.set_view(view_);
    const auto lengths = std::as_bytes(std::span(part.lengths));
    packet.body = net::Buffer(lengths.size() + part.data.size());
    std::copy(part.data.begin(), part.data.end(), std::copy(lengths.begin(), lengths.end(), packet.body.data()));
    return packet;
  };
  requests.add(std::move(request));
}

}  // namespace pif::lfs
