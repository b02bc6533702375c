#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <catch2/catch.hpp>

#include "pif/base/decimal.h"
#include "pif/base/handle.h"
#include "pif/base/print.h"

using namespace pif;

namespace {

constexpr std::array<int, 3> kStreams = {0, 1, 2};

// The standard streams as they were, at its end.
class KeptStreams {
 public:
  KeptStreams() {
    for (const int fd : kStreams) kept_[static_cast<std::size_t>(fd)] = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
  }
  ~KeptStreams() {
    for (const int fd : kStreams) ::dup2(kept_[static_cast<std::size_t>(fd)].get(), fd);
  }
  KeptStreams(const KeptStreams&) = delete;
  KeptStreams& operator=(const KeptStreams&) = delete;

 private:
  std::array<UniqueFd, 3> kept_;
};

}  // namespace

TEST_CASE("an error of several lines becomes one") { CHECK(one_line(" a\n\tb  c\r\n") == "a b c"); }

TEST_CASE("what a terminal would act on is shown as bytes") {
  CHECK(visible("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07");
  CHECK(visible("\x7f \xc2\x9b \xc2\xa0") == "\\x7f \\xc2\\x9b \xc2\xa0");  // DEL, CSI, and a blank that does not break
  // Directions of writing, and a euro.
  CHECK(visible("\xe2\x80\xae \xe2\x81\xa6 \xe2\x82\xac") == "\\xe2\\x80\\xae \\xe2\\x81\\xa6 \xe2\x82\xac");
  CHECK(visible("\xff\xc3") == "\\xff\\xc3");
  CHECK(visible("Gr\xc3\xbc\xc3\x9f\x65\n\t\xf0\x9f\x98\x80") == "Gr\xc3\xbc\xc3\x9f\x65\n\t\xf0\x9f\x98\x80");
  CHECK(one_line("no such\x1b[31m\nfile") == "no such\\x1b[31m file");
}

TEST_CASE("zeros in front of a number mean nothing") {
  CHECK(decimal("0100") == "100");
  CHECK(decimal("0100M") == "100M");
  CHECK(decimal("000") == "0");
  for (const char* text : {"", "0", "10", "0.5", "-010", "0x20", "x01"}) CHECK(decimal(text) == text);
}

TEST_CASE("standard streams that are closed are filled, and refuse what they refused before") {
  std::array<bool, 3> filled{};
  bool reads = true, writes = true, says = true;
  {
    const KeptStreams kept;
    for (const int fd : kStreams) ::close(fd);
    fill_standard_streams();
    char byte = 0;
    for (const int fd : kStreams) filled[static_cast<std::size_t>(fd)] = ::fcntl(fd, F_GETFD) >= 0;
    reads = ::read(0, &byte, 1) >= 0;
    writes = ::write(1, &byte, 1) >= 0;
    says = ::write(2, &byte, 1) == 1;
    print_error("to nobody");
    ::close(2);
    print_error("to nobody at all");
  }
  for (const bool one : filled) CHECK(one);
  CHECK_FALSE(reads);
  CHECK_FALSE(writes);
  CHECK(says);
}
