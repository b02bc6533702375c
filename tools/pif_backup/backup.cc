#include "backup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>

#include <fmt/format.h>

#include "../pif/names/entries.h"
#include "../pif/text/text.h"
#include "names.h"
#include "pif/client/session.h"
#include "pif/tool/message.h"

namespace pif::backup {
namespace {

constexpr std::size_t kFilesAtOnce = 256;  // of one job: their components are open at once

struct Plan {
  std::string folder;                // absolute
  std::vector<std::string> sources;  // paths in the file system
  std::vector<message::NamedEntry> entries;
  std::map<std::uint32_t, message::NodeArchive> archives;  // by NodeId
  std::uint64_t bytes = 0, files = 0;
};

Result<Plan> plan_of(const BackupOptions& options) {
  if (options.operands.size() < (options.all ? 1u : 2u))
    return fail(Code::kInvalid, "name what is to be backed up (or give --all), and then a local folder");
  if (options.all && options.operands.size() > 1)
    return fail(Code::kInvalid, "with --all the local folder is all that is named");
  Plan plan;
  PIF_TRY_VALUE(plan.folder, absolute_folder(options.operands.back()));
  for (std::size_t i = 0; i + 1 < options.operands.size(); ++i) {
    PIF_TRY_VALUE(std::string path, tool::pif_path(options.operands[i]));
    plan.sources.push_back(std::move(path));
  }
  if (options.all) plan.sources.emplace_back("/");
  return plan;
}

// A folder before what is in it.
Status add_entry(Client& client, const std::string& path, const Entry& entry, Plan& plan) {
  if (entry.kind == EntryKind::kFile && entry.is_placed)
    return fail(Code::kUnsupported,
                path + " has its bytes in forks, which are not backed up: leave it out, or copy it");
  plan.entries.push_back(named_entry(path, entry));
  if (entry.kind == EntryKind::kFile) {
    plan.bytes += entry.file_length.bytes;
    ++plan.files;
    for (const std::uint32_t node : entry.nodes) plan.archives[node].set_id(node);
  }
  if (entry.kind != EntryKind::kFolder) return {};
  return cli::for_each_entry(client, path, [&](const Entry& below) {
    return add_entry(client, cli::join_path(path, below.name), below, plan);
  });
}

Status find_entries(Client& client, Plan& plan) {
  for (const std::string& source : plan.sources) {
    const std::string path = source.empty() ? "/" : source;
    PIF_TRY_VALUE(const Entry entry, client.stat(path));
    PIF_TRY(add_entry(client, path, entry, plan));
  }
  const auto by_path = [](const auto& a, const auto& b) { return a.path() < b.path(); };
  std::stable_sort(plan.entries.begin(), plan.entries.end(), by_path);
  const auto same = [](const auto& a, const auto& b) { return a.path() == b.path(); };  // named twice
  plan.entries.erase(std::unique(plan.entries.begin(), plan.entries.end(), same), plan.entries.end());
  return {};
}

Status name_archives(Client& client, Plan& plan) {
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  for (auto& [id, archive] : plan.archives) {
    const auto node = std::find_if(status.nodes.begin(), status.nodes.end(), [&](const Node& n) { return n.id == id; });
    if (node == status.nodes.end()) return fail(Code::kUnavailable, fmt::format("there is no node {}", id));
    if (node->name == kNamesArchive)
      return fail(Code::kUnsupported, "an LFS is called names, as the archive of names is: its own has no place");
    archive.set_name(node->name);
  }
  return {};
}

// On this host; whether it was not there. On the others it must be.
Result<bool> make_folder(const std::string& folder) {
  const bool is_new = ::access(folder.c_str(), F_OK) != 0;
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail_errno(errno, "cannot make the folder " + folder);
  if (::access(archive_path(folder, kNamesArchive).c_str(), F_OK) != 0) return is_new;
  return fail(Code::kExists, folder + " has a backup already: back up into another folder");
}

// What another backup writes there must not be taken for this one's, and removed when this one fails.
Status check_unused(const Plan& plan) {
  std::vector<std::string> names = {kNamesArchive};
  for (const auto& [id, archive] : plan.archives) names.push_back(archive.name());
  for (const std::string& name : names) {
    for (const std::string& path : {archive_path(plan.folder, name), archive_path(plan.folder, name) + ".part"})
      if (::access(path.c_str(), F_OK) == 0)
        return fail(Code::kExists, path +
                                       " is there already: another backup goes there, or was ended; back up into "
                                       "another folder, or remove what there is");
  }
  return {};
}

// Opened, so that it stays as it is; the entry becomes what the file is now.
Status hold(tool::Controller& controller, const Plan& plan, message::NamedEntry& named) {
  PIF_TRY_VALUE(const std::size_t input, controller.open(named.path()));
  File& file = controller.input(input);
  PIF_TRY_VALUE(const ListPage forks, controller.client().list_forks(file, {}, 1));
  if (!forks.entries.empty())
    return fail(Code::kUnsupported, named.path() + " has forks, which are not backed up: leave it out, or copy it");
  Entry entry = file.entry();
  PIF_TRY_VALUE(entry.file_length, file.file_length());
  for (const std::uint32_t node : file.nodes())
    if (!plan.archives.contains(node))
      return fail(Code::kRetry, named.path() + " was replaced meanwhile: run the command again");
  named = named_entry(named.path(), entry);
  return {};
}

message::BackupJob job_of(const Plan& plan, const message::ArchiveHead& head, int level) {
  message::BackupJob job;
  job.set_folder(plan.folder);
  *job.mutable_head() = head;
  job.set_level(level);
  for (const auto& [id, archive] : plan.archives) *job.add_nodes() = archive;
  return job;
}

Status take_parts(const std::vector<std::string>& results, Plan& plan) {
  std::uint32_t rank = 0;
  for (auto& [id, archive] : plan.archives) {  // as the job's nodes are
    PIF_TRY_VALUE(const auto part, tool::parse_message<message::BackupPart>(results[rank], rank));
    archive.add_batches(part.begin());
    archive.set_bytes(part.bytes());
    archive.set_entries(part.entries());
    ++rank;
  }
  return {};
}

class Batches {
 public:
  Batches(tool::Controller& controller, Plan& plan, const message::ArchiveHead& head, int level)
      : controller_(controller), plan_(plan), head_(head), level_(level) {
    for (auto& entry : plan.entries)
      if (entry.kind() == static_cast<std::uint32_t>(EntryKind::kFile)) files_.push_back(&entry);
  }

