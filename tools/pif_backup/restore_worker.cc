#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "component_source.h"
#include "names.h"
#include "pif/tool/message.h"
#include "pif/tool/ordered_output.h"
#include "restore.h"

namespace pif::backup {
namespace {

constexpr std::size_t kBytesAtOnce = 1u << 20;                          // put before what is put is sent
constexpr std::uint64_t kSharedMin = 1u << 20;                          // bytes of a file whose windows are shared
constexpr std::uint64_t kWindowMin = 64u << 10, kWindowMax = 8u << 20;  // of rows that wait for their place

// Those that this worker reads.
std::vector<message::ArchivePlace> own_places(const tool::Worker& worker, const message::RestoreJob& job) {
  std::vector<message::ArchivePlace> own;
  std::copy_if(job.archives().begin(), job.archives().end(), std::back_inserter(own),
               [&](const auto& place) { return place.reader() == worker.node_id(worker.rank()); });
  return own;
}

// ---- making files -------------------------------------------------------------------------------------------------

// The one whose next record comes first; null: none has any.
ComponentSource* lowest(std::deque<ComponentSource>& sources) {
  ComponentSource* first = nullptr;
  for (ComponentSource& source : sources)
    if (source.has_record() && (first == nullptr || source.number() < first->number())) first = &source;
  return first;
}

// Some of the records that come next. Those that are put stay where they are until they are sent: so nothing is read
// behind the first of them.
Result<bool> put_some(std::deque<ComponentSource>& sources, tool::OrderedOutput& out, std::uint64_t& bytes) {
  for (ComponentSource& source : sources)
    if (source.must_load()) PIF_TRY(source.load());
  for (std::size_t put = 0; put < kBytesAtOnce;) {
    ComponentSource* const next = lowest(sources);
    if (next == nullptr) return false;
    if (next->must_load()) return true;
    const auto record = next->record();
    out.put(next->number(), record);
    put += std::max<std::size_t>(record.size(), 1);
    bytes += record.size();
    next->pass();
  }
  return true;
}

Status restore_file(tool::Worker& worker, tool::Team& team, tool::Output& output, const message::NamedEntry& file,
                    std::deque<ComponentSource>& sources, std::uint64_t& bytes) {
  PIF_TRY_VALUE(const parity::Layout layout, layout_of(file));
  const Format& format = output.format();
  for (ComponentSource& source : sources) PIF_TRY(source.begin(file, layout, format.is_fixed()));
  tool::OrderedOutput::Options options;
  options.window_bytes = std::clamp(file.bytes() / output.layout().width(), kWindowMin, kWindowMax);
  // For a small file it takes longer to share memory than to send its records.
  options.share_memory = file.bytes() >= kSharedMin && format.is_fixed();
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker, team, output, {file.records(), file.bytes()}, options));
  return out.fill([&] { return put_some(sources, out, bytes); });
}

Status restore_files(tool::Worker& worker, const message::RestoreJob& job, message::RestorePart& part) {
  if (static_cast<std::size_t>(job.files_size()) != worker.output_count())
    return tool::sent_nonsense("the controller", "another number of files than of names");
  std::deque<ComponentSource> sources;
  for (const auto& place : own_places(worker, job)) {
    PIF_TRY_VALUE(ComponentSource source, ComponentSource::open(job.folder(), job.head().backup(), place));
    sources.push_back(std::move(source));
  }
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  std::uint64_t bytes = 0;
  for (int i = 0; i < job.files_size(); ++i) {
    PIF_TRY_VALUE(tool::Output* const output, worker.output(static_cast<std::size_t>(i)));
    PIF_TRY(restore_file(worker, team, *output, job.files(i), sources, bytes));
  }
  part.set_bytes(bytes);
  return {};
}

// ---- reading all --------------------------------------------------------------------------------------------------

Status verify_archive(const message::RestoreJob& job, const message::NodeArchive& archive, message::RestorePart& part) {
  PIF_TRY_VALUE(ArchiveReader reader, ArchiveReader::open(job.folder(), archive.name(), 0));
  PIF_TRY(check_head(reader, job.folder(), job.head().backup(), archive));
  std::uint64_t entries = 1;
  bool has_end = false;
  for (ArchiveEntry entry; !has_end; ++entries) {
    PIF_TRY_VALUE(const bool is_there, reader.next(entry, job.head().backup()));
    if (!is_there) return fail(Code::kCorrupt, archive_path(job.folder(), archive.name()) + " has no end: it was cut");
    has_end = entry.head.kind() == message::END;
    part.set_bytes(part.bytes() + entry.content.size());
  }
  if (entries != archive.entries())
    return fail(Code::kCorrupt, fmt::format("{} has {} entries, and had {}", archive_path(job.folder(), archive.name()),
                                            entries, archive.entries()));
  PIF_TRY(check_bytes(reader, job.folder(), archive));
  part.set_entries(part.entries() + entries);
  return {};
}

}  // namespace

Status restore_components(tool::Worker& worker) {
  PIF_TRY_VALUE(const auto job, tool::parse_message<message::RestoreJob>(worker.value(), "the controller"));
  message::RestorePart part;
  if (job.verifies()) {
    for (const auto& place : own_places(worker, job)) PIF_TRY(verify_archive(job, place.archive(), part));
  } else {
    PIF_TRY(restore_files(worker, job, part));
  }
  worker.set_result(part.SerializeAsString());
  return {};
}

}  // namespace pif::backup
