// The words of find(1), and patterns.
#include <catch2/catch.hpp>

#include "../../tools/pif/text/expand.h"
#include "../../tools/pif/text/find_words.h"

using namespace pif;
using namespace pif::cli;

namespace {

using Words = std::vector<std::string>;

Words kept(Words words) {
  keep_find_words(words, 0);
  return words;
}

std::string joined(const Words& words) {
  std::string out;
  for (const auto& word : words) out += word + '\0';
  return out;
}

}  // namespace

TEST_CASE("options of find have one dash or two") {
  CHECK(kept({"/a", "-name", "*.txt", "--type", "f"}) == Words{"/a", "--name=*.txt", "--type=f"});
  CHECK(kept({"-print0", "--print"}) == Words{"--print0", "--print"});
  CHECK(kept({"-q", "--json", "--pif", "/d"}) == Words{"-q", "--json", "--pif", "/d"});
}

TEST_CASE("what an option of find is given may look like an option, or be a list in brackets") {
  CHECK(kept({"-name", "-type", "-size", "-1k"}) == Words{"--name=-type", "--size=-1k"});
  CHECK(kept({"-name", "[ab]"}) == Words{"--name=[ab]"});
  CHECK(kept({"-name"}) == Words{"--name"});
}

TEST_CASE("the command behind -exec is one word up to its end") {
  CHECK(kept({"-exec", "rm", "-f", "{}", "+", "--json"}) ==
        Words{"--exec=" + joined({"rm", "-f", "{}", "+"}), "--json"});
  CHECK(kept({"-exec", "expr", "1", "+", "{}", ";", "-print"}) ==
        Words{"--exec=" + joined({"expr", "1", "+", "{}", ";"}), "--print"});
  CHECK(kept({"-exec", "rm", "{}"}) == Words{"--exec=" + joined({"rm", "{}"})});
  CHECK(kept({"-exec"}) == Words{"--exec="});
}

TEST_CASE("a command of find runs for many names, or for each") {
  const auto many = parse_exec(joined({"pif", "rm", "{}", "+"}));
  REQUIRE(many);
  CHECK(many->many);
  CHECK(words_for(*many, {"/a", "/b"}) == Words{"pif", "rm", "/a", "/b"});
  const auto each = parse_exec(joined({"mv", "{}", "{}.old", ";"}));
  REQUIRE(each);
  CHECK(!each->many);
  CHECK(words_for(*each, {"/{}"}) == Words{"mv", "/{}", "/{}.old"});
}

TEST_CASE("a command of find without its end is refused") {
  for (const Words& words : {Words{}, {"rm", "{}"}, {"+"}, {"{}", "+"}, {"rm", "+"}, {";"}, {"rm", "{}", "x", "+"}}) {
    const auto plan = parse_exec(joined(words));
    CHECK(!plan);
  }
}

TEST_CASE("sizes of find are more than, less than, or just so many bytes") {
  CHECK(parse_size("+10k")->holds(10241));
  CHECK(!parse_size("+10k")->holds(10240));
  CHECK(parse_size("-1M")->holds(1048575));
  CHECK(!parse_size("-1M")->holds(1048576));
  CHECK(parse_size("512")->holds(512));
  CHECK(parse_size("512c")->bytes == 512);
  CHECK(parse_size("1T")->bytes == std::uint64_t{1} << 40);
  for (const char* text : {"", "+", "k", "1x", "--1", "1.5M", "99999999999999999999", "18446744073709551615T"})
    CHECK(!parse_size(text));
}

TEST_CASE("a pattern matches names as a shell does, character by character") {
  CHECK(matches("*.txt", "a.txt", Dots::kHide));
  CHECK(!matches("*.txt", "a.txt.gz", Dots::kHide));
  CHECK(matches("?.txt", "\xc3\xa4.txt", Dots::kHide));
  CHECK(!matches("?", "ab", Dots::kHide));
  CHECK(matches("[a-c]?", "b1", Dots::kHide));
  CHECK(!matches("[!a]", "a", Dots::kHide));
  CHECK(matches("a\\*", "a*", Dots::kHide));
  CHECK(!matches("a\\*", "ab", Dots::kHide));
  CHECK(!matches("*", ".hidden", Dots::kHide));
  CHECK(matches(".*", ".hidden", Dots::kHide));
  CHECK(matches("*", ".hidden", Dots::kShow));
}
