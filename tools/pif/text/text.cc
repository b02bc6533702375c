#include "text/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

namespace pif::cli {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

// The second that the time is in, and how far: before 1970, too, a fraction is between 0 and 1.
struct WallTime {
  std::time_t seconds = 0;
  std::int64_t ns = 0;
};

WallTime wall_time(std::int64_t wall_ns) {
  const std::int64_t before = wall_ns % kSecondNs < 0 ? 1 : 0;
  return {static_cast<std::time_t>(wall_ns / kSecondNs - before), wall_ns % kSecondNs + before * kSecondNs};
}

std::tm broken_down(std::time_t seconds, bool utc) {
  std::tm out{};
  if (utc) {
    ::gmtime_r(&seconds, &out);
  } else {
    ::localtime_r(&seconds, &out);
  }
  return out;
}

std::string strftime_of(const std::tm& time, const char* format) {
  std::array<char, 64> buffer{};
  const std::size_t n = std::strftime(buffer.data(), buffer.size(), format, &time);
  return {buffer.data(), n};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// How many letters must be changed, added, left out or swapped with the next (optimal string alignment).
std::size_t slips(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string human_time(std::chrono::duration<double> time) {
  const double seconds = time.count();
  if (seconds < 60) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::string human_date(std::int64_t wall_ns) {
  return strftime_of(broken_down(wall_time(wall_ns).seconds, false), "%Y-%m-%d %H:%M");
}

std::string iso_date(std::int64_t wall_ns) {
  const WallTime time = wall_time(wall_ns);
  return strftime_of(broken_down(time.seconds, true), "%Y-%m-%dT%H:%M:%S") + fmt::format(".{:09}Z", time.ns);
}

std::string iso_second(std::int64_t wall_seconds) {
  return strftime_of(broken_down(wall_seconds, true), "%Y-%m-%dT%H:%M:%SZ");
}

std::string mode_text(char kind, std::uint32_t mode) {
  std::string text(1, kind);
  constexpr std::string_view kLetters = "rwxrwxrwx";
  for (std::size_t i = 0; i < kLetters.size(); ++i) text += (mode >> (8 - i) & 1u) != 0 ? kLetters[i] : '-';
  constexpr std::string_view kSpecial = "sst";  // in the place of each x
  for (std::size_t i = 0; i < kSpecial.size(); ++i) {
    char& letter = text[3 * i + 3];
    if ((mode >> (11 - i) & 1u) != 0) letter = letter == 'x' ? kSpecial[i] : static_cast<char>(kSpecial[i] - 'a' + 'A');
  }
  return text;
}

std::string format_text(const Format& format) {
  if (format.kind == RecordKind::kFixed) return fmt::format("fixed {}", format.record_length);
  if (format.kind == RecordKind::kVariable) return "variable";
  return format.delimiter == '\n' ? "lines" : fmt::format("delimited 0x{:02x}", format.delimiter);
}

std::string quoted_name(std::string_view name) {
  const std::string safe = visible(name);
  if (safe == name && name.find_first_of("\n\t") == std::string_view::npos && !name.starts_with("$'")) return safe;
  std::string out = "$'";
  for (const char c : name) {
    if (c == '\'' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else {
      out += c;
    }
  }
  return visible(out) + "'";
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:@%+,=").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') word += "'\\'";
    word += c;
  }
  return word + "'";
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool to_right = std::find(right.begin(), right.end(), i) != right.end();
      const std::string gap = i == 0 ? "" : "  ";
      line += gap + (to_right ? fmt::format("{:>{}}", row[i], widths[i]) : fmt::format("{:<{}}", row[i], widths[i]));
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

Range OpenRange::clip(std::uint64_t count) const {
  const std::uint64_t last = std::min(end.value_or(count), count);
  return {std::min(begin, last), last};
}

Result<std::uint64_t> parse_number(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || rest != text.data() + text.size())
    return fail(Code::kInvalid, fmt::format("{}: '{}' is no whole number", what, text));
  return value;
}

Result<OpenRange> parse_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return fail(Code::kInvalid, fmt::format("a range is A:B, :B or A:, from 0 and without B; '{}' has no colon", text));
  OpenRange range;
  if (colon > 0) {
    PIF_TRY_VALUE(range.begin, parse_number(text.substr(0, colon), "start of the range"));
  }
  if (colon + 1 < text.size()) {
    PIF_TRY_VALUE(range.end, parse_number(text.substr(colon + 1), "end of the range"));
  }
  if (range.end && *range.end < range.begin)
    return fail(Code::kInvalid, fmt::format("the range {} ends before it starts", text));
  return range;
}

Result<std::vector<std::uint32_t>> parse_list(std::string_view text, std::string_view what) {
  std::vector<std::uint32_t> out;
  while (true) {
    const std::size_t comma = text.find(',');
    PIF_TRY_VALUE(const std::uint64_t value, parse_number(text.substr(0, comma), what));
    if (value > UINT32_MAX) return fail(Code::kInvalid, fmt::format("{}: {} is too large", what, value));
    out.push_back(static_cast<std::uint32_t>(value));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

Result<std::uint8_t> parse_delimiter(std::string_view text) {
  if (text.size() == 1) return static_cast<std::uint8_t>(text[0]);
  if (text == "\\n") return std::uint8_t{'\n'};
  if (text == "\\t") return std::uint8_t{'\t'};
  if (text == "\\0") return std::uint8_t{0};
  if (text == "\\\\") return std::uint8_t{'\\'};
  if (text.size() == 4 && text.substr(0, 2) == "0x" && hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0)
    return static_cast<std::uint8_t>(hex_digit(text[2]) * 16 + hex_digit(text[3]));
  return fail(Code::kInvalid, fmt::format("--delimited takes one character, \\n, \\t, \\0 or 0xHH, not '{}'", text));
}

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::size_t least = word.size() <= 3 ? 2 : 3;  // so many are another word
  std::string best;
  for (const std::string& name : names) {
    const std::size_t distance = slips(word, name);
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    best = name;
  }
  return best;
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string out(folder);
  if (out.empty() || out.back() != '/') out += '/';
  return out.append(name);
}

std::string parent_of(std::string_view path) {
  return std::string(path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)));
}

std::string base_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace pif::cli
