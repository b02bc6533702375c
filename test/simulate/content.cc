#include "simulate/content.h"

#include <algorithm>
#include <cstring>

namespace pif::simulate {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Hands out the bytes of one record after its stamp, in pieces of eight.
template <typename Use>
bool each_piece(Stamp stamp, std::size_t length, const Use& use) {
  std::uint64_t word = mixed(stamp.write * 0x9e3779b97f4a7c15 + stamp.index + length * 31);
  for (std::size_t at = kStampBytes; at < length; at += sizeof word) {
    word = word * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t piece = word ^ (word >> 31);
    if (!use(at, piece, std::min(sizeof piece, length - at))) return false;
  }
  return true;
}

}  // namespace

void fill_record(Stamp stamp, std::span<std::byte> record) {
  std::memcpy(record.data(), &stamp.write, 8);
  std::memcpy(record.data() + 8, &stamp.index, 4);
  each_piece(stamp, record.size(), [&](std::size_t at, std::uint64_t piece, std::size_t size) {
    std::memcpy(record.data() + at, &piece, size);
    return true;
  });
}

std::optional<Stamp> read_record(std::span<const std::byte> record) {
  if (record.size() < kStampBytes) return std::nullopt;
  Stamp stamp;
  std::memcpy(&stamp.write, record.data(), 8);
  std::memcpy(&stamp.index, record.data() + 8, 4);
  const bool whole = each_piece(stamp, record.size(), [&](std::size_t at, std::uint64_t piece, std::size_t size) {
    return std::memcmp(record.data() + at, &piece, size) == 0;
  });
  if (!whole) return std::nullopt;
  return stamp;
}

std::uint32_t variable_length(Stamp stamp) {
  return static_cast<std::uint32_t>(kStampBytes + mixed(stamp.write * 977 + stamp.index) % 60);
}

}  // namespace pif::simulate
