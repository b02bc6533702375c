// ls, stat: what is in the directory.
#include <sys/sysmacros.h>

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "command/program.h"
#include "names/entries.h"
#include "names/operand_paths.h"
#include "names/striping.h"
#include "text/expand.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct ListingOptions {
  std::vector<std::string> paths = {"/"};
  bool details = false;
  bool recursive = false;
  bool human = false;
  bool itself = false;
  bool by_time = false, by_size = false, reverse = false;
};

constexpr std::size_t kRowsAtOnce = 1000;  // of a long listing: its columns are aligned within such a stretch

// Names that are equal in what is asked for come in their own order.
EntryOrder order_of(const ListingOptions& options) {
  if (!options.by_time && !options.by_size && !options.reverse) return {};
  const auto before = [time = options.by_time, size = options.by_size](const Entry& a, const Entry& b) {
    if (time && a.modified_ns != b.modified_ns) return a.modified_ns > b.modified_ns;
    if (size && a.file_length.bytes != b.file_length.bytes) return a.file_length.bytes > b.file_length.bytes;
    return a.name < b.name;
  };
  if (!options.reverse) return before;
  return [before](const Entry& a, const Entry& b) { return before(b, a); };
}

std::vector<std::string> details_of(const Entry& entry, const std::string& name, bool human) {
  const bool file = entry.kind == EntryKind::kFile;
  return {mode_text(kind_letter(entry.kind), entry.mode),
          user_name(entry.owner),
          group_name(entry.group),
          !file   ? "-"
          : human ? human_bytes(entry.file_length.bytes)
                  : std::to_string(entry.file_length.bytes),
          !file ? "-" : std::to_string(entry.file_length.records),
          !file ? "-" : format_text(entry.format),
          !file ? "-" : std::to_string(entry.nodes.size()),
          human_date(entry.modified_ns),
          name + name_end(entry)};
}

// Prints entries as they come, so that a folder of any size needs little memory; a JSON document begins with the first
// of them.
class Lister {
 public:
  Lister(bool json, bool details, bool human) : json_(json), details_(details), human_(human) {}

