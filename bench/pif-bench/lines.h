// Files of lines such as people sort, search and count: log lines, words, and long lines. The same arguments give the
// same file.
#pragma once

#include <cstdint>
#include <string>

namespace pif::bench {

inline constexpr std::uint64_t kLogLineBytes = 40;  // on average, about

// These end the program with a message if the file cannot be written.
// `lines` lines of about 40 bytes at random times of 30 days: `2026-11-DD HH:MM:SS hNNN NUMBER GET /HEX`, NUMBER below
// 100,000.
void make_log_lines(const std::string& path, std::uint64_t lines);
// At least `bytes` bytes: words of 1 to 14 letters, one a line. The n-th word of the vocabulary occurs about 1/n as
// often as the first, and the frequent ones are short.
void make_words(const std::string& path, std::uint64_t bytes);
// At least `bytes` bytes: lines of 1 to 4 KiB of random printable characters.
void make_long_lines(const std::string& path, std::uint64_t bytes);

}  // namespace pif::bench
