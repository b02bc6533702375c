#include <catch2/catch.hpp>

#include "../../tools/pif/cluster/rescue_plan.h"

using namespace pif;
using namespace pif::cli;

namespace {

proto::ComponentState component(std::uint32_t state) {
  proto::ComponentState out;
  out.mutable_shape()->mutable_layout()->add_nodes(1);
  out.set_state(state);
  return out;
}

FileRecord file(std::uint32_t state) {
  FileRecord out;
  out.mutable_layout()->add_nodes(1);
  out.set_state(state);
  return out;
}

}  // namespace

TEST_CASE(
    "an old directory finds again what it does not know, and what was being created when it was copied and is whole by "
    "now") {
  const std::map<std::uint64_t, FileRecord> files{{1, file(kFilePending)},
                                                  {2, file(kFilePending)},
                                                  {3, file(kFileCommitted)},
                                                  {4, file(kFileDoomed)},
                                                  {6, file(kFilePending)}};
  const std::map<std::uint64_t, Held> held{
      {1, {{1, component(kComponentCommitted)}}}, {2, {{1, component(kComponentOpen)}}},
      {3, {{1, component(kComponentCommitted)}}}, {4, {{1, component(kComponentCommitted)}}},
      {5, {{1, component(kComponentOpen)}}},      {6, {{1, component(kComponentSealed)}}}};
  std::vector<std::uint64_t> adopted;
  for (const auto& one : plan_old(files, held, {}).adopted) adopted.push_back(one.file());
  CHECK(adopted == std::vector<std::uint64_t>{1, 5, 6});
}

TEST_CASE("rows that were appended after an old directory was copied are missed where they are gone") {
  FileRecord known = file(kFileCommitted);
  known.mutable_layout()->add_nodes(2);
  known.mutable_file_length()->set_records(1);
  auto first = component(kComponentCommitted);
  first.set_rows(3);
  first.mutable_published()->set_records(5);
  std::vector<proto::NodeInfo> nodes(2);
  nodes[0].set_id(1);
  nodes[1].set_id(2);
  const auto marked = plan_old({{1, known}}, {{1, {{1, first}}}}, nodes).marked;
  REQUIRE(marked.size() == 1);
  CHECK(marked[0].node == 2);
  CHECK(marked[0].kind == wire::kMarkLost);
}

TEST_CASE("a file is marked whose LFS 0 has removed its component, and with it what it gave out") {
  FileRecord known = file(kFileCommitted);
  known.mutable_layout()->add_nodes(2);
  auto second = component(kComponentCommitted);
  *second.mutable_shape()->mutable_layout() = known.layout();
  second.set_rows(2);
  std::vector<proto::NodeInfo> nodes(2);
  nodes[0].set_id(1);
  nodes[1].set_id(2);
  const auto marks = [&](const std::map<std::uint64_t, FileRecord>& files) {
    return plan_old(files, {{1, {{2, second}}}}, nodes);
  };
  CHECK(marks({{1, known}}).marked.empty());  // sealed rows need no LFS 0
  second.set_generation(7);
  const auto marked = marks({{1, known}}).marked;
  REQUIRE(marked.size() == 1);
  CHECK(marked[0].node == 1);
  CHECK(marked[0].kind == wire::kMarkLost);
  const auto adopted = marks({}).adopted;
  REQUIRE(adopted.size() == 1);
  REQUIRE(adopted[0].marks_size() == 1);
  CHECK(adopted[0].marks(0).node() == 1);
}
