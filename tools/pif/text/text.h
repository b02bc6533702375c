// Small things that commands read from and print for people. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/base/print.h"
#include "pif/base/result.h"

namespace pif::cli {

// "0.42 s", "1 min 05 s".
std::string human_time(std::chrono::duration<double> time);
// Local time, "2026-11-20 11:32".
std::string human_date(std::int64_t wall_ns);
// UTC with nanoseconds, "2026-11-20T11:32:05.123456789Z", for JSON.
std::string iso_date(std::int64_t wall_ns);
std::string iso_second(std::int64_t wall_seconds);
// "-rw-r--r--"; the first letter is `kind`.
std::string mode_text(char kind, std::uint32_t mode);
// "fixed 65536", "variable", "lines", "delimited 0x00".
std::string format_text(const Format& format);
// A name as a terminal can show it, in one line: with a control character or the like in it, it becomes a shell's
// $'...'.
std::string quoted_name(std::string_view name);
// As one word of a shell's command: quoted if it must be.
std::string shell_word(std::string_view text);

// Columns padded to their widest cell; the first row is the heading. Columns named in `right` are right-aligned.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& right = {});

// "A:B", "A:", ":B" or ":", half open. An end left out is nothing. kInvalid for anything else, or A > B.
struct OpenRange {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;
  Range clip(std::uint64_t count) const;
};
[[nodiscard]] Result<OpenRange> parse_range(std::string_view text);

// A whole number that fits, digits only. `what` is for the message.
[[nodiscard]] Result<std::uint64_t> parse_number(std::string_view text, std::string_view what);
// "4,4,2". kInvalid for anything but numbers up to 4294967295 between single commas.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_list(std::string_view text, std::string_view what);
// One character, or \n \t \0 \\ or 0xHH.
[[nodiscard]] Result<std::uint8_t> parse_delimiter(std::string_view text);

// The one of `names` that `word` is a slip or two away from; empty if there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

// ---- paths in the file system ----
std::string join_path(std::string_view folder, std::string_view name);
// Last component, without a slash that ends it; "" of the root.
std::string base_name(std::string_view path);
// The folder that it is in; path: absolute.
std::string parent_of(std::string_view path);

}  // namespace pif::cli
