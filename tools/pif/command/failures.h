// Failures of some of the things that a command was to do: the rest is done, and the command ends with
// kFailed.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command/program.h"

namespace pif::cli {

// Any thread.
class Failures {
 public:
  // When people hear of them, on stderr: each at once, or the first ones and how many there were in the end.
  enum class Say : std::uint8_t { kAtOnce, kInTheEnd };
  explicit Failures(const Program& program, Say say = Say::kAtOnce) : program_(program), say_(say) {}

  // Says it, and keeps it for the end.
  void add(const Error& error);
  // Says it only if there is one.
  void add(const Status& outcome) {
    if (!outcome) add(outcome.error());
  }
  bool is_empty() const;
  // Says what has to be said in the end.
  void sum_up() const;

  // Ends a JSON document: "error" is the first one, "errors" all, or the first thousand.
  void add_to(Json& document) const;
  // The same as text, for a document that is printed piece by piece: `,"error":{...},"errors":[...]`, or nothing.
  std::string members() const;
  ExitCode exit_code() const { return is_empty() ? ExitCode::kDone : ExitCode::kFailed; }

 private:
  const Program& program_;
  const Say say_;
  mutable std::mutex mutex_;   // guards all below
  std::vector<Error> errors_;  // the first ones
  std::uint64_t count_ = 0;
};

// Whether whatever comes next would fail as well: the user has ended it, a disk is full, or the server is gone.
// (Without an LFS, files on others are still there.)
bool ends_all(const Error& error);

// An error as --json prints it.
Json json_of(const Error& error);
// The code that it names so; nothing: this release knows none.
std::optional<Code> code_named(std::string_view name);

}  // namespace pif::cli
