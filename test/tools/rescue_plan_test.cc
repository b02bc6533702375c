#include <catch2/catch.hpp>

#include "../../tools/pif/repair/rescue_plan.h"

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
  for (const auto& one : plan_old(files, {held}, {}).adopted) adopted.push_back(one.file());
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
  const auto marked = plan_old({{1, known}}, {{{1, {{1, first}}}}}, nodes).marked;
  REQUIRE(marked.size() == 1);
  CHECK(marked[0].node == 2);
  CHECK(marked[0].kind == wire::kMarkLost);
}

TEST_CASE("bytes that filled up a short last record after an old directory was copied are missed where they are gone") {
  FileRecord known = file(kFileCommitted);
  known.mutable_layout()->add_nodes(2);
  known.mutable_file_length()->set_records(2);
  known.mutable_file_length()->set_bytes(121);
  auto first = component(kComponentCommitted);
  first.mutable_shape()->mutable_format()->set_kind(1);
  first.mutable_shape()->mutable_format()->set_record_length(100);
  auto second = first;
  second.mutable_shape()->set_index(1);
  const auto [records, bytes, row] = GENERATE(std::tuple(2, 150, 1), std::tuple(3, 250, 2));
  first.set_rows(static_cast<std::uint64_t>(row));
  first.set_bytes(records == 2 ? 100 : 150);
  first.mutable_published()->set_records(static_cast<std::uint64_t>(records));
  first.mutable_published()->set_bytes(static_cast<std::uint64_t>(bytes));
  second.set_rows(1);
  const auto marked = [&](std::uint64_t second_bytes) {
    second.set_bytes(second_bytes);
    std::vector<proto::NodeInfo> nodes(2);
    nodes[0].set_id(1);
    nodes[1].set_id(2);
    return plan_old({{1, known}}, {{{1, {{1, first}, {2, second}}}}}, nodes).marked;
  };
  const auto lost = marked(21);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].node == 2);
  CHECK(lost[0].kind == wire::kMarkLost);
  CHECK(marked(records == 2 ? 50 : 100).empty());
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
    return plan_old(files, {{{1, {{2, second}}}}}, nodes);
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

TEST_CASE("an empty file is marked of which an LFS has put rows aside that its catalogue does not know") {
  FileRecord known = file(kFileCommitted);
  known.mutable_layout()->add_nodes(2);
  std::vector<proto::NodeInfo> nodes(2);
  nodes[0].set_id(1);
  nodes[1].set_id(2);
  CHECK(plan_old({{1, known}}, {}, nodes).marked.empty());
  Everything everything{{}, {{1, 1}, {2, 2}}};  // of another file, too
  const auto marked = plan_old({{1, known}}, everything, nodes).marked;
  REQUIRE(marked.size() == 1);
  CHECK(marked[0].node == 1);
  CHECK(marked[0].kind == wire::kMarkLost);
  auto made_again = component(kComponentCommitted);
  *made_again.mutable_shape()->mutable_layout() = known.layout();
  everything.components[1][1] = made_again;
  CHECK(plan_old({{1, known}}, everything, nodes).marked.empty());
}

TEST_CASE("an LFS is not given up while another of its pair is away that may have what it had") {
  FileRecord known = file(kFileCommitted);
  known.mutable_layout()->set_form(1);
  known.mutable_layout()->clear_nodes();
  for (std::uint32_t node = 1; node <= 8; ++node) known.mutable_layout()->add_nodes(node);
  for (int bevy = 0; bevy < 4; ++bevy) known.mutable_layout()->add_bevies(2);  // pairs {1, 2, 5, 6}, {3, 4, 7, 8}
  std::vector<proto::NodeInfo> nodes(8);
  for (std::uint32_t i = 0; i < 8; ++i) nodes[i].set_id(i + 1);
  nodes[2].set_view_state(wire::kViewLost);
  CHECK(needed_of_pair(2, {{1, known}}, nodes).empty());
  nodes[4].set_view_state(wire::kViewReturning);
  CHECK(needed_of_pair(2, {{1, known}}, nodes) == std::vector<std::uint32_t>{5});
  nodes[4].set_view_state(wire::kViewMember);
  known.add_lacking()->set_node(5);
  const AcceptedPlan plan = plan_accepted(2, {{1, known}}, nodes);
  CHECK(plan.concerned.size() == 1);
  REQUIRE(plan.marked.size() == 1);
  CHECK(plan.marked[0].node == 5);
}

