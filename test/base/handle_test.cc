#include "pif/base/handle.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace pif {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST_CASE("a descriptor is closed with its owner") {
  const int fd = open_null();
  { const UniqueFd owner(fd); }
  CHECK_FALSE(is_open(fd));
}

TEST_CASE("a descriptor that is moved is closed once, by its new owner") {
  const int fd = open_null();
  UniqueFd second;
  {
    UniqueFd first(fd);
    second = std::move(first);
  }
  CHECK(is_open(fd));
  second.reset();
  CHECK_FALSE(is_open(fd));
}

TEST_CASE("assigning over a descriptor closes the one that was held") {
  const int held = open_null();
  const int next = open_null();
  UniqueFd owner(held);
  owner = UniqueFd(next);
  CHECK_FALSE(is_open(held));
  CHECK(owner.get() == next);
}

TEST_CASE("a released descriptor stays open") {
  const int fd = open_null();
  { CHECK(UniqueFd(fd).release() == fd); }
  CHECK(is_open(fd));
  ::close(fd);
}

}  // namespace
}  // namespace pif
