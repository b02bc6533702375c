// The directory's tables during one turn of the event loop. All mutations of a turn share one write transaction (group
// commit); reads of a turn see them. A turn whose store fails takes back everything, in memory too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pif/kv/store.h"
#include "pif/proto/stored.pb.h"

namespace pif::server {

// Order of kDirectoryTables.
enum Tables : kv::Table { kEntries, kFiles, kNodes, kRecent, kMeta, kNumbers, kTop, kInputLocks };

// Keys of the table "meta", besides those of folders.
inline constexpr std::string_view kVersionKey = "version";
inline constexpr std::string_view kClusterKey = "cluster";
inline constexpr std::string_view kUuidKey = "uuid";
// The key in the table without a name, which every transaction writes.
inline constexpr std::string_view kIndexKey = "index";

enum FileState : std::uint32_t { kPending = 1, kCommitted = 2, kDoomed = 3 };
// One more state that FileStates has: the directory does not know the file.
inline constexpr std::uint32_t kUnknown = 4;

inline constexpr std::uint64_t kRootParent = 0;
inline constexpr std::uint64_t kRootFolder = 1;
inline constexpr std::string_view kRootName = "/";

// Format of a directory that has what format 2 has not: a mode above 0777, or an entry without bytes.
inline constexpr std::uint32_t kWideFormat = 3;

std::string entry_key(std::uint64_t parent, std::string_view name);
std::string folder_key(std::uint64_t folder);  // in kMeta

class Rows {
 public:
  explicit Rows(kv::Store& store) : store_(store) {}

  // ---- rows; payloads, their checksums verified (kCorrupt) ----
  [[nodiscard]] Result<std::optional<std::string_view>> get(kv::Table table, std::string_view key);
  [[nodiscard]] Status scan(kv::Table table, std::string_view from,
                            const std::function<bool(std::string_view key, std::string_view payload)>& visit);
  [[nodiscard]] Result<std::uint64_t> count(kv::Table table);
  [[nodiscard]] Status put(kv::Table table, std::string_view key, const google::protobuf::MessageLite& value);
  [[nodiscard]] Status put_bytes(kv::Table table, std::string_view key, std::string_view payload);
  [[nodiscard]] Status erase(kv::Table table, std::string_view key);

  [[nodiscard]] Result<std::optional<proto::StoredEntry>> entry(std::uint64_t parent, std::string_view name);
  [[nodiscard]] Status put_entry(std::uint64_t parent, std::string_view name, const proto::StoredEntry& entry);
  [[nodiscard]] Status erase_entry(std::uint64_t parent, std::string_view name);
  [[nodiscard]] Result<std::optional<proto::StoredFile>> file(std::uint64_t id);
  [[nodiscard]] Status put_file(std::uint64_t id, const proto::StoredFile& file);
  [[nodiscard]] Status erase_file(std::uint64_t id);
  // Where a folder is: only `parent` and `name` are set.
  [[nodiscard]] Result<std::optional<proto::StoredFile>> folder(std::uint64_t id);
  [[nodiscard]] Status put_folder(std::uint64_t id, std::uint64_t parent, std::string_view name);
  [[nodiscard]] Status erase_folder(std::uint64_t id);

  // ---- the turn ----
  // Rows written so far in this turn.
  std::uint64_t writes() const { return writes_; }
  bool writing() const { return writer_ != nullptr; }
  // Memory that must follow the rows: done when they are durable, or taken back (last first) when they are not.
  void on_commit(std::function<void()> action) { on_commit_.push_back(std::move(action)); }
  void on_abort(std::function<void()> action) { on_abort_.push_back(std::move(action)); }
  // From now on the turn can only fail.
  void break_with(Error error);
  bool is_broken() const { return broken_.has_value(); }
  const std::optional<Error>& broken() const { return broken_; }
  // Ends the turn: everything durable, or an error and nothing changed.
  [[nodiscard]] Status commit();

 private:
  [[nodiscard]] Result<kv::Transaction*> reader();
  [[nodiscard]] Result<kv::Transaction*> writer();
  Status written(Status status);
  // The directory is of the format that has such an entry, from the same transaction on.
  [[nodiscard]] Status widen_for(const proto::StoredEntry& entry);

  kv::Store& store_;
  std::unique_ptr<kv::Transaction> reader_;
  std::unique_ptr<kv::Transaction> writer_;
  std::uint64_t writes_ = 0;
  bool is_wide_ = false;  // known to be of kWideFormat
  std::optional<Error> broken_;
  std::vector<std::function<void()>> on_commit_;
  std::vector<std::function<void()>> on_abort_;
  std::string value_;  // reused by put()
};

}  // namespace pif::server
