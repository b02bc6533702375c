// The rows of one archive, a file's after another's, as a worker restores them. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "backup_archive.h"
#include "pif/parity/layout.h"

namespace pif::backup {

// Reads the head, which must be of that archive of that backup. kCorrupt: it is another's.
[[nodiscard]] Status check_head(ArchiveReader& reader, const std::string& folder, std::uint64_t backup,
                                const message::NodeArchive& archive);

// kCorrupt: it is longer or shorter than it was.
[[nodiscard]] Status check_bytes(const ArchiveReader& reader, const std::string& folder,
                                 const message::NodeArchive& archive);

class ComponentSource {
 public:
  // From the batch on where place.archive().batches() begins. kCorrupt: the archive is shorter than it was.
  [[nodiscard]] static Result<ComponentSource> open(const std::string& folder, std::uint64_t backup,
                                                    const message::ArchivePlace& place);

  // It passes over entries before the file in the archive. layout: of the file when it was backed up; it outlives all
  // calls before the next begin(). kCorrupt: its rows are not there.
  [[nodiscard]] Status begin(const message::NamedEntry& file, const parity::Layout& layout, bool is_fixed);
  // Whether there is a record; its number in the file, and its bytes, which are valid until load().
  bool has_record() const { return row_ < rows_; }
  // Whether the next record has to be read first.
  bool must_load() const { return has_record() && row_ == segment_end_; }
  [[nodiscard]] Status load();
  RecordNumber number() const { return layout_->record_at({index_, row_}); }
  std::span<const std::byte> record() const;
  void pass();  // to the next one

 private:
  ComponentSource(ArchiveReader reader, std::uint64_t backup, message::NodeArchive archive)
      : reader_(std::move(reader)), backup_(backup), archive_(std::move(archive)) {}
  [[nodiscard]] Status read(message::EntryKind kind, ArchiveEntry& entry);
  [[nodiscard]] Status check_lengths();
  tl::unexpected<Error> lacks_rows() const;

  ArchiveReader reader_;
  std::uint64_t backup_;
  message::NodeArchive archive_;
  std::uint64_t file_ = 0;
  std::string path_;
  std::uint32_t record_length_ = 0;  // 0: they have lengths of their own
  const parity::Layout* layout_ = nullptr;
  LfsIndex index_ = 0;
  Row row_ = 0, rows_ = 0, segment_end_ = 0;
  ArchiveEntry lengths_, records_;
  Row segment_first_ = 0;
  std::size_t at_ = 0;  // of the next record in records_
};

}  // namespace pif::backup
