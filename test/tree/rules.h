// The rules of this tree that a program can check. Each finds offences in a tree of texts, which need not be on disk.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pif/base/result.h"

namespace pif::tree {

using Tree = std::map<std::string, std::string>;                    // path from the root -> text
using Dependencies = std::map<std::string, std::set<std::string>>;  // folder -> folders whose public headers it may use

// Folder with rooms -> room -> rooms of that folder that it may use: "lfs/src" -> "append" -> {"context"}.
using Rooms = std::map<std::string, Dependencies>;

struct Offence {
  std::string file;
  std::size_t line = 0;
  std::string what;
  std::string to_string() const { return file + ":" + std::to_string(line) + ": " + what; }
};
using Offences = std::vector<Offence>;

inline constexpr std::size_t kFileLinesMax = 600;
inline constexpr std::size_t kFunctionLinesMax = 70;
inline constexpr std::size_t kColumnsMax = 120;

// All sources, scripts and CMake files below `root`; nothing hidden, and no build folder.
[[nodiscard]] Result<Tree> read_tree(const std::string& root);

// The table "What each folder has" of docs/ARCHITECTURE.md.
[[nodiscard]] Result<Dependencies> parse_dependencies(const std::string& architecture);

// A folder uses the public headers of those it may use, and no private header of another. Tests see all.
Offences check_includes(const Tree& tree, const Dependencies& dependencies);
// The tables under "Rooms" of docs/ARCHITECTURE.md. kInvalid if two rooms may use each other, also by way of a third.
[[nodiscard]] Result<Rooms> parse_rooms(const std::string& architecture);
// A room uses the rooms that its table says, and nothing that lies above the rooms. Every sub-folder is a declared
// room.
Offences check_rooms(const Tree& tree, const Rooms& rooms);
// Headers are guarded, and private ones are used.
Offences check_headers(const Tree& tree);
// Files, functions and lines are short (functions of tests may be long).
Offences check_lengths(const Tree& tree);
// Nothing is left to do.
Offences check_leftovers(const Tree& tree);
// Only base/ and parity/ compute where a record is. Finds remainders by a width, which is how it is done elsewhere.
Offences check_placement(const Tree& tree);
// No calls that are unsafe, that sleep (in libraries and tests), that fork, or that end the process below main.
Offences check_calls(const Tree& tree);
// What docs/PROTOCOL.md writes as `Message`, `Message.field` or `kConstant` is in the .proto files, or in the code.
Offences check_protocol(const Tree& tree);

}  // namespace pif::tree
