// Options of every tool that give something to its workers: folders of their hosts, and files of this one.
#pragma once

#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/controller.h"

namespace CLI {
class App;
}

namespace pif::tool {

struct WorkerOptions {
  std::vector<std::string> read, write;  // folders
  std::vector<std::string> files;
};

// --read, --write, --file. A tool that has an option --file of its own keeps it, and brings none.
void add_worker_options(CLI::App& app, WorkerOptions& options);

// Folders become absolute, from the present one on; files are read. kInvalid: two files of one name, or a folder that
// check_grants() refuses; kTooLarge: over kBroughtBytesMax; else why a file cannot be read.
[[nodiscard]] Status take_worker_options(const WorkerOptions& options, ControllerOptions& into);

// kInvalid, with what to do: too many, or one that is not absolute or cannot be named in a message.
[[nodiscard]] Status check_grants(const std::vector<FolderGrant>& grants);

}  // namespace pif::tool
