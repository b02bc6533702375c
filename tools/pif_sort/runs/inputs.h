// All inputs of a sort as if they were one file: a worker's rows are those that it has of the first one, then those of
// the second, and so on, and so are its bytes. The first records of each input may be left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/tool/worker.h"
#include "runs/numbers.h"

namespace pif::sort {

class Inputs {
 public:
  // All that the job has, and this worker's components of them; the controller has seen to it that they have one
  // format. skipped: records that are left out at the beginning of each. kTooLarge: a worker has more rows than can be
  // sorted.
  [[nodiscard]] static Result<Inputs> open(tool::Worker& worker, std::uint64_t skipped);

  const Format& format() const { return inputs_[0]->format(); }
  // The input, if there is but one, of which all is sorted; else null.
  const tool::Input* only() const { return inputs_.size() == 1 && skipped_ == 0 ? inputs_[0] : nullptr; }
  // Length of all that is sorted; its bytes count records that are left out, too.
  const FileLength& file_length() const { return file_length_; }
  // A line that lacked its end gets it.
  std::uint64_t bytes_max() const { return file_length_.bytes + inputs_.size(); }

  // The sources: ranks of the workers that have components.
  const std::vector<std::uint32_t>& ranks() const { return ranks_; }
  const RecordNumbers& numbers() const { return numbers_; }
  // Rows of each worker, by rank.
  std::vector<std::uint64_t> rows_by_rank() const;

  // Whether this worker is one of the sources, and which. The members below are of this worker.
  bool is_here() const { return source_.has_value(); }
  std::uint32_t source() const { return *source_; }
  std::uint64_t rows() const { return is_here() ? numbers_.rows(*source_) : 0; }
  // Where those of each input begin.
  std::vector<Row> first_rows() const;
  std::uint64_t bytes() const { return parts_.empty() ? 0 : parts_.back().bytes.end; }
  std::uint64_t bytes_read() const { return bytes_read_; }
  void count_read(std::uint64_t bytes);

  // As component::Reader.
  [[nodiscard]] Status read_rows(Row first, std::uint64_t count, component::Rows out) const;
  [[nodiscard]] Status read_ends(Row first, std::uint64_t count, std::span<std::uint64_t> ends) const;
  [[nodiscard]] Status read_bytes(std::uint64_t offset, std::span<std::byte> out) const;
  // As tool::Input. map(): kUnsupported too, unless the rows are those of one whole component.
  [[nodiscard]] Result<tool::Scratch> map();
  [[nodiscard]] Status check(std::uint64_t offset, std::uint64_t size, const tool::Scratch& mapped) const;

 private:
  // The part of an input that is here.
  struct Part {
    tool::Input* input = nullptr;
    Range rows, bytes;  // of all
    Row first_row = 0;  // of the component,
    std::uint64_t first_byte = 0;
  };
  Inputs() = default;
  [[nodiscard]] Status add(tool::Worker& worker, std::size_t which);
  [[nodiscard]] Status add_part(tool::Input& input, Range rows);
  bool is_whole() const { return parts_.size() == 1 && parts_[0].first_row == 0; }

  std::vector<tool::Input*> inputs_;
  std::vector<std::uint32_t> ranks_;
  std::uint64_t skipped_ = 0;
  std::uint32_t workers_ = 0;
  RecordNumbers numbers_;
  std::optional<std::uint32_t> source_;
  FileLength file_length_;
  std::vector<Part> parts_;  // none is empty
  std::uint64_t bytes_read_ = 0;
};

}  // namespace pif::sort
