// pif-summarize: what the fields of a file's records are, by a worker on every LFS.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "moments.h"
#include "pif/tool/controller.h"
#include "pif/tool/fields.h"
#include "pif/tool/tool_main.h"
#include "pif/tool/worker.h"

namespace pif::summarize {

// A field of each record: of text its number, or bytes at a fixed place.
struct FieldSpec {
  std::string name;                      // as the user has it
  std::uint32_t index = 0;               // of text, from 0
  std::uint32_t offset = 0, length = 0;  // else; length 0: of text
  char type = 'u';                       // of bytes: u, i, f
  bool big_endian = false;
};

// The job as workers get it, ready to travel.
struct Query : tool::FieldOptions {
  std::string fields;  // specs, as the user has them with columns' names made numbers; each behind a line end
  std::string by;      // the same of the key; empty: none
  bool strict = false;
  bool exact = false;      // count different values one by one
  std::string quantiles;   // each behind a blank
  std::uint32_t bins = 0;  // of the histogram; 0: none
  std::uint32_t top = 0;   // most frequent values
  static auto members(auto& self) {
    return std::tie(self.fields, self.by, self.separator, self.csv, self.strict, self.exact, self.quantiles, self.bins,
                    self.top);
  }
};

// kInvalid: text is no field ("3", "0:8:u", "16:8:fbe").
[[nodiscard]] Result<FieldSpec> parse_field(const std::string& text);
std::vector<std::string> words_of(std::string_view text, char end);

// Numbers of each field in Answer::moments.
inline constexpr std::size_t kColumnNumbers = Moments::kNumbers + 2;

// A worker's answer for each field: moments, how many were no number, how many were not there, registers of Distinct.
// Then, of each field by rank 0 alone, quantiles and bins; then of each field its different values here and the most
// frequent of them; with a key, groups.
struct Answer {
  std::string moments;  // packed: those of Moments, how many are others, and how many missing
  std::string registers;
  std::string quantiles, bins;  // packed
  std::string distinct;         // packed: how many, of each field
  std::string tops;             // pack_head of each field's Groups::pack()
  std::string groups;           // Groups::pack()
  static auto members(auto& self) {
    return std::tie(self.moments, self.registers, self.quantiles, self.bins, self.distinct, self.tops, self.groups);
  }
};

struct SummarizeOptions {
  Query query;
  std::vector<std::string> fields;
  std::vector<double> quantiles = {0.25, 0.5, 0.75};
  std::string by, path;
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, SummarizeOptions& options);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, SummarizeOptions& options);
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::summarize
