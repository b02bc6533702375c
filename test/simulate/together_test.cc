// What files that several clients write may hold: each lie is found, and the truth is none.
#include <catch2/catch.hpp>

#include "simulate/together.h"

namespace pif::simulate {
namespace {

constexpr std::uint64_t kFile = 7;
constexpr std::uint64_t kBytes = 100;

Time at(int t) { return Time(std::chrono::seconds(t)); }

// "anna" has begun a file; "bert" asks to join it at 2, hears at 4 that he has, and writes its first bytes.
struct Told {
  Told() {
    together.created(kFile, 1, "anna", 0);
    together.begin_join(kFile, "bert");
  }
  void write() {
    together.joined(kFile, "bert", at(4));
    write_number = together.begin_write(kFile, "bert", {{0, kBytes}}, at(5));
    together.wrote(write_number, at(6));
  }
  void see(bool are_there) {
    std::vector<std::byte> bytes(kBytes);
    for (std::uint64_t i = 0; i < kBytes && are_there; ++i) bytes[i] = Together::byte_of(write_number, i);
    together.saw_unfinished(kFile, 0, bytes, {at(7), at(8)}, 0);
  }
  bool accuses() const { return !oracle.violations().empty(); }

  Oracle oracle;
  Together together{oracle};
  Together::Write write_number = 0;
};

}  // namespace

TEST_CASE_METHOD(Told, "together: what a member was told is written is there") {
  write();
  SECTION("in the file") {
    see(true);
    CHECK(!accuses());
  }
  SECTION("not missing") {
    see(false);
    CHECK(accuses());
  }
  SECTION("in its length") {
    together.saw_length(kFile, {0, 0});
    CHECK(accuses());
  }
}

TEST_CASE_METHOD(Told, "together: what is written by who was dropped before he heard that he is a member may be lost") {
  const bool has_name = GENERATE(true, false);
  together.begin_drop(kFile, has_name ? "bert" : "");
  write();
  see(GENERATE(true, false));
  together.saw_length(kFile, {0, 0});
  CHECK(!accuses());
}

TEST_CASE_METHOD(Told, "together: nobody waits for who asks to join, and everybody for who has joined and writes") {
  NameOp publish;
  publish.begin = at(9);
  publish.end = at(10);
  const bool has_joined = GENERATE(true, false);
  if (has_joined) write();
  together.begin_done(kFile, "anna");
  together.begin_commit(kFile, publish.begin);
  together.committed(kFile, publish);
  CHECK(accuses() == has_joined);
}

}  // namespace pif::simulate
