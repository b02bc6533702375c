#include "lines.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <string_view>
#include <vector>

#include "harness.h"

namespace pif::bench {
namespace {

constexpr std::size_t kBatch = 1 << 20;        // bytes written at once
constexpr std::size_t kShortestLong = 1024;    // bytes of a long line, without its end
constexpr std::size_t kLongest = 4096;         // of any line
constexpr std::uint64_t kVocabulary = 50'000;  // words
constexpr std::uint64_t kLongestWord = 14;     // letters

using Random = std::mt19937_64;

// A file that lines are appended to in large blocks.
class LineFile {
 public:
  explicit LineFile(const std::string& path) : path_(path), file_(path, std::ios::binary), batch_(kBatch) {}
  // Room for a line of kLongest bytes and its end.
  char* room() {
    if (batch_.size() - used_ <= kLongest) flush();
    return batch_.data() + used_;
  }
  // `end`: behind what was written to room(); a line end follows.
  void end_line(char* end) {
    *end = '\n';
    const auto used = static_cast<std::size_t>(end + 1 - batch_.data());
    bytes_ += used - used_;
    used_ = used;
  }
  std::uint64_t bytes() const { return bytes_; }
  void close() {
    flush();
    if (!file_.flush()) die("cannot write " + path_);
  }

 private:
  void flush() {
    file_.write(batch_.data(), static_cast<std::streamsize>(used_));
    used_ = 0;
  }

  std::string path_;
  std::ofstream file_;
  std::vector<char> batch_;
  std::size_t used_ = 0;
  std::uint64_t bytes_ = 0;
};

char* put_text(std::string_view text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// Two digits and what follows them.
char* put_two(std::uint64_t number, char behind, char* out) {
  *out++ = static_cast<char>('0' + number / 10);
  *out++ = static_cast<char>('0' + number % 10);
  *out++ = behind;
  return out;
}

char* put_number(std::uint64_t number, int base, char* out) { return std::to_chars(out, out + 20, number, base).ptr; }

char* put_log_line(Random& random, char* out) {
  const std::uint64_t when = random() % (30 * 24 * 3600), what = random();
  out = put_text("2026-11-", out);
  out = put_two(1 + when / (24 * 3600), ' ', out);
  out = put_two(when / 3600 % 24, ':', out);
  out = put_two(when / 60 % 60, ':', out);
  out = put_two(when % 60, ' ', out);
  *out++ = 'h';
  out = put_number(100 + what % 900, 10, out);
  *out++ = ' ';
  out = put_number((what >> 16) % 100'000, 10, out);
  out = put_text(" GET /", out);
  return put_number(what >> 48, 16, out);
}

// The further behind, the longer they may be.
std::vector<std::string> make_vocabulary(Random& random) {
  std::vector<std::string> words(kVocabulary);
  for (std::uint64_t n = 0; n < kVocabulary; ++n) {
    const std::uint64_t longest = std::min<std::uint64_t>(kLongestWord, 2 + std::bit_width(n + 1));
    words[n].resize(1 + random() % longest);
    for (char& letter : words[n]) letter = static_cast<char>('a' + random() % 26);
  }
  return words;
}

// Eight characters from one number: 64 printable ones follow the space.
char* put_printable(Random& random, std::size_t count, char* out) {
  for (std::size_t done = 0; done < count; done += 8) {
    const std::uint64_t eight = (random() & 0x3f3f3f3f3f3f3f3f) + 0x2020202020202020;
    std::memcpy(out + done, &eight, std::min<std::size_t>(8, count - done));
  }
  return out + count;
}

}  // namespace

void make_log_lines(const std::string& path, std::uint64_t lines) {
  LineFile file(path);
  Random random(7);
  for (std::uint64_t n = 0; n < lines; ++n) file.end_line(put_log_line(random, file.room()));
  file.close();
}

void make_words(const std::string& path, std::uint64_t bytes) {
  LineFile file(path);
  Random random(7);
  const std::vector<std::string> words = make_vocabulary(random);
  const double doublings = std::log2(static_cast<double>(kVocabulary));
  while (file.bytes() < bytes) {
    // The logarithm of n is evenly distributed, so n itself is as frequent as 1/n.
    const double even = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto n = static_cast<std::uint64_t>(std::exp2(even * doublings));
    file.end_line(put_text(words[n - 1], file.room()));
  }
  file.close();
}

void make_long_lines(const std::string& path, std::uint64_t bytes) {
  LineFile file(path);
  Random random(7);
  while (file.bytes() < bytes) {
    const std::size_t length = kShortestLong + random() % (kLongest - kShortestLong + 1);
    file.end_line(put_printable(random, length, file.room()));
  }
  file.close();
}

}  // namespace pif::bench
