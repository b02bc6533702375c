#include "rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "source_text.h"

namespace pif::tree {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }
bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }
bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}
bool is_header(const std::string& path) { return ends_with(path, ".h"); }
bool is_c_family(const std::string& path) { return is_header(path) || ends_with(path, ".cc") || ends_with(path, ".c"); }
bool is_public_header(const std::string& path) {
  return is_header(path) && starts_with(path, folder_of(path) + "/include/");
}
// Below main, two places end a process.
constexpr std::string_view kAssertions = "base/src/assert.cc";
constexpr std::string_view kLostPages = "libtool/src/memory/mapping.cc";  // where a thread of a worker cannot go on
constexpr std::string_view kDaemonLock =
    "cluster/src/daemons/lock.cc";  // a part of the daemons' mains, before they serve
// Where a program begins: it may end itself, and wait for people.
bool is_program(const std::string& path) {
  const std::string folder = folder_of(path);
  return folder == "tools" || folder == "bench" || folder == "examples" || starts_with(path, folder + "/main/");
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::set<std::string> names_in(const std::string& list) {
  std::set<std::string> names;
  for (const std::string& name : split(list, ','))
    if (!name.empty()) names.insert(name);
  return names;
}

// Which folder a public header is of: "pif/base/ids.h" -> "base".
std::map<std::string, std::string> public_headers(const Tree& tree) {
  std::map<std::string, std::string> owners;
  for (const auto& [path, text] : tree) {
    const std::string folder = folder_of(path);
    if (is_public_header(path)) owners[path.substr(folder.size() + std::string_view("/include/").size())] = folder;
    if (folder == "proto" && ends_with(path, ".proto"))
      owners["pif/" + path.substr(0, path.size() - std::string_view(".proto").size()) + ".pb.h"] = "proto";
  }
  return owners;
}

// The protocol of `folder` that a generated header is made of; empty if there is none.
std::string protocol_of(const Tree& tree, const std::string& folder, const std::string& generated) {
  const std::string name = "/" + generated.substr(0, generated.size() - std::string_view(".pb.h").size()) + ".proto";
  for (const auto& [path, text] : tree)
    if ((folder_of(path) == folder || folder == "test") && ends_with(path, name)) return path;
  return "";
}

// tools/pif/names/find.cc -> tools/pif: where a program's own includes start.
std::string program_folder(const std::string& path) {
  const std::size_t first = path.find('/');
  const std::size_t second = first == std::string::npos ? first : path.find('/', first + 1);
  return second == std::string::npos ? folder_of(path) : path.substr(0, second);
}

// Where a quoted include that is not of a public header leads; empty if nowhere that `path` may look.
std::string private_header(const Tree& tree, const std::string& path, const std::string& include) {
  if (ends_with(include, ".pb.h")) return protocol_of(tree, folder_of(path), include);
  for (const std::string& from :
       {fs::path(path).parent_path().string(), folder_of(path) + "/src", program_folder(path), std::string("test")}) {
    const std::string candidate = (fs::path(from) / include).lexically_normal().string();
    if (tree.count(candidate) != 0) return candidate;
  }
  return "";
}

class IncludeCheck {
 public:
  IncludeCheck(const Tree& tree, const Dependencies& dependencies)
      : tree_(tree), dependencies_(dependencies), owners_(public_headers(tree)) {}

  // What is wrong with an include; empty if nothing.
  std::string judge(const std::string& path, const Include& include) const {
    if (starts_with(include.path, "pif/")) return judge_public(path, include.path);
    if (!include.quoted) return "";
    if (is_public_header(path)) return "a public header includes a private one: " + include.path;
    const std::string header = private_header(tree_, path, include.path);
    if (header.empty()) return "no such header here: " + include.path + " (a private header of another folder?)";
    const bool own = folder_of(header) == folder_of(path) || folder_of(path) == "test";
    return own ? "" : "includes a private header of " + folder_of(header) + ": " + include.path;
  }

 private:
  std::string judge_public(const std::string& path, const std::string& include) const {
    const auto owner = owners_.find(include);
    if (owner == owners_.end()) return "no folder has a public header " + include;
    const std::string folder = folder_of(path);
    const auto may_use = dependencies_.find(folder);
    if (may_use == dependencies_.end() || owner->second == folder || may_use->second.count(owner->second) != 0)
      return "";
    if (owner->second == "cluster" && starts_with(path, folder + "/main/")) return "";
    return folder + " may not use " + owner->second + ": " + include;
  }

  const Tree& tree_;
  const Dependencies& dependencies_;
  const std::map<std::string, std::string> owners_;
};

// Whether what `from` may use leads to `to`.
bool reaches(const Dependencies& arrows, const std::string& from, const std::string& to) {
  std::set<std::string> seen;
  std::vector<std::string> open(arrows.at(from).begin(), arrows.at(from).end());
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (name == to) return true;
    if (seen.insert(name).second && arrows.count(name) != 0)
      open.insert(open.end(), arrows.at(name).begin(), arrows.at(name).end());
  }
  return false;
}

