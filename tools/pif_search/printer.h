// The output of pif-search for one file, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "pif/base/result.h"
#include "pif/client/client.h"
#include "pif/tool/slow_output.h"

namespace pif::search {

struct PrintOptions {
  std::string name;      // in front of each record; empty: none
  bool numbers = false;  // of records
  std::uint64_t before = 0, after = 0;
  bool is_next = false;  // something of another file was printed
};

// Records of one file that match, with their neighbours, which are read here.
class Printer {
 public:
  // Both outlive it.
  Printer(tool::SlowOutput& output, File& file, PrintOptions options, const FileLength& file_length)
      : output_(output), file_(file), options_(std::move(options)), file_length_(file_length) {}

  // In ascending order. Errors: as reading the file.
  [[nodiscard]] Status print(RecordNumber number, std::string_view record);
  // The neighbours of the last one.
  [[nodiscard]] Status end();

 private:
  [[nodiscard]] Status print_neighbours(RecordNumber begin, RecordNumber end);
  void add(RecordNumber number, std::string_view record, char mark);

  tool::SlowOutput& output_;
  File& file_;
  const PrintOptions options_;
  const FileLength file_length_;
  RecordNumber next_ = 0;             // after the last one that was printed
  std::optional<RecordNumber> last_;  // that matched
};

}  // namespace pif::search
