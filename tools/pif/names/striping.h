// Formats and layouts as people say them: of files that are stored, and of folders for the files in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "command/program.h"
#include "pif/client/client.h"

namespace pif::cli {

struct StripingOptions {
  std::uint32_t record_length = 0;  // 0: not said
  bool lines = false;
  std::string delimited;
  std::uint32_t width = 0;  // 0: not said
  std::string nodes;        // names or ids, with commas
  std::optional<std::uint32_t> bevy;
};

// --record-length, --lines, --delimited, --width, --nodes, --bevy. for_files_in: they are of a folder, for the files in
// it; else of a file, and help names what it gets otherwise.
void add_striping_options(CLI::App* command, StripingOptions& options, bool for_files_in);
// Nothing: no format was said. kInvalid: one that cannot be. Asks nobody.
[[nodiscard]] Result<std::optional<Format>> format_of(const StripingOptions& options);
// All that was said. Asks the server for nodes that are named.
[[nodiscard]] Result<Striping> striping_of(Client& client, const StripingOptions& options);

// null: there is none.
Json json_of(const Striping& striping);
// "fixed 100, width 2, bevies of 2"
std::string striping_text(const Striping& striping);

}  // namespace pif::cli
