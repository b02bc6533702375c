// Entries of the redo log that have the changed bytes of chunks only.
#include "../../lfs/src/redo/redo_pieces.h"

#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "pif/base/checksum.h"

using namespace pif;
using lfs::ChangedBytes;
using lfs::decode_changes;
using lfs::encode_changes;

namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint32_t kChunk = 4096;

component::Shape shape_of_64() {
  component::Shape shape;
  shape.file = FileId(5);
  shape.format = Format::fixed(64);
  shape.chunk_bytes = kChunk;
  return shape;
}

Bytes random_bytes(std::size_t size, std::mt19937_64& random) {
  Bytes out(size);
  for (auto& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

// Changes pieces of `image` at random.
ChangedBytes change(Bytes& image, std::size_t pieces, std::size_t size_max, std::mt19937_64& random) {
  ChangedBytes changed(image.size());
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t at = random() % image.size();
    const std::size_t size = std::min(image.size() - at, 1 + random() % size_max);
    const Bytes bytes = random_bytes(size, random);
    std::copy(bytes.begin(), bytes.end(), image.begin() + static_cast<std::ptrdiff_t>(at));
    changed.add(at, size);
  }
  return changed;
}

}  // namespace

TEST_CASE("changed bytes are put back over what was there, with the sums of what comes of it") {
  std::mt19937_64 random(1);
  const component::Shape shape = shape_of_64();
  for (unsigned round = 0; round < 300; ++round) {
    Bytes before = random_bytes(1 + random() % (20 * kChunk), random);
    Bytes after = before;
    const ChangedBytes changed = change(after, 1 + random() % 20, 200, random);
    const auto data = encode_changes(shape, 7, after, changed);
    if (!data) continue;  // of a short image the whole is no longer
    CHECK(data->size() <= after.size() / 4 * 3);
    const auto changes = decode_changes(*data, kChunk);
    REQUIRE(changes.has_value());
    CHECK(changes->bytes == after.size());
    for (std::size_t at = 0; at < after.size(); at += kChunk) {
      const auto chunk = std::span(after).subspan(at, std::min<std::size_t>(kChunk, after.size() - at));
      CHECK(changes->sum(at / kChunk) == shape.data_sum(7 + at / kChunk, chunk));
    }
    Bytes shorter = before;  // as of a component that ends earlier
    shorter.resize(1 + random() % before.size());
    changes->apply(before);
    CHECK((before == after));
    changes->apply(shorter);
    CHECK(std::equal(shorter.begin(), shorter.end(), after.begin()));
  }
}

TEST_CASE("stretches of changed bytes are as long as can be") {
  ChangedBytes changed(1000);
  CHECK(changed.next(0).empty());
  changed.add(60, 10);
  changed.add(70, 130);
  changed.add(999, 1);
  CHECK(changed.next(0) == Range{60, 200});
  CHECK(changed.next(100) == Range{100, 200});
  CHECK(changed.next(200) == Range{999, 1000});
  CHECK(changed.next(1000).empty());
}

TEST_CASE("chunks that change nearly everywhere are better logged whole") {
  std::mt19937_64 random(2);
  Bytes image = random_bytes(4 * kChunk, random);
  ChangedBytes most(image.size());
  most.add(0, image.size() - 10);
  CHECK_FALSE(encode_changes(shape_of_64(), 0, image, most));
  ChangedBytes every_second(image.size());
  for (std::size_t at = 0; at < image.size(); at += 2) every_second.add(at, 1);
  CHECK(encode_changes(shape_of_64(), 0, image, every_second));  // one run
}

TEST_CASE("an entry that does not hold what it says is refused") {
  std::mt19937_64 random(3);
  const component::Shape shape = shape_of_64();
  Bytes image = random_bytes(3 * kChunk + 100, random);
  const auto data = encode_changes(shape, 0, image, change(image, 5, 50, random));
  REQUIRE(data);
  for (std::size_t size = 0; size < data->size(); ++size)
    CHECK_FALSE(decode_changes(std::span(*data).first(size), kChunk).has_value());
  CHECK_FALSE(decode_changes(*data, 0).has_value());
  Bytes apply_to(image.size());
  for (unsigned round = 0; round < 2000; ++round) {  // whatever it is then, nothing is written elsewhere
    Bytes damaged = *data;
    damaged[random() % std::min<std::size_t>(damaged.size(), 60)] = static_cast<std::byte>(random());
    if (const auto changes = decode_changes(damaged, kChunk)) changes->apply(apply_to);
  }
}
