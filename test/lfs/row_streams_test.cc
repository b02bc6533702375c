#include <random>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../lfs/src/rebuild/row_streams.h"

using namespace pif;
using lfs::RowStreams;

namespace {

using RowBytes = std::vector<std::byte>;

RowBytes random_row(std::mt19937& rng, std::size_t bytes) {
  RowBytes out(bytes);
  for (auto& byte : out) byte = static_cast<std::byte>(rng());
  return out;
}

// A reply with rows first, first + step, ...
net::Buffer body_of(const Format& format, const std::vector<RowBytes>& rows, Row first, std::uint64_t step,
                    std::uint64_t count) {
  RowBytes bytes;
  for (std::uint64_t i = 0; i < count && !format.is_fixed(); ++i) {
    const auto length = static_cast<std::uint32_t>(rows[first + i * step].size());
    for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(length >> shift));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const RowBytes& row = rows[first + i * step];
    bytes.insert(bytes.end(), row.begin(), row.end());
  }
  return net::Buffer::copy_of(bytes);
}

struct Written {
  std::vector<RowBytes> rows;

  void add(const Format& format, const RowStreams::Batch& batch) {
    const RowStreams::Rows got = RowStreams::assemble(format, batch);
    const std::byte* from = got.bytes.data();
    for (Row row = batch.first; row < batch.end; ++row) {
      const bool is_last = row + 1 == batch.end;
      const std::size_t bytes = !format.is_fixed() ? got.lengths[row - batch.first]
                                : is_last          ? got.last_bytes
                                                   : format.record_length;
      rows.emplace_back(from, from + bytes);
      from += bytes;
    }
  }
};

// Pieces are answered in any order, in parts of any length, and what is ready is taken at any time.
Written run(const Format& format, const std::vector<RowBytes>& rows, std::size_t streams, Row from, std::mt19937& rng) {
  RowStreams merge(format, rows.size(), streams, 100, from);
  Written out;
  std::vector<RowStreams::PiecePtr> open;
  while (!merge.is_done()) {
    while (auto piece = merge.next()) open.push_back(std::move(piece));
    RC_ASSERT(!open.empty());
    RC_ASSERT(open.size() <= 2 * streams);
    const std::size_t at = rng() % open.size();
    const std::uint64_t count = 1 + rng() % (open[at]->wanted - open[at]->rows());
    const Row first = open[at]->next();
    const auto taken = merge.take(*open[at], count, body_of(format, rows, first, streams, count));
    RC_ASSERT(taken.has_value());
    if (open[at]->is_complete) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    if (rng() % 3 == 0 || open.empty()) out.add(format, merge.take_ready());
  }
  return out;
}

}  // namespace

TEST_CASE("rows of several streams come out in order, whole, once") {
  REQUIRE(rc::check([] {
    std::mt19937 rng(*rc::gen::arbitrary<unsigned>());
    const bool is_fixed = *rc::gen::arbitrary<bool>();
    const auto streams = *rc::gen::inRange<std::size_t>(1, 6);
    const auto length = *rc::gen::element<std::uint32_t>(1, 7, 4096, 300'000);
    const auto count = *rc::gen::inRange<std::size_t>(1, length > 4096 ? 40 : 3000);
    const Format format = is_fixed ? Format::fixed(length) : Format::variable();
    std::vector<RowBytes> rows;
    for (std::size_t i = 0; i < count; ++i)
      rows.push_back(random_row(rng, is_fixed ? (i + 1 == count ? 1 + rng() % length : length) : rng() % 200));
    const Row from = rng() % 2 == 0 ? 0 : rng() % count;  // what is in front of it is there
    const std::vector<RowBytes> missing(rows.begin() + static_cast<std::ptrdiff_t>(from), rows.end());
    RC_ASSERT(run(format, rows, streams, from, rng).rows == missing);
  }));
}

TEST_CASE("a reply that cannot be one is refused") {
  const Format format = Format::fixed(10);
  RowStreams merge(format, 9, 2, 0);
  const auto piece = merge.next();
  CHECK(piece->first == 0);
  CHECK(piece->wanted == 5);
  CHECK(piece->span() == 9);
  CHECK(merge.take(*piece, 0, net::Buffer(0)).error().code == Code::kCorrupt);
  CHECK(merge.take(*piece, 6, net::Buffer(60)).error().code == Code::kCorrupt);
  CHECK(merge.take(*piece, 2, net::Buffer(15)).error().code == Code::kCorrupt);  // a short row, but not the last one
  CHECK(merge.take(*piece, 2, net::Buffer(20)).has_value());
  CHECK(merge.take(*piece, 3, net::Buffer(25)).has_value());
  RowStreams lines(Format::variable(), 9, 2, 0);
  CHECK(lines.take(*lines.next(), 1, net::Buffer(3)).error().code == Code::kCorrupt);
}
