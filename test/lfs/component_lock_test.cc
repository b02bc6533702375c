// Who may be at a component beside whom: the table, against rules that are stated here, and against the document.
#include "../../lfs/src/components/component_lock.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace pif::lfs;
using enum Mode;

namespace {

const std::map<std::string, Mode> kByName = {{"fill", kFill},
                                             {"seal", kSeal},
                                             {"append", kAppend},
                                             {"overwrite", kOverwrite},
                                             {"checkpoint", kCheckpoint},
                                             {"rewrite", kRewrite},
                                             {"restore", kRestore},
                                             {"input", kInput},
                                             {"keep parity", kKeepParity},
                                             {"add parity", kAddParity},
                                             {"sync parity", kSyncParity},
                                             {"close", kClose},
                                             {"note committed", kNoteCommitted}};

// As the document calls them together.
const std::map<std::string, std::vector<Mode>> kGroups = {
    {"*rows*", {kFill, kSeal, kAppend, kOverwrite, kCheckpoint, kRewrite}},
    {"*parity*", {kKeepParity, kAddParity, kSyncParity}}};

bool is_one_of(Mode mode, std::initializer_list<Mode> modes) {
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}
bool writes_rows(Mode mode) {
  return is_one_of(mode, {kFill, kSeal, kAppend, kOverwrite, kCheckpoint, kRewrite, kRestore});
}
bool writes_parity(Mode mode) { return is_one_of(mode, {kKeepParity, kAddParity, kSyncParity, kRestore}); }

// By a lock, not by the table.
bool go_together(Mode a, Mode b) {
  ComponentLock lock;
  const auto first = lock.try_acquire(a);
  REQUIRE(first.is_held());
  return lock.try_acquire(b).is_held();
}

template <typename Function>
void each_pair(Function function) {
  for (unsigned a = 0; a < kModes; ++a)
    for (unsigned b = 0; b < kModes; ++b) {
      CAPTURE(a, b);
      function(static_cast<Mode>(a), static_cast<Mode>(b));
    }
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" `");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" `") - begin + 1);
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, by);) out.push_back(trimmed(one));
  return out;
}

}  // namespace

TEST_CASE("component lock: two do not write its rows at once, but overwrites of one batch and writes done in one go") {
  each_pair([](Mode a, Mode b) {
    if (!writes_rows(a) || !writes_rows(b)) return;
    CHECK(go_together(a, b) == (a == b && is_one_of(a, {kFill, kOverwrite})));
  });
}

TEST_CASE("component lock: one writes its parity, and others sync what they have written") {
  each_pair([](Mode a, Mode b) {
    if (!writes_parity(a) || !writes_parity(b)) return;
    const bool is_sync = a == kSyncParity || b == kSyncParity;
    const bool is_other = is_one_of(a, {kKeepParity, kRestore}) || is_one_of(b, {kKeepParity, kRestore});
    CHECK(go_together(a, b) == (is_sync && !is_other));
  });
}

TEST_CASE(
    "component lock: who writes parity and who writes rows do not wait for each other, unless it is one and the same") {
  each_pair([](Mode a, Mode b) {
    if (writes_rows(a) && writes_parity(b) && a != kRestore && b != kRestore) CHECK(go_together(a, b));
  });
}

TEST_CASE("component lock: rows that a worker reads do not change") {
  for (unsigned i = 0; i < kModes; ++i) {
    CAPTURE(i);
    const auto mode = static_cast<Mode>(i);
    const bool changes = writes_rows(mode) && mode != kCheckpoint && mode != kRestore;
    CHECK(go_together(kInput, mode) == !changes);
  }
}

TEST_CASE("component lock: files are closed where nobody but workers has them, who have their own descriptors") {
  for (unsigned i = 0; i < kModes; ++i) {
    CAPTURE(i);
    const auto mode = static_cast<Mode>(i);
    CHECK(go_together(kClose, mode) == is_one_of(mode, {kClose, kInput, kNoteCommitted}));
  }
}

TEST_CASE("component lock: that a file is committed is noted once, whatever else is under way") {
  for (unsigned i = 0; i < kModes; ++i)
    CHECK(go_together(kNoteCommitted, static_cast<Mode>(i)) == (static_cast<Mode>(i) != kNoteCommitted));
}

TEST_CASE("component lock: the table is symmetric, and the same as in docs/ARCHITECTURE.md") {
  each_pair([](Mode a, Mode b) { CHECK(go_together(a, b) == go_together(b, a)); });
  std::ifstream in(PIF_SOURCE_DIR "/docs/ARCHITECTURE.md");
  std::map<Mode, std::vector<Mode>> beside;
  bool is_inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("##")) is_inside = line == "### Who may be at a component";
    const auto cells = split(line, '|');
    if (!is_inside || cells.size() != 4 || !kByName.contains(cells[1])) continue;
    if (cells[3] == "all but itself") {
      for (const auto& [name, mode] : kByName)
        if (name != cells[1]) beside[kByName.at(cells[1])].push_back(mode);
      continue;
    }
    auto& named = beside[kByName.at(cells[1])];
    for (const std::string& name : split(cells[3], ',')) {
      INFO(name);
      if (const auto group = kGroups.find(name); group != kGroups.end()) {
        named.insert(named.end(), group->second.begin(), group->second.end());
        continue;
      }
      REQUIRE(kByName.contains(name));
      named.push_back(kByName.at(name));
    }
  }
  CHECK(beside.size() == kModes);
  each_pair([&](Mode a, Mode b) {
    const auto& named = beside[a];
    CHECK(go_together(a, b) == (std::find(named.begin(), named.end(), b) != named.end()));
  });
}
