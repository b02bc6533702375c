// How much memory a tool may take: --memory, or what the machine has to spare.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace pif::tool {

inline constexpr std::uint64_t kMemoryMin = 32u << 20;  // of --memory

// --memory BYTES, with suffixes; 0 if it is not given. details: the end of its line in --help.
void add_memory_option(CLI::App& app, std::uint64_t& bytes, const std::string& details);

// What this machine has to spare, less a quarter for the page cache to write with.
std::uint64_t spare_memory();

}  // namespace pif::tool
