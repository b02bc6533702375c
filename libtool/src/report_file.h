// Where a tool writes what it has to say: standard output, and the file of --report. Not a word gets lost unnoticed.
#pragma once

#include <string>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::tool {

// Writes all of it to standard output, at once. kIo and others if it does not take it.
[[nodiscard]] Status print(const std::string& text);

// The file of --report. It is opened before a job begins, when nothing is lost yet if that fails; an older report in it stays
// until there is a new one.
class ReportFile {
 public:
  // path: "-" is standard output, and nothing is no file.
  [[nodiscard]] static Result<ReportFile> open(const std::string& path);
  [[nodiscard]] Status write(const std::string& report);

 private:
  ReportFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace pif::tool
