// The life of files: visibility, replacement, deletion, failures.
#include "fixture.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

CreateOptions fixed(std::uint32_t length, std::uint32_t width = 0) {
  CreateOptions options;
  options.format = Format::fixed(length);
  options.width = width;
  return options;
}

}  // namespace

TEST_CASE("a file is seen when it is committed, not before") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      File file = must(client.create("/f", fixed(100)));
      must(file.write(pattern(1000)));
      CHECK(code_of(client.stat("/f")) == Code::kNotFound);
      CHECK(code_of(client.open("/f")) == Code::kNotFound);
      must(file.commit());
      CHECK(code_of(file.write(pattern(100))) == Code::kInvalid);  // it is closed by that
      const Entry entry = must(client.stat("/f"));
      CHECK(entry.file_length == FileLength{10, 1000});
      CHECK(entry.nodes.size() == 3);
      CHECK(get(client, "/f") == pattern(1000));
    });
  }
}

TEST_CASE("an aborted file, and one that is only dropped, leave nothing") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    File file = must(client.create("/f", fixed(100)));
    must(file.write(pattern(1000)));
    must(file.abort());
    {
      File dropped = must(client.create("/g", fixed(100)));
      must(dropped.write(pattern(500)));
    }
    CHECK(must(client.list("/")).entries.empty());
    CHECK(must(client.status()).pending == 0);
  });
}

TEST_CASE("a replaced file stays readable for those who have it open") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      put(client, "/f", fixed(100), pattern(1000, 1));
      put(client, "/new", fixed(100), pattern(700, 2));
      File old = must(client.open("/f"));
      must(client.rename("/new", "/f"));
      CHECK(get(old) == pattern(1000, 1));
      CHECK(get(client, "/f") == pattern(700, 2));
      CHECK(code_of(client.stat("/new")) == Code::kNotFound);
      put(client, "/f", fixed(50), pattern(333, 3));  // replaces at commit
      CHECK(get(client, "/f") == pattern(333, 3));
    });
  }
}

TEST_CASE("an exclusive create fails where the name is taken") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    put(client, "/f", fixed(100), pattern(100));
    CreateOptions options = fixed(100);
    options.exclusive = true;
    CHECK(code_of(client.create("/f", options)) == Code::kExists);
    CHECK(get(client, "/f") == pattern(100));
  });
}

TEST_CASE("entries that are too long for one reply come in several") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    CreateOptions options = fixed(8);
    options.attributes["note"] = std::string(4000, 'n');
    std::vector<std::string> paths;
    const std::size_t count = 600;  // several requests are under way while one is asked again in parts
    for (std::size_t i = 0; i < count; ++i) paths.push_back("/" + std::to_string(i));
    for (const Status& made : must(client.create_empty_many(paths, options))) must(made);
    paths.push_back("/missing");
    const auto entries = must(client.stat_many(paths));
    REQUIRE(entries.size() == count + 1);
    for (std::size_t i = 0; i < count; ++i) CHECK(must(entries[i]).name == paths[i].substr(1));
    CHECK(code_of(entries[count]) == Code::kNotFound);
  });
}

TEST_CASE("empty files are made by the hundred, and removed so") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d"));
    std::vector<std::string> paths;
    for (int i = 0; i < 600; ++i) paths.push_back("/d/" + std::to_string(i));
    paths.push_back("/missing/x");
    const auto made = must(client.create_empty_many(paths, fixed(8)));
    REQUIRE(made.size() == 601);
    CHECK(std::count_if(made.begin(), made.end(), [](const Status& s) { return s.has_value(); }) == 600);
    CHECK(code_of(made.back()) == Code::kNotFound);
    const auto entries = must(client.stat_many(paths));
    REQUIRE(entries.size() == 601);
    CHECK(entries[5]->name == "5");
    CHECK(code_of(entries[600]) == Code::kNotFound);
    std::size_t listed = 0;
    ListPage page;
    do {
      page = must(client.list("/d", page.entries.empty() ? "" : page.entries.back().name, 100));
      listed += page.entries.size();
    } while (page.more);
    CHECK(listed == 600);
    File file = must(client.open("/d/17"));
    Bytes out(8);
    CHECK(must(file.read(out, 1)) == 0);
    CHECK(must(file.file_length()) == FileLength{});
    must(file.close());
    const auto removed = must(client.remove_many(paths));
    CHECK(std::count_if(removed.begin(), removed.end(), [](const Status& s) { return s.has_value(); }) == 600);
  });
}

