// A command of the shell as a filter: bytes go to its stdin, and what it writes is handed on meanwhile. Not
// thread-safe.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::map {

class Filter {
 public:
  // Gets a piece of what the command wrote; an error ends feed() or finish().
  using Take = std::function<Status(std::string_view)>;

  // `sh -c command`. kIo and the like: it could not be started.
  [[nodiscard]] static Result<Filter> start(const std::string& command, Take out, Take err);
  Filter(Filter&&) noexcept;
  ~Filter();  // kills it, unless it has ended

  // All of `input` to its stdin. False: it has closed that, and takes no more.
  [[nodiscard]] Result<bool> feed(std::string_view input);
  // Nothing more comes: hands on what is left, until the command has ended. kCancelled says how it failed: its exit
  // code or signal, and its last line on stderr.
  [[nodiscard]] Status finish();

 private:
  Filter(pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err, Take take_out, Take take_err);
  // Waits until something goes. `input`: what is still to be fed; what went is taken off.
  [[nodiscard]] Status turn(std::string_view& input);
  [[nodiscard]] Status drain(UniqueFd& from, const Take& take);

  pid_t pid_ = -1;  // -1: it has ended
  UniqueFd in_, out_, err_;
  Take take_out_, take_err_;
  std::string last_words_;  // the end of its stderr
};

}  // namespace pif::map
