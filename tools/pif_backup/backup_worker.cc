#include <algorithm>

#include <fmt/format.h>

#include "backup.h"
#include "backup_archive.h"
#include "pif/base/packed.h"
#include "pif/tool/message.h"

namespace pif::backup {
namespace {

std::string entry_name(const message::NamedEntry& file, std::string_view what, Row row) {
  return fmt::format("{}/{}-{}", file.path().substr(1), what, row);
}

// The rows of one component, a segment after another.
Status add_component(tool::Worker& worker, tool::Input& input, const message::NamedEntry& file, ArchiveWriter& archive,
                     std::uint64_t& entries) {
  tool::RowBatch batch;
  for (Row row = 0; row < input.rows(); row += batch.count) {
    PIF_TRY(input.read(row, input.rows() - row, kSegmentBytes, batch));
    message::EntryHead head;
    head.set_file(file.number());
    head.set_first_row(row);
    head.set_rows(batch.count);
    if (!input.format().is_fixed()) {
      head.set_kind(message::LENGTHS);
      const std::string lengths = packed(std::span<const std::uint32_t>(batch.lengths));
      PIF_TRY(archive.add(entry_name(file, "lengths", row), head, std::as_bytes(std::span(lengths))));
      ++entries;
    }
    head.set_kind(message::RECORDS);
    PIF_TRY(archive.add(entry_name(file, "records", row), head, batch.data));
    ++entries;
    worker.progress(input.bytes_read(), input.bytes());
  }
  return {};
}

Result<message::NodeArchive> own_archive(const tool::Worker& worker, const message::BackupJob& job) {
  const std::uint32_t id = worker.node_id(worker.rank());
  const auto found =
      std::find_if(job.nodes().begin(), job.nodes().end(), [&](const auto& node) { return node.id() == id; });
  if (found == job.nodes().end()) return fail(Code::kInternal, fmt::format("no archive is meant for node {}", id));
  return *found;
}

Result<ArchiveWriter> go_on(const tool::Worker& worker, const message::BackupJob& job,
                            const message::NodeArchive& own) {
  ArchiveWriter::Options options;
  options.backup = job.head().backup();
  options.bytes = own.bytes();
  options.level = job.level();
  options.threads = worker.threads() - 1;
  PIF_TRY_VALUE(ArchiveWriter archive, ArchiveWriter::open(job.folder(), own.name(), options));
  if (own.bytes() > 0) return archive;
  message::ArchiveHead head = job.head();
  head.set_node(own.name());
  PIF_TRY(archive.add("pif-backup", message::HEAD, head));
  return archive;
}

}  // namespace

Status back_up_components(tool::Worker& worker) {
  PIF_TRY_VALUE(const auto job, tool::parse_message<message::BackupJob>(worker.value(), "the controller"));
  if (static_cast<std::size_t>(job.files_size()) != worker.input_count())
    return tool::sent_nonsense("the controller", "another number of files than of names");
  PIF_TRY_VALUE(const message::NodeArchive own, own_archive(worker, job));
  PIF_TRY_VALUE(ArchiveWriter archive, go_on(worker, job, own));
  message::BackupPart part;
  part.set_begin(own.bytes());
  std::uint64_t entries = own.entries() + (own.bytes() == 0 ? 1 : 0);
  for (int i = 0; i < job.files_size(); ++i) {
    PIF_TRY_VALUE(tool::Input* const input, worker.input(static_cast<std::size_t>(i)));
    if (input->is_here()) PIF_TRY(add_component(worker, *input, job.files(i), archive, entries));
  }
  if (job.is_last()) {
    message::ArchiveEnd end;
    end.set_entries(++entries);
    PIF_TRY(archive.add("end", message::END, end));
  }
  PIF_TRY_VALUE(const std::uint64_t bytes, job.is_last() ? archive.finish() : archive.pause());
  part.set_bytes(bytes);
  part.set_entries(entries);
  worker.set_result(part.SerializeAsString());
  return {};
}

}  // namespace pif::backup
