#include <catch2/catch.hpp>

#include "libtool/cold_file.h"
#include "pif/tool/read_ahead.h"

namespace pif::tool {
namespace {

constexpr std::size_t kFileBytes = 64u << 20;  // more than any kernel reads ahead
constexpr std::size_t kMiddle = kFileBytes / 2;

Scratch whole_cold_file() { return cold_file(std::vector<std::byte>(kFileBytes, std::byte{7})); }

}  // namespace

TEST_CASE("of a mapping the disk reads the page that is touched, whatever the kernel would read ahead") {
  const Scratch file = whole_cold_file();
  if (file.empty()) return;
  CHECK(file.bytes()[kMiddle] == std::byte{7});
  CHECK(resident_bytes(file.bytes()) == page_bytes());
}

TEST_CASE("of a mapping the disk reads what was asked for, and no more") {
  const Scratch file = whole_cold_file();
  if (file.empty()) return;
  const auto wanted = file.bytes().subspan(kMiddle, 3u << 20);
  read_ahead(wanted);
  CHECK(comes(wanted));
  CHECK(resident_bytes(file.bytes()) == wanted.size());
}

TEST_CASE("pieces that lie close together are read with what is between them, others alone") {
  const Scratch file = whole_cold_file();
  if (file.empty()) return;
  const auto page = page_bytes();
  {
    ReadAhead ahead;
    for (const std::size_t at : {0, 2, 4, 100, 200}) ahead.add(file.bytes().subspan(kMiddle + at * page, page));
  }
  CHECK(comes(file.bytes().subspan(kMiddle, 5 * page)));
  CHECK(comes(file.bytes().subspan(kMiddle + 100 * page, page)));
  CHECK(comes(file.bytes().subspan(kMiddle + 200 * page, page)));
  CHECK(resident_bytes(file.bytes()) == 7 * page);
}

TEST_CASE("a mapping that is gone through in order is read a piece ahead") {
  const Scratch file = whole_cold_file();
  if (file.empty()) return;
  ReadInOrder ahead(file.bytes());
  for (const std::size_t done : {std::size_t{0}, kReadAheadBytes / 2, 3 * kReadAheadBytes}) {
    ahead.reach(file.bytes().data() + done);
    CHECK(comes(file.bytes().subspan(done, kReadAheadBytes)));
    CHECK(resident_bytes(file.bytes()) <= done + 2 * kReadAheadBytes);
  }
  ahead.reach(file.bytes().data() + kFileBytes);
  CHECK(comes(file.bytes()));
}

TEST_CASE("what is loaded is there, and as much behind it comes meanwhile") {
  const Scratch file = whole_cold_file();
  if (file.empty()) return;
  CHECK(file.load(kMiddle + 5, 1000));
  CHECK(resident_bytes(file.bytes().subspan(kMiddle + 5, 1000)) == page_bytes());
  CHECK(resident_bytes(file.bytes()) <= 2 * page_bytes());
}

}  // namespace pif::tool
