// Entries that are neither files nor folders, whose what is made becomes, and waits that are ended.
#include "fixture.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

TEST_CASE("links and the like are made, shown and removed") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    Client::NewOther link{EntryKind::kLink, "../some where", 0, 0777, 1001, 77};
    must(client.create_other("/link", link));
    must(client.create_other("/device", {EntryKind::kBlockDevice, "", 2049, 0600, {}, {}}));
    must(client.create_other("/fifo", {EntryKind::kFifo, "", 0, 0644, {}, {}}));
    const auto entries = must(client.list("/")).entries;
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].kind == EntryKind::kBlockDevice);
    CHECK(entries[0].device == 2049);
    CHECK(entries[1].kind == EntryKind::kFifo);
    CHECK(entries[2].kind == EntryKind::kLink);
    CHECK(entries[2].target == "../some where");
    CHECK(entries[2].owner == 1001);
    CHECK(entries[2].group == 77);
    CHECK(code_of(client.open("/link")) == Code::kInvalid);
    CHECK(client.create_other("/link", link).error().code == Code::kExists);
    CHECK(client.create_other("/x", {EntryKind::kFile, "", 0, 0, {}, {}}).error().code == Code::kInvalid);
    must(client.rename("/link", "/moved"));
    must(client.remove("/moved"));
    must(client.make_folder("/d", false, 01777, {}, {1001, 78}));
    const Entry folder = must(client.stat("/d"));
    CHECK(folder.mode == 01777);
    CHECK(folder.owner == 1001);
    CHECK(folder.group == 78);
  });
}

TEST_CASE("a time of modification that is set after the last write stays") {
  FileSystem fs(2);
  fs.add_client("client", DataPath::kAuto, [](Client& client, sim::Actor& self) {
    AttributeChange change;
    change.modified_ns = 1'234'567'890'123;
    const auto modified = [&] { return must(client.stat("/f")).modified_ns; };
    auto made = must(client.create_now("/f"));
    must(made.file.write(pattern(64 << 10)));
    self.pause(1ms);
    must(client.change_attributes("/f", change));
    self.pause(1ms);
    must(made.file.commit());
    CHECK(modified() == *change.modified_ns);
    File file = must(client.open("/f", Client::Mode::kWrite));
    must(file.pwrite(pattern(10), 0));
    self.pause(1ms);
    must(client.change_attributes("/f", change));
    must(file.close());
    CHECK(modified() == *change.modified_ns);
    File again = must(client.open("/f", Client::Mode::kWrite));
    self.pause(1ms);
    must(again.pwrite(pattern(10), 0));
    must(again.close());
    CHECK(modified() != *change.modified_ns);
  });
  fs.world.run();
}

TEST_CASE("a call that waits ends when that is asked for, and the client goes on") {
  FileSystem fs(2);
  fs.add_client("client", DataPath::kMessages, [&](Client& client, sim::Actor&) {
    put(client, "/f", {}, pattern(1 << 20));
    File file = must(client.open("/f"));
    fs.cluster.kill_server();
    int asked = 0;
    bool ends = true;
    client.on_wait([&] { return ++asked > 4 && ends; });
    const Time begin = fs.world.now();
    CHECK(code_of(client.stat("/f")) == Code::kCancelled);
    CHECK(asked == 5);
    CHECK(code_of(client.create("/g")) == Code::kCancelled);
    CHECK(asked == 6);  // at once
    CHECK(fs.world.now() - begin < 2s);
    CHECK(fs.world.now() - begin > 300ms);
    ends = false;
    asked = 0;
    fs.cluster.restart_server();
    must(client.stat("/f"));
    client.on_wait({});
    CHECK(get(file) == pattern(1 << 20));
  });
  fs.world.run();
}