TEST_CASE("modes, owners and groups change for those who may change them, and what is not named stays") {
  FileSystem fs(2);
  AttributeChange gift;
  gift.owner = 1001;
  gift.group = 1001;
  AttributeChange closed;
  closed.mode = 0700;
  fs.run(DataPath::kAuto, [&](Client& client) {
    must(client.make_folder("/home", false, 0750));
    must(client.change_attributes("/home", gift));
    Entry home = must(client.stat("/home"));
    CHECK((home.owner == 1001 && home.group == 1001 && home.mode == 0750));
    must(client.change_attributes("/home", closed));
    home = must(client.stat("/home"));
    CHECK((home.owner == 1001 && home.mode == 0700));
    CHECK(code_of(client.change_attributes("/none", closed)) == Code::kNotFound);
  });
}

TEST_CASE("wrong widths, lengths and paths are refused with their own error") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    CHECK(code_of(client.create("/f", fixed(0))) == Code::kInvalid);
    CHECK(code_of(client.create("/f", fixed(kRecordLengthMax + 1))) == Code::kInvalid);
    CHECK_FALSE(client.create("/f", fixed(10, 4)));
    CreateOptions twice = fixed(10);
    twice.nodes = {1, 1};
    CHECK_FALSE(client.create("/f", twice));
    CHECK(code_of(client.create("/no/f", fixed(10))) == Code::kNotFound);
    CHECK(code_of(client.open("/")) == Code::kIsDirectory);
    put(client, "/f", fixed(10), pattern(10));
    CHECK(code_of(client.create("/f/g", fixed(10))) == Code::kNotDirectory);
  });
}

TEST_CASE("an LFS that dies while a file is written fails that file, by name, and no other") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [&fs](Client& client) {
      put(client, "/other", fixed(100), pattern(5000, 2));
      File file = must(client.create("/f", fixed(1000)));
      must(file.write(pattern(30000)));
      fs.cluster.kill_lfs(1);
      Status status;
      for (int i = 0; i < 3 && status; ++i) status = file.write(pattern(30000));
      if (status) status = file.commit();
      REQUIRE_FALSE(status);
      CHECK(status.error().node == "lfs1");
      must(file.abort());
      fs.cluster.restart_lfs(1);
      must(client.status(3));
      CHECK(get(client, "/other") == pattern(5000, 2));
      CHECK(code_of(client.stat("/f")) == Code::kNotFound);
      put(client, "/f", fixed(1000), pattern(20000, 3));
      CHECK(get(client, "/f") == pattern(20000, 3));
    });
  }
}

TEST_CASE("an LFS that is started again is found again") {
  FileSystem fs(3);
  fs.run(DataPath::kMessages, [&fs](Client& client) {
    put(client, "/f", fixed(100), pattern(5000));
    File file = must(client.open("/f"));
    CHECK(get(file) == pattern(5000));
    fs.cluster.restart_lfs(2);
    must(client.status(3));
    CHECK(get(file) == pattern(5000));
  });
}

TEST_CASE("a server that is started again while files are open and written changes nothing for them") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [&fs](Client& client) {
      put(client, "/old", fixed(100), pattern(5000));
      File old = must(client.open("/old"));
      File fresh = must(client.create("/new", fixed(100)));
      must(fresh.write(pattern(3000)));
      fs.cluster.restart_server();
      CHECK(get(old) == pattern(5000));
      must(fresh.write(pattern(3000)));
      must(fresh.commit());
      CHECK(must(client.stat("/new")).file_length.bytes == 6000);
      must(client.rename("/new", "/newer"));
      must(old.close());
    });
  }
}

TEST_CASE("what is being created outlives the server, however long nobody asks it anything") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
      File fresh = must(client.create("/f", fixed(100)));
      for (int i = 0; i < 50; ++i) {
        if (i == 5) fs.cluster.restart_server();
        must(fresh.write(pattern(100)));
        self.pause(10s);
      }
      must(fresh.commit());
      CHECK(must(client.stat("/f")).file_length.records == 50);
    });
    fs.world.run();
  }
}

