// What an LFS that was lost asks for: the files that it has a part of, page by page.
#include <set>

#include "fixture.h"
#include "pif/wire/file_states.h"

namespace pif::server::testing {
namespace {

Result<proto::ListLostReply> list(World& world, Client& client, std::uint32_t node, std::uint64_t after,
                                  std::uint32_t limit = 0) {
  Envelope request;
  request.set_capability(world.manage());
  request.mutable_list_lost()->set_node(node);
  request.mutable_list_lost()->set_after(after);
  request.mutable_list_lost()->set_limit(limit);
  auto reply = client.ask(request);
  if (!reply) return fail(reply.error());
  return reply->list_lost_reply();
}

// All pages: each file once, by rising id.
std::vector<std::uint64_t> all(World& world, Client& client, std::uint32_t node, std::uint32_t limit, unsigned& pages) {
  std::vector<std::uint64_t> out;
  std::uint64_t after = 0;
  for (pages = 1;; ++pages) {
    const auto page = list(world, client, node, after, limit);
    REQUIRE(page);
    for (const auto& file : page->files()) {
      CHECK(file.file() > (out.empty() ? 0 : out.back()));
      CHECK(file.file() <= page->last());
      out.push_back(file.file());
    }
    if (!page->more()) return out;
    REQUIRE(page->last() > after);
    after = page->last();
  }
}

TEST_CASE("an LFS is told of its committed files with parity, whatever the size of a page") {
  World world(8);
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  std::vector<std::uint64_t> ours;
  for (std::uint32_t i = 0; i < 60; ++i) {
    auto request = Client::create_request("/d/" + std::to_string(i));
    const bool is_ours = i % 3 == 0, has_parity = i % 4 != 1;
    for (std::uint32_t n = 0; n < 4; ++n) request.mutable_create()->add_nodes(is_ours ? 1 + n : 5 + n);
    for (unsigned n = 0; n < 2 && has_parity; ++n) request.mutable_create()->add_bevies(2);
    const auto made = client.ask(request);
    REQUIRE(made);
    if (i % 5 == 4) continue;  // is being created
    REQUIRE(client.ask(Client::commit_request(made->create_reply().file(), i + 1)));
    if (is_ours && has_parity) ours.push_back(made->create_reply().file());
  }
  CHECK(client.remove("/d/" + std::to_string(18)) == Code::kOk);
  std::set<std::uint64_t> expected(ours.begin(), ours.end());
  for (const std::uint32_t limit : {0u, 1u, 7u, 1000u}) {
    unsigned pages = 0;
    const auto found = all(world, client, 1, limit, pages);
    std::set<std::uint64_t> listed(found.begin(), found.end());
    CHECK(listed.size() == found.size());
    CHECK(listed.size() + 1 == expected.size());
    for (const auto id : listed) CHECK(expected.contains(id));
    if (limit == 1) CHECK(pages >= found.size());
    if (limit == 1000) CHECK(pages == 1);
  }
  unsigned pages = 0;
  CHECK(all(world, client, 9, 0, pages).empty());
}

TEST_CASE("what is listed of a file is what it is restored from") {
  World world(4, 2);
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  const auto id = client.put("/d/f", 25);
  const auto page = list(world, client, 2, 0);
  REQUIRE(page);
  REQUIRE(page->files_size() == 1);
  const auto& file = page->files(0);
  CHECK(file.file() == id);
  CHECK(file.path() == "/d/f");
  CHECK(file.file_length().records() == 25);
  CHECK(file.format().record_length() == 100);
  CHECK(file.layout().nodes_size() == 4);
  CHECK(file.owner() == 500);
  CHECK(list(world, client, 2, id)->files_size() == 0);
  CHECK(list(world, client, 2, UINT64_MAX)->files_size() == 0);
}

TEST_CASE("which file a node lacks its part of is durable, and known to who restores others") {
  World world(4, 2);
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  const auto id = client.put("/d/f", 25);
  const auto say = [&](std::uint32_t order, std::uint64_t file) {
    Envelope request;
    request.set_capability(world.manage());
    request.mutable_node_lacks()->set_node(2);
    request.mutable_node_lacks()->add_files(file);
    request.mutable_node_lacks()->set_order(order);
    return client.ask(request).has_value();
  };
  REQUIRE(say(3, id));
  REQUIRE(say(5, id));  // the order of when it had all stays
  REQUIRE(say(3, id + 1000));
  auto page = list(world, client, 1, 0);
  REQUIRE(page);
  REQUIRE(page->files(0).lacking_size() == 1);
  CHECK(page->files(0).lacking(0).node() == 2);
  CHECK(page->files(0).lacking(0).order() == 3);
  CHECK(page->files(0).untouched());
  REQUIRE(say(0, id));
  page = list(world, client, 1, 0);
  REQUIRE(page);
  CHECK(page->files(0).lacking_size() == 0);
}

std::uint32_t state_of(Client& client, World& world, std::uint64_t file) {
  Envelope request;
  request.set_capability(world.manage());
  request.mutable_file_states()->add_files(file);
  const auto reply = client.ask(request);
  REQUIRE(reply);
  return reply->file_states_reply().states(0);
}

TEST_CASE("a removed file is listed, and committed to LFSs, as long as somebody has it open") {
  World world(4, 2);
  Client client(world), other(world);
  REQUIRE(client.mkdir("/d"));
  const auto id = client.put("/d/f", 25);
  REQUIRE(client.open("/d/f", kMayRead | kMayWrite));
  const bool is_replaced = GENERATE(false, true);
  std::uint64_t next = 0;
  if (is_replaced)
    next = other.put("/d/f", 7);
  else
    REQUIRE(other.remove("/d/f") == Code::kOk);
  if (GENERATE(false, true)) world.start();  // until the lease ends it may be open
  world.heartbeats();
  Client lfs(world);
  const auto page = list(world, lfs, 2, 0, 1);
  REQUIRE(page);
  REQUIRE(page->files_size() == 1);
  CHECK(page->files(0).file() == id);
  CHECK(page->files(0).file_length().records() == 25);
  CHECK(page->files(0).path() == "/d/f (removed, and still open)");
  CHECK(state_of(lfs, world, id) == 2);
  world.live(700);  // without a word of who had it open
  const auto after = list(world, lfs, 2, 0);
  REQUIRE(after);
  REQUIRE(after->files_size() == (is_replaced ? 1 : 0));
  if (is_replaced) CHECK(after->files(0).file() == next);
  CHECK(state_of(lfs, world, id) == 3);
}

TEST_CASE("a removed file is not listed once nobody has it open") {
  World world(4, 2);
  Client client(world);
  const auto id = client.put("/f", 25);
  REQUIRE(client.open("/f"));
  REQUIRE(client.remove("/f") == Code::kOk);
  CHECK(list(world, client, 2, 0)->files_size() == 1);
  client.close_file(id);
  CHECK(list(world, client, 2, 0)->files_size() == 0);
  CHECK(state_of(client, world, id) == 3);
  world.start();  // some LFSs may have been told
  world.heartbeats();
  Client after(world);
  CHECK(list(world, after, 2, 0)->files_size() == 0);
  CHECK(state_of(after, world, id) == 3);
}

TEST_CASE("a file that was given up before its commit is not listed") {
  World world(4, 2);
  Client client(world);
  const auto made = client.create("/f");
  REQUIRE(made);
  Envelope abort;
  abort.mutable_abort()->set_file(made->file());
  REQUIRE(client.ask(abort));
  CHECK(list(world, client, 2, 0)->files_size() == 0);
  CHECK(state_of(client, world, made->file()) == wire::kFileGivenUp);
}

TEST_CASE("many files come in pages that fit every transport") {
  World world(4, 2);
  Client client(world);
  std::set<std::uint64_t> made;
  for (int i = 0; i < 900; ++i) made.insert(client.put("/" + std::string(100, 'x') + std::to_string(i), 1));
  unsigned pages = 0;
  const auto found = all(world, client, 1, 0, pages);
  CHECK(std::set<std::uint64_t>(found.begin(), found.end()) == made);
  CHECK(found.size() == made.size());
  CHECK(pages > 1);
  CHECK(list(world, client, 1, 0)->ByteSizeLong() < 64u << 10);
}

}  // namespace
}  // namespace pif::server::testing
