// A public call of a Client or a File: who may make it, and what becomes of an assertion that breaks in it. It is the
// error kInternal, with the assertion's text. The session's state may be wrong then, so nothing more is done with it:
// every further call gets the same error, and destructors say nothing to anybody.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "pif/base/assert.h"
#include "pif/base/result.h"
#include "session/one_user.h"

namespace pif::client {

// A broken assertion throws this inside a call. It leaves none. Where nothing may be thrown, as in a destructor, it
// ends the process, which shows what() because it is a std::exception.
class AssertionBroken : public std::exception {
 public:
  explicit AssertionBroken(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// While it lives, broken assertions of this thread are thrown, unless the program has a handler of its own.
class InsideCall {
 public:
  InsideCall() noexcept {
    set_assertion_handler_if_none(&throw_or_end);
    ++calls_here;
  }
  ~InsideCall() { --calls_here; }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;

 private:
  // Nobody would catch it on a thread of the library itself, nor while something else is being thrown.
  static void throw_or_end(const BrokenAssertion& broken) {
    if (calls_here == 0 || std::uncaught_exceptions() > 0) end_process(broken);
    throw AssertionBroken(broken.to_string());
  }
  static inline thread_local int calls_here = 0;  // one inside the other: a program's function may call again
};

// Runs `body` as a call of `user` and returns its Result or Status. Errors: those of Use::begin(), and kInternal.
template <typename Body>
[[nodiscard]] std::invoke_result_t<Body> in_use(OneUser& user, Body body) {
  PIF_TRY_VALUE(const Use use, Use::begin(user));
  try {
    const InsideCall inside;
    return body();
  } catch (const AssertionBroken& broken) {
    user.set_broken(broken.what());
    return fail(Code::kInternal, broken.what());
  }
}

// The same with a `body` that gives `count` Results in a vector: each of them is the error then.
template <typename Body>
[[nodiscard]] std::invoke_result_t<Body> in_use_each(OneUser& user, std::size_t count, Body body) {
  using All = std::invoke_result_t<Body>;
  auto all = in_use(user, [&]() -> Result<All> { return body(); });
  if (all) return std::move(*all);
  All failed;
  for (std::size_t i = 0; i < count; ++i) failed.emplace_back(fail(all.error()));
  return failed;
}

}  // namespace pif::client
