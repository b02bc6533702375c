// Streams of several workers as one, and what is no stream.
#include <random>

#include <catch2/catch.hpp>

#include "../../libtool/src/controller/stream_merge.h"

namespace pif::tool {
namespace {

std::string frame(StreamKey key, const std::string& bytes) {
  return pack_head(FrameHead{key.input, key.record, static_cast<std::uint32_t>(bytes.size())}) + bytes;
}
std::string passed(StreamKey key) { return pack_head(FrameHead{key.input, key.record, FrameHead::kPassed}); }

std::string taken(StreamMerge& merge) {
  std::string all;
  while (true) {
    const auto next = merge.next();
    REQUIRE(next);
    if (!*next) return all;
    all += (*next)->bytes;
  }
}

}  // namespace

TEST_CASE("a record is given when nobody can have an earlier one") {
  StreamMerge merge(2);
  CHECK(merge.add(0, frame({0, 3}, "d")));
  CHECK(taken(merge).empty());
  CHECK(merge.add(1, passed({0, 3})));
  CHECK(taken(merge) == "d");
  CHECK(merge.add(1, frame({0, 3}, "e")));
  CHECK(merge.add(0, frame({0, 3}, "f")));
  CHECK(taken(merge) == "fe");
  CHECK(merge.add(0, frame({1, 0}, "h")));
  CHECK(taken(merge).empty());
  CHECK(merge.end(1));
  CHECK(taken(merge) == "h");
  CHECK(merge.end(0));
  CHECK(taken(merge).empty());
}

TEST_CASE("however streams are cut and come, their records are in order") {
  std::mt19937 rng(5);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t workers = 1 + static_cast<std::uint32_t>(rng() % 5);
    std::vector<std::string> streams(workers);
    std::string wanted;
    for (std::uint64_t record = 0; record < 100; ++record) {
      const std::string bytes(rng() % 4 == 0 ? rng() % 40 : 0, static_cast<char>('a' + record % 26));
      const std::uint32_t of = static_cast<std::uint32_t>(record % workers);
      if (!bytes.empty()) streams[of] += frame({0, record}, bytes);
      if (bytes.empty() && rng() % 3 == 0) streams[of] += passed({0, record + 1});
      wanted += bytes;
    }
    StreamMerge merge(workers);
    std::string all;
    std::vector<std::size_t> at(workers);
    for (std::uint32_t left = workers; left > 0;) {
      const std::uint32_t rank = static_cast<std::uint32_t>(rng() % workers);
      if (at[rank] > streams[rank].size()) continue;
      const std::string part = streams[rank].substr(at[rank], 1 + rng() % 60);
      at[rank] += part.size();
      if (!part.empty()) REQUIRE(merge.add(rank, part));
      CHECK(merge.come(rank) == std::min(at[rank], streams[rank].size()));
      if (part.empty()) {
        REQUIRE(merge.end(rank));
        at[rank] = streams[rank].size() + 1;
        --left;
      }
      all += taken(merge);
    }
    CHECK(all == wanted);
  }
}

TEST_CASE("there is room for so much of a stream, and for the rest of a record that is longer") {
  StreamMerge merge(2);
  CHECK(merge.room(0) == StreamMerge::kBytesMax);
  const std::string longer(2 * StreamMerge::kBytesMax, 'x');
  const std::string stream = frame({0, 0}, longer);
  CHECK(merge.add(0, stream.substr(0, StreamMerge::kBytesMax)));
  CHECK(merge.room(0) > 0);
  CHECK(merge.add(0, stream.substr(StreamMerge::kBytesMax)));
  CHECK(merge.room(0) == 0);
  CHECK(merge.end(1));
  CHECK(taken(merge) == longer);
  CHECK(merge.room(0) == StreamMerge::kBytesMax);
}

TEST_CASE("a stream that goes back, ends within a frame, or is none is refused") {
  StreamMerge merge(2);
  CHECK(merge.add(0, frame({0, 5}, "a")));
  CHECK(merge.add(0, frame({0, 4}, "b")));
  CHECK(merge.end(1));
  CHECK(merge.next());
  CHECK(merge.next().error().code == Code::kInvalid);
  StreamMerge cut(1);
  CHECK(cut.add(0, frame({0, 5}, "abc").substr(0, 17)));
  CHECK(cut.end(0).error().code == Code::kInvalid);
  StreamMerge wild(1);
  CHECK(wild.add(0, std::string(16, '\xfe')).error().code == Code::kInvalid);
}

}  // namespace pif::tool
