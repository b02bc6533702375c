// Versions (sort -V). They are compared run by run: bytes that are no digits, then a number, and so on. A run ends at a
// digit or at the end of the version. The order does not tell these two: a run's end is behind "~" and before any other
// byte, and a number that is missing is 0. So "a" and "a0" are equal.
#include <array>

#include "keys/characters.h"
#include "keys/encode.h"

namespace pif::sort {
namespace {

enum class Place : char { kEmpty, kDot, kTwoDots, kHidden, kOther };

constexpr char kNoSuffix = 0, kTilde = 1, kRunEnd = 2;
constexpr std::size_t kCountMax = 0xfe;  // digits that one byte counts
constexpr unsigned char kMany = 0xff;    // of more digits the number follows

// By byte, what it counts as in a run: after the run's end come letters, and then all others. Digits are in no run.
constexpr std::array<char, 256> make_ranks() {
  std::array<char, 256> ranks = {};
  unsigned next = kRunEnd + 1;
  for (const bool letters : {true, false}) {
    for (unsigned byte = 0; byte < ranks.size(); ++byte) {
      const char c = static_cast<char>(byte);
      if (!is_digit(c) && c != '~' && is_letter(c) == letters) ranks[byte] = static_cast<char>(next++);
    }
  }
  ranks['~'] = kTilde;
  return ranks;
}
constexpr std::array<char, 256> kRanks = make_ranks();

Place place_of(std::string_view text) {
  if (text.empty()) return Place::kEmpty;
  if (text == ".") return Place::kDot;
  if (text == "..") return Place::kTwoDots;
  return text[0] == '.' ? Place::kHidden : Place::kOther;
}

// Where the file suffix begins; text.size(): there is none.
std::size_t suffix_begin(std::string_view text) {
  const auto letter_at = [&](std::size_t i) { return is_letter(text[i]) || text[i] == '~'; };
  for (std::size_t at = 0;; ++at) {
    const std::size_t begin = at;
    while (at + 1 < text.size() && text[at] == '.' && letter_at(at + 1)) {
      at += 2;
      while (at < text.size() && (letter_at(at) || is_digit(text[at]))) ++at;
    }
    if (at == text.size()) return begin;
  }
}

// The digits at the start of the text, which it loses.
void take_number(std::string_view& text, std::string& out) {
  while (!text.empty() && text[0] == '0') text.remove_prefix(1);
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  out += count <= kCountMax ? static_cast<char>(count) : static_cast<char>(kMany);
  if (count > kCountMax) add_big_endian(count, kManyBytes, out);
  add_digits(text.substr(0, count), {}, out);
  text.remove_prefix(count);
}

// Runs and numbers, at least one of each. Behind the last number there is one more end of a run, where a longer version
// has its next run.
void add_runs(std::string_view text, std::string& out) {
  do {
    for (; !text.empty() && !is_digit(text[0]); text.remove_prefix(1))
      out += kRanks[static_cast<unsigned char>(text[0])];
    out += kRunEnd;
    take_number(text, out);
  } while (!text.empty());
  out += kRunEnd;
}

bool ends_with_zero(std::string_view text) {
  const std::size_t last = text.find_last_not_of('0');
  if (last == text.size() - 1) return false;
  return last == std::string_view::npos || !is_digit(text[last]);
}

}  // namespace

void add_version(std::string_view text, std::string& out) {
  const Place place = place_of(text);
  out += static_cast<char>(place);
  if (place < Place::kHidden) return;
  const std::size_t begin = suffix_begin(text);
  const std::string_view stem = text.substr(0, begin), suffix = text.substr(begin);
  add_runs(stem, out);
  // Among equal stems the texts are compared with their suffixes: what comes behind the stem decides. There it counts,
  // too, whether a stem that ends without digits or with a 0 has the 0.
  if (suffix.empty()) {
    out += kNoSuffix;
    return;
  }
  if (ends_with_zero(stem)) out.append({kRunEnd, '\0'});
  add_runs(suffix, out);
}

}  // namespace pif::sort
