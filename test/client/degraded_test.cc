// Files with parity while one of their LFSs is lost: they are made, appended to and read, and the LFS has all of it
// when it is back.
#include <map>

#include "fixture.h"
#include "pif/client/session.h"
#include "pif/pattern/builders.h"
#include "pif/wire/values.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

constexpr int kSecondsMax = 60;  // until a view changes

// LFS n of the file is lfsN: two bevies of two.
CreateOptions in_order(const Format& format) {
  CreateOptions options;
  options.format = format;
  options.nodes = {1, 2, 3, 4};
  options.bevy = 2;
  return options;
}

std::uint32_t view_state(Client& client, unsigned lfs) {
  const proto::NodesReply reply = must(client.session().call(proto::Nodes()));
  for (const proto::NodeInfo& node : reply.nodes())
    if (node.id() == lfs + 1) return node.view_state();
  return 0;
}

// A person says that it is lost, as soon as the server believes it.
void declare_lost(Client& client, sim::Actor& self, unsigned lfs) {
  for (int i = 0; i < kSecondsMax; ++i) {
    proto::NodeLost lost;
    lost.set_node(lfs + 1);
    if (client.session().call(std::move(lost))) break;
    self.pause(1s);
  }
  REQUIRE(view_state(client, lfs) == wire::kViewLost);
}

void lose(FileSystem& fs, Client& client, sim::Actor& self, unsigned lfs) {
  fs.cluster.kill_lfs(lfs);
  declare_lost(client, self, lfs);
}

void bring_back(FileSystem& fs, Client& client, sim::Actor& self, unsigned lfs) {
  fs.cluster.restart_lfs(lfs);
  for (int i = 0; i < kSecondsMax && view_state(client, lfs) != wire::kViewMember; ++i) self.pause(1s);
  REQUIRE(view_state(client, lfs) == wire::kViewMember);
}

void put_lines(Client& client, const std::string& path, const Bytes& text) {
  File file = must(client.create(path, in_order(Format::lines())));
  std::vector<std::uint32_t> lengths;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != std::byte{'\n'}) continue;
    lengths.push_back(static_cast<std::uint32_t>(i + 1 - begin));
    begin = i + 1;
  }
  must(file.write_batch(lengths, text));
  must(file.commit());
}

using Files = std::map<std::string, Bytes>;

void check_all(Client& client, const Files& files) {
  for (const auto& [path, bytes] : files) {
    CAPTURE(path);
    CHECK(get(client, path) == bytes);
  }
}

void append(Client& client, Files& files, const std::string& path, const Bytes& more) {
  File file = must(client.open(path, Client::Mode::kWrite));
  CHECK(must(file.append_bytes(more)) == files[path].size());
  files[path].insert(files[path].end(), more.begin(), more.end());
  CHECK(get(file) == files[path]);
  must(file.close());
}

