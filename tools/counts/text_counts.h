// The counts of wc(1) of coreutils in the C locale: lines, words, and the longest line. The counts of two pieces of a
// text, wherever it is cut, give those of both together, so that pieces can be counted by different processes.
//
// A word ends at white space. Bytes that are not printable, those from 0x80 on among them, neither begin nor end one. A
// line of -L ends at '\n', '\r' or '\f'; a printable byte takes one column, a tab goes on to the next multiple of 8,
// and other bytes take none. Values and pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

namespace pif::counts {

// How a piece of a line moves the column: by `before`, and, if it has a tab, on from that tab's stop by `after`.
struct Advance {
  std::uint64_t before = 0;
  bool has_tab = false;
  std::uint64_t after = 0;

  // Where it ends if it begins at this column.
  std::uint64_t from(std::uint64_t column) const {
    return has_tab ? (column + before) / 8 * 8 + 8 + after : column + before;
  }
  // One more byte: so many columns wide; a tab.
  void add_columns(std::uint64_t columns) { (has_tab ? after : before) += columns; }
  void add_tab() {
    if (has_tab) after = after / 8 * 8 + 8;
    has_tab = true;
  }
  // The other one behind it.
  void add(const Advance& next);
};

enum class What : std::uint8_t { kWords, kWordsAndLongest };

class TextCounts {
 public:
  // Counts these bytes, which follow those that were counted. The longest line only if it is asked for, and then in all
  // calls.
  void add(std::span<const std::byte> bytes, What what);
  // Counts the bytes that `next` has counted, which follow.
  void add(const TextCounts& next);

  // The counts of all bytes so far: line ends, words, and columns of the longest line, the last one with them.
  std::uint64_t lines() const { return lines_; }
  std::uint64_t words() const { return words_; }
  std::uint64_t longest() const;

  // For messages: pif/tool/head.h.
  static auto members(auto& self) {
    return std::tie(self.lines_, self.words_, self.has_words_or_space_, self.begins_in_word_, self.ends_in_word_,
                    self.has_line_end_, self.first_.before, self.first_.has_tab, self.first_.after, self.longest_,
                    self.last_.before, self.last_.has_tab, self.last_.after);
  }

 private:
  friend struct Kernel;
  void end_line();

  std::uint64_t lines_ = 0;
  std::uint64_t words_ = 0;
  bool has_words_or_space_ = false;  // a byte that says whether it is in a word; the next two are of the first and last
  bool begins_in_word_ = false;
  bool ends_in_word_ = false;
  bool has_line_end_ = false;  // of -L
  Advance first_;              // up to the first line end
  std::uint64_t longest_ = 0;  // of the lines behind it that have ended
  Advance last_;               // behind the last line end; without one all of it
};

}  // namespace pif::counts
