// Which number a record has among the records of all inputs, which follow one another in the order in which the user
// named them. Ties go by it.
#pragma once

#include <cstdint>
#include <vector>

#include "pif/base/ids.h"
#include "pif/parity/layout.h"

namespace pif::sort {

// A holder of input records is a *source*: a worker, or of a single file one of its LFSs. Its rows are those that it
// has of the first input, then those of the second, and so on.
class RecordNumbers {
 public:
  RecordNumbers() = default;
  // Numbers of one file: its LFSs are the sources.
  explicit RecordNumbers(parity::Layout layout);

  // The next input. sources: of its LFSs, none twice. Only its records from `first` on count.
  void add(parity::Layout layout, const std::vector<std::uint32_t>& sources, Range records);

  RecordNumber number(std::uint32_t source, Row row) const;
  // Whether row x of source a comes before row y of source b.
  bool is_lower(std::uint32_t a, Row x, std::uint32_t b, Row y) const {
    if (a == b) return x < y;
    if (goes_round_) return x != y ? x < y : a < b;
    return number(a, x) < number(b, y);
  }
  // Rows of the source, of all inputs.
  std::uint64_t rows(std::uint32_t source) const { return source < rows_.size() ? rows_[source] : 0; }
  std::uint64_t records() const { return records_; }

 private:
  struct Input {
    parity::Layout layout;
    RecordNumber first = 0;  // the number of its record 0; the records that do not count are below that of the first
  };
  // The records of an input that a source has.
  struct Part {
    Row begin = 0;  // of the source's rows
    std::size_t input = 0;
    LfsIndex lfs = 0;
    Row first = 0;  // row of the component
  };
  std::vector<Input> inputs_;
  std::vector<std::vector<Part>> parts_;  // by source, in the order of rows
  std::vector<std::uint64_t> rows_;       // by source
  std::uint64_t records_ = 0;
  bool goes_round_ = false;  // one input, whose records go round over the sources in their order
};

}  // namespace pif::sort