// Of a file in a folder with rooms: the folder, and the room; none if it lies above the rooms.
struct Place {
  std::string folder, room;
};
Place place_of(const Rooms& rooms, const std::string& path) {
  Place place;
  for (const auto& [folder, arrows] : rooms)
    if (starts_with(path, folder + "/") && folder.size() > place.folder.size()) place.folder = folder;
  if (place.folder.empty()) return place;
  const std::string rest = path.substr(place.folder.size() + 1);
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) place.room = rest.substr(0, slash);
  return place;
}

// The operand after a remainder sign, as far as names, members and empty calls go.
std::string_view operand_at(std::string_view code, std::size_t at) {
  at = code.find_first_not_of(" \n=", at);
  if (at == std::string_view::npos) return {};
  const std::size_t end =
      code.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:->()", at);
  return code.substr(at, end == std::string_view::npos ? end : end - at);
}

bool is_width(std::string_view operand) {
  for (const std::string_view name :
       {"width", "nodes.size()", "nodes_size()", "lfss.size()", "lfs_count", "node_count"})
    if (operand.find(name) != std::string_view::npos) return true;
  return false;
}

// Why a call is banned in this file; empty if it is not.
std::string why_banned(const std::string& path, std::string name) {
  // What a signal does to a process is seen from another one.
  if (path == "test/component/mapped_writes_test.cc" || path == "test/libtool/mapping_test.cc") return "";
  static const std::set<std::string> kUnsafe = {"strcpy", "strcat", "sprintf", "vsprintf",
                                                "gets",   "strtok", "tmpnam",  "mktemp"};
  static const std::set<std::string> kSleeping = {"sleep", "usleep", "nanosleep", "sleep_for", "sleep_until"};
  static const std::set<std::string> kEnding = {"std::exit",      "std::abort", "std::_Exit", "std::quick_exit",
                                                "std::terminate", "::exit",     "::abort",    "::_exit",
                                                "exit",           "_exit"};
  if (kEnding.count(name) != 0 && !is_program(path) && path != kAssertions && path != kLostPages)
    return "ends the process below main";
  const std::size_t scope = name.rfind(':');
  const std::string scope_name = scope == std::string::npos ? "" : name.substr(0, scope + 1);
  if (scope != std::string::npos) name.erase(0, scope + 1);
  if (kSleeping.count(name) != 0 && !is_program(path) && path != kDaemonLock)
    return "sleeps: waiting goes through a seam, with a deadline";
  if (scope_name != "" && scope_name != "::" && scope_name != "std::") return "";
  if (kUnsafe.count(name) != 0) return "does not know how much memory there is";
  if (name == "system" || name == "popen") return "runs a shell";
  if (name == "fork" || name == "vfork") return "forks: processes are started by posix_spawn";
  return "";
}

}  // namespace

