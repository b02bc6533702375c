// Entries as replies show them, made of stored ones without taking either apart: EntryInfo's fields are StoredEntry's
// with numbers one higher (docs/FORMAT.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pif::server {

// Appends a field that is a message, text or bytes. field: its number, at most 15.
void append_field(std::string& message, int field, std::string_view value);

enum class Copied : std::uint8_t {
  kNoMessage,  // `stored` is none
  kWhole,
  kUnmeasured,  // of a placed file: its length is that of its forks
};
// Appends the EntryInfo of a stored entry to `info`. Messages that are nested in the entry are not looked at.
[[nodiscard]] Copied append_info(std::string_view stored, std::string_view name, std::string& info);

}  // namespace pif::server
