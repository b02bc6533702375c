// Paths of the file system that a command line names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif::cli {

// Paths as typed, as parse_path() has them. One that cannot be a path stays as it is: whoever looks it up says why, and
// the others go on. kInvalid: one does not begin with a slash.
[[nodiscard]] Result<std::vector<std::string>> parse_paths(const std::vector<std::string>& texts);

// SOURCE... TARGET, as cp and mv take them.
struct SourcesAndTarget {
  std::vector<std::string> sources;
  std::string target;
  bool into = false;  // the target is a folder, in which sources keep their names

  // texts: as typed, at least two.
  [[nodiscard]] static Result<SourcesAndTarget> parse(const std::vector<std::string>& texts);
  // Expands patterns of the sources, and looks whether the target is a folder. kNotDirectory: it has to be, for several
  // sources or for the slash at its end, and is none.
  [[nodiscard]] Status look_up(Client& client);
  std::string place_of(const std::string& source) const;
};

// Where the operands of one command went, such as those of one last name that go into one folder.
class Destinations {
 public:
  // kExists: an operand before has gone there, and the next would take its place unseen. cp(1) and mv(1) refuse that,
  // too.
  [[nodiscard]] Status check(const std::string& source, const std::string& to) const;
  void note(const std::string& source, const std::string& to) { sources_.emplace(to, source); }
  // Both.
  [[nodiscard]] Status take(const std::string& source, const std::string& to);

 private:
  std::map<std::string, std::string> sources_;  // by destination
};

// Without those that were named before: of a file that is named twice there is one copy.
std::vector<std::string> without_repeats(std::vector<std::string> operands);

}  // namespace pif::cli
