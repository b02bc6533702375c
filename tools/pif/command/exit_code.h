// How a command ends, as scripts see it.
#pragma once

#include "pif/base/result.h"

namespace pif::cli {

enum class ExitCode : int {
  kDone = 0,
  kNegative = 1,  // a negative answer: fsck found damage
  kUsage = 2,     // the command line asks for something that cannot be
  kFailed = 3,    // it could be, but did not work
};

using Outcome = Result<ExitCode>;

// kInvalid means that the request itself is wrong, so whoever typed it has to change it.
inline ExitCode exit_code_of(const Error& error) {
  return error.code == Code::kInvalid ? ExitCode::kUsage : ExitCode::kFailed;
}

}  // namespace pif::cli
