// ls, stat, du: what is in the directory.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "entries.h"
#include "pif/base/typed_path.h"
#include "program.h"
#include "text.h"

namespace pif::cli {
namespace {

struct Options {
  std::vector<std::string> paths = {"/"};
  bool details = false;
  bool recursive = false;
};

constexpr std::size_t kRowsAtOnce = 1000;  // of a long listing: its columns are aligned within such a stretch

std::vector<std::string> details_of(const Entry& entry, const std::string& shown) {
  const bool folder = entry.kind == EntryKind::kFolder;
  return {mode_text(folder, entry.mode),
          user_name(entry.owner),
          group_name(entry.group),
          folder ? "-" : std::to_string(entry.extent.bytes),
          folder ? "-" : std::to_string(entry.extent.records),
          folder ? "-" : format_text(entry.format),
          folder ? "-" : std::to_string(entry.nodes.size()),
          human_date(entry.modified_ns),
          shown + (folder ? "/" : "")};
}

// Prints entries as they come, so that a folder of any size needs little memory; a JSON document begins with the first of them.
class Lister {
 public:
  Lister(bool json, bool details) : json_(json), details_(details) {}

  bool has_begun_json() const { return json_ && !first_; }
  Status entry(const Entry& entry, const std::string& path, const std::string& shown) {
    if (json_) {
      const std::string before = std::exchange(first_, false) ? kBeginning : ",";
      return print(before + json_of(entry, path).dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    if (!details_) return print(shown + (entry.kind == EntryKind::kFolder ? "/\n" : "\n"));
    rows_.push_back(details_of(entry, shown));
    return rows_.size() > kRowsAtOnce ? flush() : Status{};
  }
  Status end() {
    PIF_TRY(flush());
    return json_ ? print(std::string(first_ ? kBeginning : "") + "]}\n") : Status{};
  }

 private:
  static constexpr const char* kBeginning = "{\"entries\":[";

  static std::vector<std::string> heading() {
    return {"mode", "owner", "group", "bytes", "records", "format", "width", "modified", "name"};
  }
  Status flush() {
    if (rows_.size() <= 1) return {};
    const std::string text = table(rows_, {3, 4, 6});
    rows_ = {heading()};
    return print(text);
  }

  bool json_, details_;
  bool first_ = true;
  std::vector<std::vector<std::string>> rows_ = {heading()};
};

Status list_one(Client& client, const Options& options, const std::string& path, Lister& lister) {
  PIF_TRY_VALUE(const Entry top, client.stat(path));
  if (top.kind == EntryKind::kFile) return lister.entry(top, path, path);
  if (options.recursive)
    return walk(client, path, [&](const std::string& found, const Entry& entry) { return lister.entry(entry, found, found); });
  return for_each_entry(client, path, [&](const Entry& entry) {
    const std::string full = join_path(path, entry.name);
    return lister.entry(entry, full, options.paths.size() > 1 ? full : entry.name);
  });
}

Outcome list(const Program& program, const Options& options) {
  std::vector<std::string> paths;
  for (const auto& text : options.paths) {
    PIF_TRY_VALUE(paths.emplace_back(), parse_path(text));
  }
  PIF_TRY_VALUE(Client client, program.connect());
  Lister lister(program.common.json, options.details);
  for (const auto& path : paths) {
    const Status listed = list_one(client, options, path, lister);
    if (!listed && lister.has_begun_json()) return program.fail_within(listed.error(), "]");
    PIF_TRY(listed);
  }
  PIF_TRY(lister.end());
  return ExitCode::kDone;
}

std::string join_numbers(const std::vector<std::uint32_t>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

std::string text_of(const Entry& entry, const std::string& path) {
  const bool folder = entry.kind == EntryKind::kFolder;
  std::string out = fmt::format("{}\n  kind      {}\n  id        {}\n", path, folder ? "folder" : "file", entry.id);
  out += fmt::format("  mode      {} ({:04o})\n  owner     {}\n  group     {}\n  modified  {}\n",
                     mode_text(folder, entry.mode), entry.mode, user_name(entry.owner), group_name(entry.group),
                     iso_date(entry.modified_ns));
  if (folder) return out;
  out += fmt::format("  bytes     {}\n  records   {}\n  format    {}\n", entry.extent.bytes, entry.extent.records,
                     format_text(entry.format));
  out += fmt::format("  width     {} (nodes {})\n", entry.nodes.size(), join_numbers(entry.nodes));
  if (!entry.bevies.empty()) out += fmt::format("  bevies    {} (a layout only: no parity is computed yet)\n", join_numbers(entry.bevies));
  for (const auto& [name, value] : entry.attributes) out += fmt::format("  attribute {}: {} bytes\n", name, value.size());
  return out;
}

Outcome stat(const Program& program, const Options& options) {
  std::vector<std::string> paths;
  for (const auto& text : options.paths) {
    PIF_TRY_VALUE(paths.emplace_back(), parse_path(text));
  }
  PIF_TRY_VALUE(Client client, program.connect());
  Json documents = Json::array();
  for (const auto& path : paths) {
    PIF_TRY_VALUE(const Entry entry, client.stat(path));
    if (program.common.json) {
      documents.push_back(json_of(entry, path));
    } else {
      PIF_TRY(print(text_of(entry, path)));
    }
  }
  if (program.common.json) PIF_TRY(print(documents.size() == 1 ? documents[0] : documents));
  return ExitCode::kDone;
}

struct Usage {
  std::uint64_t bytes = 0, records = 0, files = 0, folders = 0;
  void add(const Entry& entry) {
    if (entry.kind == EntryKind::kFolder) {
      ++folders;
      return;
    }
    ++files;
    bytes += entry.extent.bytes;
    records += entry.extent.records;
  }
};

Result<Usage> usage_of(Client& client, const std::string& path) {
  Usage usage;
  PIF_TRY_VALUE(const Entry top, client.stat(path));
  usage.add(top);
  if (top.kind == EntryKind::kFile) return usage;
  PIF_TRY(walk(client, path, [&](const std::string&, const Entry& entry) -> Status {
    usage.add(entry);
    return {};
  }));
  return usage;
}

Outcome usage(const Program& program, const Options& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  Json documents = Json::array();
  std::vector<std::vector<std::string>> rows = {{"bytes", "size", "records", "files", "folders", "path"}};
  for (const auto& text : options.paths) {
    PIF_TRY_VALUE(const std::string path, parse_path(text));
    PIF_TRY_VALUE(const Usage sum, usage_of(client, path));
    documents.push_back(
        {{"path", path}, {"bytes", sum.bytes}, {"records", sum.records}, {"files", sum.files}, {"folders", sum.folders}});
    rows.push_back({std::to_string(sum.bytes), human_bytes(sum.bytes), std::to_string(sum.records), std::to_string(sum.files),
                    std::to_string(sum.folders), path});
  }
  PIF_TRY(program.common.json ? print(Json{{"usage", documents}}) : print(table(rows, {0, 1, 2, 3, 4})));
  return ExitCode::kDone;
}

}  // namespace

void add_listing_commands(CLI::App& app, Program& program) {
  auto list_options = std::make_shared<Options>();
  CLI::App* ls = add_command(app, program, "ls", "List folders",
                             "  pif ls\n  pif ls -l /data\n  pif ls -R --json / | jq '.entries[].path'");
  ls->add_option("PATH", list_options->paths, "Folders or files (default: /)");
  ls->add_flag("-l", list_options->details, "Mode, owner, group, bytes, records, format, width, time");
  ls->add_flag("-R,--recursive", list_options->recursive, "Everything below, with full paths");
  on_run(ls, program, list_options, list);

  auto stat_options = std::make_shared<Options>();
  CLI::App* stat_command = add_command(app, program, "stat", "Show all that is known of files and folders",
                                       "  pif stat /data/a.txt\n  pif stat --json /data/a.txt | jq .records");
  stat_command->add_option("PATH", stat_options->paths, "Files or folders")->required();
  on_run(stat_command, program, stat_options, stat);

  auto usage_options = std::make_shared<Options>();
  CLI::App* du = add_command(app, program, "du", "Sum up bytes, records and files below a path", "  pif du\n  pif du /data /results");
  du->add_option("PATH", usage_options->paths, "Files or folders (default: /)");
  on_run(du, program, usage_options, usage);
}

}  // namespace pif::cli
