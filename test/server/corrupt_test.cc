// Rows of the directory that cannot be what they are: each request that meets one says so, and no other is harmed.
#include "../../server/src/directory/rows.h"

#include "pif/kv/value.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

Code code_of(const Result<Envelope>& reply) { return reply ? Code::kOk : reply.error().code; }
template <typename T>
Code code_of(const Result<T>& reply) {
  return reply ? Code::kOk : reply.error().code;
}

void put(World& world, kv::Table table, const std::string& key, const std::string& payload) {
  auto rows = std::move(world.store->write()).value();
  REQUIRE(rows->put(table, key, kv::seal_value(payload)));
  REQUIRE(rows->commit());
}
void erase(World& world, kv::Table table, const std::string& key) {
  auto rows = std::move(world.store->write()).value();
  REQUIRE(rows->erase(table, key));
  REQUIRE(rows->commit());
}

}  // namespace

TEST_CASE("an entry that is no message is said to be one, in stat and in both kinds of list") {
  const std::string bad[] = {
      std::string("\x80\x01", 2),                                           // a tag of two bytes
      std::string("\x08", 1),                                               // a value that is not there
      std::string("\x08\xff", 2),                                           // one that has no end
      std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),  // one that is too long
      std::string("\x1a\x05"
                  "abc",
                  5),                          // fewer bytes than it says
      std::string("\x0d\x01\x01\x01\x01", 5),  // of a kind that no field has
      std::string("\x1a\x02\xff\xff", 4),      // attributes that are no message
  };
  for (const std::string& payload : bad) {
    World world;
    Client client(world);
    client.put("/good");
    REQUIRE(client.mkdir("/d"));
    client.put("/d/bad");
    const auto folder = client.stat("/d")->id();
    put(world, kEntries, entry_key(folder, "bad"), payload);
    CHECK(client.stat("/d/bad").error().code == Code::kCorrupt);
    CHECK(code_of(client.list("/d")) == Code::kCorrupt);
    const bool is_message = proto::StoredEntry().ParseFromString(payload);  // with a field that is not known
    CHECK(code_of(client.list("/d", {}, 0, true)) == (is_message ? Code::kOk : Code::kCorrupt));
    CHECK(client.exists("/good"));
    CHECK(client.list("/"));
  }
}

TEST_CASE("an entry that says in no number that it is placed is shown as one that is not") {
  World world;
  Client client(world);
  put(world, kEntries, entry_key(kRootFolder, "odd"), "\x52\x01\x01");  // bytes where a number belongs
  REQUIRE(client.stat("/odd"));
  CHECK_FALSE(client.stat("/odd")->placed());
  REQUIRE(client.list("/"));
  CHECK(client.list("/")->entries[0].name() == "odd");
}

TEST_CASE(
    "a file without its row cannot be opened or renamed, one whose row leads nowhere cannot be opened by id or "
    "renewed") {
  World world;
  Client client(world);
  const auto rowless = client.put("/rowless");
  const auto nameless = client.put("/nameless");
  const auto misled = client.put("/misled");
  REQUIRE(client.open("/misled", kMayRead | kMayWrite));
  REQUIRE(client.open("/nameless", kMayRead | kMayWrite));
  erase(world, kFiles, kv::key_u64(rowless));
  erase(world, kEntries, entry_key(kRootFolder, "nameless"));
  const auto whole = client.put("/whole");
  auto rows = std::move(world.store->read()).value();
  const std::string other(rows->get(kEntries, entry_key(kRootFolder, "whole")).value().value());
  rows.reset();
  auto change = std::move(world.store->write()).value();
  REQUIRE(change->put(kEntries, entry_key(kRootFolder, "misled"), other));
  REQUIRE(change->commit());
  change.reset();

  CHECK(code_of(client.open("/rowless")) == Code::kCorrupt);
  CHECK(code_of(client.rename("/rowless", "/elsewhere")) == Code::kCorrupt);
  for (const auto file : {nameless, misled}) {
    CHECK(code_of(client.reopen(file)) == Code::kCorrupt);
    Envelope renew;
    renew.mutable_renew()->add_files(file);
    CHECK(code_of(client.ask(renew)) == Code::kCorrupt);
    Envelope close;  // a length for what is not there: forgotten
    close.mutable_close()->set_length_file(file);
    close.mutable_close()->mutable_file_length()->set_records(50);
    close.mutable_close()->mutable_file_length()->set_bytes(5000);
    CHECK(code_of(client.ask(close)) == Code::kOk);
  }
  CHECK(client.stat("/whole")->file_length().records() == 10);
  CHECK(client.reopen(whole));
}

TEST_CASE("files whose folder is nowhere, or in itself, are listed by id all the same") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/a/b", true));
  const auto deep = client.put("/a/b/f");
  const auto shallow = client.put("/a/g");
  const auto a = client.stat("/a")->id(), b = client.stat("/a/b")->id();
  const auto paths = [&] {
    Envelope request;
    request.mutable_list_files();
    const auto listed = client.ask(request);
    REQUIRE(listed);
    std::map<std::uint64_t, std::string> out;
    for (const auto& one : listed->list_files_reply().files()) out[one.file()] = one.path();
    return out;
  };
  CHECK(paths() == std::map<std::uint64_t, std::string>{{deep, "/a/b/f"}, {shallow, "/a/g"}});
  erase(world, kMeta, folder_key(b));
  CHECK(paths() == std::map<std::uint64_t, std::string>{{deep, "(removed folder)/f"}, {shallow, "/a/g"}});
  proto::StoredFile self;
  self.set_parent(a);
  self.set_name("a");
  put(world, kMeta, folder_key(a), self.SerializeAsString());
  CHECK(paths().at(shallow) == "(removed folder)/g");
}

}  // namespace pif::server::testing
