// pif-restore FOLDER [PATH...]: files from a backup.
#include <memory>

#include <CLI/CLI.hpp>

#include "../pif_backup/backup_archive.h"
#include "../pif_backup/restore.h"

namespace {

void add_options(CLI::App& app, pif::backup::RestoreOptions& options) {
  app.add_option("FOLDER", options.folder, "the local folder of the backup")->required();
  app.add_option("PATH", options.paths, "files and folders, as they were called (default: all)")->type_name("PATH...");
  app.add_option("--into", options.into, "a folder of the file system that all goes into (default: where it was)")
      ->type_name("DIR");
  app.add_option("--lfs", options.lfs, "only files that had records on this LFS, and are gone or lack rows now")
      ->type_name("NAME");
  auto* const verify = app.add_flag("--verify", options.verify, "read all archives, and restore nothing");
  app.add_flag("-f,--force", options.force, "replace what is there")->excludes(verify);
  app.add_flag("--foreign", options.foreign, "the backup may be of another file system");
  pif::tool::add_output_options(app, options);
}

}  // namespace

int main(int argc, char** argv) {
  pif::backup::speak_utf8();
  const auto options = std::make_shared<pif::backup::RestoreOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-restore";
  tool.summary = "Restores files from a backup, onto any number of LFSs.";
  tool.examples =
      "  pif restore /backup/monday                        all of it\n"
      "  pif restore --into /old /backup/monday /photos    a folder, beside what is there\n"
      "  pif restore --lfs lfs1 /backup/monday             what a lost disk had\n"
      "  pif restore --verify /backup/monday               whether it is whole\n";
  tool.options = [options](CLI::App& app) { add_options(app, *options); };
  tool.control = [options](pif::tool::Controller& controller) { return pif::backup::restore(controller, *options); };
  tool.explain = [options](pif::tool::Controller& controller) {
    return pif::backup::explain_restore(controller, *options);
  };
  tool.work = pif::backup::restore_components;
  return pif::tool::main(argc, argv, tool);
}
