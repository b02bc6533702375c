// Options that several commands have, each for something else.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

namespace pif::cli {

// --bevy B: a size that bevies can have.
void add_bevy_option(CLI::App* command, std::uint32_t& bevy, const std::string& description);
// --rate BYTES, such as 50MiB, of a second; 0: no limit. what: "Rebuild at most".
void add_rate_option(CLI::App* command, std::uint64_t& rate, const std::string& what);

}  // namespace pif::cli
