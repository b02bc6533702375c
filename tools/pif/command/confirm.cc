#include "command/confirm.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "pif/base/print.h"

namespace pif::cli {

bool can_ask() { return ::isatty(0) == 1 && ::isatty(2) == 1; }

Status confirm(const std::string& question, const std::string& otherwise) {
  while (true) {
    print_error(question + " [yes/no] ");
    std::string answer;
    if (!std::getline(std::cin, answer)) break;
    std::erase_if(answer, [](char c) { return c == ' ' || c == '\r'; });
    if (answer == "yes" || answer == "y") return {};
    if (answer == "no" || answer == "n") break;
  }
  return fail(Code::kCancelled, otherwise);
}

}  // namespace pif::cli
