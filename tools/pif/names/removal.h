// Removes from a folder what is known to be in it, and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pif/base/result.h"

namespace pif::cli {

// The entries of a folder itself: names of files and of folders, as patterns (fnmatch(3)).
struct KnownFolder {
  struct Inside;
  std::vector<std::string> files;
  std::vector<Inside> folders;
  std::string last;  // a file that goes when all others that are known have gone: by it the folder is recognised
};
struct KnownFolder::Inside {
  std::string name;
  KnownFolder known;
};

struct Removal {
  std::uint64_t files = 0;        // that are gone
  std::vector<std::string> left;  // paths of what nobody knows: the first thousand
};

// Removes these files and folders in `folder`, and itself if nothing is left. No symbolic link is followed or removed,
// also not `folder` itself, if it is one; a folder that is not there is removed already. May be done again after any
// end.
[[nodiscard]] Status remove_known(const std::string& folder, const KnownFolder& known, Removal& removal);

}  // namespace pif::cli
