#include "redo/redo_entries.h"

#include <bit>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs::redo {
namespace {

static_assert(std::endian::native == std::endian::little,
              "what is stored is little-endian and written as it is in memory");

constexpr std::uint64_t kHeadMagic = 0x31676f4c64655250;  // "PRedLog1"

bool is_known(std::uint32_t type) {
  switch (static_cast<LogEntryType>(type)) {
    case LogEntryType::kChunks:
    case LogEntryType::kChanges:
    case LogEntryType::kRequests: return true;
  }
  return false;
}

}  // namespace

StoredHead make_head(std::uint32_t version, std::uint64_t round, std::uint64_t number) {
  StoredHead head{kHeadMagic, version, 0, round, number, 0};
  head.hash = hash_fields(head);
  return head;
}

StoredEntry make_entry(const LogEntry& entry, std::uint64_t number, std::uint64_t chain) {
  PIF_ASSERT(entry.data.size() <= kEntryBytesMax, entry.data.size());
  StoredEntry stored{static_cast<std::uint32_t>(entry.type),
                     entry.chunk_bytes,
                     number,
                     entry.file.value,
                     entry.first_chunk,
                     entry.data.size(),
                     chain,
                     hash_bytes(entry.data),
                     0};
  stored.hash = hash_fields(stored);
  return stored;
}

Result<std::optional<StoredHead>> read_head(component::File& file, const std::string& path, std::uint64_t offset,
                                            std::uint32_t version) {
  StoredHead head{};
  PIF_TRY_VALUE(const auto got, file.read(offset, std::as_writable_bytes(std::span(&head, 1))));
  if (got != sizeof head || head.magic != kHeadMagic || head.hash != hash_fields(head) || head.round == 0)
    return std::nullopt;
  if (head.version > version)
    return fail(Code::kVersion, fmt::format("{} has format {}, this program knows {}", path, head.version, version));
  return head;
}

// Cut short, that is not the end of the log: entries that were acknowledged may be behind it.
Status Reader::read(std::uint64_t at, std::span<std::byte> out) const {
  PIF_TRY_VALUE(const auto got, file_.read(at, out));
  if (got == out.size()) return {};
  return fail(Code::kIo, fmt::format("{} has {} bytes, but those from {} on cannot be read", path_, size_, end_));
}

// An entry of requests has the number of the entry before it.
bool Reader::follows(const StoredEntry& stored) const {
  if (stored.chain != chain_) return false;
  const bool is_requests = static_cast<LogEntryType>(stored.type) == LogEntryType::kRequests;
  return is_requests ? stored.number == number_ : stored.number > number_;
}

Result<std::optional<Reader::Entry>> Reader::next() {
  Entry entry;
  StoredEntry& stored = entry.stored;
  if (end_ + sizeof stored > size_) return std::nullopt;
  PIF_TRY(read(end_, std::as_writable_bytes(std::span(&stored, 1))));
  if (stored.hash != hash_fields(stored) || !follows(stored)) return std::nullopt;
  if (stored.bytes > kEntryBytesMax || end_ + sizeof stored + stored.bytes > size_) return std::nullopt;
  entry.data.resize(stored.bytes);
  PIF_TRY(read(end_ + sizeof stored, std::span(entry.data)));
  if (hash_bytes(entry.data) != stored.data_hash) return std::nullopt;
  if (!is_known(stored.type))
    return fail(Code::kVersion,
                fmt::format("{} has an entry of type {:08x} at byte {}, which this program does not know: "
                            "start the one that wrote it",
                            path_, stored.type, end_));
  end_ += sizeof stored + stored.bytes + padding(stored.bytes);
  PIF_ASSERT(end_ % kAlign == 0, end_);
  number_ = stored.number;
  chain_ = stored.hash;
  return entry;
}

}  // namespace pif::lfs::redo