  bool has_begun_json() const { return json_ && !first_; }
  Status entry(const Entry& entry, const std::string& path, const std::string& name) {
    if (json_) {
      const std::string before = std::exchange(first_, false) ? kBeginning : ",";
      return print(before + json_of(entry, path).dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    if (!details_) return print(shown(name) + (entry.kind == EntryKind::kFolder ? "/\n" : "\n"));
    rows_.push_back(details_of(entry, shown(name), human_));
    return rows_.size() > kRowsAtOnce ? flush() : Status{};
  }
  Status end(const Failures& failures) {
    PIF_TRY(flush());
    return json_ ? print(std::string(first_ ? kBeginning : "") + "]" + failures.members() + "}\n") : Status{};
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

  bool json_, details_, human_;
  bool first_ = true;
  std::vector<std::vector<std::string>> rows_ = {heading()};
};

Status list_one(Client& client, const ListingOptions& options, const std::string& path, bool with_paths,
                Failures& failures, Lister& lister) {
  PIF_TRY_VALUE(const Entry top, client.stat(path));
  if (top.kind != EntryKind::kFolder || options.itself) return lister.entry(top, path, path == "/" ? "" : path);
  const EntryOrder order = order_of(options);
  if (options.recursive)
    return walk(
        client, path, failures,
        [&](const std::string& found, const Entry& entry) { return lister.entry(entry, found, found); }, order);
  return for_each_entry(
      client, path,
      [&](const Entry& entry) {
        const std::string full = join_path(path, entry.name);
        return lister.entry(entry, full, with_paths ? full : entry.name);
      },
      order);
}

Outcome list(const Program& program, const ListingOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY(check_stdout());
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  Lister lister(program.common.json, options.details, options.human);
  Failures failures(program);
  for (const auto& path : paths) {
    const Status listed = list_one(client, options, path, paths.size() > 1, failures, lister);
    if (listed) continue;
    const Error error = at(path, listed.error());
    if (paths.size() == 1 || ends_all(error))
      return lister.has_begun_json() ? program.fail_within(error, "]") : Outcome(fail(error));
    failures.add(error);
  }
  PIF_TRY(lister.end(failures));
  return failures.exit_code();
}

std::string join_numbers(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::string text_of(const Entry& entry, const std::string& path) {
  const bool folder = entry.kind == EntryKind::kFolder;
  std::string out = fmt::format("{}\n  kind      {}\n  id        {}\n", shown(path), kind_word(entry.kind), entry.id);
  out += fmt::format("  mode      {} ({:04o})\n  owner     {}\n  group     {}\n  modified  {}\n",
                     mode_text(kind_letter(entry.kind), entry.mode), entry.mode, user_name(entry.owner),
                     group_name(entry.group), iso_date(entry.modified_ns));
  if (folder && !entry.striping.is_empty()) out += fmt::format("  striping  {}\n", striping_text(entry.striping));
  if (entry.kind == EntryKind::kLink) out += fmt::format("  target    {}\n", shown(entry.target));
  if (entry.device != 0)
    out += fmt::format("  device    {}:{}\n", gnu_dev_major(entry.device), gnu_dev_minor(entry.device));
  if (entry.kind != EntryKind::kFile) return out;
  out += fmt::format("  bytes     {}\n  records   {}\n  format    {}\n", entry.file_length.bytes,
                     entry.file_length.records, format_text(entry.format));
  out += fmt::format("  width     {} (nodes {})\n", entry.nodes.size(), join_numbers(entry.nodes));
  if (entry.is_placed) out += fmt::format("  placed    in forks: pif forks {}\n", shown(path));
  if (!entry.bevies.empty())
    out += fmt::format(
        "  bevies    {} ({})\n", join_numbers(entry.bevies),
        entry.is_protected ? "protected" : "unprotected: made before parity was kept; `pif protect` makes it anew");
  for (const FileMark& mark : entry.marks)
    out += fmt::format("  mark      rows on node {} {} ({}); read with --stale\n", mark.node,
                       mark.kind == FileMark::Kind::kLost ? "are gone" : "may be older than others",
                       iso_second(mark.since));
  for (const auto& [name, value] : entry.attributes)
    out += fmt::format("  attribute {}: {} bytes\n", shown(name), value.size());
  return out;
}

Outcome stat(const Program& program, const ListingOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  Json documents = Json::array();
  Failures failures(program);
  for (const auto& path : paths) {
    Result<Entry> entry = client.stat(path);
    if (!entry) entry = fail(at(path, entry.error()));
    if (!entry && (paths.size() == 1 || ends_all(entry.error()))) return fail(entry.error());
    if (!entry) {
      failures.add(entry.error());
      documents.push_back({{"path", path}, {"error", json_of(entry.error())}});
    } else if (program.common.json) {
      documents.push_back(json_of(*entry, path));
    } else {
      PIF_TRY(print(text_of(*entry, path)));
    }
  }
  if (program.common.json) PIF_TRY(print(documents.size() == 1 ? documents[0] : documents));
  return failures.exit_code();
}

}  // namespace

void add_listing_commands(CLI::App& app, Program& program) {
  auto list_options = std::make_shared<ListingOptions>();
  CLI::App* ls =
      add_command(app, program, "ls", "List folders",
                  "  pif ls\n  pif ls -l /data\n  pif ls -lhS /data           the largest first, in KiB, MiB, ...\n"
                  "  pif ls -ltr /data           the newest last\n  pif ls -R --json / | jq '.entries[].path'");
  ls->add_option("PATH", list_options->paths, "Folders or files (default: /)");
  ls->add_flag("-l", list_options->details, "Mode, owner, group, bytes, records, format, width, time");
  ls->add_flag("-R,--recursive", list_options->recursive, "Everything below, with full paths");
  ls->add_flag("-d,--directory", list_options->itself, "Folders themselves, not what is in them");
  ls->add_flag("-h,--human-readable", list_options->human, "With -l: sizes in KiB, MiB and so on");
  auto* by_time = ls->add_flag("-t", list_options->by_time, "The newest first");
  ls->add_flag("-S", list_options->by_size, "The largest first")->excludes(by_time);
  ls->add_flag("-r,--reverse", list_options->reverse, "The other way round");
  ls->add_flag_callback(
      "-1", [] {}, "Accepted: there is always one name in a line");
  on_run(ls, program, list_options, list);

  auto stat_options = std::make_shared<ListingOptions>();
  CLI::App* stat_command = add_command(app, program, "stat", "Show all that is known of files and folders",
                                       "  pif stat /data/a.txt\n  pif stat --json /data/a.txt | jq .records");
  stat_command->add_option("PATH", stat_options->paths, "Files or folders")->required();
  on_run(stat_command, program, stat_options, stat);
}

}  // namespace pif::cli
