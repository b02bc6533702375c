// What files that only grow may hold: each lie is found, and the truth is none.
#include <catch2/catch.hpp>

#include "simulate/contents.h"

namespace pif::simulate {
namespace {

using Bytes = Contents::Bytes;

constexpr std::uint64_t kFile = 7;
constexpr std::uint32_t kLength = 100;

Time at(int t) { return Time(std::chrono::seconds(t)); }
Span during(int begin, int end) { return {at(begin), at(end)}; }

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

// Of two and a half records; then 30 bytes, and 120, were appended, of which only the first were acknowledged.
struct Told {
  Told() {
    contents.created(kFile, Format::fixed(kLength), made, 3);
    contents.appended(contents.begin_append(kFile, acknowledged, 0), 250, at(5));
    contents.begin_append(kFile, lost, 0);
  }
  bool accuses() const { return !oracle.violations().empty(); }

  Oracle oracle;
  Contents contents{oracle};
  const Bytes made = stamped_bytes(1, 250), acknowledged = stamped_bytes(2, 30), lost = stamped_bytes(3, 120);
};

}  // namespace

TEST_CASE_METHOD(Told, "contents: what was acknowledged is there, and what was not wholly or not at all") {
  contents.saw_all(kFile, joined({made, acknowledged}), during(6, 7));
  CHECK(!accuses());
  SECTION("wholly") {
    contents.saw_all(kFile, joined({made, acknowledged, lost}), during(8, 9));
    CHECK(!accuses());
  }
  SECTION("not in part") {
    contents.saw_all(kFile, joined({made, acknowledged, Bytes(lost.begin(), lost.begin() + 50)}), during(8, 9));
    CHECK(accuses());
  }
  SECTION("not twice") {
    contents.saw_all(kFile, joined({made, acknowledged, lost, lost}), during(8, 9));
    CHECK(accuses());
  }
  SECTION("not without what was acknowledged") {
    contents.saw_all(kFile, made, during(8, 9));
    CHECK(accuses());
  }
}

TEST_CASE_METHOD(Told, "contents: what was read once, or acknowledged, never changes") {
  Bytes bytes(acknowledged.begin() + 10, acknowledged.end());
  contents.saw_bytes(kFile, 260, bytes);
  CHECK(!accuses());
  bytes.back() ^= std::byte{1};
  contents.saw_bytes(kFile, 260, bytes);
  CHECK(accuses());
}

TEST_CASE_METHOD(Told, "contents: a length does not fall, is what the format gives it, and nothing nobody wrote") {
  contents.saw_length(kFile, {3, 280}, during(6, 7));
  CHECK(!accuses());
  SECTION("it is not less than was acknowledged") { contents.saw_length(kFile, {3, 250}, during(6, 7)); }
  SECTION("it is not less than was seen") {
    contents.saw_length(kFile, {4, 400}, during(8, 9));
    CHECK(!accuses());
    contents.saw_length(kFile, {3, 280}, during(10, 11));
  }
  SECTION("it is not more than was written") { contents.saw_length(kFile, {5, 401}, during(8, 9)); }
  SECTION("records and bytes fit") { contents.saw_length(kFile, {3, 400}, during(8, 9)); }
  CHECK(accuses());
}

TEST_CASE("contents: a line alone is what it is among all, and acknowledged lines have their place") {
  Oracle oracle;
  Contents contents(oracle);
  const std::uint32_t lengths[] = {20, 1, 40};
  const Bytes made = stamped_lines(1, lengths), more = stamped_lines(2, lengths);
  REQUIRE(made.size() == 61);
  contents.created(kFile, Format::lines(), made, 3);
  const auto append = contents.begin_append(kFile, more, 3);
  contents.saw_line(kFile, 3, std::span(more).first(20));
  SECTION("where it was acknowledged") {
    contents.appended(append, 3, at(5));
    contents.saw_all(kFile, joined({made, more}), during(6, 7));
    CHECK(oracle.violations().empty());
  }
  SECTION("elsewhere") {
    contents.appended(append, 4, at(5));
    contents.saw_all(kFile, joined({made, more}), during(6, 7));
    CHECK(!oracle.violations().empty());
  }
  SECTION("alone it was another one") {
    contents.saw_line(kFile, 4, std::span(made).first(20));
    contents.saw_all(kFile, joined({made, more}), during(6, 7));
    CHECK(!oracle.violations().empty());
  }
  SECTION("two lines are no line") {
    contents.saw_line(kFile, 0, made);
    CHECK(!oracle.violations().empty());
  }
}

}  // namespace pif::simulate
