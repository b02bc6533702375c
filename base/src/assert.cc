#include "pif/base/assert.h"

#include <atomic>
#include <cstdlib>
#include <span>
#include <string_view>

#include <unistd.h>

#include "pif/base/write_all.h"

namespace pif {
namespace {

// The one global of the project: an assertion has no object that could bring the handler along.
std::atomic<AssertionHandler> handler_of_process = nullptr;

// A compiler cache may hand the compiler a path that starts at the build folder.
std::string from_root(std::string_view file) {
  while (file.substr(0, 3) == "../") file.remove_prefix(3);
  return std::string(file);
}

// The next of names separated by commas outside brackets.
std::string_view take_name(std::string_view& names) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < names.size() && (depth > 0 || names[end] != ','); ++end) {
    if (names[end] == '(' || names[end] == '[' || names[end] == '{') ++depth;
    if (names[end] == ')' || names[end] == ']' || names[end] == '}') --depth;
  }
  std::string_view name = names.substr(0, end);
  names.remove_prefix(end < names.size() ? end + 1 : end);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  return name;
}

}  // namespace

std::string BrokenAssertion::to_string() const {
  std::string text = from_root(file) + ":" + std::to_string(line) + ": assertion failed: " + condition;
  if (!values.empty()) text += " (" + values + ")";
  return text;
}

void end_process(const BrokenAssertion& broken) {
  const std::string line = broken.to_string() + "\n";
  static_cast<void>(write_all(STDERR_FILENO, std::as_bytes(std::span(line)), "standard error"));
  std::abort();
}

AssertionHandler set_assertion_handler(AssertionHandler handler) noexcept {
  return handler_of_process.exchange(handler);
}

void set_assertion_handler_if_none(AssertionHandler handler) noexcept {
  AssertionHandler none = nullptr;
  if (handler_of_process.load(std::memory_order_relaxed) == nullptr)
    handler_of_process.compare_exchange_strong(none, handler);
}

void detail::assertion_failed(const char* file, int line, const char* condition, const char* names,
                              std::initializer_list<std::int64_t> values) {
  BrokenAssertion broken{file, line, condition, {}};
  std::string_view rest = names;
  for (const std::int64_t value : values) {
    if (!broken.values.empty()) broken.values += ", ";
    broken.values += std::string(take_name(rest)) + " = " + std::to_string(value);
  }
  if (const AssertionHandler handler = handler_of_process.load()) handler(broken);
  end_process(broken);  // without a handler, or with one that returned
}

}  // namespace pif
