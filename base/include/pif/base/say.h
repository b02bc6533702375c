// What a program says to people, and the streams that it needs for that.
#pragma once

#include <string>
#include <string_view>

namespace pif {

// Writes the text on stderr as it is. If stderr is closed or full, nobody can be told, and the exit code must do.
void say(std::string_view text);

// All white space runs become one blank, so that a message stays one line.
std::string one_line(std::string_view text);

// For the start of main: of descriptors 0 to 2, each that is closed becomes /dev/null, opened so that reading stdin and writing to
// stdout fail as they did. Else the first sockets and files that the program opens would be its standard streams.
void fill_standard_streams();

}  // namespace pif
