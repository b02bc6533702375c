// Paths of the file system that a command line names.
#pragma once

#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif::cli {

// Paths as typed, as the directory uses them. kInvalid: one does not begin with a slash.
[[nodiscard]] Result<std::vector<std::string>> parse_paths(const std::vector<std::string>& texts);

// SOURCE... TARGET, as cp and mv take them.
struct SourcesAndTarget {
  std::vector<std::string> sources;
  std::string target;
  bool into = false;  // the target is a folder, in which sources keep their names

  // texts: as typed, at least two.
  [[nodiscard]] static Result<SourcesAndTarget> parse(const std::vector<std::string>& texts);
  // Expands patterns of the sources, and looks whether the target is a folder. kNotDirectory: it has to be, for several
  // sources or because it must_be_folder, and is none.
  [[nodiscard]] Status look_up(Client& client, bool must_be_folder);
  std::string place_of(const std::string& source) const;
};

}  // namespace pif::cli
