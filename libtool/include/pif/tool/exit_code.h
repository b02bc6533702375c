// Exit codes of every tool.
#pragma once

namespace pif::tool {

enum class ExitCode : int {
  kDone = 0,
  kNegative = 1,  // a negative answer: found nothing, differs
  kUsage = 2,     // wrong usage
  kFailed = 3,    // failed, with one line on stderr that says what, where and what to do
};

}  // namespace pif::tool
