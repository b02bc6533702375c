// This tree keeps its own rules. Every offence is printed as file:line.
#include <catch2/catch.hpp>

#include "rules.h"

namespace pif::tree {
namespace {

const Tree& tree() {
  static const Tree kTree = read_tree(PIF_SOURCE_DIR).value();
  return kTree;
}

void report(const Offences& offences) {
  for (const Offence& offence : offences) FAIL_CHECK(offence.to_string());
}

TEST_CASE("the whole tree is read") {
  CHECK(tree().size() > 100);
  CHECK(tree().count("base/include/pif/base/placement.h") == 1);
  CHECK(tree().count("test/tree/tree_test.cc") == 1);
}

TEST_CASE("folders use what docs/ARCHITECTURE.md says they may, and no other's private headers") {
  const auto dependencies = parse_dependencies(tree().at("docs/ARCHITECTURE.md"));
  if (!dependencies) FAIL(dependencies.error().text);
  for (const auto& [folder, may_use] : *dependencies) {
    INFO(folder << "/ is in the table of docs/ARCHITECTURE.md and must exist");
    CHECK(tree().count(folder + "/CMakeLists.txt") == 1);
  }
  report(check_includes(tree(), *dependencies));
}

TEST_CASE("rooms use what docs/ARCHITECTURE.md says they may") {
  const auto rooms = parse_rooms(tree().at("docs/ARCHITECTURE.md"));
  if (!rooms) FAIL(rooms.error().text);
  for (const auto& [folder, arrows] : *rooms)
    for (const auto& [room, may_use] : arrows) {
      const std::string path = folder + "/" + room + "/";
      INFO(path << " is in a table of docs/ARCHITECTURE.md and must exist");
      const auto first_inside = tree().lower_bound(path);
      CHECK((first_inside != tree().end() && first_inside->first.starts_with(path)));
    }
  report(check_rooms(tree(), *rooms));
}
TEST_CASE("headers may be included twice, and private ones are included") { report(check_headers(tree())); }
TEST_CASE("files and functions are short") { report(check_lengths(tree())); }
TEST_CASE("nothing is left to do") { report(check_leftovers(tree())); }
TEST_CASE("placement is computed in base and parity only") { report(check_placement(tree())); }
TEST_CASE("docs/PROTOCOL.md names only what is there") { report(check_protocol(tree())); }
TEST_CASE("no banned function is called") { report(check_calls(tree())); }

}  // namespace
}  // namespace pif::tree
