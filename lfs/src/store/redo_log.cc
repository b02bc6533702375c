#include "store/redo_log.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

static_assert(std::endian::native == std::endian::little,
              "what is stored is little-endian and written as it is in memory");

constexpr std::uint64_t kHeadMagic = 0x31676f4c64655250;  // "PRedLog1"
constexpr std::uint32_t kLogVersion = 1;
constexpr std::uint64_t kHeadBytes = 4096;
constexpr std::uint64_t kAlign = 8;
constexpr std::uint64_t kEntryBytesMax =
    kBodyBytesMax + 2 * kRecordLengthMax;  // a record, and the chunks it begins and ends in

struct StoredHead {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t round;
  std::uint64_t number;
  std::uint64_t hash;  // of the fields before
};
static_assert(sizeof(StoredHead) == 40);

struct StoredEntry {
  std::uint32_t type;  // LogEntryType
  std::uint32_t chunk_bytes;
  std::uint64_t number;
  std::uint64_t file;
  std::uint64_t first_chunk;
  std::uint64_t bytes;  // of data
  std::uint64_t chain;  // hash of the entry before, or of the head
  std::uint64_t data_hash;
  std::uint64_t hash;  // of the fields before
};
static_assert(sizeof(StoredEntry) == 64);

template <typename T>
std::uint64_t hash_fields(const T& stored) {
  return hash_bytes(std::as_bytes(std::span(&stored, 1)).first(sizeof(T) - sizeof(std::uint64_t)));
}

bool is_known(std::uint32_t type) {
  return type == static_cast<std::uint32_t>(LogEntryType::kChunks) ||
         type == static_cast<std::uint32_t>(LogEntryType::kChanges);
}
std::uint64_t padding(std::uint64_t bytes) { return (kAlign - bytes % kAlign) % kAlign; }
constexpr std::array<std::byte, kAlign> kZeros{};

}  // namespace

Status RedoLog::open(const Replay& replay) {
  auto opened = storage_.open(path_, component::OpenMode::kWrite);
  if (!opened && opened.error().code == Code::kNotFound) return create();
  if (!opened) return fail(std::move(opened.error()));
  file_ = std::move(*opened);
  PIF_TRY_VALUE(const auto size, file_->size());
  auto head = read_head(size);
  // A log that was never finished being made holds nothing: entries are written only after a synced head.
  if (!head && head.error().code == Code::kCorrupt && size <= kFirstEntry) return create();
  if (!head) return fail(std::move(head.error()));
  round_ = head->round;
  last_number_ = head->number;
  chain_ = head->hash;
  end_ = kFirstEntry;
  return replay_entries(size, replay);
}

Status RedoLog::create() {
  PIF_TRY_VALUE(file_, storage_.open(path_, component::OpenMode::kCreate));
  PIF_TRY(file_->resize(kFirstEntry));
  PIF_TRY(write_head(1, 0));
  return sync_folder();
}

Status RedoLog::sync_folder() { return storage_.sync_folder(path_.substr(0, path_.rfind('/'))); }

Result<RedoLog::Head> RedoLog::read_head(std::uint64_t size) {
  Head best;
  for (std::uint64_t slot = 0; slot < 2 && (slot + 1) * kHeadBytes <= size; ++slot) {
    StoredHead stored{};
    PIF_TRY_VALUE(const auto got, file_->read(slot * kHeadBytes, std::as_writable_bytes(std::span(&stored, 1))));
    if (got != sizeof stored || stored.magic != kHeadMagic || stored.hash != hash_fields(stored)) continue;
    if (stored.version > kLogVersion)
      return fail(Code::kVersion,
                  fmt::format("{} has format {}, this program knows {}", path_, stored.version, kLogVersion));
    if (stored.round > best.round) best = {stored.round, stored.number, stored.hash};
  }
  if (best.round == 0)
    return fail(Code::kCorrupt,
                fmt::format("{} has no whole head: overwrites that were acknowledged may be missing", path_));
  return best;
}

Status RedoLog::write_head(std::uint64_t round, std::uint64_t number) {
  PIF_ASSERT(round > 0 && (round == round_ || round == round_ + 1), round, round_);
  PIF_ASSERT(number >= last_number_, number, last_number_);
  StoredHead stored{kHeadMagic, kLogVersion, 0, round, number, 0};
  stored.hash = hash_fields(stored);
  // Rounds alternate between the two heads, so that one is always whole.
  PIF_TRY(file_->write(round % 2 * kHeadBytes, std::as_bytes(std::span(&stored, 1))));
  if (auto synced = file_->sync(); !synced) {
    failed_ = true;
    return synced;
  }
  round_ = round;
  last_number_ = number;
  chain_ = stored.hash;
  end_ = kFirstEntry;
  return {};
}

