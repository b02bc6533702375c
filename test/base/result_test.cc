#include "pif/base/result.h"

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace pif {
namespace {

std::vector<Code> all_codes() {
  return {
#define PIF_X(name, number, text) Code::name,
      PIF_ERROR_CODES(PIF_X)
#undef PIF_X
  };
}

TEST_CASE("error codes travel as their number and come back") {
  for (const Code code : all_codes()) CHECK(code_from_number(static_cast<std::uint32_t>(code)) == code);
}

TEST_CASE("no two error codes share a number or a name") {
  std::set<int> numbers;
  std::set<std::string_view> names;
  for (const Code code : all_codes()) {
    CHECK(numbers.insert(static_cast<int>(code)).second);
    CHECK(names.insert(code_name(code)).second);
  }
}

// Other programs and older peers know these; a change here is a change of the protocol.
TEST_CASE("the numbers of released error codes do not change") {
  CHECK(static_cast<int>(Code::kInvalid) == 1);
  CHECK(static_cast<int>(Code::kNotFound) == 2);
  CHECK(static_cast<int>(Code::kBadCapability) == 8);
  CHECK(static_cast<int>(Code::kCorrupt) == 14);
  CHECK(static_cast<int>(Code::kUnavailable) == 16);
  CHECK(static_cast<int>(Code::kInternal) == 23);
}

TEST_CASE("a number that is not in the list, success included, is an internal error") {
  CHECK(code_from_number(0) == Code::kInternal);
  CHECK(code_from_number(29) == Code::kInternal);
  CHECK(code_from_number(0x10001) == Code::kInternal);
  CHECK(code_name(static_cast<Code>(999)) == "unknown");
}

TEST_CASE("errno values become the nearest code, and what is not listed an io error") {
  CHECK(code_from_errno(ENOENT) == Code::kNotFound);
  CHECK(code_from_errno(EACCES) == Code::kPermission);
  CHECK(code_from_errno(ENOSPC) == Code::kNoSpace);
  CHECK(code_from_errno(EROFS) == Code::kReadOnly);
  CHECK(code_from_errno(EADDRINUSE) == Code::kBusy);
  CHECK(code_from_errno(EIO) == Code::kIo);
  CHECK(code_from_errno(ENOTRECOVERABLE) == Code::kIo);
}

TEST_CASE("an error prints its node and its text") {
  CHECK(Error{Code::kNoSpace, "cannot write", "lfs2"}.to_string() == "lfs2: cannot write");
  CHECK(Error{Code::kNoSpace, "cannot write", ""}.to_string() == "cannot write");
}

TEST_CASE("a failed system call says what was tried and why it failed") {
  const Status failed = fail_errno(ENOENT, "cannot open /x");
  CHECK(failed.error().code == Code::kNotFound);
  CHECK(failed.error().text == "cannot open /x: No such file or directory");
}

Result<std::string> half(Result<int> in) {
  PIF_TRY_VALUE(const int value, std::move(in));
  PIF_TRY(value % 2 == 0 ? Status{} : Status{fail(Code::kInvalid, "odd", "lfs1")});
  return std::to_string(value / 2);
}

TEST_CASE("PIF_TRY hands on the whole error and goes on with the value") {
  CHECK(half(8) == "4");
  CHECK(half(3).error().to_string() == "lfs1: odd");
  CHECK(half(fail(Code::kTimeout, "late")).error().code == Code::kTimeout);
}

}  // namespace
}  // namespace pif
