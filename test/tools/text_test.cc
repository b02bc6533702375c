#include <algorithm>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif/command/dispatch.h"
#include "../../tools/pif/command/progress.h"
#include "../../tools/pif/names/mode_change.h"
#include "../../tools/pif/text/pbm.h"
#include "../../tools/pif/text/text.h"
#include "pif/base/limits.h"
#include "pif/base/typed_path.h"

using namespace pif;
using namespace pif::cli;

namespace {

bool refused(const Result<OpenRange>& range) { return !range && range.error().code == Code::kInvalid; }

}  // namespace

TEST_CASE("a range has a colon, and either end may be left out") {
  const auto both = parse_range("3:7");
  REQUIRE(both);
  CHECK(both->begin == 3);
  CHECK(both->end == 7);
  CHECK(parse_range("3:")->end == std::nullopt);
  CHECK(parse_range(":7")->begin == 0);
  CHECK(parse_range(":")->clip(9) == Range{0, 9});
}

TEST_CASE("a range that is none is wrong usage") {
  for (const char* text : {"", "5", "a:b", "7:3", "-1:2", "1:2:3", "0x1:2", " 1:2", "99999999999999999999:"}) {
    INFO(text);
    CHECK(refused(parse_range(text)));
  }
}

TEST_CASE("a range is clipped to the file, whatever its ends") {
  REQUIRE(rc::check([](std::uint64_t a, std::uint64_t b, std::uint64_t count) {
    const OpenRange range{std::min(a, b), std::max(a, b)};
    const Range clipped = range.clip(count);
    RC_ASSERT(clipped.begin <= clipped.end);
    RC_ASSERT(clipped.end <= count);
    RC_ASSERT(clipped.size() == (std::min(range.begin, count) < count ? std::min(*range.end, count) - range.begin : 0));
  }));
}

TEST_CASE("lists are numbers between single commas") {
  CHECK(*parse_list("4,4,2", "x") == std::vector<std::uint32_t>{4, 4, 2});
  for (const char* text : {"", ",", "4,", ",4", "4,,4", "4 4", "4294967296"}) {
    INFO(text);
    CHECK_FALSE(parse_list(text, "x"));
  }
}

TEST_CASE("a delimiter is one character, an escape or a hexadecimal byte") {
  CHECK(*parse_delimiter(",") == ',');
  CHECK(*parse_delimiter("\\n") == '\n');
  CHECK(*parse_delimiter("\\0") == 0);
  CHECK(*parse_delimiter("0x1e") == 0x1e);
  CHECK(*parse_delimiter("0") == '0');
  CHECK_FALSE(parse_delimiter(""));
  CHECK_FALSE(parse_delimiter("ab"));
  CHECK_FALSE(parse_delimiter("0xzz"));
}

TEST_CASE("paths are absolute, with or without pif:, and come back in one form") {
  CHECK(*parse_path("/") == "/");
  CHECK(*parse_path("pif:/a//b") == "/a/b");
  CHECK(*parse_path("/a/./b") == "/a/b");
  CHECK_FALSE(parse_path("a/b"));
  CHECK_FALSE(parse_path("pif:a"));
  CHECK_FALSE(parse_path(""));
}

