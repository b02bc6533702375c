// forks: what a file has in its subfiles beside its records.
#include <memory>

#include <fmt/format.h>

#include "command/program.h"
#include "names/entries.h"
#include "names/operands.h"
#include "names/striping.h"
#include "pif/base/fork.h"
#include "pif/base/inheriting.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct ForksOptions {
  std::string path;
  bool make = false;
  StripingOptions striping;
};

Outcome make_placed(const Program& program, const ForksOptions& options, const std::string& path) {
  PIF_TRY(format_of(options.striping));  // wrong usage before anything is asked
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const Striping striping, striping_of(client, options.striping));
  CreateOptions create;
  create.placed = true;
  create.exclusive = true;
  create.inherits_format = !striping.format;
  if (striping.format) create.format = *striping.format;
  create.width = striping.width;
  create.nodes = striping.nodes;
  create.bevy = striping.bevy.value_or(0) != 0 ? *striping.bevy : kNoBevies;
  PIF_TRY(client.create_empty(path, create));
  if (program.common.json) PIF_TRY(print(Json{{"created", path}}));
  return ExitCode::kDone;
}

Outcome list_forks(const Program& program, const std::string& path) {
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const File file, client.open(path));
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  const auto node_name = [&](std::uint32_t id) {
    for (const Node& node : status.nodes)
      if (node.id == id) return node.name;
    return std::to_string(id);
  };
  std::vector<std::vector<std::string>> rows = {{"subfile", "LFS", "bytes", "records", "format", "modified", "name"}};
  Json forks = Json::array();
  PIF_TRY(for_each_entry([&](const std::string& after) { return client.list_forks(file, after); },
                         [&](const Entry& entry) -> Status {
                           PIF_TRY_VALUE(const ForkName fork, parse_fork(entry.name));
                           if (program.common.json) {
                             forks.push_back(json_of(entry, path + "/" + entry.name));
                             return {};
                           }
                           rows.push_back({std::to_string(fork.subfile), node_name(file.nodes()[fork.subfile]),
                                           std::to_string(entry.file_length.bytes),
                                           std::to_string(entry.file_length.records), format_text(entry.format),
                                           human_date(entry.modified_ns), shown(std::string(fork.name))});
                           return {};
                         }));
  if (program.common.json) {
    PIF_TRY(print(Json{{"path", path}, {"placed", file.is_placed()}, {"nodes", file.nodes()}, {"forks", forks}}));
  } else if (rows.size() > 1) {
    PIF_TRY(print(table(rows, {0, 2, 3})));
  }
  return ExitCode::kDone;
}

Outcome forks(const Program& program, const ForksOptions& options) {
  PIF_TRY_VALUE(const std::string path, parse_path(options.path));
  return options.make ? make_placed(program, options, path) : list_forks(program, path);
}

}  // namespace

void add_fork_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<ForksOptions>();
  CLI::App* command =
      add_command(app, program, "forks", "List the forks of a file, or make a file of nothing but forks",
                  "  pif forks /field                     what each of its subfiles has\n"
                  "  pif forks --make --width 4 /field    a placed file; its bytes are its forks \"data\"\n"
                  "  pif put temperatures /field/2/data   a fork is FILE/SUBFILE/NAME; one of subfile 2\n"
                  "  pif cat /field/2/data\n"
                  "  pif cat /field                       the forks \"data\" of all subfiles, in order");
  command->add_option("FILE", options->path, "A file")->required();
  command->add_flag("--make", options->make, "Make it: a placed file, empty");
  add_striping_options(command, options->striping, false);
  on_run(command, program, options, forks);
}

}  // namespace pif::cli
