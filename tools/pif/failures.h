// What went wrong with some of the things that a command was to do: the rest is done, and the command ends with kFailed.
#pragma once

#include <string>
#include <vector>

#include "program.h"

namespace pif::cli {

class Failures {
 public:
  // Says it on stderr, and keeps it for the end.
  void add(const Error& error);
  // Says it only if there is one.
  void add(const Status& outcome) {
    if (!outcome) add(outcome.error());
  }
  bool is_empty() const { return errors_.empty(); }
  // On stderr, if more than one was said: how many, and of what ("of 17 files").
  void sum_up(const std::string& of_what) const;

  // Ends a JSON document: "error" is the first one, "errors" all.
  void add_to(Json& document) const;
  // The same as text, for a document that is printed piece by piece: `,"error":{...},"errors":[...]`, or nothing.
  std::string members() const;
  ExitCode exit_code() const { return errors_.empty() ? ExitCode::kDone : ExitCode::kFailed; }

 private:
  std::vector<Error> errors_;
};

// What --json prints of an error.
Json json_of(const Error& error);

}  // namespace pif::cli
