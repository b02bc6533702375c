// How much memory a tool may take: --memory, or what the machine has to spare.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace pif::tool {

inline constexpr std::uint64_t kMemoryMin = 32u << 20;  // of --memory

// --memory BYTES, with suffixes, at least kMemoryMin; 0 if it is not given. Parsing writes to `bytes`, which outlives
// that. details: the end of its line in --help.
void add_memory_option(CLI::App& app, std::uint64_t& bytes, const std::string& details);

// Bytes that this machine has to spare now, less a quarter for the page cache to write with; 1 GiB if it does not tell.
std::uint64_t spare_memory();

}  // namespace pif::tool
