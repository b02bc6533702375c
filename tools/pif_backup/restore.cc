#include "restore.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "../pif/text/text.h"
#include "names.h"
#include "pif/base/inheriting.h"
#include "pif/cluster/cluster.h"
#include "pif/tool/message.h"
#include "restore_layout.h"

namespace pif::backup {
namespace {

using tool::Controller;
using Chosen = std::vector<const message::NamedEntry*>;

bool is_kind(const message::NamedEntry& entry, EntryKind kind) {
  return entry.kind() == static_cast<std::uint32_t>(kind);
}

// Where it goes.
std::string target_of(const RestoreOptions& options, const message::NamedEntry& entry) {
  if (options.into.empty() || options.into == "/") return entry.path();
  return entry.path() == "/" ? options.into : options.into + entry.path();
}

// ---- choosing -----------------------------------------------------------------------------------------------------

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + "/");
}

Result<Chosen> named_in(const Names& names, std::vector<std::string> paths) {
  if (paths.empty()) paths.emplace_back("/");
  Chosen chosen;
  std::vector<bool> is_found(paths.size());
  for (const auto& entry : names.entries) {
    bool is_named = false;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!is_below(entry.path(), paths[i])) continue;
      is_named = is_found[i] = true;
    }
    if (is_named) chosen.push_back(&entry);
  }
  const auto missing = std::find(is_found.begin(), is_found.end(), false);
  if (missing == is_found.end() || (names.entries.empty() && paths.front() == "/")) return chosen;
  return fail(Code::kNotFound,
              fmt::format("the backup has no {}", paths[static_cast<std::size_t>(missing - is_found.begin())]));
}

// Of the chosen, files that had records on that LFS, and are gone or marked now.
Result<Chosen> lacking(Client& client, const Names& names, const RestoreOptions& options, const Chosen& chosen) {
  const auto& nodes = names.head.nodes();
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.name() == options.lfs; });
  if (node == nodes.end())
    return fail(Code::kNotFound, fmt::format("the backup has nothing of an LFS {}", options.lfs));
  Chosen out;
  for (const message::NamedEntry* const entry : chosen) {
    if (!is_kind(*entry, EntryKind::kFile)) continue;
    if (std::find(entry->nodes().begin(), entry->nodes().end(), node->id()) == entry->nodes().end()) continue;
    const auto now = client.stat(target_of(options, *entry));
    if (!now && now.error().code != Code::kNotFound) return fail(now.error());
    if (!now || !now->marks.empty()) out.push_back(entry);
  }
  return out;
}

Status check_is_ours(Client& client, const Names& names, const RestoreOptions& options) {
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  if (options.foreign || names.head.cluster() == status.cluster) return {};
  return fail(Code::kInvalid,
              fmt::format("{} is a backup of file system {}, and this is {}: --foreign restores it here",
                          options.folder, names.head.cluster(), status.cluster));
}

// ---- folders, and what has no records -----------------------------------------------------------------------------

bool may_give_away() { return ::geteuid() == 0; }

AttributeChange attributes_of(const message::NamedEntry& entry) {
  AttributeChange change;
  change.mode = entry.mode();
  change.modified_ns = entry.modified_ns();
  if (may_give_away()) {
    change.owner = entry.owner();
    change.group = entry.group();
  }
  if (entry.is_striped()) change.striping = striping_of(entry);
  return change;
}

Status make_folders(Client& client, const RestoreOptions& options, const Chosen& chosen) {
  std::string last = "/";
  for (const message::NamedEntry* const entry : chosen) {
    const std::string target = target_of(options, *entry);
    const std::string folder = is_kind(*entry, EntryKind::kFolder) ? target : cli::parent_of(target);
    if (folder == last || folder == "/") continue;
    PIF_TRY(client.make_folder(folder, true));
    last = folder;
  }
  return {};
}

// The innermost first: what is made in a folder changes its time.
Status finish_folders(Client& client, const RestoreOptions& options, const Chosen& chosen) {
  for (auto entry = chosen.rbegin(); entry != chosen.rend(); ++entry) {
    const std::string target = target_of(options, **entry);
    if (!is_kind(**entry, EntryKind::kFolder) || target == "/") continue;
    PIF_TRY(client.change_attributes(target, attributes_of(**entry)));
  }
  return {};
}

Status make_other(Client& client, const RestoreOptions& options, const message::NamedEntry& entry) {
  const std::string target = target_of(options, entry);
  Client::NewOther other;
  other.kind = static_cast<EntryKind>(entry.kind());
  other.target = entry.target();
  other.device = entry.device();
  other.mode = entry.mode();
  if (options.force) {
    const Status gone = client.remove(target);
    if (!gone && gone.error().code != Code::kNotFound) return gone;
  }
  PIF_TRY(client.create_other(target, other));
  return client.change_attributes(target, attributes_of(entry));
}

// ---- files --------------------------------------------------------------------------------------------------------

