#include "parity/member_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {

// ---- what was fetched ----------------------------------------------------------------------------------------------

void FetchedRows::start(Row first, std::uint64_t step) {
  rows_ = {};
  begins_.clear();
  first_ = first;
  step_ = step;
}

void FetchedRows::add(std::span<const std::uint32_t> lengths, std::span<const std::byte> bytes) {
  std::uint64_t begin = rows_.bytes.size();
  for (const auto length : lengths) {
    begins_.push_back(begin);
    begin += length;
  }
  rows_.lengths.insert(rows_.lengths.end(), lengths.begin(), lengths.end());
  rows_.bytes.insert(rows_.bytes.end(), bytes.begin(), bytes.end());
  PIF_ASSERT(begin == rows_.bytes.size(), begin, rows_.bytes.size());
}

Status FetchedRows::read(Row first, std::uint64_t count, std::uint64_t step, component::PackedRows& out) {
  out = {};
  if (count == 0) return {};
  PIF_ASSERT(first >= first_ && (first - first_) % step_ == 0 && (step == step_ || count == 1), first, first_, step);
  const std::uint64_t begin = (first - first_) / step_;
  if (begin >= rows() || count > rows() - begin)
    return fail(Code::kEndOfFile, fmt::format("row {} was not fetched", first + (count - 1) * step));
  std::uint64_t bytes = 0;
  for (std::uint64_t i = begin; i < begin + count && (i == begin || bytes < component::kSourceBytes); ++i) {
    out.lengths.push_back(rows_.lengths[i]);
    bytes += rows_.lengths[i];
  }
  const auto from = rows_.bytes.begin() + static_cast<std::ptrdiff_t>(begins_[begin]);
  out.bytes.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
  return {};
}

// ---- members -------------------------------------------------------------------------------------------------------

MemberRows::MemberRows(Peers& peers, component::Storage& storage, Keeper keeper, MemberOptions options)
    : peers_(peers),
      storage_(storage),
      keeper_(std::move(keeper)),
      options_(std::move(options)),
      members_(keeper_.size()) {
  PIF_ASSERT(options_.copied.empty() || options_.copied.size() == keeper_.size(), options_.copied.size());
  const Range records = cut(options_.records, {0, options_.file_length.records});
  for (std::size_t i = 0; i < keeper_.size(); ++i)
    limits_.push_back(options_.parity_rows ? *options_.parity_rows
                                           : keeper_.parity_rows_of(i, keeper_.rows_of(i, records)));
}

const std::string& MemberRows::name_of(std::size_t member) const {
  return grant_->parts().nodes[keeper_.members.lfs[member]].name();
}

Status MemberRows::missing(std::size_t member, Error error) const {
  const bool is_gone = error.code == Code::kNotFound || error.code == Code::kEndOfFile;
  if (!is_gone) return fail(std::move(error));
  if (options_.generation != 0)
    return fail(Code::kRetry, "rows to be covered are not there: " + error.text, error.node);
  return fail(Code::kNotFound,
              fmt::format("file {} has rows on LFS {}, and there are none: {}; write the file again",
                          keeper_.shape.file.value, name_of(member), error.text),
              error.node);
}

Status MemberRows::check_generation(std::size_t member, std::uint64_t generation) const {
  if (options_.generation == 0 || generation == options_.generation) return {};
  return fail(Code::kRetry, "the reserved range was cancelled, or its rows are not there yet: reserve again",
              name_of(member));
}

Status MemberRows::open(const proto::ComponentShape& shape) {
  PIF_ASSERT(!grant_);
  PIF_TRY_VALUE(grant_, peers_.grant(shape, options_.epoch));
  const auto wanted = options_.by_message ? access::DataPath::kMessages : access::DataPath::kAuto;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (limits_[i].empty() || options_.without == i || is_copied(i)) continue;
    members_[i].access =
        std::make_unique<access::ComponentAccess>(storage_, grant_->parts(), keeper_.members.lfs[i], wanted);
  }
  if (options_.by_message) return {};
  PIF_TRY(peers_.run<&MemberRows::ask_for_readers>(*grant_, *this));
  return take_readers();
}

void MemberRows::ask_for_readers(access::Requests& requests) {
  for (Member& member : members_)
    if (member.access) member.access->open_reader(requests);
}

