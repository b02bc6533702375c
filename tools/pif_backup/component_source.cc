#include "component_source.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/packed.h"

namespace pif::backup {

Status check_head(ArchiveReader& reader, const std::string& folder, std::uint64_t backup,
                  const message::NodeArchive& archive) {
  PIF_TRY_VALUE(const message::ArchiveHead head, reader.head());
  if (head.backup() == backup && head.node() == archive.name()) return {};
  return fail(Code::kCorrupt,
              fmt::format("{} is the archive of {} in another backup: put the right one there",
                          archive_path(folder, archive.name()), head.node().empty() ? kNamesArchive : head.node()));
}

Status check_bytes(const ArchiveReader& reader, const std::string& folder, const message::NodeArchive& archive) {
  PIF_TRY_VALUE(const std::uint64_t bytes, reader.bytes());
  if (bytes == archive.bytes()) return {};
  return fail(Code::kCorrupt, fmt::format("{} has {} bytes, and had {} when it was made: it was cut or exchanged; "
                                          "restore from another backup",
                                          archive_path(folder, archive.name()), bytes, archive.bytes()));
}

Result<ComponentSource> ComponentSource::open(const std::string& folder, std::uint64_t backup,
                                              const message::ArchivePlace& place) {
  const message::NodeArchive& archive = place.archive();
  PIF_TRY_VALUE(ArchiveReader first, ArchiveReader::open(folder, archive.name(), 0));
  PIF_TRY(check_head(first, folder, backup, archive));
  const std::uint64_t at = archive.batches().empty() ? 0 : archive.batches(0);
  PIF_TRY_VALUE(ArchiveReader reader, ArchiveReader::open(folder, archive.name(), at));
  PIF_TRY(check_bytes(reader, folder, archive));
  return ComponentSource(std::move(reader), backup, archive);
}

Status ComponentSource::begin(const message::NamedEntry& file, const parity::Layout& layout, bool is_fixed) {
  const auto node = std::find(file.nodes().begin(), file.nodes().end(), archive_.id());
  row_ = rows_ = segment_end_ = 0;
  if (node == file.nodes().end()) return {};
  file_ = file.number();
  path_ = file.path();
  record_length_ = is_fixed ? file.format().record_length() : 0;
  layout_ = &layout;
  index_ = static_cast<LfsIndex>(node - file.nodes().begin());
  rows_ = layout.rows(index_, file.records());
  return {};
}

tl::unexpected<Error> ComponentSource::lacks_rows() const {
  return fail(Code::kCorrupt, fmt::format("the archive of {} lacks rows of {} from {} on: restore from another backup",
                                          archive_.name(), path_, row_));
}

// The file's next entry, which must be of that kind and go on at row_.
Status ComponentSource::read(message::EntryKind kind, ArchiveEntry& entry) {
  do {
    PIF_TRY_VALUE(const bool is_there, reader_.next(entry, backup_));
    if (!is_there || entry.head.kind() == message::END) return lacks_rows();
  } while (entry.head.kind() == message::HEAD || entry.head.file() < file_);
  const auto& head = entry.head;
  const bool fits = head.file() == file_ && head.kind() == kind && head.first_row() == row_ && head.rows() > 0 &&
                    head.rows() <= rows_ - row_;
  return fits ? Status() : lacks_rows();
}

Status ComponentSource::load() {
  PIF_ASSERT(must_load(), row_, rows_, segment_end_);
  if (record_length_ == 0) PIF_TRY(read(message::LENGTHS, lengths_));
  PIF_TRY(read(message::RECORDS, records_));
  segment_first_ = row_;
  segment_end_ = row_ + records_.head.rows();
  at_ = 0;
  return check_lengths();
}

// Of a fixed length all are, but perhaps the file's last.
Status ComponentSource::check_lengths() {
  const std::uint64_t rows = records_.head.rows();
  std::uint64_t bytes = 0;
  if (record_length_ == 0) {
    const auto lengths = PackedNumbers<std::uint32_t>::all_of(lengths_.content, rows);
    if (!lengths || lengths_.head.rows() != rows) return lacks_rows();
    for (std::size_t i = 0; i < lengths->size(); ++i) bytes += (*lengths)[i];
  } else {
    const std::uint64_t whole = rows * record_length_;
    const bool is_short = records_.content.size() < whole && segment_end_ == rows_;
    bytes = is_short ? std::max<std::uint64_t>(records_.content.size(), whole - record_length_ + 1) : whole;
  }
  return bytes == records_.content.size() ? Status() : lacks_rows();
}

std::span<const std::byte> ComponentSource::record() const {
  const std::span<const std::byte> rest = std::span(records_.content).subspan(at_);
  if (record_length_ > 0) return rest.first(std::min<std::size_t>(record_length_, rest.size()));
  std::uint32_t length = 0;
  std::memcpy(&length, lengths_.content.data() + (row_ - segment_first_) * sizeof length, sizeof length);
  PIF_ASSERT(length <= rest.size(), length, rest.size());
  return rest.first(length);
}

void ComponentSource::pass() {
  at_ += record().size();
  ++row_;
}

}  // namespace pif::backup