class Restorer {
 public:
  Restorer(Controller& controller, const RestoreOptions& options, const Names& names, LayoutChoice layouts,
           ArchiveReaders readers)
      : controller_(controller),
        options_(options),
        names_(names),
        layouts_(std::move(layouts)),
        readers_(std::move(readers)) {}

  [[nodiscard]] Status restore(const Chosen& chosen) {
    std::map<std::uint32_t, Chosen> batches;
    for (const message::NamedEntry* const entry : chosen)
      if (is_kind(*entry, EntryKind::kFile) && entry->records() > 0) batches[entry->batch()].push_back(entry);
    for (const auto& [batch, files] : batches) PIF_TRY(restore_batch(batch, files));
    for (const message::NamedEntry* const entry : chosen) {
      const bool is_file = is_kind(*entry, EntryKind::kFile);
      if (is_file && entry->records() == 0) PIF_TRY(make_empty(*entry));
      if (!is_file && !is_kind(*entry, EntryKind::kFolder)) PIF_TRY(make_other(controller_.client(), options_, *entry));
    }
    return {};
  }

  std::uint64_t without_parity() const { return without_parity_; }  // files that had it

 private:
  Result<CreateOptions> options_for(const message::NamedEntry& file) {
    CreateOptions create;
    PIF_TRY_VALUE(create.format, format_of(file));
    create.mode = file.mode();
    create.modified_ns = file.modified_ns();
    create.exclusive = options_.no_clobber || (!options_.force && options_.lfs.empty());
    create.inherits_layout = false;
    create.attributes = {file.attributes().begin(), file.attributes().end()};
    if (may_give_away()) {
      create.owner = file.owner();
      create.group = file.group();
    }
    if (!layouts_.choose(file, create)) ++without_parity_;
    return create;
  }

  Status make_empty(const message::NamedEntry& file) {
    PIF_TRY_VALUE(const CreateOptions create, options_for(file));
    const std::string target = target_of(options_, file);
    PIF_TRY(controller_.client().create_empty(target, create));
    AttributeChange change;
    change.modified_ns = file.modified_ns();
    return controller_.client().change_attributes(target, change);
  }

  // The number of the first output.
  Result<std::size_t> create(const Chosen& files) {
    std::vector<Client::NewFile> created;
    for (const message::NamedEntry* const file : files) {
      PIF_TRY_VALUE(CreateOptions create, options_for(*file));
      created.push_back({target_of(options_, *file), std::move(create)});
    }
    return controller_.create_many(created);
  }

  Status restore_batch(std::uint32_t batch, const Chosen& files) {
    message::RestoreJob job;
    std::vector<std::uint32_t> sources;
    PIF_TRY_VALUE(std::size_t output, create(files));
    for (const message::NamedEntry* const file : files) {
      controller_.set_file_length(output, {file->records(), file->bytes()});
      for (const std::uint32_t node : controller_.output(output++).nodes()) nodes_.push_back(node);
      message::NamedEntry& named = *job.add_files();
      named = *file;
      named.clear_attributes();
      sources.insert(sources.end(), file->nodes().begin(), file->nodes().end());
    }
    PIF_TRY(add_archives(batch, sources, job));
    PIF_TRY(run(std::move(job)));
    PIF_TRY(controller_.commit());
    nodes_.clear();
    return {};
  }

  Status add_archives(std::uint32_t batch, const std::vector<std::uint32_t>& sources, message::RestoreJob& job) {
    for (const auto& archive : names_.head.nodes()) {
      if (std::find(sources.begin(), sources.end(), archive.id()) == sources.end()) continue;
      if (batch >= static_cast<std::uint32_t>(archive.batches_size()))
        return fail(Code::kCorrupt,
                    fmt::format("the backup's names speak of a batch {} that {} has not", batch, archive.name()));
      message::ArchivePlace& place = *job.add_archives();
      *place.mutable_archive() = archive;
      place.mutable_archive()->clear_batches();
      place.mutable_archive()->add_batches(archive.batches(static_cast<int>(batch)));
      PIF_TRY_VALUE(const std::uint32_t reader, readers_.reader_of(archive));
      place.set_reader(reader);
      nodes_.push_back(reader);
    }
    return {};
  }

  Status run(message::RestoreJob job) {
    job.set_folder(options_.folder);
    job.mutable_head()->set_backup(names_.head.backup());
    std::sort(nodes_.begin(), nodes_.end());
    nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
    tool::Job run{.nodes = nodes_, .value = job.SerializeAsString(), .grants = {{options_.folder, false}}};
    PIF_TRY_VALUE(const auto results, controller_.run(run));
    return {};
  }

  Controller& controller_;
  const RestoreOptions& options_;
  const Names& names_;
  LayoutChoice layouts_;
  ArchiveReaders readers_;
  std::vector<std::uint32_t> nodes_;  // of the next job's workers
  std::uint64_t without_parity_ = 0;
};

// ---- reading all --------------------------------------------------------------------------------------------------

