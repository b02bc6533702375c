// How a compressed file keeps its records: docs/FORMAT.md "Compressed files" has the bytes. Record n of it is record n
// of the original, by itself, or in a chain of consecutive rows of one component. Values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/parity/layout.h"

namespace pif::compress {

// Attributes of a compressed file.
inline constexpr std::string_view kDescriptionAttribute = "compression";
inline constexpr std::string_view kDictionaryAttribute = "compression.dictionary";

inline constexpr std::uint32_t kChainMax = 64;  // records
inline constexpr int kLevelMax = 19;            // of zstd; more takes a window that readers must be asked for

// The data that the original is restored from, but for the dictionary.
struct Description {
  std::uint32_t version = 1;
  std::uint32_t level = 3;  // for people
  bool has_chains = false;
  // The original's format and length.
  std::uint8_t kind = 0, delimiter = 0;
  std::uint32_t record_length = 0;
  std::uint64_t records = 0, bytes = 0;
  std::uint32_t width = 0;
  std::string bevies;  // their sizes, packed, 32 bits each
  static auto members(auto& self) {
    return std::tie(self.version, self.level, self.has_chains, self.kind, self.delimiter, self.record_length,
                    self.records, self.bytes, self.width, self.bevies);
  }

  static Description of(const Format& format, const FileLength& file_length, const parity::Layout& layout);
  // kCorrupt: they are none that a file can have.
  [[nodiscard]] Result<Format> format() const;
  [[nodiscard]] Result<parity::Layout> layout() const;
};

// For the workers of both tools.
struct Task {
  std::string description;  // packed
  std::string dictionary;   // empty: none
  static auto members(auto& self) { return std::tie(self.description, self.dictionary); }
};

using Attributes = std::map<std::string, std::string>;
// Whether the attributes are a compressed file's.
bool is_compressed(const Attributes& attributes);
// Describes a compressed file. kInvalid: it is none; kUnsupported: of a later version; kCorrupt: it cannot be read.
[[nodiscard]] Result<Description> description_of(const Attributes& attributes, const std::string& path);
// The task that the attributes describe, of which description_of() has no error.
Task task_of(const Attributes& attributes);

// The place of a stored record in its chain, from 0; 0 also where it is no whole record.
std::uint32_t place_of(std::span<const std::byte> stored);

}  // namespace pif::compress