void make_all(Client& client, Files& files) {
  files["/fixed"] = pattern(997);
  put(client, "/fixed", in_order(Format::fixed(10)), files["/fixed"]);
  files["/long"] = pattern(300'000, 2);
  put(client, "/long", in_order(Format::fixed(70'000)), files["/long"]);
  files["/lines"] = bytes_of("one\ntwo\n\nfour\nfive\nsix is longer\n7\n");
  put_lines(client, "/lines", files["/lines"]);
  files["/empty"] = {};
  must(client.create_empty("/empty", in_order(Format::fixed(10))));
  // The byte view: a record is changed before it is sent.
  File bytes = must(client.create("/bytes", in_order(Format::fixed(10))));
  CHECK(must(bytes.pwrite(pattern(25, 3), 0)) == 25);
  CHECK(must(bytes.pwrite(pattern(7, 4), 23)) == 7);
  must(bytes.commit());
  files["/bytes"] = pattern(25, 3);
  files["/bytes"].resize(23);
  const Bytes end = pattern(7, 4);
  files["/bytes"].insert(files["/bytes"].end(), end.begin(), end.end());
}

// Small ones, all at once.
void make_many(Client& client, Files& files) {
  std::vector<Client::NewFile> wanted;
  for (std::size_t i = 0; i < 12; ++i) {
    Client::NewFile& file = wanted.emplace_back();
    file.path = "/small" + std::to_string(i);
    file.options = in_order(Format::fixed(10));
    file.options.is_small = true;
    files[file.path] = pattern(i * 9, i + 1);
  }
  auto made = client.create_many(wanted);
  std::vector<File*> pointers;
  for (std::size_t i = 0; i < made.size(); ++i) {
    pointers.push_back(&must_ref(made[i]));
    if (i > 0) must(pointers.back()->write(files[wanted[i].path]));
  }
  for (const Status& status : client.commit_many(pointers)) must(status);
}

void append_all(Client& client, Files& files) {
  // The end is in the middle of a record of each LFS in turn.
  for (std::size_t i = 0; i < 8; ++i) append(client, files, "/fixed", pattern(3 + i * 2, i + 20));
  append(client, files, "/empty", pattern(61, 7));
  append(client, files, "/long", pattern(100'000, 8));
  const Bytes more = bytes_of("eight\n\nten\n");
  File lines = must(client.open("/lines", Client::Mode::kWrite));
  CHECK(must(lines.append_batch(std::vector<std::uint32_t>{6, 1, 4}, more)) == 7);
  files["/lines"].insert(files["/lines"].end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("files with parity are made and appended to while an LFS is lost, which then has what it missed") {
  for (const DataPath path : kBothPaths) {
    for (const unsigned lost : {0u, 2u, 3u}) {
      CAPTURE(lost);
      FileSystem fs(4);
      fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
        lose(fs, client, self, lost);
        Files files;
        make_all(client, files);
        make_many(client, files);
        check_all(client, files);
        append_all(client, files);
        check_all(client, files);
        must(client.rename("/bytes", "/renamed"));
        files["/renamed"] = files["/bytes"];
        files.erase("/bytes");
        must(client.remove("/small3"));
        files.erase("/small3");
        bring_back(fs, client, self, lost);
        check_all(client, files);
        lose(fs, client, self, lost ^ 1u);  // the other one of its bevy
        check_all(client, files);
      });
      fs.world.run();
    }
  }
}

// As in a rolling restart: never are two away at once.
TEST_CASE("an LFS that was away for a moment is read from at once when its companion is away") {
  for (const DataPath path : kBothPaths) {
    for (const Duration between : {Duration(200ms), Duration(7s)}) {
      FileSystem fs(4);
      fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
        const Bytes bytes = pattern(40'000);
        put(client, "/f", in_order(Format::fixed(1000)), bytes);
        File file = must(client.open("/f"));
        CHECK(get(file) == bytes);
        fs.cluster.kill_lfs(2);
        self.pause(200ms);
        CHECK(get(client, "/f") == bytes);
        fs.cluster.restart_lfs(2);
        for (Duration waited{}; waited < between; waited += 200ms) {
          self.pause(200ms);
          CHECK(get(client, "/f") == bytes);
        }
        fs.cluster.kill_lfs(0);
        self.pause(100ms);
        CHECK(get(client, "/f") == bytes);
        CHECK(get(file) == bytes);
      });
      fs.world.run();
    }
  }
}

TEST_CASE("a file that was opened while an LFS was lost is read from it again when it is back") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
      const Bytes bytes = pattern(40'000);
      put(client, "/f", in_order(Format::fixed(1000)), bytes);
      lose(fs, client, self, 1);
      File file = must(client.open("/f"));
      CHECK(get(file) == bytes);
      bring_back(fs, client, self, 1);
      const auto asked_to_rebuild = [&] {
        std::uint64_t count = 0;
        for (const OperationStats& one : client.stats())
          if (one.name == "reconstruct") count += one.count;
        return count;
      };
      // The server is asked each 5 s, and an LFS that was away not for as long.
      for (int i = 0; i < 12; ++i) {
        self.pause(1s);
        CHECK(get(file) == bytes);
      }
      const std::uint64_t before = asked_to_rebuild();
      CHECK(get(file) == bytes);
      CHECK(asked_to_rebuild() == before);
    });
    fs.world.run();
  }
}

TEST_CASE("an append waits for an LFS that dies meanwhile, until it is lost and others do without it") {
  for (const DataPath path : kBothPaths) {
    for (const unsigned dies : {0u, 1u, 2u}) {
      CAPTURE(dies);
      FileSystem fs(4);
      bool is_dead = false;
      fs.add_client("appender", path, [&](Client& client, sim::Actor&) {
        Bytes bytes = pattern(95);
        put(client, "/f", in_order(Format::fixed(10)), bytes);
        File file = must(client.open("/f", Client::Mode::kWrite));
        fs.cluster.kill_lfs(dies);
        is_dead = true;
        for (std::uint64_t i = 1; i < 3; ++i) {
          const Bytes more = pattern(77, i);
          CHECK(must(file.append_bytes(more)) == bytes.size());
          bytes.insert(bytes.end(), more.begin(), more.end());
        }
        CHECK(get(file) == bytes);
        CHECK(get(client, "/f") == bytes);
      });
      fs.add_client("person", path, [&](Client& client, sim::Actor& self) {
        while (!is_dead) self.pause(10ms);
        declare_lost(client, self, dies);
      });
      fs.world.run();
    }
  }
}

TEST_CASE("a file that was begun before an LFS was lost must be written again, and is told so") {
  FileSystem fs(4);
  fs.add_client("client", DataPath::kAuto, [&](Client& client, sim::Actor& self) {
    File file = must(client.create("/f", in_order(Format::fixed(10))));
    const Cell cell = file.layout().locate(0);
    const LfsIndex keeper = file.layout().parity_of(cell).lfs;
    unsigned lost = 0;  // one that the record does not need
    while (lost == cell.lfs || lost == keeper) ++lost;
    lose(fs, client, self, lost);
    const Bytes bytes = pattern(10);
    Status done = file.write(bytes);
    if (done) done = file.commit();
    REQUIRE(!done);
    CHECK(done.error().code == Code::kOldView);
    CHECK(done.error().text.find("/f: an LFS was lost, or came back") != std::string::npos);
    must(file.abort());
    put(client, "/f", in_order(Format::fixed(10)), bytes);
    CHECK(get(client, "/f") == bytes);
  });
  fs.world.run();
}

TEST_CASE("short records of a lost LFS are rebuilt many at once, whatever asks for them") {
  FileSystem fs(4);
  fs.add_client("client", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    const Bytes bytes = pattern(16 * 20'000 + 5, 1);
    put(client, "/f", in_order(Format::fixed(16)), bytes);
    lose(fs, client, self, 1);
    const auto asked = [&] {
      std::uint64_t count = 0;
      for (const OperationStats& one : client.stats())
        if (one.name == "reconstruct") count += one.count;
      return count;
    };
    File file = must(client.open("/f"));
    Bytes all(bytes.size());
    const std::uint64_t before = asked();
    CHECK(must(file.wait(must(file.start_read(0, all, 20'001)))) == 20'001);
    CHECK(all == bytes);
    CHECK(asked() > before);
    CHECK(asked() - before < 20);
    // Of each record the bytes from 3 to 12.
    File::Pieces pieces{patterns::simple_strided(3, 10, 16, 20'000), patterns::range(0, 200'000), 0, 0, {}};
    Bytes some(200'000);
    CHECK(must(file.read_pieces(pieces, some)) == some.size());
    for (std::size_t i = 0; i < some.size(); ++i) REQUIRE(some[i] == bytes[i / 10 * 16 + 3 + i % 10]);
    CHECK(asked() - before < 40);
  });
  fs.world.run();
}