Result<Tree> read_tree(const std::string& root) {
  static const std::set<std::string> kExtensions = {".h",  ".cc",    ".c",   ".proto", ".py",
                                                    ".sh", ".cmake", ".txt", ".md",    ""};
  Tree tree;
  std::error_code failed;
  for (auto at = fs::recursive_directory_iterator(root, failed); !failed && at != fs::recursive_directory_iterator();
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name[0] == '.' || name == "__pycache__" || (at.depth() == 0 && starts_with(name, "build"))) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file() && kExtensions.count(at->path().extension().string()) != 0) {
      std::ifstream in(at->path(), std::ios::binary);
      tree[at->path().lexically_relative(root).string()] = std::string(std::istreambuf_iterator<char>(in), {});
    }
  }
  if (failed) return fail(Code::kIo, "cannot read " + root + ": " + failed.message());
  return tree;
}

Result<Dependencies> parse_dependencies(const std::string& architecture) {
  std::map<std::string, std::string> cells;  // as written, until all folders are known
  for (const std::string_view line : lines_of(architecture)) {
    const auto row = split(line, '|');
    if (row.size() == 5 && row[1].size() > 3 && row[1].front() == '`' && row[1].find('/') == row[1].size() - 2)
      cells[row[1].substr(1, row[1].size() - 3)] = row[3];
  }
  if (cells.size() < 2)
    return fail(Code::kInvalid, "docs/ARCHITECTURE.md has no table of folders and what they may use");
  constexpr std::string_view kAllBut = "everything but ", kToo = " and what it may use";
  Dependencies dependencies;
  for (const auto& [folder, cell] : cells) {
    auto& may_use = dependencies[folder];
    if (starts_with(cell, kAllBut)) {
      for (const auto& [other, ignored] : cells) may_use.insert(other);
      for (const auto& name : names_in(cell.substr(kAllBut.size()))) may_use.erase(name);
    } else if (ends_with(cell, kToo)) {
      const std::string base = cell.substr(0, cell.size() - kToo.size());
      may_use = names_in(cells[base]);
      may_use.insert(base);
    } else {
      may_use = names_in(cell);
    }
    for (const auto& name : may_use)
      if (cells.count(name) == 0)
        return fail(Code::kInvalid, folder + " may use " + name + ", which is not a folder of the table");
  }
  return dependencies;
}

Result<Rooms> parse_rooms(const std::string& architecture) {
  Rooms rooms;
  for (const std::string_view line : lines_of(architecture)) {
    const auto row = split(line, '|');
    if (row.size() != 5 || row[1].size() < 4 || row[1].front() != '`' || !ends_with(row[1], "/`")) continue;
    const std::string path = row[1].substr(1, row[1].size() - 3);
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos) rooms[path.substr(0, slash)][path.substr(slash + 1)] = names_in(row[3]);
  }
  if (rooms.empty()) return fail(Code::kInvalid, "docs/ARCHITECTURE.md has no tables of rooms");
  for (const auto& [folder, arrows] : rooms)
    for (const auto& [room, may_use] : arrows) {
      for (const std::string& name : may_use)
        if (arrows.count(name) == 0)
          return fail(Code::kInvalid, folder + "/" + room + " may use " + name + ", which is no room there");
      if (reaches(arrows, room, room))
        return fail(Code::kInvalid, folder + "/" + room + " may use itself, by way of others");
    }
  return rooms;
}

Offences check_rooms(const Tree& tree, const Rooms& rooms) {
  Offences offences;
  for (const auto& [path, text] : tree) {
    const Place place = place_of(rooms, path);
    if (place.folder.empty() || place.room.empty() || !is_c_family(path)) continue;
    const Dependencies& arrows = rooms.at(place.folder);
    if (arrows.count(place.room) == 0) {
      offences.push_back(
          {path, 1, "a room that docs/ARCHITECTURE.md does not have: " + place.folder + "/" + place.room});
      continue;
    }
    for (const Include& include : includes_of(text)) {
      if (ends_with(include.path, ".pb.h")) continue;  // a program's messages are for all its rooms
      const std::string header = include.quoted ? private_header(tree, path, include.path) : "";
      const Place used = place_of(rooms, header);
      if (used.folder != place.folder || used.room == place.room) continue;
      if (used.room.empty())
        offences.push_back({path, include.line, place.room + " uses what lies above the rooms: " + include.path});
      else if (arrows.at(place.room).count(used.room) == 0)
        offences.push_back({path, include.line, place.room + " may not use " + used.room + ": " + include.path});
    }
  }
  return offences;
}

