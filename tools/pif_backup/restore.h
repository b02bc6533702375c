// pif restore: files from a backup, in batches as they were backed up. Each archive is read by a worker on its host;
// records go to where their numbers belong in the new file, whatever its layout.
#pragma once

#include <string>
#include <vector>

#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace pif::backup {

struct RestoreOptions : tool::OutputOptions {
  std::string folder;
  std::vector<std::string> paths;  // as they were called; none: all
  std::string into;                // a folder of the file system in the place of "/"
  std::string lfs;                 // only files that had records there, and are gone or lack rows now
  bool force = false;              // replaces what is there
  bool foreign = false;            // the backup may be another file system's
  bool verify = false;             // reads all archives, and restores nothing
};

// Each file appears whole; what is restored when it fails stays. kExists: something is there, and not `force`;
// kCorrupt: an archive is cut or damaged, or of another backup; kVersion: of a newer program.
[[nodiscard]] Result<tool::ExitCode> restore(tool::Controller& controller, const RestoreOptions& options);
[[nodiscard]] Result<tool::Plan> explain_restore(tool::Controller& controller, const RestoreOptions& options);
[[nodiscard]] Status restore_components(tool::Worker& worker);

}  // namespace pif::backup
