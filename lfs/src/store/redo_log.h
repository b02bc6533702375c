// The redo log of overwrites: new chunks, whole or their changed bytes, in the order in which they were decided.
// docs/FORMAT.md "Redo log" draws its bytes.
//
// Rules: (1) an entry counts only if its hash, its number and the chain of hashes from the log's head to it hold, so
// that neither a torn tail nor bytes of an earlier round are taken for entries. (2) Numbers rise forever, also over
// restarts and rounds; those of a batch that failed are not given again. (3) A round ends (restart()) only when the
// in-place data of all its entries are durable.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pif/base/ids.h"
#include "pif/component/storage.h"

namespace pif::lfs {

// What an entry is, as its first four bytes say it.
enum class LogEntryType : std::uint32_t {
  kChunks = 0x45646552,   // "RedE": whole chunks of .dat as they are now
  kChanges = 0x50646552,  // "RedP": those bytes of chunks that change (redo_pieces.h)
};

struct LogEntry {
  FileId file;
  std::uint64_t first_chunk = 0;
  std::uint32_t chunk_bytes = 0;
  std::span<const std::byte> data;  // kChunks: from the start of first_chunk on
  LogEntryType type = LogEntryType::kChunks;
};

class RedoLog {
 public:
  using Replay = std::function<Status(const LogEntry& entry, std::uint64_t number)>;

  RedoLog(component::Storage& storage, std::string path, std::uint64_t bytes_max)
      : storage_(storage), path_(std::move(path)), bytes_max_(bytes_max) {}

  // Opens the log, making it if there is none, and hands over its entries from the front. kCorrupt if its head is lost;
  // kVersion if an intact entry is of a type that a newer program wrote.
  [[nodiscard]] Status open(const Replay& replay);

  // Loop's thread: adds an entry to the next batch. `data` must live until the batch is written. number: above all
  // before.
  void add(const LogEntry& entry, std::uint64_t number);
  // Any thread, nothing else meanwhile: writes the batch and syncs it. Sets `failed()` when the sync fails.
  [[nodiscard]] Status write_batch();
  // Loop's thread, after write_batch: the batch is part of the log, or (ok: false) never was.
  void end_batch(bool ok);

  bool is_half_full() const { return end_ - kFirstEntry >= bytes_max_ / 2; }
  bool empty() const { return end_ == kFirstEntry; }
  std::uint64_t bytes() const { return end_ - kFirstEntry; }  // in use; any thread
  std::uint64_t written() const { return written_; }          // in entries of all rounds since open(); loop's thread
  bool failed() const { return failed_; }  // a sync failed: nothing is known of the log until it is opened again
  std::uint64_t last_number() const { return last_number_; }

  // At a start, when all entries are home: empties the log if it is not, and makes sure that head and name are on the
  // disk, which an earlier run may have failed at. Later numbers are above `number`.
  [[nodiscard]] Status confirm(std::uint64_t number);
  // Starts a new round; the next entry's number will be above `number` and all before. Any thread, nothing else
  // meanwhile.
  [[nodiscard]] Status restart(std::uint64_t number);

 private:
  static constexpr std::uint64_t kFirstEntry = 8192;  // after two heads of 4 KiB each

  struct Head {
    std::uint64_t round = 0;
    std::uint64_t number = 0;  // last number before this round
    std::uint64_t hash = 0;
  };
  struct Batch {
    std::deque<std::array<std::byte, 64>> headers;
    std::vector<component::ConstPiece> pieces;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;
    std::uint64_t chain = 0;
  };
  [[nodiscard]] Status create();
  [[nodiscard]] Status sync_folder();
  [[nodiscard]] Result<Head> read_head(std::uint64_t size);
  [[nodiscard]] Status write_head(std::uint64_t round, std::uint64_t number);
  [[nodiscard]] Status replay_entries(std::uint64_t size, const Replay& replay);
  [[nodiscard]] Status cut_short(std::uint64_t at, std::uint64_t size) const;
  [[nodiscard]] Result<bool> replay_one(std::uint64_t size, const Replay& replay);

  component::Storage& storage_;
  std::string path_;
  std::uint64_t bytes_max_;
  std::unique_ptr<component::File> file_;
  std::uint64_t round_ = 0;
  std::atomic<std::uint64_t> end_ = kFirstEntry;  // bytes() may be asked for meanwhile
  std::uint64_t written_ = 0;
  std::uint64_t last_number_ = 0;
  std::uint64_t chain_ = 0;
  Batch batch_;
  bool failed_ = false;
};

}  // namespace pif::lfs
