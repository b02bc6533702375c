// pif backup: every LFS writes what it has of the files into an archive on its own host, and the names go into one
// where the command runs. Files are taken in batches: a job of workers each, which go on in the same archives.
#pragma once

#include <string>
#include <vector>

#include "pif/tool/tool_main.h"

namespace pif::backup {

struct BackupOptions {
  std::vector<std::string> operands;  // files and folders, and at last the local folder
  bool all = false;                   // instead of files and folders
  int level = 1;
};

// The backup is there when FOLDER/names.tar.zst is: before, all has failed, and what there is of it may be removed.
// kExists: FOLDER has a backup; kBusy: somebody writes to a file, whom it names; kUnsupported: a file has forks.
[[nodiscard]] Result<tool::ExitCode> back_up(tool::Controller& controller, const BackupOptions& options);
[[nodiscard]] Result<tool::Plan> explain_backup(tool::Controller& controller, const BackupOptions& options);
[[nodiscard]] Status back_up_components(tool::Worker& worker);

}  // namespace pif::backup
