#include "pif/tool/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "worker/group_limits.h"

namespace pif::tool {
namespace {

// What CLI11 leaves as it is has no unit, and may be negative or too large.
std::string check_bytes(const std::string& text) {
  std::uint64_t bytes = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || rest != text.data() + text.size())
    return "'" + text + "' is no number of bytes below 2^64";
  return bytes < kMemoryMin ? "32M is the least" : "";
}

}  // namespace

void add_memory_option(CLI::App& app, std::uint64_t& bytes, const std::string& details) {
  app.add_option("--memory", bytes,
                 "that it may take, all workers together (default: three quarters of what is free); " + details)
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES")
      ->check(check_bytes)
      ->transform(decimal);
}

namespace {

std::optional<std::uint64_t> free_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t spare_memory() {
  const auto on_machine = free_on_machine(), in_group = group_limits().memory;
  if (!on_machine && !in_group) return 1u << 30;
  const std::uint64_t free = std::min(on_machine.value_or(UINT64_MAX), in_group.value_or(UINT64_MAX));
  return std::max(free / 4 * 3, kMemoryMin);
}

}  // namespace pif::tool
