// Counting lines, words and the longest line: in vectors and in pieces, beside one byte after another.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/counts/text_counts.h"

using namespace pif::counts;

namespace {

struct Plain {
  std::uint64_t lines = 0, words = 0, longest = 0;
  bool operator==(const Plain&) const = default;
};

bool is_stop(unsigned char c) { return c == '\n' || c == '\r' || c == '\f'; }

// As wc(1) of coreutils 9.1 does it, a byte at a time.
Plain plain(const std::string& text) {
  Plain out;
  std::uint64_t column = 0;
  bool in_word = false;
  for (const unsigned char c : text) {
    const bool is_space = c == ' ' || (c >= '\t' && c <= '\r'), is_printed = c > ' ' && c < 0x7f;
    out.lines += c == '\n' ? 1 : 0;
    out.words += is_printed && !in_word ? 1 : 0;
    in_word = is_printed || (in_word && !is_space);
    if (c == '\t') column += 8 - column % 8;
    if (is_printed || c == ' ') ++column;
    out.longest = std::max(out.longest, column);
    if (is_stop(c)) column = 0;
  }
  return out;
}

Plain of(const TextCounts& counts) { return {counts.lines(), counts.words(), counts.longest()}; }

TextCounts counted(const std::string& text) {
  TextCounts counts;
  counts.add(std::as_bytes(std::span(text)), What::kWordsAndLongest);
  return counts;
}

// Few different bytes, so that all that can meet does.
std::string some_text() {
  const auto letters = *rc::gen::elementOf(std::vector<std::string>{
      "ab \n", "a\n", "a\t ", std::string("a\0 \n", 4), std::string("\0\x80", 2), "a\r\n\f\v\t\x7f\x80\xff ~!"});
  const auto size = *rc::gen::inRange<std::size_t>(0, 300);
  return *rc::gen::container<std::string>(size, rc::gen::elementOf(letters));
}

}  // namespace

TEST_CASE("text is counted as byte after byte would be") {
  CHECK(rc::check("any text", [] {
    const std::string text = some_text();
    RC_ASSERT(of(counted(text)) == plain(text));
    TextCounts words;
    words.add(std::as_bytes(std::span(text)), What::kWords);
    RC_ASSERT(words.lines() == plain(text).lines);
    RC_ASSERT(words.words() == plain(text).words);
  }));
}

TEST_CASE("pieces of a text give the counts of all of it, wherever it is cut") {
  CHECK(rc::check("any three pieces", [] {
    const std::string a = some_text(), b = some_text(), c = some_text();
    const Plain whole = plain(a + b + c);
    TextCounts one_by_one = counted(a);
    one_by_one.add(counted(b));
    one_by_one.add(counted(c));
    RC_ASSERT(of(one_by_one) == whole);
    TextCounts last_first = counted(b), all = counted(a);
    last_first.add(counted(c));
    all.add(last_first);
    RC_ASSERT(of(all) == whole);
    TextCounts bytes = counted(a);
    bytes.add(std::as_bytes(std::span(b)), What::kWordsAndLongest);
    bytes.add(counted(c));
    RC_ASSERT(of(bytes) == whole);
  }));
}

TEST_CASE("bytes that are not printable neither begin nor end a word, though they are a piece of their own") {
  for (const std::string& between : {std::string(), std::string("\0", 1), std::string(100, '\x80')}) {
    TextCounts counts = counted("one");
    counts.add(counted(between));
    counts.add(counted("word"));
    CHECK(counts.words() == 1);
    TextCounts alone = counted(between);
    alone.add(counted("word and"));
    counts.add(alone);
    CHECK(counts.words() == 2);
  }
}

TEST_CASE("a tab goes on to the next multiple of eight, whatever is before it") {
  for (std::size_t before = 0; before < 20; ++before) {
    TextCounts counts = counted(std::string(before, 'x'));
    counts.add(counted("\txy\tz"));
    CHECK(counts.longest() == before / 8 * 8 + 8 + 8 + 1);
  }
}