Result<tool::ExitCode> verify(Controller& controller, const RestoreOptions& options, const Names& names,
                              ArchiveReaders readers) {
  message::RestoreJob job;
  job.set_folder(options.folder);
  job.mutable_head()->set_backup(names.head.backup());
  job.set_verifies(true);
  std::vector<std::uint32_t> nodes;
  for (const auto& archive : names.head.nodes()) {
    message::ArchivePlace& place = *job.add_archives();
    *place.mutable_archive() = archive;
    place.mutable_archive()->clear_batches();
    PIF_TRY_VALUE(const std::uint32_t reader, readers.reader_of(archive));
    place.set_reader(reader);
    if (std::find(nodes.begin(), nodes.end(), reader) == nodes.end()) nodes.push_back(reader);
  }
  std::uint64_t entries = 0, bytes = 0;
  if (!nodes.empty()) {
    tool::Job run{.nodes = nodes, .value = job.SerializeAsString(), .grants = {{options.folder, false}}};
    PIF_TRY_VALUE(const auto results, controller.run(run));
    for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
      PIF_TRY_VALUE(const auto part, tool::parse_message<message::RestorePart>(results[rank], rank));
      entries += part.entries();
      bytes += part.bytes();
    }
  }
  controller.report().add_result("entries", entries);
  controller.report().add_result("bytes", bytes);
  if (!controller.report().is_json && !controller.report().is_quiet)
    PIF_TRY(tool::print(fmt::format("{} archives are whole: {} names, {} entries, {} bytes\n",
                                    names.head.nodes_size() + 1, names.entries.size(), entries, bytes)));
  return tool::ExitCode::kDone;
}

Result<RestoreOptions> with_real_paths(RestoreOptions options) {
  PIF_TRY_VALUE(options.folder, absolute_folder(options.folder));
  if (!options.into.empty()) {
    PIF_TRY_VALUE(options.into, tool::pif_path(options.into));
  }
  for (std::string& path : options.paths) {
    PIF_TRY_VALUE(path, tool::pif_path(path));
    if (path.empty()) path = "/";
  }
  return options;
}

Result<Chosen> choose(Client& client, const Names& names, const RestoreOptions& options) {
  PIF_TRY_VALUE(Chosen chosen, named_in(names, options.paths));
  if (options.lfs.empty()) return chosen;
  return lacking(client, names, options, chosen);
}

Result<tool::ExitCode> tell(Controller& controller, const Chosen& chosen, const Names& names,
                            std::uint64_t without_parity) {
  tool::Report& report = controller.report();
  report.add_result("names", std::uint64_t{chosen.size()});
  report.add_result("without_parity", without_parity);
  if (report.is_json || report.is_quiet) return tool::ExitCode::kDone;
  std::string text =
      fmt::format("{} of {} names restored, {} bytes\n", chosen.size(), names.entries.size(), report.bytes);
  if (without_parity > 0)
    text += fmt::format("{} files had parity and have none now: there are too few LFSs\n", without_parity);
  PIF_TRY(tool::print(text));
  return tool::ExitCode::kDone;
}

}  // namespace

Result<tool::ExitCode> restore(Controller& controller, const RestoreOptions& given) {
  PIF_TRY_VALUE(const RestoreOptions options, with_real_paths(given));
  PIF_TRY_VALUE(const Names names, read_names(options.folder));
  Client& client = controller.client();
  PIF_TRY_VALUE(ArchiveReaders readers, ArchiveReaders::find(controller, options.folder));
  if (options.verify) return verify(controller, options, names, std::move(readers));
  PIF_TRY(check_is_ours(client, names, options));
  PIF_TRY_VALUE(const Chosen chosen, choose(client, names, options));
  PIF_TRY_VALUE(LayoutChoice layouts, LayoutChoice::find(controller, names.head, options));
  PIF_TRY(make_folders(client, options, chosen));
  Restorer restorer(controller, options, names, std::move(layouts), std::move(readers));
  PIF_TRY(restorer.restore(chosen));
  PIF_TRY(finish_folders(client, options, chosen));
  return tell(controller, chosen, names, restorer.without_parity());
}

Result<tool::Plan> explain_restore(Controller& controller, const RestoreOptions& given) {
  PIF_TRY_VALUE(const RestoreOptions options, with_real_paths(given));
  PIF_TRY_VALUE(const Names names, read_names(options.folder));
  PIF_TRY_VALUE(const Chosen chosen, choose(controller.client(), names, options));
  std::uint64_t bytes = 0;
  for (const message::NamedEntry* const entry : chosen) bytes += entry->bytes();
  return tool::Plan{{"backup", fmt::format("of file system {}, made {}", names.head.cluster(),
                                           cli::iso_date(names.head.made() * 1'000'000'000))},
                    {"restores", fmt::format("{} of {} names, {} bytes", chosen.size(), names.entries.size(), bytes)},
                    {"moved", "each record once, from where its archive is to where it belongs"}};
}

}  // namespace pif::backup
