// Where a tool writes what it has to say: standard output, and the file of --report. Not a word gets lost unnoticed.
#pragma once

#include <string>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::tool {

// The file of --report or --trace. It is opened before a job begins, when nothing is lost yet if that fails; an older
// report in it stays until there is a new one, and a file that was not there goes again if there is none.
class ReportFile {
 public:
  // path: "-" is standard output, and nothing is no file.
  [[nodiscard]] static Result<ReportFile> open(const std::string& path);
  ReportFile(ReportFile&&) = default;
  ~ReportFile();
  [[nodiscard]] Status write(const std::string& report);

 private:
  ReportFile(std::string path, UniqueFd fd, bool is_new)
      : path_(std::move(path)), fd_(std::move(fd)), is_new_(is_new) {}

  std::string path_;
  UniqueFd fd_;  // until all is written
  bool is_new_;
};

}  // namespace pif::tool
