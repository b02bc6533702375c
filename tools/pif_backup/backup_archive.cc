#include "backup_archive.h"

#include <array>
#include <clocale>
#include <filesystem>

#include <fmt/format.h>
#include <xxhash.h>

#include "pif/base/checksum.h"

namespace pif::backup {
namespace {

// What binds a sum to the entry's place: its head without sums, and the backup's id.
std::uint64_t seed_of(const message::EntryHead& head, std::uint64_t backup) {
  const std::array<std::uint64_t, 5> all = {backup, static_cast<std::uint64_t>(head.kind()), head.file(),
                                            head.first_row(), head.rows()};
  return hash_bytes(std::as_bytes(std::span(all)));
}

XXH128_hash_t sum_of(const message::EntryHead& head, std::uint64_t backup, std::span<const std::byte> content) {
  return XXH3_128bits_withSeed(content.data(), content.size(), seed_of(head, backup));
}

}  // namespace

Result<std::string> absolute_folder(const std::string& folder) {
  std::error_code failed;
  std::string path = std::filesystem::absolute(folder, failed).string();
  if (failed) return fail(code_from_errno(failed.value()), "cannot find the folder " + folder);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string archive_path(const std::string& folder, const std::string& name) {
  return fmt::format("{}/{}.tar.zst", folder, name);
}

void speak_utf8() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

void seal(message::EntryHead& head, std::uint64_t backup, std::span<const std::byte> content) {
  const XXH128_hash_t sum = sum_of(head, backup, content);
  head.set_sum_low(sum.low64);
  head.set_sum_high(sum.high64);
}

bool is_intact(const message::EntryHead& head, std::uint64_t backup, std::span<const std::byte> content) {
  const XXH128_hash_t sum = sum_of(head, backup, content);
  return head.sum_low() == sum.low64 && head.sum_high() == sum.high64;
}

}  // namespace pif::backup
