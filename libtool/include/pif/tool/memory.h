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

// Bytes that this machine has to spare now for the control groups that this process is in (a container's limits are
// such groups'), less a quarter for the page cache to write with, but at least kMemoryMin; 1 GiB if nothing tells.
std::uint64_t spare_memory();

}  // namespace pif::tool
