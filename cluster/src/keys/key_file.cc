#include "pif/cluster/key_file.h"

#include <cstring>

#include <fmt/format.h>
#include <sodium.h>

#include "files/files.h"
#include "keys/keys.h"
#include "pif/base/assert.h"

namespace pif::cluster {
namespace {

constexpr std::size_t kKeyBytes = sizeof(ClusterKey::bytes);
constexpr std::size_t kLongBytes = 2 * kKeyBytes + 2 * sizeof(std::uint64_t);
constexpr mode_t kKeyMode = 0400;

void append(std::string& out, const ClusterKey& key) {
  out.append(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size());
}
void append(std::string& out, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

ClusterKey key_at(std::string_view bytes, std::size_t at) {
  ClusterKey key;
  std::memcpy(key.bytes.data(), bytes.data() + at, key.bytes.size());
  return key;
}
std::uint64_t number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

bool has_key(const KeyFile& keys, const ClusterKey& key) {
  return keys.signing.bytes == key.bytes || (keys.accepted && keys.accepted->bytes == key.bytes);
}

Status save(const std::string& folder, const KeyFile& keys) {
  return write_file(cluster_key_path(folder), format_key_file(keys), kKeyMode, Existing::kReplace);
}

}  // namespace

std::string format_key_file(const KeyFile& keys) {
  std::string out;
  append(out, keys.signing);
  if (keys.number == 0 && !keys.accepted) return out;
  append(out, keys.number);
  append(out, static_cast<std::uint64_t>(keys.until));
  append(out, keys.accepted.value_or(ClusterKey{}));
  return out;
}

Result<KeyFile> parse_key_file(std::string_view bytes) {
  KeyFile keys;
  if (bytes.size() != kKeyBytes && bytes.size() != kLongBytes)
    return fail(Code::kCorrupt,
                fmt::format(" has neither {} nor {} bytes: it is damaged, restore it", kKeyBytes, kLongBytes));
  keys.signing = key_at(bytes, 0);
  if (bytes.size() == kKeyBytes) return keys;
  keys.number = number_at(bytes, kKeyBytes);
  keys.until = static_cast<std::int64_t>(number_at(bytes, kKeyBytes + 8));
  const ClusterKey accepted = key_at(bytes, kKeyBytes + 16);
  if (accepted.bytes != ClusterKey{}.bytes) keys.accepted = accepted;
  return keys;
}

Result<KeyFile> read_key_file(const std::string& folder) {
  const std::string path = cluster_key_path(folder);
  PIF_TRY_VALUE(const std::string bytes, read_file(path, kLongBytes + 1));
  PIF_TRY(check_private(path));
  auto keys = parse_key_file(bytes);
  if (!keys) keys.error().text = path + keys.error().text;
  return keys;
}

Result<KeyFile> load_key_file(const Cluster& cluster) { return read_key_file(cluster.folder); }

bool share_a_key(const KeyFile& a, const KeyFile& b) {
  return has_key(a, b.signing) || (b.accepted && has_key(a, *b.accepted));
}

bool is_further(const KeyFile& keys, const KeyFile& others) {
  return keys.number > others.number || (keys.number == others.number && keys.is_changing() && !others.is_changing());
}

// A host may have been off while the key was changed, also more than once.
Status take_key_file(const std::string& folder, std::string_view bytes) {
  auto sent = parse_key_file(bytes);
  if (!sent) return fail(Code::kInvalid, "what was sent as keys/cluster.key" + sent.error().text);
  PIF_TRY_VALUE(const KeyFile here, read_key_file(folder));
  if (is_further(*sent, here)) return save(folder, *sent);
  const bool is_known = share_a_key(here, *sent) || sent->number < here.number;
  return is_known
             ? Status()
             : fail(Code::kInvalid, fmt::format("{} has another key than what was sent", cluster_key_path(folder)));
}

Result<KeyFile> begin_key_change(const Cluster& cluster) {
  PIF_TRY_VALUE(KeyFile keys, load_key_file(cluster));
  if (keys.is_changing()) return keys;
  if (::sodium_init() < 0) return fail(Code::kInternal, "libsodium could not start: no random numbers");
  keys.accepted.emplace();
  randombytes_buf(keys.accepted->bytes.data(), keys.accepted->bytes.size());
  keys.until = 0;
  PIF_TRY(save(cluster.folder, keys));
  return keys;
}

Result<KeyFile> end_key_change(const Cluster& cluster, std::int64_t now, std::int64_t seconds) {
  PIF_TRY_VALUE(const KeyFile before, load_key_file(cluster));
  PIF_ASSERT(before.is_changing(), before.number, before.until);
  const KeyFile after{*before.accepted, before.number + 1, before.signing, now + seconds};
  PIF_TRY(save(cluster.folder, after));
  return after;
}

}  // namespace pif::cluster
