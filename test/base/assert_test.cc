#include "pif/base/assert.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

namespace pif {
namespace {

[[noreturn]] void throw_it(const BrokenAssertion& broken) { throw std::logic_error(broken.to_string()); }

// What the handler is told of `broken`, which breaks an assertion; empty if it breaks none.
template <typename Function>
std::string told_of(Function broken) {
  const AssertionHandler before = set_assertion_handler(&throw_it);
  std::string text;
  try {
    broken();
  } catch (const std::logic_error& error) {
    text = error.what();
  }
  set_assertion_handler(before);
  return text;
}

TEST_CASE("an assertion that holds does nothing") {
  CHECK(told_of([] { PIF_ASSERT(1 + 1 == 2); }).empty());
}

TEST_CASE("a broken assertion tells file, line, condition and values") {
  const int index = 5;
  const std::uint64_t count = 3;
  const std::string text = told_of([&] { PIF_ASSERT(index < 3, index, count - 1, std::max(index, 7)); });
  CHECK(text.find("test/base/assert_test.cc:") == 0);
  CHECK(text.find(": assertion failed: index < 3 (index = 5, count - 1 = 2, std::max(index, 7) = 7)") !=
        std::string::npos);
}

TEST_CASE("a broken assertion without values tells its condition") {
  CHECK(told_of([] { PIF_ASSERT(sizeof(int) == 1); }).find(": assertion failed: sizeof(int) == 1") !=
        std::string::npos);
}

}  // namespace
}  // namespace pif
