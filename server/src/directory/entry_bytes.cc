#include "directory/entry_bytes.h"

#include "pif/base/assert.h"

namespace pif::server {
namespace {

// Fields of StoredEntry
constexpr unsigned kEpochField = 7;  // EntryInfo has none
constexpr unsigned kPlacedField = 10;
constexpr unsigned kVarint = 0, kLengthDelimited = 2;  // wire types

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Reads a varint at `at`; false at the end.
bool read_varint(std::string_view bytes, std::size_t& at, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at >= bytes.size()) return false;
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

void append_field(std::string& message, int field, std::string_view value) {
  PIF_ASSERT(field > 0 && field < 16, field);
  message.push_back(static_cast<char>(field << 3 | kLengthDelimited));
  append_varint(message, value.size());
  message.append(value);
}

Copied append_info(std::string_view stored, std::string_view name, std::string& info) {
  append_field(info, 1, name);
  Copied copied = Copied::kWhole;
  for (std::size_t at = 0; at < stored.size();) {
    const std::size_t start = at;
    const auto tag = static_cast<unsigned char>(stored[at++]);
    if (tag >= 0x80) return Copied::kNoMessage;
    std::uint64_t value = 0;
    if (!read_varint(stored, at, value)) return Copied::kNoMessage;
    const unsigned wire = tag & 7, field = tag >> 3;
    if (wire == kLengthDelimited) {
      if (value > stored.size() - at) return Copied::kNoMessage;
      at += value;
    } else if (wire != kVarint) {
      return Copied::kNoMessage;
    }
    PIF_ASSERT(at > start && at <= stored.size(), at, start, stored.size());
    if (field == kEpochField) continue;
    if (field == kPlacedField && value != 0) copied = Copied::kUnmeasured;
    info.push_back(static_cast<char>(tag + 8));
    info.append(stored, start + 1, at - start - 1);
  }
  return copied;
}

}  // namespace pif::server
