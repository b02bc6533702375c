// Messages of a program to people, and the streams that it needs for them. Any thread, but fill_standard_streams().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pif {

// Writes the text on stderr as it is. If stderr is closed or full, the text is lost, and only the exit code tells.
void print_error(std::string_view text);

// The text with \xHH for each byte that a terminal would act on: control characters but tab and line end, what turns
// the direction of writing, and what is no UTF-8.
std::string visible(std::string_view text);
// All white space runs become one blank, so that a message stays one line; the rest is visible().
std::string one_line(std::string_view text);

// "17", "1.2 KiB", "3.0 GiB": powers of 1024, rounded to one digit; below 1 KiB without a unit.
std::string human_bytes(std::uint64_t bytes);

// For the start of main: of descriptors 0 to 2, each that is closed becomes /dev/null, opened so that reading stdin and
// writing to stdout fail as they did. Else the first sockets and files that the program opens would be its standard
// streams.
void fill_standard_streams();

}  // namespace pif