TEST_CASE("a file is marked that an LFS has overwritten after the directory was copied, for others may be older") {
  FileRecord known = file(kFileCommitted);
  known.set_untouched(true);  // as the old directory has it
  known.mutable_layout()->add_nodes(2);
  known.mutable_file_length()->set_records(4);
  auto first = component(kComponentCommitted), second = component(kComponentCommitted);
  for (auto* one : {&first, &second}) {
    *one->mutable_shape()->mutable_layout() = known.layout();
    one->mutable_published()->set_records(4);
    one->set_rows(2);
  }
  std::vector<proto::NodeInfo> nodes(2);
  for (std::uint32_t i = 0; i < 2; ++i) nodes[i].set_id(i + 1);
  for (auto& node : nodes) node.set_number(100);  // what the directory has heard
  using Marks = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const auto marks = [&](bool is_known) {
    const auto plan = is_known ? plan_old({{1, known}}, {{{1, {{1, first}, {2, second}}}}}, nodes)
                               : plan_old({}, {{{1, {{1, first}, {2, second}}}}}, nodes);
    Marks out;
    for (const MarkedFile& one : plan.marked) out.emplace_back(one.node, one.kind);
    for (const auto& one : plan.adopted) {
      for (const auto& mark : one.marks()) out.emplace_back(mark.node(), mark.kind());
    }
    return out;
  };
  const Marks on_second{{2, wire::kMarkMixed}};
  second.set_log_applied(100);
  CHECK(marks(true).empty());  // the directory was copied later
  second.set_log_applied(101);
  CHECK(marks(true) == on_second);
  CHECK(marks(false) == on_second);
  second.set_log_applied(50);
  nodes[1].set_taken_back(7);  // its numbers were given out twice
  CHECK(marks(true) == on_second);
  nodes[1].clear_taken_back();
  nodes[1].set_state(kNodeStale);
  CHECK(marks(true) == on_second);
  nodes[1].set_state(kNodeUp);
  second.set_log_applied(0);
  known.set_untouched(false);
  CHECK(marks(true).empty());
  nodes[0].set_state(kNodeStale);  // older than the directory, which knows that the file was written to
  CHECK(marks(true) == Marks{{1, wire::kMarkMixed}});
  nodes[0].set_state(kNodeUp);
  second.set_log_applied(101);
  known.mutable_file_length()->set_records(1);  // all rows are on one LFS
  first.mutable_published()->set_records(1);
  first.set_log_applied(101);
  second.set_log_applied(0);
  CHECK(marks(true).empty());
}

TEST_CASE(
    "a file that can be rebuilt gets no mark when a disk is lost; one that cannot gets one for all that is gone") {
  FileRecord known = file(kFileCommitted);
  known.set_path("/f");
  known.mutable_file_length()->set_records(100);
  known.mutable_layout()->clear_nodes();
  for (std::uint32_t node = 1; node <= 8; ++node) known.mutable_layout()->add_nodes(node);
  for (int bevy = 0; bevy < 4; ++bevy) known.mutable_layout()->add_bevies(2);  // pairs {1, 2, 5, 6}, {3, 4, 7, 8}
  std::vector<proto::NodeInfo> nodes(8);
  for (std::uint32_t i = 0; i < 8; ++i) nodes[i].set_id(i + 1);
  const auto marked = [&] {
    std::vector<std::uint32_t> out;
    const LostPlan plan = plan_lost(2, {{1, known}}, nodes);
    for (const MarkedFile& one : plan.marked) out.push_back(one.node);
    CHECK(plan.rebuilt.size() == (out.empty() ? 1 : 0));
    return out;
  };
  CHECK(marked() == std::vector<std::uint32_t>{2});  // made before LFSs kept parity
  known.mutable_layout()->set_form(1);
  CHECK(marked().empty());
  nodes[2].set_view_state(wire::kViewRebuilding);  // of the other pair
  nodes[4].set_state(3);                           // silent: it comes back
  CHECK(marked().empty());
  nodes[5].set_view_state(wire::kViewLost);
  CHECK(marked() == std::vector<std::uint32_t>{2, 6});
  nodes[5].set_view_state(wire::kViewMember);
  known.add_lacking()->set_node(6);  // it takes part, without its part of this file
  CHECK(marked() == std::vector<std::uint32_t>{2, 6});
  known.clear_lacking();
  known.add_marks()->set_node(1);
  CHECK(marked() == std::vector<std::uint32_t>{1, 2});
  known.set_state(kFilePending);
  CHECK(plan_lost(2, {{1, known}}, nodes).marked.empty());
  known.mutable_layout()->set_form(0);
  CHECK(marked() == std::vector<std::uint32_t>{2});
}
