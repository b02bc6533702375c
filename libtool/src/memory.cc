#include "pif/tool/memory.h"

#include <fstream>

#include <CLI/CLI.hpp>

namespace pif::tool {
namespace {

constexpr std::uint64_t kMemoryMin = 32u << 20;

}  // namespace

void add_memory_option(CLI::App& app, std::uint64_t& bytes, const std::string& details) {
  app.add_option("--memory", bytes, "that it may take, all workers together (default: three quarters of what is free); " + details)
      ->transform(CLI::AsSizeValue(false))->type_name("BYTES")
      ->check([](const std::string& text) { return std::stoull(text) < kMemoryMin ? "32M is the least" : std::string(); });
}

std::uint64_t spare_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024 / 4 * 3;
  }
  return 1u << 30;
}

}  // namespace pif::tool
