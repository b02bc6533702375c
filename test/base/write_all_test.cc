#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "pif/base/handle.h"
#include "pif/base/write_all.h"

using namespace pif;

TEST_CASE("all of it is written, also to a pipe that does not wait") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  REQUIRE(fcntl(write_end.get(), F_SETFL, O_NONBLOCK) == 0);
  const std::string all(1u << 20, 'x');  // more than a pipe holds
  std::string got;
  std::thread reader([&] {
    std::array<char, 4096> block{};
    for (ssize_t n = 0; (n = read(read_end.get(), block.data(), block.size())) > 0;)
      got.append(block.data(), static_cast<std::size_t>(n));
  });
  const auto written = write_all(write_end.get(), std::as_bytes(std::span(all)), "a pipe");
  write_end.reset();
  reader.join();
  CHECK(written.has_value());
  CHECK((got == all));
}
