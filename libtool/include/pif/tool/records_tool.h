// Tools that make any number of records of each record of a file: filters, splitters, samples; and those that only look
// at records and say what they found. The output is in the order of the input's records, on as many LFSs as the user
// wants.
//
//   class Even final : public RecordFunction {
//     Status take(RecordNumber number, std::span<const std::byte> record, Records& out) override {
//       if (number % 2 == 0) out.add(record);
//       return {};
//     }
//   };
//
//   RecordsTool tool{"even", "Keeps every other record."};
//   tool.make = [](std::string_view) { return std::make_unique<Even>(); };
//   return main(argc, argv, records_tool(std::move(tool)));
//
// The output of a worker's records is kept in scratch files until the numbers of all are known (numbering.h): bytes of
// the output, once more written and read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/tool/tool_main.h"

namespace pif::tool {

// The output of some records of the input, in order.
class Records {
 public:
  // At most kRecordLengthMax bytes, else the job fails.
  void add(std::span<const std::byte> record) {
    lengths_.push_back(static_cast<std::uint32_t>(record.size()));
    longest_ = std::max<std::uint64_t>(longest_, record.size());
    data_.insert(data_.end(), record.begin(), record.end());
  }
  void add(std::string_view record) { add(std::as_bytes(std::span(record))); }

  // All that was added, packed, and how long each is; valid until the next call. The longest one's bytes.
  const std::vector<std::uint32_t>& lengths() const { return lengths_; }
  std::span<const std::byte> data() const { return data_; }
  std::uint64_t longest() const { return longest_; }
  // Forgets all, and keeps the memory.
  void clear() {
    lengths_.clear();
    data_.clear();
    longest_ = 0;
  }

 private:
  std::vector<std::uint32_t> lengths_;
  std::vector<std::byte> data_;
  std::uint64_t longest_ = 0;
};

// One for each thread of a worker, which is its only user.
class RecordFunction {
 public:
  virtual ~RecordFunction() = default;
  // number: of the record, in the file. Its error ends the job.
  virtual Status take(RecordNumber number, std::span<const std::byte> record, Records& out);
  // The same for a batch of the input's component, for who looks at all of it at once: counts gets, for each record,
  // how many were added.
  virtual Status take_batch(const Input& input, RowBatch& batch, Records& out, std::vector<std::uint32_t>& counts);
  // Its result in all, at most kJobResultBytesMax; and adds the result of another one. So threads are put together,
  // in the order of their workers, and at last all workers, by a function at the controller. kInvalid: it cannot be
  // read.
  virtual std::string found() { return {}; }
  virtual Status add(std::string_view /*found*/) { return {}; }
};

using MakeFunction = std::function<Result<std::unique_ptr<RecordFunction>>(std::string_view value)>;

// The work of a worker of records_tool(), for a tool with a command line of its own: passes all records of the input
// through functions that `make` makes from Worker::value(); their findings are the worker's result. Called by all
// workers; a step of a team of its own. output: null: what is added to Records goes nowhere. Errors: the functions';
// kUnsupported: a record does not fit a file of fixed records; kTooLarge; else as Numbering's and OrderedOutput's.
[[nodiscard]] Status make_records(Worker& worker, Input& input, Output* output, const MakeFunction& make);

struct RecordsTool {
  std::string name, summary, examples;     // as Tool's
  std::function<void(CLI::App&)> options;  // adds the tool's own; may be empty
  bool has_output = true;                  // NAME SRC DST; else NAME SRC, and what is added to Records goes nowhere
  // The format of DST; nothing: the source's. Fixed records must have that length, but for the last one.
  std::optional<Format> format;
  std::function<std::string()> value;  // for make() at the workers; may be empty
  MakeFunction make;
  // Gets what all workers found; before the output is committed. May be empty.
  std::function<Status(Controller&, RecordFunction&)> finish;
};

// With --threads, --explain, and where there is an output add_output_options().
Tool records_tool(RecordsTool tool);

}  // namespace pif::tool