Status MemberRows::take_readers() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.access || member.access->by_message()) continue;
    if (auto same = check_generation(i, member.access->generation()); !same) return same;
    const component::Reader& reader = member.access->reader();
    const Row needed = keeper_.shape.row_of(i, limits_[i].end - 1) + 1;
    if (reader.tail().rows < needed)
      return missing(i, {Code::kEndOfFile, fmt::format("{} rows of {}", reader.tail().rows, needed), name_of(i)});
    member.near = component::make_row_source(member.access->shape(), reader);
  }
  return {};
}

bool MemberRows::is_any_far() const {
  for (const Member& member : members_)
    if (is_far(member)) return true;
  return false;
}

std::vector<component::RowSource*> MemberRows::sources() {
  std::vector<component::RowSource*> out;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (is_copied(i)) {
      out.push_back(options_.copied[i].get());
    } else if (member.near) {
      out.push_back(member.near.get());
    } else {
      out.push_back(member.access ? &member.fetched : nullptr);
    }
  }
  return out;
}

// ---- by message ----------------------------------------------------------------------------------------------------

Status MemberRows::fetch(Range parity_rows) {
  PIF_ASSERT(grant_ != nullptr && !parity_rows.empty(), parity_rows.begin);
  return peers_.run<&MemberRows::ask_all>(*grant_, *this, parity_rows);
}

void MemberRows::ask_all(access::Requests& requests, Range parity_rows) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!is_far(members_[i])) continue;
    const Range rows = cut(parity_rows, limits_[i]);
    members_[i].fetched.start(keeper_.shape.row_of(i, rows.begin), keeper_.size());
    if (!rows.empty()) ask(requests, i, rows);
  }
}

void MemberRows::ask(access::Requests& requests, std::size_t member, Range parity_rows) {
  access::BulkRequest request;
  request.lfs = keeper_.members.lfs[member];
  const std::uint64_t length = keeper_.format().is_fixed() ? keeper_.format().record_length : 0;
  const std::uint64_t expected = length > 0 && parity_rows.size() <= kBulkBytes / length
                                     ? parity_rows.size() * length
                                     : std::max<std::uint64_t>(kBulkBytes, length);
  request.bytes = std::min(expected, std::max<std::uint64_t>(options_.file_length.bytes, 1));
  request.patient = options_.generation == 0;
  request.make = [this, member, parity_rows] {
    net::Packet packet;
    proto::Read& read = *packet.envelope.mutable_read();
    read.set_file(keeper_.shape.file.value);
    read.set_first(keeper_.shape.row_of(member, parity_rows.begin));
    read.set_count(parity_rows.size());
    read.set_stride(static_cast<std::uint32_t>(keeper_.size()));
    return packet;
  };
  request.take = [this, &requests, member, parity_rows](net::Packet& reply) {
    return take(requests, member, parity_rows, reply);
  };
  request.refused = [this, member](Error error) { return missing(member, std::move(error)); };
  requests.add(std::move(request));
}

Status MemberRows::take(access::Requests& requests, std::size_t member, Range parity_rows, const net::Packet& reply) {
  const auto& answer = reply.envelope.read_reply();
  PIF_TRY(check_generation(member, answer.generation()));
  const auto body = reply.body.span();
  const std::uint64_t rows = answer.rows();
  const Status wrong = fail(Code::kCorrupt, "its reply to a read is not what was asked for", name_of(member));
  if (rows == 0 || rows > parity_rows.size()) return wrong;
  if (keeper_.format().is_fixed()) {
    const auto length = keeper_.format().record_length;
    auto last = last_row_bytes(body.size(), rows, length);
    if (!last) return wrong;
    std::vector<std::uint32_t> lengths(rows, length);
    lengths.back() = *last;
    members_[member].fetched.add(lengths, body);
  } else {
    auto parsed = parse_variable(body, rows);
    if (!parsed) return wrong;
    members_[member].fetched.add(parsed->lengths, parsed->data);
  }
  const Range rest{parity_rows.begin + rows, parity_rows.end};
  if (rest.empty()) return {};
  // An LFS gives as many rows as a message holds, but not more than there are.
  ask(requests, member, rest);
  return {};
}

}  // namespace pif::lfs
