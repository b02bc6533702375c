// pif-backup PATH... FOLDER: archives of files, each LFS's on its own host.
#include <memory>

#include <CLI/CLI.hpp>

#include "backup.h"
#include "backup_archive.h"
#include "pif/base/decimal.h"

int main(int argc, char** argv) {
  pif::backup::speak_utf8();
  const auto options = std::make_shared<pif::backup::BackupOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-backup";
  tool.summary = "Backs files up: every LFS writes what it has of them into an archive on its own host.";
  tool.examples =
      "  pif backup --all /backup/monday           all files, into a folder that is empty or not there\n"
      "  pif backup /photos /web.log /backup/some  a folder and a file\n"
      "  tar tf /backup/monday/lfs0.tar.zst        what there is\n"
      "pif restore brings them back, all or some, onto any number of LFSs.\n";
  tool.options = [options](CLI::App& app) {
    app.add_option("PATH", options->operands, "files and folders, and at last the local FOLDER")
        ->required()
        ->type_name("PATH... FOLDER");
    app.add_flag("--all", options->all, "all files of the file system; then FOLDER alone is named");
    app.add_option("--level", options->level, "how hard zstd compresses")
        ->check(CLI::Range(1, 19))
        ->transform(pif::whole_number)
        ->capture_default_str();
  };
  tool.control = [options](pif::tool::Controller& controller) { return pif::backup::back_up(controller, *options); };
  tool.explain = [options](pif::tool::Controller& controller) {
    return pif::backup::explain_backup(controller, *options);
  };
  tool.work = pif::backup::back_up_components;
  return pif::tool::main(argc, argv, tool);
}
