#include "galley/contents.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "galley/need.h"
#include "harness.h"
#include "pif/base/assert.h"

namespace pif::bench {
namespace {

constexpr std::size_t kWindowBytes = 4u << 20;

// romio.c has the same.
std::uint64_t word_at(std::uint64_t index, std::uint64_t seed) {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 32;
}

}  // namespace

void fill_contents(std::span<std::byte> out, std::uint64_t offset, std::uint64_t seed) {
  PIF_ASSERT(out.size() % 8 == 0 && offset % 8 == 0, out.size(), offset);
  for (std::size_t at = 0; at < out.size(); at += 8) {
    const std::uint64_t word = word_at((offset + at) / 8, seed);
    std::memcpy(out.data() + at, &word, 8);
  }
}

bool are_contents(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t seed) {
  PIF_ASSERT(bytes.size() % 8 == 0 && offset % 8 == 0, bytes.size(), offset);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = word_at((offset + at) / 8, seed);
    if (std::memcmp(bytes.data() + at, &word, 8) != 0) return false;
  }
  return true;
}

void make_file(Client& client, const std::string& path, std::uint64_t bytes, std::uint64_t seed,
               std::uint32_t record_length) {
  CreateOptions options;
  options.format = Format::fixed(record_length);
  File file = need(client.create(path, options));
  std::vector<std::byte> window(kWindowBytes);
  for (std::uint64_t at = 0; at < bytes; at += window.size()) {
    window.resize(std::min<std::uint64_t>(kWindowBytes, bytes - at));
    fill_contents(window, at, seed);
    need(file.pwrite(window, at));
  }
  need(file.commit());
}

void check_written(File& file, const std::vector<Task>& tasks, const std::vector<Turn>& turns,
                   std::optional<std::uint64_t> old_seed) {
  std::vector<std::byte> wanted(tasks.at(0).bytes), found(kWindowBytes);
  if (old_seed) fill_contents(wanted, 0, *old_seed);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    for (std::uint64_t record = 0; record < turns.at(i).records; ++record) {
      const std::uint64_t at = tasks[i].offset_of(record);
      fill_contents(std::span(wanted).subspan(at, tasks[i].record), at, tasks[i].seed);
    }
  for (std::uint64_t at = 0; at < wanted.size(); at += found.size()) {
    found.assign(std::min<std::uint64_t>(kWindowBytes, wanted.size() - at), std::byte{0});
    need(file.pread(found, at));
    if (!std::equal(found.begin(), found.end(), wanted.begin() + static_cast<std::ptrdiff_t>(at)))
      die(fmt::format("what was written is not there, in the {} bytes from byte {} on", found.size(), at));
  }
}

}  // namespace pif::bench
