#include "pif/tool/memory.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "pif/machine/limits.h"

namespace pif::tool {
namespace {

// What byte_count() does not take says so itself.
std::string check_bytes(const std::string& text) {
  std::uint64_t bytes = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || rest != text.data() + text.size()) return text;
  return bytes < kMemoryMin ? "32M is the least" : "";
}

}  // namespace

void add_memory_option(CLI::App& app, std::uint64_t& bytes, const std::string& details) {
  app.add_option("--memory", bytes,
                 "that it may take, all workers together (default: three quarters of what is free); " + details)
      ->type_name("BYTES")
      ->check(check_bytes)
      ->transform(byte_count);
}

std::uint64_t spare_memory() {
  const auto free = machine::free_memory();
  return free ? std::max(*free / 4 * 3, kMemoryMin) : 1u << 30;
}

}  // namespace pif::tool
