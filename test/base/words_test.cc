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

TEST_CASE("a whole number is digits alone, and fits") {
  CHECK(whole_number("0100") == "100");
  CHECK(whole_number("000") == "0");
  CHECK(whole_number("18446744073709551615") == "18446744073709551615");
  for (const std::string text :
       {"", " ", "-1", "+1", " 1", "1 ", "1e3", "0x10", "1.5", "0100M", "18446744073709551616"})
    CHECK(whole_number(text) == "'" + text + "', which is no whole number below 2^64");
}

TEST_CASE("a number of bytes may have a unit, and fits with it") {
  for (const char* text : {"50MiB", "50M", "50mb", "050Mi", "52428800", "52428800b", "51200k"})
    CHECK(byte_count(text) == "52428800");
  CHECK(byte_count("0100M") == "104857600");
  CHECK(byte_count("0") == "0");
  CHECK(byte_count("15E") == "17293822569102704640");
  for (const std::string text :
       {"", "M", "-1", "-5G", "+1M", " 1", "1 M", "1e3", "0x10", "1.5M", "1bb", "1MiBs", "16E", "18446744073709551616"})
    CHECK_THAT(byte_count(text), Catch::StartsWith("'" + text + "', which is no number of bytes"));
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
