// The redo log of overwrites: new chunks, whole or their changed bytes, in the order in which they were decided, and
// the requests that asked for them. docs/FORMAT.md "Redo log" draws its bytes.
//
// Two files, redo.0 and redo.1, are used in turn. A round is what one of them has from its head on.
//
// Rules: (1) an entry counts only if its hash, its number and the chain of hashes from the round's head to it hold, so
// that neither a torn tail nor bytes of an earlier round are taken for entries. (2) A batch counts as a whole or not at
// all: its last entry names its requests, and what no such entry follows is not part of the log. So a request is known
// as done if, and only if, all of it is. (3) Numbers rise forever, also over restarts and rounds; those of a batch that
// failed are not given again. (4) A round begins (checkpoint()) only when the in-place data of all entries before it
// are durable. Its head is written last, over the one of the round before the present one: one step. (5) The requests
// that are still remembered go along from round to round.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "redo/redo_entries.h"
#include "redo/redo_requests.h"

namespace pif::lfs {

class RedoLog {
 public:
  // False: it was in place already, and nothing was done.
  using Replay = std::function<Result<bool>(const LogEntry& entry, std::uint64_t number)>;

  // folder: that of the two files.
  RedoLog(component::Storage& storage, std::string folder, std::uint64_t bytes_max)
      : storage_(storage), folder_(std::move(folder)), bytes_max_(bytes_max) {}

  // Opens the log, making it if there is none, and hands over its entries from the front. kCorrupt if its head is lost;
  // kVersion if an intact entry is of a type that a newer program wrote.
  [[nodiscard]] Status open(const Replay& replay);
  // The requests that were in it when it was opened. Those of the last batch count as forgotten, not as done, if one of
  // its entries was in place already: its sync may have failed, and then rows that were appended have made it void.
  const LoggedRequests& found() const { return found_; }

  // Loop's thread: adds an entry to the next batch. `data` must live until the batch is written. number: above all
  // before.
  void add(const LogEntry& entry, std::uint64_t number);
  // The same: what the batch has is all that `done` asked for. Nothing is added behind that.
  void close_batch(std::vector<RequestKey> done);
  // Any thread, nothing else meanwhile: writes the closed batch and syncs it. Sets `failed()` when the sync fails.
  [[nodiscard]] Status write_batch();
  // Loop's thread, after write_batch: the batch is part of the log, or (ok: false) never was.
  void end_batch(bool ok);

  bool is_half_full() const { return bytes() >= bytes_max_ / 2; }
  bool empty() const { return bytes() == 0; }
  std::uint64_t bytes() const { return bytes_; }      // of batches whose in-place data may not be durable; any thread
  std::uint64_t written() const { return written_; }  // in batches of all rounds since open(); loop's thread
  bool failed() const { return failed_; }  // a sync failed: nothing is known of the log until it is opened again
  std::uint64_t last_number() const { return last_number_; }

  // At a start, when all entries are in place: begins a round with the requests that were found, if the log has entries
  // or its numbers are too low. Makes sure that head and names are on the disk. Later numbers are above `number`.
  [[nodiscard]] Status confirm(std::uint64_t number);
  // Begins a round, in which `requests` are known; the next entry's number will be above `number` and all before. Any
  // thread, nothing else meanwhile.
  [[nodiscard]] Status checkpoint(std::uint64_t number, const LoggedRequests& requests);

 private:
  static constexpr std::uint64_t kFirstEntry = redo::kHeadBytes;

  struct Batch {
    std::deque<redo::StoredEntry> headers;
    std::vector<component::ConstPiece> pieces;
    std::vector<std::byte> requests;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;
    std::uint64_t chain = 0;
    bool is_closed = false;
  };
  std::string path(std::uint64_t round) const { return folder_ + "/redo." + (round % 2 == 0 ? "0" : "1"); }
  component::File& file(std::uint64_t round) const { return *files_[round % 2]; }
  [[nodiscard]] Status create();
  [[nodiscard]] Result<bool> open_files();
  [[nodiscard]] Result<redo::StoredHead> find_head();
  [[nodiscard]] Status replay_batches(const redo::StoredHead& head, const Replay& replay);
  void become(const redo::Reader& reader);
  [[nodiscard]] Status sync(component::File& file);
  [[nodiscard]] Status write_head(const redo::StoredHead& head);
  void push(const LogEntry& entry, std::uint64_t number);

  component::Storage& storage_;
  const std::string folder_;
  const std::uint64_t bytes_max_;
  std::array<std::unique_ptr<component::File>, 2> files_;
  std::uint64_t round_ = 0;
  std::uint64_t end_ = kFirstEntry;
  std::atomic<std::uint64_t> bytes_ = 0;  // without the requests of rounds before
  std::uint64_t written_ = 0;
  std::uint64_t last_number_ = 0;
  std::uint64_t chain_ = 0;
  LoggedRequests found_;
  Batch batch_;
  bool failed_ = false;
};

}  // namespace pif::lfs