Status RedoLog::replay_entries(std::uint64_t size, const Replay& replay) {
  for (;;) {
    PIF_TRY_VALUE(const bool valid, replay_one(size, replay));
    if (!valid) return {};
  }
}

// Not the end of the log, which is where no entry follows: entries that were acknowledged may be behind it.
Status RedoLog::cut_short(std::uint64_t at, std::uint64_t size) const {
  return fail(Code::kIo, fmt::format("{} has {} bytes, but those from {} on cannot be read", path_, size, at));
}

Result<bool> RedoLog::replay_one(std::uint64_t size, const Replay& replay) {
  StoredEntry stored{};
  if (end_ + sizeof stored > size) return false;
  PIF_TRY_VALUE(const auto got, file_->read(end_, std::as_writable_bytes(std::span(&stored, 1))));
  if (got != sizeof stored) return fail(cut_short(end_, size).error());
  if (stored.hash != hash_fields(stored)) return false;
  if (stored.chain != chain_ || stored.number <= last_number_) return false;
  if (stored.bytes > kEntryBytesMax || end_ + sizeof stored + stored.bytes > size) return false;
  std::vector<std::byte> data(stored.bytes);
  PIF_TRY_VALUE(const auto got_data, file_->read(end_ + sizeof stored, std::span(data)));
  if (got_data != data.size()) return fail(cut_short(end_, size).error());
  if (hash_bytes(data) != stored.data_hash) return false;
  if (!is_known(stored.type))
    return fail(Code::kVersion,
                fmt::format("{} has an entry of type {:08x} at byte {}, which this program does not know: "
                            "start the one that wrote it",
                            path_, stored.type, end_.load()));
  const auto type = static_cast<LogEntryType>(stored.type);
  PIF_TRY(replay({FileId(stored.file), stored.first_chunk, stored.chunk_bytes, data, type}, stored.number));
  end_ += sizeof stored + stored.bytes + padding(stored.bytes);
  last_number_ = stored.number;
  PIF_ASSERT(end_ % kAlign == 0, end_.load());
  chain_ = stored.hash;
  return true;
}

void RedoLog::add(const LogEntry& entry, std::uint64_t number) {
  PIF_ASSERT(number > std::max(last_number_, batch_.number), number, last_number_, batch_.number);
  PIF_ASSERT(entry.data.size() <= kEntryBytesMax, entry.data.size());
  if (batch_.pieces.empty()) batch_.chain = chain_;
  StoredEntry stored{static_cast<std::uint32_t>(entry.type),
                     entry.chunk_bytes,
                     number,
                     entry.file.value,
                     entry.first_chunk,
                     entry.data.size(),
                     batch_.chain,
                     hash_bytes(entry.data),
                     0};
  stored.hash = hash_fields(stored);
  auto& header = batch_.headers.emplace_back();
  std::memcpy(header.data(), &stored, sizeof stored);
  batch_.pieces.push_back({header.data(), header.size()});
  batch_.pieces.push_back({entry.data.data(), entry.data.size()});
  const auto pad = padding(entry.data.size());
  if (pad > 0) batch_.pieces.push_back({kZeros.data(), pad});
  batch_.bytes += sizeof stored + entry.data.size() + pad;
  batch_.chain = stored.hash;
  batch_.number = number;
}

Status RedoLog::write_batch() {
  PIF_ASSERT(file_ && batch_.bytes > 0 && batch_.bytes % kAlign == 0, batch_.bytes);
  PIF_ASSERT(end_ >= kFirstEntry && end_ % kAlign == 0, end_.load());
  if (failed_)
    return fail(Code::kIo, fmt::format("{} failed to sync: overwrites stop until the LFS is started again", path_));
  PIF_TRY(file_->write(end_, batch_.pieces));
  if (auto synced = file_->sync(); !synced) {
    failed_ = true;
    return fail(synced.error().code,
                fmt::format("{}: overwrites stop until the LFS is started again", synced.error().text));
  }
  return {};
}

void RedoLog::end_batch(bool ok) {
  PIF_ASSERT(batch_.number > last_number_, batch_.number, last_number_);
  if (ok) {
    end_ += batch_.bytes;
    written_ += batch_.bytes;
    PIF_ASSERT(end_ % kAlign == 0, end_.load());
    chain_ = batch_.chain;
  }
  last_number_ = std::max(last_number_, batch_.number);
  batch_ = Batch();
}

Status RedoLog::confirm(std::uint64_t number) {
  // Written anew even if it stays the same: one that failed to sync is in memory only, and nothing else would write it.
  PIF_TRY(empty() && last_number_ >= number ? write_head(round_, last_number_) : restart(number));
  return sync_folder();
}

Status RedoLog::restart(std::uint64_t number) { return write_head(round_ + 1, std::max(number, last_number_)); }

}  // namespace pif::lfs
