// Heads and entries of the redo log as they are on the disk, and how they are read. docs/FORMAT.md "Redo log" draws
// their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pif/base/checksum.h"
#include "pif/base/ids.h"
#include "pif/base/limits.h"
#include "pif/component/storage.h"

namespace pif::lfs {

// The type of an entry, which its first four bytes say.
enum class LogEntryType : std::uint32_t {
  kChunks = 0x45646552,   // "RedE": whole chunks of .dat as they are now
  kChanges = 0x50646552,  // "RedP": those bytes of chunks that change (redo_pieces.h)
  kRequests =
      0x49646552,  // "RedI": the requests that are done by the entries since the last such one (redo_requests.h)
};

struct LogEntry {
  FileId file;
  std::uint64_t first_chunk = 0;
  std::uint32_t chunk_bytes = 0;
  std::span<const std::byte> data;  // kChunks: from the start of first_chunk on
  LogEntryType type = LogEntryType::kChunks;
};

namespace redo {

inline constexpr std::uint64_t kHeadBytes = 4096;  // room for one head
inline constexpr std::uint64_t kAlign = 8;         // of entries
// A record, and the chunks it begins and ends in; also more than all requests that are remembered take.
inline constexpr std::uint64_t kEntryBytesMax = kBodyBytesMax + 2 * kRecordLengthMax;

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

// The value that the last field, `hash`, of a StoredHead or StoredEntry must have.
template <typename T>
std::uint64_t hash_fields(const T& stored) {
  return hash_bytes(std::as_bytes(std::span(&stored, 1)).first(sizeof(T) - sizeof(std::uint64_t)));
}
inline std::uint64_t padding(std::uint64_t bytes) { return (kAlign - bytes % kAlign) % kAlign; }

// Whole heads and entries, with their hash.
StoredHead make_head(std::uint32_t version, std::uint64_t round, std::uint64_t number);
StoredEntry make_entry(const LogEntry& entry, std::uint64_t number, std::uint64_t chain);

// The head at `offset`; nothing: there is none that is whole. kVersion: it is of a version above `version`.
[[nodiscard]] Result<std::optional<StoredHead>> read_head(component::File& file, const std::string& path,
                                                          std::uint64_t offset, std::uint32_t version);

// Reads a log from the front. The file outlives it.
class Reader {
 public:
  struct Entry {
    StoredEntry stored{};
    std::vector<std::byte> data;

    LogEntryType type() const { return static_cast<LogEntryType>(stored.type); }
    LogEntry view() const {
      return {FileId(stored.file), stored.first_chunk, stored.chunk_bytes, std::span(data), type()};
    }
  };

  // first: where the entries begin that follow `head`.
  Reader(component::File& file, std::string path, std::uint64_t size, std::uint64_t first, const StoredHead& head)
      : file_(file), path_(std::move(path)), size_(size), end_(first), number_(head.number), chain_(head.hash) {}

  // Nothing: the log ends here, at an entry that is torn or of an earlier round. kIo: what is there cannot be read.
  // kVersion: an intact entry is of a type that a newer program wrote.
  [[nodiscard]] Result<std::optional<Entry>> next();

  // Behind the last entry that next() gave: where that is, its number, its hash.
  std::uint64_t end() const { return end_; }
  std::uint64_t number() const { return number_; }
  std::uint64_t chain() const { return chain_; }

 private:
  [[nodiscard]] Status read(std::uint64_t at, std::span<std::byte> out) const;
  bool follows(const StoredEntry& stored) const;

  component::File& file_;
  const std::string path_;
  const std::uint64_t size_;
  std::uint64_t end_;
  std::uint64_t number_;
  std::uint64_t chain_;
};

}  // namespace redo
}  // namespace pif::lfs