Offences check_includes(const Tree& tree, const Dependencies& dependencies) {
  const IncludeCheck check(tree, dependencies);
  Offences offences;
  for (const auto& [path, text] : tree) {
    if (!is_c_family(path)) continue;
    for (const Include& include : includes_of(text))
      if (std::string what = check.judge(path, include); !what.empty())
        offences.push_back({path, include.line, std::move(what)});
  }
  return offences;
}

Offences check_headers(const Tree& tree) {
  std::set<std::string> used;
  for (const auto& [path, text] : tree)
    if (is_c_family(path))
      for (const Include& include : includes_of(text)) used.insert(private_header(tree, path, include.path));
  Offences offences;
  for (const auto& [path, text] : tree) {
    if (!is_header(path)) continue;
    if (text.find("#pragma once") == std::string::npos && text.find("#ifndef ") == std::string::npos)
      offences.push_back({path, 1, "a header that may not be included twice"});
    if (!is_public_header(path) && used.count(path) == 0)
      offences.push_back({path, 1, "a private header that nobody includes"});
  }
  return offences;
}

Offences check_lengths(const Tree& tree) {
  Offences offences;
  for (const auto& [path, text] : tree) {
    if (folder_of(path) == "LICENSE" || path.starts_with("test/fuzz/corpus/")) continue;
    const std::vector<std::string_view> lines = lines_of(text);
    const bool may_be_long = ends_with(path, ".md");
    if (lines.size() > kFileLinesMax && !may_be_long)
      offences.push_back({path, kFileLinesMax + 1, "a file of " + std::to_string(lines.size()) + " lines"});
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i].size() > kColumnsMax)
        offences.push_back({path, i + 1, "a line of " + std::to_string(lines[i].size()) + " columns"});
    if (!is_c_family(path) || folder_of(path) == "test") continue;
    for (const Function& function : functions_of(code_only(text)))
      if (function.lines > kFunctionLinesMax)
        offences.push_back({path, function.line, "a function of " + std::to_string(function.lines) + " lines"});
  }
  return offences;
}

Offences check_leftovers(const Tree& tree) {
  // In two halves, so that this list is not an offence itself.
  static const std::array<std::string, 4> kMarks = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                                    std::string("X") + "XX", std::string("HA") + "CK"};
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  Offences offences;
  for (const auto& [path, text] : tree)
    for (const std::string& mark : kMarks)
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
        const std::size_t end = at + mark.size();
        if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end])))
          offences.push_back({path, line_at(text, at), "left to do: " + mark});
      }
  return offences;
}

Offences check_placement(const Tree& tree) {
  static const std::set<std::string> kMay = {"base", "parity", "test"};
  Offences offences;
  for (const auto& [path, text] : tree) {
    if (!is_c_family(path) || kMay.count(folder_of(path)) != 0) continue;
    const std::string code = code_only(text);
    for (std::size_t at = code.find('%'); at != std::string::npos; at = code.find('%', at + 1))
      if (is_width(operand_at(code, at + 1)))
        offences.push_back({path, line_at(code, at), "computes a placement: only base/ and parity/ do"});
  }
  return offences;
}

Offences check_calls(const Tree& tree) {
  Offences offences;
  for (const auto& [path, text] : tree) {
    if (folder_of(path) == "test" && ends_with(path, ".py"))
      for (std::size_t at = text.find("sleep("); at != std::string::npos; at = text.find("sleep(", at + 1))
        offences.push_back({path, line_at(text, at), "sleeps: tests wait for what they wait for"});
    if (!is_c_family(path)) continue;
    for (const Call& call : calls_of(code_only(text)))
      if (const std::string why = why_banned(path, call.name); !why.empty())
        offences.push_back({path, call.line, call.name + "(): " + why});
  }
  return offences;
}

}  // namespace pif::tree
