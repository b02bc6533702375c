// An archive of a backup: PAX tar in frames of zstd, so that tar(1) lists and unpacks it. Each entry bears a checksum
// and what it is (backup.proto, EntryHead) as an extended attribute. docs/FORMAT.md "Backups". Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backup.pb.h"
#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::backup {

inline constexpr std::uint32_t kArchiveVersion = 1;
inline constexpr std::size_t kSegmentBytes = 4u << 20;  // of rows in one entry, unless one row is longer
inline constexpr const char* kNamesArchive = "names";

// As workers must know it: absolute, without a slash at its end.
[[nodiscard]] Result<std::string> absolute_folder(const std::string& folder);

// FOLDER/NAME.tar.zst; while it is written, its name has ".part" behind it.
std::string archive_path(const std::string& folder, const std::string& name);

// Names in archives are UTF-8, whatever the user's language: call it once, before there are threads.
void speak_utf8();

// Sums of entries bind them to their backup and their place in it.
void seal(message::EntryHead& head, std::uint64_t backup, std::span<const std::byte> content);
bool is_intact(const message::EntryHead& head, std::uint64_t backup, std::span<const std::byte> content);

class ArchiveWriter {
 public:
  struct Options {
    std::uint64_t backup = 0;
    std::uint64_t bytes = 0;  // of the archive, which is begun already; 0: it begins here
    int level = 1;            // of zstd
    unsigned threads = 0;     // that compress beside the caller's
  };
  // kExists: an archive of that name is there; kCorrupt: the one that was begun has another length; else the disk's.
  [[nodiscard]] static Result<ArchiveWriter> open(const std::string& folder, const std::string& name,
                                                  const Options& options);
  ArchiveWriter(ArchiveWriter&&) noexcept;
  ArchiveWriter& operator=(ArchiveWriter&&) = delete;
  ~ArchiveWriter();  // what is begun stays, as a ".part"

  // head: but for its sum.
  [[nodiscard]] Status add(const std::string& name, message::EntryHead head, std::span<const std::byte> content);
  [[nodiscard]] Status add(const std::string& name, message::EntryKind kind, const google::protobuf::MessageLite& what);
  // Ends a frame: another writer may go on there. Bytes of the archive so far.
  [[nodiscard]] Result<std::uint64_t> pause();
  // Nothing follows: durable, under its name. Its bytes.
  [[nodiscard]] Result<std::uint64_t> finish();

 private:
  struct Impl;
  explicit ArchiveWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct ArchiveEntry {
  std::string name;
  message::EntryHead head;
  std::vector<std::byte> content;
};

class ArchiveReader {
 public:
  // From byte `at` on, where an entry and a frame begin. kNotFound: it is not there; else the disk's.
  [[nodiscard]] static Result<ArchiveReader> open(const std::string& folder, const std::string& name, std::uint64_t at);
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) = delete;
  ~ArchiveReader();

  // The next entry, whose sum must be that of this backup; false at the end
  // of the archive. kCorrupt, naming the archive: it is cut or damaged, or not one of a backup.
  [[nodiscard]] Result<bool> next(ArchiveEntry& entry, std::uint64_t backup);
  // The first entry, read at byte 0: what it is an archive of. kVersion: a newer program made it.
  [[nodiscard]] Result<message::ArchiveHead> head();
  [[nodiscard]] Result<std::uint64_t> bytes() const;  // of the file

 private:
  struct Impl;
  explicit ArchiveReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::backup
