// Names of forks.
#include <catch2/catch.hpp>

#include "pif/base/fork.h"

using namespace pif;

TEST_CASE("a fork's name is its subfile's number and a name") {
  const auto fork = parse_fork("12/index of x");
  REQUIRE(fork);
  CHECK(fork->subfile == 12);
  CHECK(fork->name == "index of x");
  CHECK(fork_text(12, "index of x") == "12/index of x");
  REQUIRE(parse_fork("0/data"));
  CHECK(parse_fork("4294967295/a")->subfile == 4294967295);
}

TEST_CASE("what is no name of a fork is refused") {
  for (const char* text : {"", "/", "0", "0/", "/a", "a/b", "-1/a", "01/a", "00/a", "4294967296/a", "1/a/b", "1/a/",
                           "1/.", "1/..", "1//", " 1/a", "1 /a", "0x1/a"}) {
    INFO(text);
    CHECK(!parse_fork(text));
  }
  CHECK(parse_fork("1/" + std::string(300, 'x')).error().code == Code::kTooLarge);
}

TEST_CASE("a path of a fork has at least a file, a number and a name") {
  for (const char* path : {"/f/0/a", "/d/f/17/a"}) CHECK(may_be_fork(path));
  for (const char* path : {"", "/f", "/0/a", "/f/a", "/f/00/a", "/f/1x/a", "/f/a/1"}) {
    INFO(path);
    CHECK(!may_be_fork(path));
  }
}
