// Which records of a batch match, and where. Fixed strings are found by Vectorscan alone, over the whole batch. RE2
// says which strings a match of a pattern must have, as a formula of "and" and "or"; Vectorscan finds the strings, and
// RE2 decides on each record for which the formula is true, alone, as bytes. So no match crosses records. A pattern
// without such strings is looked for in every record.
//
// Vectorscan gets strings only: its release 5.4.9 misses matches of patterns on x86.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/tool/component.h"

namespace pif::search {

// The patterns to look for, and how; it travels to workers.
struct Query {
  std::string patterns;  // one a line
  bool fixed = false;    // they are strings, not regular expressions
  bool ignore_case = false;
  bool words = false;       // a match is no part of a longer word
  bool whole = false;       // or it is the whole record
  bool invert = false;      // records without a match
  bool only_match = false;  // the matches, not their records
  bool tag = false;         // and which pattern each is of
  bool count = false;       // only how many
  bool to_file = false;     // they are the records of an output
  std::uint64_t max = 0;    // records of a file that are reported; 0: all
  static auto members(auto& self) {
    return std::tie(self.patterns, self.fixed, self.ignore_case, self.words, self.whole, self.invert, self.only_match,
                    self.tag, self.count, self.to_file, self.max);
  }
};

// A part of a record that matches, and which pattern that is: the first that is as long.
struct Match {
  std::size_t begin = 0, end = 0;
  std::uint32_t pattern = 0;
};

// Several threads may use one, each with a Scanner of its own.
class Matcher {
 public:
  // kInvalid: a pattern is none; the text says which, and why.
  [[nodiscard]] static Result<Matcher> compile(const Query& query, const Format& format);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  // Whether RE2 looks at candidates only, or is not needed.
  bool is_prefiltered() const;

  struct Impl;

 private:
  friend class Scanner;
  explicit Matcher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Scanner {
 public:
  // matcher outlives it.
  [[nodiscard]] static Result<Scanner> open(const Matcher& matcher);
  Scanner(Scanner&&) noexcept;
  ~Scanner();

  // The records of the batch that match, by their place in it, ascending. With `invert` those that do not.
  [[nodiscard]] Result<std::vector<std::uint64_t>> scan(const tool::RowBatch& batch);
  // The matches in a record, from the left, the longest of those that begin at one place; none is empty.
  [[nodiscard]] Result<std::vector<Match>> matches_in(std::string_view record);

 private:
  struct Scratch;
  Scanner(const Matcher::Impl& matcher, std::unique_ptr<Scratch> scratch);
  // Whether a record with these strings, and no others, can match.
  bool may_match(std::uint64_t strings);
  std::uint32_t pattern_of(std::string_view match) const;
  const Matcher::Impl* matcher_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace pif::search
