// Records that say what they are: of which file, which record, and which write. Their bytes follow from that, so who
// reads one back knows whether it is whole, and whose it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace pif::crash {

struct Tag {
  std::uint64_t file = 0;  // of the put that made the file
  std::uint64_t record = 0;
  std::uint64_t generation = 0;  // of the operation that wrote the record
};

inline constexpr std::size_t kTagBytes = sizeof(Tag);

inline std::byte filler(const Tag& tag, std::size_t at) {
  const std::uint64_t mixed = (tag.file * 0x9e3779b97f4a7c15u) ^ (tag.record * 0xbf58476d1ce4e5b9u) ^
                              ((tag.generation + at / 8) * 0x94d049bb133111ebu);
  return static_cast<std::byte>(mixed >> (8 * (at % 8)));
}

// bytes.size() >= kTagBytes.
inline void fill(std::span<std::byte> bytes, const Tag& tag) {
  std::memcpy(bytes.data(), &tag, kTagBytes);
  for (std::size_t at = kTagBytes; at < bytes.size(); ++at) bytes[at] = filler(tag, at);
}

// Nothing if these bytes are no record that fill() has made.
inline std::optional<Tag> tag_of(std::span<const std::byte> bytes) {
  Tag tag;
  if (bytes.size() < kTagBytes) return std::nullopt;
  std::memcpy(&tag, bytes.data(), kTagBytes);
  for (std::size_t at = kTagBytes; at < bytes.size(); ++at)
    if (bytes[at] != filler(tag, at)) return std::nullopt;
  return tag;
}

// Lengths of variable records depend on the record alone, so that an overwrite keeps them.
inline std::uint32_t variable_length(std::uint64_t record) {
  return static_cast<std::uint32_t>(kTagBytes + record * 37 % 211);
}

// Records [first, first + count) of one write, packed; length 0: variable.
struct Batch {
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
};
inline Batch make_batch(std::uint64_t file, std::uint64_t first, std::uint64_t count, std::uint64_t generation,
                        std::uint32_t length) {
  Batch batch;
  std::size_t total = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    batch.lengths.push_back(length == 0 ? variable_length(first + i) : length);
    total += batch.lengths.back();
  }
  batch.data.resize(total);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    fill(std::span(batch.data).subspan(at, batch.lengths[i]), {file, first + i, generation});
    at += batch.lengths[i];
  }
  return batch;
}

}  // namespace pif::crash
