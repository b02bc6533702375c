// What a path may look like, below the protocol (which refuses text that is not UTF-8 by itself).
#include "../../server/src/directory/names.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <string>

namespace pif::server {
namespace {

TEST_CASE("well-formed UTF-8 is taken, anything else is not") {
  for (const char* good : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(is_utf8(good));
  }
  for (const char* bad : {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xef\xbf",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe4z"}) {
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("a path that is not UTF-8 is refused with readable text") {
  const auto refused = check_path("/a\xff");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalid);
  CHECK(refused.error().text == "the path '/a\\xff' is not UTF-8");
}

TEST_CASE("one slash may end a path, and the root is the empty path") {
  CHECK(check_path("/")->empty());
  CHECK(*check_path("/a/b/") == "/a/b");
  CHECK_FALSE(check_path("//"));
  CHECK_FALSE(check_path("/a//"));
  CHECK(shown("") == "/");
}

TEST_CASE("a path splits into its folder and its last name, and joins again") {
  REQUIRE(rc::check("split", [] {
    const auto names = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
        rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', 'z')))));
    std::string path;
    for (const auto& name : names) path += "/" + name;
    RC_PRE(path.size() <= 4096u);
    const auto checked = check_path(path);
    RC_ASSERT(checked.has_value());
    const Split parts = split(*checked);
    RC_ASSERT(std::string(parts.folder) + "/" + std::string(parts.name) == path);
    RC_ASSERT(parts.name == names.back());
  }));
}

}  // namespace
}  // namespace pif::server