  [[nodiscard]] Status run() {
    for (std::size_t at = 0; at < files_.size(); at += kFilesAtOnce) {
      const std::size_t end = std::min(at + kFilesAtOnce, files_.size());
      PIF_TRY(run(std::span(files_).subspan(at, end - at), end == files_.size()));
    }
    return {};
  }

 private:
  Status run(std::span<message::NamedEntry*> files, bool is_last) {
    message::BackupJob job = job_of(plan_, head_, level_);
    for (message::NamedEntry* const file : files) {
      PIF_TRY(hold(controller_, plan_, *file));
      file->set_number(++number_);
      file->set_batch(batch_);
      message::NamedEntry& named = *job.add_files();  // what a worker must know of it
      named.set_path(file->path());
      named.set_number(number_);
    }
    job.set_is_last(is_last);
    tool::Job run{.value = job.SerializeAsString(), .grants = {{plan_.folder, true}}};
    for (const auto& [id, archive] : plan_.archives) run.nodes.push_back(id);
    PIF_TRY_VALUE(const auto results, controller_.run(run));
    PIF_TRY(take_parts(results, plan_));
    controller_.close_inputs();
    ++batch_;
    return {};
  }

  tool::Controller& controller_;
  Plan& plan_;
  const message::ArchiveHead& head_;
  int level_;
  std::vector<message::NamedEntry*> files_;
  std::uint64_t number_ = 0;
  std::uint32_t batch_ = 0;
};

// Of a backup that failed, what lies on this host. None of it was there before.
void remove_parts(const Plan& plan) {
  for (const auto& [id, archive] : plan.archives) {
    const std::string path = archive_path(plan.folder, archive.name());
    ::unlink((path + ".part").c_str());
    ::unlink(path.c_str());
  }
  ::unlink((archive_path(plan.folder, kNamesArchive) + ".part").c_str());
}

Status back_up(tool::Controller& controller, Plan& plan, int level) {
  Names names;
  PIF_TRY_VALUE(const SystemStatus status, controller.client().status());
  names.head.set_version(kArchiveVersion);
  names.head.set_cluster(status.cluster);
  names.head.set_backup(controller.client().session().entropy().next());
  names.head.set_made(std::time(nullptr));
  Batches batches(controller, plan, names.head, level);
  PIF_TRY(batches.run());
  for (const auto& [id, archive] : plan.archives) *names.head.add_nodes() = archive;
  names.entries = std::move(plan.entries);
  return write_names(plan.folder, std::move(names));
}

}  // namespace

Result<tool::ExitCode> back_up(tool::Controller& controller, const BackupOptions& options) {
  PIF_TRY_VALUE(Plan plan, plan_of(options));
  PIF_TRY(find_entries(controller.client(), plan));
  PIF_TRY(name_archives(controller.client(), plan));
  PIF_TRY_VALUE(const bool is_new, make_folder(plan.folder));
  if (!is_new) PIF_TRY(check_unused(plan));
  const std::uint64_t names = plan.entries.size();
  if (Status done = back_up(controller, plan, options.level); !done) {
    remove_parts(plan);
    if (is_new) ::rmdir(plan.folder.c_str());
    return fail(std::move(done.error()));
  }
  std::uint64_t archived = 0;
  for (const auto& [id, archive] : plan.archives) archived += archive.bytes();
  auto& report = controller.report();
  report.add_result("names", names);
  report.add_result("files", plan.files);
  report.add_result("bytes", plan.bytes);
  report.add_result("archived_bytes", archived);
  if (report.is_json || report.is_quiet) return tool::ExitCode::kDone;
  PIF_TRY(tool::print(
      fmt::format("{} names, {} files, {} bytes, {} of them in archives\n", names, plan.files, plan.bytes, archived)));
  return tool::ExitCode::kDone;
}

Result<tool::Plan> explain_backup(tool::Controller& controller, const BackupOptions& options) {
  PIF_TRY_VALUE(Plan plan, plan_of(options));
  PIF_TRY(find_entries(controller.client(), plan));
  PIF_TRY(name_archives(controller.client(), plan));
  std::string archives;
  for (const auto& [id, archive] : plan.archives) archives += " " + archive.name();
  return tool::Plan{
      {"reads", fmt::format("{} bytes of {} files, each where it lies", plan.bytes, plan.files)},
      {"writes", fmt::format("an archive of each of these LFSs, on its host:{}", archives)},
      {"names", fmt::format("{} of them, into {}", plan.entries.size(), archive_path(plan.folder, kNamesArchive))},
      {"moved", "nothing but names"}};
}

}  // namespace pif::backup