TEST_CASE("a path that no file can have is refused before anybody is asked, each with its own words") {
  const auto refused = [](std::string_view path) {
    const auto parsed = parse_path(path);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().text.size() < 400);
    return parsed.error().text;
  };
  CHECK(refused("/a/../b").find("'..'") != std::string::npos);
  CHECK(refused("/a\xff").find("not UTF-8") != std::string::npos);
  CHECK(refused(std::string_view("/a\0b", 4)).find("NUL") != std::string::npos);
  CHECK(refused("/" + std::string(256, 'a')).find("the limit is 255") != std::string::npos);
  CHECK(refused("/" + std::string(10'000, 'a')).find("the limit is 4096") != std::string::npos);
}

TEST_CASE("a slash or a dot at the end of a path stays, as one slash: by it only a folder is meant") {
  for (const char* text : {"/a/", "/a//", "/a/.", "/a/./", "/./a/.//."}) CHECK(*parse_path(text) == "/a/");
  for (const char* text : {"/", "//", "/.", "/./"}) CHECK(*parse_path(text) == "/");
  CHECK(*parse_path("/a./.b") == "/a./.b");
}

TEST_CASE("a path in one form stays as it is") {
  REQUIRE(rc::check([](const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) {
      text += "/";
      for (const char c : name) text += "abc/"[static_cast<unsigned char>(c) % 4];
    }
    text.resize(std::min(text.size(), kPathBytesMax - 1));
    const auto once = parse_path("/" + text);
    RC_ASSERT(once.has_value());
    RC_ASSERT(*parse_path(*once) == *once);
  }));
}

TEST_CASE("names join and come apart again") {
  CHECK(join_path("/", "a") == "/a");
  CHECK(join_path("/a", "b") == "/a/b");
  CHECK(base_name("/a/b") == "b");
  CHECK(base_name("/a/b/") == "b");
  CHECK(base_name("/") == "");
}

TEST_CASE("sizes and times are short for people") {
  CHECK(human_bytes(0) == "0");
  CHECK(human_bytes(1023) == "1023");
  CHECK(human_bytes(1024) == "1.0 KiB");
  CHECK(human_bytes((1u << 20) - 1) == "1.0 MiB");
  CHECK(human_bytes(~std::uint64_t{0}) == "16.0 EiB");
  CHECK(human_time(std::chrono::milliseconds(420)) == "0.42 s");
  CHECK(human_time(std::chrono::seconds(125)) == "2 min 05 s");
  CHECK(iso_date(1'000'000'005) == "1970-01-01T00:00:01.000000005Z");
  CHECK(mode_text('d', 0750) == "drwxr-x---");
  CHECK(mode_text('-', 06754) == "-rwsr-sr--");
  CHECK(mode_text('-', 07640) == "-rwSr-S--T");
  CHECK(mode_text('l', 01777) == "lrwxrwxrwt");
}

TEST_CASE("before 1970 a second has its fraction, and time goes on") {
  CHECK(iso_date(-1'500'000'000) == "1969-12-31T23:59:58.500000000Z");
  CHECK(iso_date(-1) == "1969-12-31T23:59:59.999999999Z");
  CHECK(iso_date(-1'000'000'000) == "1969-12-31T23:59:59.000000000Z");
  CHECK(iso_date(0) == "1970-01-01T00:00:00.000000000Z");
  CHECK(iso_date(INT64_MIN) == "1677-09-21T00:12:43.145224192Z");
  CHECK(iso_date(INT64_MAX) == "2262-04-11T23:47:16.854775807Z");
  CHECK(iso_second(-1) == "1969-12-31T23:59:59Z");
}

TEST_CASE("the header of a bitmap is read as netpbm reads it") {
  const auto size = [](std::string_view text) {
    const auto header = parse_pbm(text);
    return header ? std::pair(header->width(), header->height()) : std::pair(std::uint64_t{0}, std::uint64_t{0});
  };
  const std::pair wanted(std::uint64_t{17}, std::uint64_t{2});
  for (const char* text : {"P4\n17 2\n", "P4 17 2 ", "P4\t\r\n17\n\n2\t", "P4\n# one\n#two\n17 2\n", "P4#\n17 2\n",
                           "P4\n17#wide\n2#high\n", "P4\n# ends with CR\r17 2\n", "P4\n017 0002\n"})
    CHECK(size(text) == wanted);
  CHECK(parse_pbm("P4 17 2 ")->row_bytes() == 3);
  CHECK(parse_pbm("P4 16 0 ")->row_bytes() == 2);
  for (const char* text :
       {"", "P4", "P417 2\n", "P1\n17 2\n", "P4\n17 2", "P4\n17 2\n\n", "P4\n17 2\n#\n", "P4\n-17 2\n", "P4\n17x 2\n",
        "P4\n17 4294967296\n", "P4\n17\v2\n", "P4\n# never ends 17 2 "})
    CHECK_FALSE(parse_pbm(text));
}

TEST_CASE("a word for the shell is quoted only if it must be") {
  CHECK(shell_word("/data/pif-1") == "/data/pif-1");
  CHECK(shell_word("/my data") == "'/my data'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
}

TEST_CASE("a table's columns are as wide as their widest cell") {
  CHECK(table({{"a", "bytes"}, {"long", "7"}}, {1}) == "a     bytes\nlong      7\n");
}

TEST_CASE("progress shows share, rate and time left") {
  CHECK(Progress::line("/a", 1024, 4096, std::chrono::seconds(1)) == "/a 1.0 KiB 25% 1.0 KiB/s 3.00 s left");
  CHECK(Progress::line("/a", 1024, 0, std::chrono::seconds(1)) == "/a 1.0 KiB 1.0 KiB/s");
  CHECK(Progress::line("/a", 0, 0, std::chrono::seconds(0)) == "/a 0");
}

TEST_CASE("a misspelt word is near the one that was meant, and a strange one near none") {
  const std::vector<std::string> names = {"ls", "rm", "mv", "put", "sort", "stat", "status", "transpose"};
  CHECK(nearest("sotr", names) == "sort");
  CHECK(nearest("staus", names) == "status");
  CHECK(nearest("statt", names) == "stat");
  CHECK(nearest("trnspoze", names) == "transpose");
  CHECK(nearest("pt", names) == "put");
  CHECK(nearest("sl", names) == "ls");
  for (const char* word : {"nonsense", "x", "", "zz", "copper"}) CHECK(nearest(word, names) == "");
}

TEST_CASE("a name that a terminal would act on is a shell's word") {
  CHECK(quoted_name("plain name") == "plain name");
  CHECK(quoted_name("\x1b[2J") == "$'\\x1b[2J'");
  CHECK(quoted_name("a\nb's\\\x07") == "$'a\\nb\\'s\\\\\\x07'");
  CHECK(quoted_name("$'x'") == "$'$\\'x\\''");
}

TEST_CASE("a mode is octal, or changes of what is there") {
  const auto applied = [](const char* text, std::uint32_t mode, bool folder = false) {
    const auto change = ModeChange::parse(text);
    REQUIRE(change);
    return change->apply(mode, folder);
  };
  CHECK(applied("0750", 0644) == 0750);
  CHECK(applied("7", 0644) == 07);
  CHECK(applied("u+x", 0644) == 0744);
  CHECK(applied("go-rwx", 0755) == 0700);
  CHECK(applied("a=r,u+w", 0777) == 0644);
  CHECK(applied("+x", 0644) == 0755);
  CHECK(applied("u=", 0755) == 055);
  CHECK(applied("go+rX", 0700) == 0755);
  CHECK(applied("go+rX", 0600) == 0644);
  CHECK(applied("go+rX", 0600, true) == 0655);
  CHECK(applied("4755", 0644) == 04755);
  CHECK(applied("755", 07644) == 0755);
  CHECK(applied("u+s", 0755) == 04755);
  CHECK(applied("ug+s", 0755) == 06755);
  CHECK(applied("o+s", 0755) == 0755);
  CHECK(applied("+t", 0777) == 01777);
  CHECK(applied("g=rxs", 0700) == 02750);
  CHECK(applied("g=rx", 02770) == 0750);
  CHECK(applied("-s", 07755) == 01755);
  for (const char* text : {"", "8", "01777", "u", "u+q", "z+r", "u+r,", "0888", "rw", "12345"}) {
    INFO(text);
    CHECK_FALSE(ModeChange::parse(text));
  }
}

TEST_CASE("pif-X is the command X") {
  CHECK(command_in_name("/usr/bin/pif-up") == "up");
  CHECK(command_in_name("pif") == "");
}