TEST_CASE("capabilities are renewed while a file stays open") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.add_client("client", path, [](Client& client, sim::Actor& self) {
      put(client, "/f", fixed(100), pattern(5000));
      File file = must(client.open("/f", Client::Mode::kWrite));
      File fresh = must(client.create("/g", fixed(100)));
      for (int i = 0; i < 4; ++i) {
        self.pause(400s);
        must(client.status());
        CHECK(get(file) == pattern(5000));
        must(file.write_at(0, pattern(100)));
        must(fresh.write(pattern(100)));
      }
      must(fresh.commit());
    });
    fs.world.run();
  }
}

TEST_CASE("a deleted file becomes stale when the rights to it end") {
  FileSystem fs(2);
  fs.add_client("client", DataPath::kMessages, [](Client& client, sim::Actor& self) {
    put(client, "/f", fixed(100), pattern(5000));
    File file = must(client.open("/f"));
    must(client.remove("/f"));
    self.pause(1500s);
    Bytes out(100);
    const auto read = file.read(out, 1);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Code::kStaleFile);
  });
  fs.world.run();
}

// LFSs are told of the removal at once, and forget it when the server or they themselves are started again: then they
// have nothing of the file, like one that has lost its part.
TEST_CASE("a file that was removed while the server had forgotten who has it open is stale, and no LFS has lost it") {
  const bool lfs_restarts = GENERATE(false, true);
  FileSystem fs(2);
  fs.add_client("client", DataPath::kMessages, [&](Client& client, sim::Actor& self) {
    put(client, "/f", fixed(100), pattern(5000));
    File file = must(client.open("/f", Client::Mode::kWrite));
    fs.cluster.restart_server();
    must(client.remove("/f"));
    self.pause(2s);
    if (lfs_restarts) fs.cluster.restart_lfs(0);
    fs.cluster.restart_server();
    must(client.status(2));
    self.pause(2s);  // the LFSs have heard of the server's new run
    CHECK(code_of(file.file_length()) == Code::kStaleFile);
    CHECK(code_of(file.append(pattern(100))) == Code::kStaleFile);
    CHECK(code_of(file.write_at(0, pattern(100))) == Code::kStaleFile);
    fs.cluster.kill_server();
    const auto unknown = file.file_length();
    CHECK((code_of(unknown) == Code::kUnavailable || code_of(unknown) == Code::kTimeout));
  });
  fs.world.run();
}

TEST_CASE("an LFS that has fewer records of a file than the directory has lost some, and nobody takes it for removed") {
  FileSystem fs(1);
  fs.add_client("client", DataPath::kMessages, [&](Client& client, sim::Actor&) {
    put(client, "/f", fixed(100), pattern(5000));
    constexpr kv::Table kComponents = 0;
    fs.cluster.kill_lfs(0);
    const auto catalogue = fs.cluster.open_catalogue(0);
    auto transaction = must(catalogue->write());
    std::string key;
    must(transaction->scan(kComponents, {}, [&](std::string_view found, std::string_view) {
      key = found;
      return false;
    }));
    must(transaction->erase(kComponents, key));
    must(transaction->commit());
    fs.cluster.restart_lfs(0);
    must(client.status(1));
    File file = must(client.open("/f", Client::Mode::kWrite));
    CHECK(code_of(file.file_length()) == Code::kCorrupt);  // its files are put aside
    CHECK(code_of(file.append(pattern(100))) == Code::kStaleNode);
  });
  fs.world.run();
}

TEST_CASE("flipped bytes are noticed by readers of either path") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(1);
    fs.run(path, [&fs](Client& client) {
      put(client, "/f", fixed(100), pattern(20000));
      const std::uint64_t id = must(client.stat("/f")).id;
      File file = must(client.open("/f"));
      fs.cluster.disk(0).flip_bit(component::stem(fs.cluster.root(0), FileId(id)) + ".dat", 5000, 3);
      Bytes out(100);
      CHECK(must(file.read_at(0, out, 1)) == 1);
      const auto read = file.read_at(50, out, 1);
      REQUIRE_FALSE(read);
      CHECK(read.error().code == Code::kCorrupt);
      CHECK(read.error().node == "lfs0");
    });
  }
}
