// Assertions that stay on in release builds. An assertion states what the code relies on: sizes agree, an index is
// inside, credit is not negative, a transition is allowed. Input from files, peers and users is never asserted; it is
// checked. Thread-safety: PIF_ASSERT from any thread; the handler is set before other threads start.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace pif {

struct BrokenAssertion {
  const char* file;  // as the compiler was given it
  int line;
  const char* condition;  // source text
  std::string values;     // "i = 5, count = 3"; empty without values

  // One line without an end of line: "lfs/src/append/sequencer.cc:12: assertion failed: i < count (i = 5, count = 3)"
  std::string to_string() const;
};

// Does not return: it ends the process, or throws.
using AssertionHandler = void (*)(const BrokenAssertion& broken);

// Writes the text to standard error and ends the process by SIGABRT. The default without a handler: right for daemons,
// workers and tools, which must not go on with wrong state. A program that uses libpif and wants this inside of the
// library's calls, too, sets it as its handler.
[[noreturn]] void end_process(const BrokenAssertion& broken);

// Returns the handler before it; null: none.
AssertionHandler set_assertion_handler(AssertionHandler handler) noexcept;
// The same for a library, which leaves the program's own as it is. libpif, in C++ and in C, sets one that throws inside
// its calls, which return `internal` then, and ends the process everywhere else.
void set_assertion_handler_if_none(AssertionHandler handler) noexcept;

namespace detail {
// `names`: the source text of the values, separated by commas.
[[noreturn, gnu::cold]] void assertion_failed(const char* file, int line, const char* condition, const char* names,
                                              std::initializer_list<std::int64_t> values);
template <typename T>
constexpr std::int64_t assertion_value(const T& value) {
  static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "values of assertions are integers or enums");
  return static_cast<std::int64_t>(value);
}
template <typename... T>
[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed_with(const char* file, int line, const char* condition,
                                                                  const char* names, const T&... values) {
  assertion_failed(file, line, condition, names, {assertion_value(values)...});
}
}  // namespace detail

}  // namespace pif

// PIF_ASSERT(condition) or PIF_ASSERT(condition, value, ...): up to any number of integers or enums, shown when it is
// broken. NOLINTNEXTLINE: a macro, because it shows its own text
#define PIF_ASSERT(condition, ...)                                                                                   \
  do {                                                                                                               \
    if (!(condition)) [[unlikely]]                                                                                   \
      ::pif::detail::assertion_failed_with(__FILE__, __LINE__, #condition, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
