#include "names.h"

#include <fmt/format.h>

namespace pif::backup {
namespace {

void set_format(const Format& format, message::RecordFormat& out) {
  out.set_kind(static_cast<std::uint32_t>(format.kind));
  out.set_record_length(format.record_length);
  out.set_delimiter(format.delimiter);
}

Format format_from(const message::RecordFormat& in) {
  Format format;
  format.kind = static_cast<RecordKind>(in.kind());
  format.record_length = in.record_length();
  format.delimiter = static_cast<std::uint8_t>(in.delimiter());
  return format;
}

void add_file(const Entry& entry, message::NamedEntry& out) {
  set_format(entry.format, *out.mutable_format());
  for (const std::uint32_t node : entry.nodes) out.add_nodes(node);
  for (const std::uint32_t size : entry.bevies) out.add_bevies(size);
  out.set_records(entry.file_length.records);
  out.set_bytes(entry.file_length.bytes);
  for (const auto& [name, value] : entry.attributes) (*out.mutable_attributes())[name] = value;
}

void add_striping(const Striping& striping, message::NamedEntry& out) {
  if (striping.is_empty()) return;
  out.set_is_striped(true);
  if (striping.format) set_format(*striping.format, *out.mutable_format());
  for (const std::uint32_t node : striping.nodes) out.add_nodes(node);
  out.set_width(striping.width);
  if (striping.bevy) out.set_bevy(*striping.bevy);
}

// In the archive. A folder's is beside what is in it, so that tar(1) can unpack both.
std::string entry_name(const message::NamedEntry& entry) {
  if (entry.kind() != static_cast<std::uint32_t>(EntryKind::kFolder)) return "names" + entry.path();
  return "names" + (entry.path() == "/" ? "" : entry.path()) + "/.folder";
}

tl::unexpected<Error> cannot_be(const message::NamedEntry& named, const Error& error) {
  return fail(Code::kCorrupt, fmt::format("the backup's {} cannot be: {}", named.path(), error.text));
}

}  // namespace

message::NamedEntry named_entry(const std::string& path, const Entry& entry) {
  message::NamedEntry out;
  out.set_path(path);
  out.set_kind(static_cast<std::uint32_t>(entry.kind));
  out.set_owner(entry.owner);
  out.set_group(entry.group);
  out.set_mode(entry.mode);
  out.set_modified_ns(entry.modified_ns);
  out.set_target(entry.target);
  out.set_device(entry.device);
  if (entry.kind == EntryKind::kFile) add_file(entry, out);
  if (entry.kind == EntryKind::kFolder) add_striping(entry.striping, out);
  return out;
}

Result<Format> format_of(const message::NamedEntry& named) {
  const Format format = format_from(named.format());
  if (const Status good = format.validate(); !good) return cannot_be(named, good.error());
  return format;
}

Result<parity::Layout> layout_of(const message::NamedEntry& named) {
  auto layout = parity::Layout::make(static_cast<std::uint32_t>(named.nodes_size()),
                                     {named.bevies().begin(), named.bevies().end()});
  if (!layout) return cannot_be(named, layout.error());
  return layout;
}

Striping striping_of(const message::NamedEntry& named) {
  Striping striping;
  if (!named.is_striped()) return striping;
  if (named.has_format()) striping.format = format_from(named.format());
  striping.width = named.width();
  striping.nodes.assign(named.nodes().begin(), named.nodes().end());
  if (named.has_bevy()) striping.bevy = named.bevy();
  return striping;
}

Status write_names(const std::string& folder, Names names) {
  ArchiveWriter::Options options;
  options.backup = names.head.backup();
  PIF_TRY_VALUE(ArchiveWriter writer, ArchiveWriter::open(folder, kNamesArchive, options));
  names.head.set_version(kArchiveVersion);
  PIF_TRY(writer.add("pif-backup", message::HEAD, names.head));
  for (const message::NamedEntry& entry : names.entries) PIF_TRY(writer.add(entry_name(entry), message::NAME, entry));
  message::ArchiveEnd end;
  end.set_entries(names.entries.size() + 2);
  PIF_TRY(writer.add("end", message::END, end));
  PIF_TRY(writer.finish());
  return {};
}

Result<Names> read_names(const std::string& folder) {
  const std::string path = archive_path(folder, kNamesArchive);
  PIF_TRY_VALUE(ArchiveReader reader, ArchiveReader::open(folder, kNamesArchive, 0));
  Names names;
  PIF_TRY_VALUE(names.head, reader.head());
  if (!names.head.node().empty())
    return fail(Code::kCorrupt, fmt::format("{} is the archive of {}, not of names", path, names.head.node()));
  message::ArchiveEnd end;
  for (ArchiveEntry entry; end.entries() == 0;) {
    PIF_TRY_VALUE(const bool is_there, reader.next(entry, names.head.backup()));
    if (!is_there) return fail(Code::kCorrupt, path + " has no end: it was cut; restore from another backup");
    const auto size = static_cast<int>(entry.content.size());
    const bool is_end = entry.head.kind() == message::END;
    const bool is_read = is_end ? end.ParseFromArray(entry.content.data(), size)
                                : names.entries.emplace_back().ParseFromArray(entry.content.data(), size);
    if (!is_read || (is_end && end.entries() != names.entries.size() + 2))
      return fail(Code::kCorrupt, path + " has an entry that cannot be read; restore from another backup");
  }
  return names;
}

}  // namespace pif::backup
