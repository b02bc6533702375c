// What a mount knows of names, and the words after -o.
#include "../../bind/mount/nodes/nodes.h"

#include <catch2/catch.hpp>

#include "../../bind/mount/nodes/waiting.h"
#include "../../bind/mount/process/error_numbers.h"
#include "../../bind/mount/process/options.h"

using namespace pif;
using mount::errno_of;
using mount::kRootNode;
using mount::MountOptions;
using mount::Nodes;
using MountNode = mount::NodeId;

namespace {

constexpr MountNode kFirst = MountNode{1} << 32;  // below are the mount's own numbers

Entry entry(MountNode inode) {
  Entry entry;
  entry.inode = entry.id = inode;
  return entry;
}

std::string path_of(const Nodes& nodes, MountNode node) {
  const auto path = nodes.path(node);
  return path ? *path : std::string(code_name(path.error().code));
}

}  // namespace

TEST_CASE("a node's path follows renames, and ends with its name") {
  Nodes nodes(8);
  CHECK(path_of(nodes, kRootNode) == "/");
  nodes.look_up(kRootNode, "d", entry(kFirst + 10));
  nodes.look_up(kFirst + 10, "f", entry(kFirst + 11));
  CHECK(path_of(nodes, kFirst + 11) == "/d/f");
  nodes.rename(kRootNode, "d", kRootNode, "e");
  CHECK(path_of(nodes, kFirst + 11) == "/e/f");
  nodes.look_up(kFirst + 10, "g", entry(kFirst + 12));
  nodes.rename(kFirst + 10, "f", kFirst + 10, "g");  // replaces
  CHECK(path_of(nodes, kFirst + 11) == "/e/g");
  CHECK(path_of(nodes, kFirst + 12) == "stale-file");
  nodes.unlink(kFirst + 10, "g");
  CHECK(path_of(nodes, kFirst + 11) == "stale-file");
  CHECK(!nodes.find(kFirst + 10, "g"));
}

TEST_CASE("a name that others gave to another file belongs to that one") {
  Nodes nodes(8);
  nodes.look_up(kRootNode, "f", entry(kFirst + 20));
  nodes.look_up(kRootNode, "f", entry(kFirst + 21));
  CHECK(nodes.find(kRootNode, "f") == kFirst + 21);
  CHECK(path_of(nodes, kFirst + 20) == "stale-file");
  nodes.look_up(kRootNode, "g", entry(kFirst + 21));  // renamed elsewhere
  CHECK(!nodes.find(kRootNode, "f"));
  CHECK(path_of(nodes, kFirst + 21) == "/g");
}

TEST_CASE("a node is forgotten with the last lookup") {
  Nodes nodes(8);
  nodes.look_up(kRootNode, "f", entry(kFirst + 30), 5);
  nodes.look_up(kRootNode, "f", entry(kFirst + 30), 6);
  CHECK(nodes.client_of(kFirst + 30) == 5);
  nodes.forget(kFirst + 30, 1);
  CHECK(path_of(nodes, kFirst + 30) == "/f");
  nodes.forget(kFirst + 30, 1);
  CHECK(path_of(nodes, kFirst + 30) == "stale-file");
  CHECK(nodes.client_of(kFirst + 30) == (kFirst + 30) % 8);
}

TEST_CASE("names and paths have limits") {
  Nodes nodes(1);
  CHECK(nodes.path(kRootNode, std::string(255, 'x')).has_value());
  CHECK(nodes.path(kRootNode, std::string(256, 'x')).error().code == Code::kTooLarge);
  CHECK(nodes.path(kRootNode, "\xff").error().code == Code::kInvalid);
}

TEST_CASE("the kernel keeps what it has of a file as long as it is the same version") {
  Nodes nodes(1);
  Entry version = entry(kFirst + 40);
  CHECK(!nodes.is_same_version(kFirst + 40, version));  // unknown
  nodes.look_up(kRootNode, "f", version);
  CHECK(!nodes.is_same_version(kFirst + 40, version));
  CHECK(nodes.is_same_version(kFirst + 40, version));
  version.file_length.bytes = 1;
  CHECK(!nodes.is_same_version(kFirst + 40, version));
  version.modified_ns = 1;
  CHECK(!nodes.is_same_version(kFirst + 40, version));
  version.id = kFirst + 41;
  CHECK(!nodes.is_same_version(kFirst + 40, version));
  CHECK(nodes.is_same_version(kFirst + 40, version));
}

TEST_CASE("a file that was made here keeps its node when the file system knows it, until it is forgotten") {
  constexpr MountNode kInode = MountNode{7} << 32;
  Nodes nodes(1);
  const MountNode node = nodes.new_node();
  CHECK(mount::is_own(node));
  CHECK(!mount::is_own(kRootNode));
  CHECK(nodes.new_node() != node);
  Entry there = entry(kInode);
  there.name = "f";
  CHECK(!nodes.look_up(kRootNode, "f", entry(node)));
  CHECK(nodes.look_up(kRootNode, "f", entry(node), 0));
  CHECK(nodes.here(there).inode == kInode);
  CHECK(nodes.here(kRootNode, there).inode == node);  // it becomes known at this moment
  nodes.become_known(node, kInode);
  CHECK(nodes.here(there).inode == node);
  there.name = "g";  // others have renamed it
  CHECK(nodes.here(kRootNode, there).inode == node);
  nodes.forget(node, 1);
  CHECK(nodes.here(there).inode == kInode);
}

TEST_CASE("files that wait go together: a batch with one client, the next with the next one") {
  mount::Waiting waiting(2);
  for (std::size_t i = 0; i < mount::Waiting::kBatch; ++i) {
    CHECK(waiting.next_client() == 0);
    CHECK(waiting.add(0, {i, Time(std::chrono::seconds(i))}) == (i + 1 == mount::Waiting::kBatch));
  }
  CHECK(waiting.next_client() == 1);
  CHECK(waiting.is_due(0, Time{}));
  CHECK(waiting.is_empty(1));
  waiting.remove(0, {0, 2});
  CHECK(!waiting.is_due(0, Time(std::chrono::seconds(1))));
  CHECK(waiting.is_due(0, Time(std::chrono::seconds(2))));
  CHECK(waiting.of(0).front().node == 1);
}

TEST_CASE("options of a mount") {
  MountOptions options;
  REQUIRE(mount::add_mount_words("rw,nodev,allow_other,_netdev,attr_timeout=0.5,rewrite_max=2G", options));
  CHECK(options.for_kernel == std::vector<std::string>{"nodev", "allow_other"});
  CHECK(options.attr_timeout == 0.5);
  CHECK(options.rewrite_max == std::uint64_t{2} << 30);
  REQUIRE(mount::add_mount_words("ro,lazy", options));
  CHECK(options.read_only);
  CHECK(options.lazy);
  for (const char* wrong : {"nonsense", "attr_timeout", "attr_timeout=x", "attr_timeout=-1",
                            "rewrite_max=", "rewrite_max=1X", "rewrite_max=99999999T", "ro=1"}) {
    INFO(wrong);
    const auto added = mount::add_mount_words(wrong, options);
    REQUIRE(!added);
    CHECK(added.error().code == Code::kInvalid);
  }
}

TEST_CASE("each code has its number") {
  CHECK(errno_of(Code::kNoSpace) == ENOSPC);
  for (std::uint32_t number = 1; number <= 28; ++number) CHECK(errno_of(code_from_number(number)) > 0);
}
