// Files that several clients create together.
#include <cstdlib>

#include <unistd.h>

#include "fixture.h"
#include "pif/client/bulk.h"
#include "pif/pattern/builders.h"

using namespace pif;
using namespace pif::test;

namespace {

using State = File::Member::State;

CreateOptions records(std::uint32_t length, std::uint32_t bevy = 0) {
  CreateOptions options;
  options.format = Format::fixed(length);
  options.bevy = bevy;
  return options;
}

// A place where actors meet: a token, and how many have come so far.
struct Meeting {
  std::string token;
  unsigned come = 0;
  void await(sim::Actor& self, unsigned wanted) const {
    while (come < wanted) self.pause(std::chrono::milliseconds(1));
  }
};

void join_all(FileSystem& fs, DataPath path, unsigned members, Meeting& meeting,
              const std::function<void(Client&, File&, unsigned, sim::Actor&)>& body) {
  for (unsigned i = 1; i <= members; ++i) {
    fs.add_client("member" + std::to_string(i), path, [&, i](Client& client, sim::Actor& self) {
      while (meeting.token.empty()) self.pause(std::chrono::milliseconds(1));
      File file = must(client.join(meeting.token));
      body(client, file, i, self);
    });
  }
}

}  // namespace

TEST_CASE("several clients fill one file in any order, and nobody sees it before one commits it") {
  for (const DataPath path : kBothPaths) {
    for (const std::uint32_t bevy : {0u, 2u}) {
      FileSystem fs(4);
      Meeting meeting;
      const Bytes model = test::pattern(200'033, 3);
      fs.add_client("creator", path, [&](Client& client, sim::Actor& self) {
        File file = must(client.create("/f", records(100, bevy)));
        meeting.token = must(file.share());
        CHECK(meeting.token.size() <= 4096);
        meeting.await(self, 3);
        CHECK(code_of(client.open("/f")) == Code::kNotFound);
        Bytes all(model.size());
        CHECK(must(file.pread(all, 0)) == all.size());
        CHECK(all == model);
        must(file.commit());
        CHECK(get(client, "/f") == model);
        CHECK(must(client.stat("/f")).file_length == fixed_file_length(100, model.size()));
      });
      join_all(fs, path, 3, meeting, [&](Client&, File& file, unsigned number, sim::Actor&) {
        // Every third piece of 1 to 5,000 bytes, from behind.
        std::vector<std::pair<std::size_t, std::size_t>> pieces;
        std::mt19937_64 random(17);
        unsigned turn = 0;
        for (std::size_t at = 0; at < model.size(); ++turn) {
          const std::size_t size = std::min<std::size_t>(1 + random() % 5000, model.size() - at);
          if (turn % 3 == number - 1) pieces.emplace_back(at, size);
          at += size;
        }
        std::reverse(pieces.begin(), pieces.end());
        for (const auto& [at, size] : pieces) must(file.pwrite(part(model, at, size), at));
        must(file.done());
        CHECK(code_of(file.pwrite(part(model, 0, 1), 0)) == Code::kInvalid);
        ++meeting.come;
      });
      fs.world.run();
    }
  }
}

TEST_CASE("a commit waits for those who write, names who has gone, and goes on when it is dropped") {
  FileSystem fs(3);
  Meeting meeting;
  fs.add_client("creator", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    File file = must(client.create("/f", records(64)));
    meeting.token = must(file.share());
    must(file.pwrite(test::pattern(640), 0));
    meeting.await(self, 1);
    const Status busy = file.commit();
    CHECK(code_of(busy) == Code::kBusy);
    CHECK(busy.error().text.find("member 1") != std::string::npos);
    ++meeting.come;
    meeting.await(self, 3);  // it has gone
    self.pause(std::chrono::seconds(1));
    const Status gone = file.commit();
    CHECK(code_of(gone) == Code::kUnavailable);
    CHECK(gone.error().text.find("member 1 (member1") != std::string::npos);
    CHECK(must(file.members()).at(1).state == State::kGone);
    must(file.drop(1));
    CHECK(must(file.members()).at(1).state == State::kDropped);
    must(file.commit());
    CHECK(get(client, "/f") == test::pattern(640));
  });
  fs.add_client("member1", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    while (meeting.token.empty()) self.pause(std::chrono::milliseconds(1));
    {
      Client own = std::move(client);
      File file = must(own.join(meeting.token));
      CHECK(code_of(own.join(meeting.token)) == Code::kExists);
      ++meeting.come;
      meeting.await(self, 2);
    }
    ++meeting.come;
  });
  fs.world.run();
}

TEST_CASE("a token that is none, or of a file that is committed, lets nobody in") {
  FileSystem fs(2);
  fs.run(DataPath::kDescriptors, [](Client& client) {
    CHECK(code_of(client.join("")) == Code::kBadCapability);
    CHECK(code_of(client.join(std::string(45, 'J'))) == Code::kBadCapability);
    File file = must(client.create("/f", records(64)));
    CHECK(code_of(file.members()) == Code::kInvalid);
    CHECK(code_of(file.done()) == Code::kInvalid);
    const std::string token = must(file.share());
    must(file.pwrite(test::pattern(64), 64));
    must(file.commit());
    CHECK(code_of(client.join(token)) == Code::kStaleFile);
    Bytes expected(64);
    const Bytes second = test::pattern(64);
    expected.insert(expected.end(), second.begin(), second.end());
    CHECK(get(client, "/f") == expected);
    CreateOptions lines;
    lines.format = Format::variable();
    File other = must(client.create("/g", lines));
    CHECK(code_of(other.share()) == Code::kUnsupported);
  });
}

TEST_CASE("an LFS that was started again while several write is said, and the file is not committed without its rows") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [&](Client& client) {
      File file = must(client.create("/f", records(64)));
      static_cast<void>(must(file.share()));
      must(file.pwrite(test::pattern(64 * 100), 0));
      fs.cluster.restart_lfs(1);
      static_cast<void>(must(client.status(2)));
      static_cast<void>(file.pwrite(test::pattern(64 * 10), 64 * 100));  // perhaps refused already
      CHECK(code_of(file.commit()) == Code::kOldView);
      CHECK(code_of(client.open("/f")) == Code::kNotFound);
    });
  }
}

TEST_CASE("bytes of a file being created are written anywhere, and what nobody wrote is zero and takes no room") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      File file = must(client.create("/f", records(4096)));
      const Bytes end = test::pattern(5000);
      constexpr std::uint64_t kFar = 256u << 20;
      CHECK(must(file.pwrite(end, kFar)) == end.size());
      must(file.sync());
      must(file.commit());
      File read = must(client.open("/f"));
      CHECK(must(read.file_length()).bytes == kFar + 5000);
      Bytes some(6000);
      CHECK(must(read.pread(some, kFar - 1000)) == 6000);
      CHECK(std::all_of(some.begin(), some.begin() + 1000, [](std::byte b) { return b == std::byte{0}; }));
      CHECK(std::equal(end.begin(), end.end(), some.begin() + 1000));
    });
  }
}

TEST_CASE("what went by message is read back, and changed in part, before the file is committed") {
  FileSystem fs(3);
  fs.run(DataPath::kMessages, [](Client& client) {
    File file = must(client.create("/f", records(1000)));
    Bytes model = test::pattern(3'000'000);
    must(file.write(model));
    Bytes some(1000);
    CHECK(must(file.read_at(5, some, 1)) == 1);
    CHECK(std::equal(some.begin(), some.end(), model.begin() + 5000));
    const Bytes change = test::pattern(100, 9);
    CHECK(must(file.pwrite(change, 7050)) == 100);
    std::copy(change.begin(), change.end(), model.begin() + 7050);
    must(file.commit());
    CHECK(get(client, "/f") == model);
  });
}

TEST_CASE("who is done reads on what all have written") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      File file = must(client.create("/f", records(64)));
      static_cast<void>(must(file.share()));
      const Bytes bytes = test::pattern(1000);
      must(file.pwrite(bytes, 0));
      must(file.done());
      Bytes read(1000);
      CHECK(must(file.pread(read, 0)) == 1000);
      CHECK(read == bytes);
      CHECK(must(file.read_at(2, read, 1)) == 1);
      CHECK(std::equal(read.begin(), read.begin() + 64, bytes.begin() + 128));
      must(file.commit());
      CHECK(get(client, "/f") == bytes);
    });
  }
}

// A commit that has sealed an LFS, and was refused: the LFSs without rows would still take some.
TEST_CASE("a file takes no bytes once its commit has begun, and is what it was then, or given up") {
  for (const DataPath path : kBothPaths) {
    for (const bool in_order : {true, false}) {
      FileSystem fs(4);
      fs.run(path, [in_order](Client& client) {
        CreateOptions options = records(64);
        options.exclusive = true;
        File file = must(client.create("/f", options));
        const Bytes first = test::pattern(64, 1);
        must(file.pwrite(first, 0));
        if (!in_order) must(file.pwrite(part(first, 10, 5), 10));
        put(client, "/f", records(64), test::pattern(10));
        CHECK(code_of(file.commit()) == Code::kExists);
        Bytes some(64);
        CHECK(code_of(file.pwrite(first, 64)) == Code::kInvalid);
        CHECK(code_of(file.write_at(1, first)) == Code::kInvalid);
        CHECK(code_of(file.pread(some, 0)) == Code::kInvalid);
        CHECK(code_of(file.share()) == Code::kInvalid);
        must(client.remove("/f"));
        must(file.commit());
        CHECK(get(client, "/f") == first);
      });
    }
  }
}

TEST_CASE("what somebody writes who joins after a seal is not lost: the file is not committed without it") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    Meeting meeting;
    fs.add_client("creator", path, [&](Client& client, sim::Actor& self) {
      CreateOptions options = records(64);
      options.exclusive = true;
      File file = must(client.create("/f", options));
      const std::string token = must(file.share());
      must(file.pwrite(test::pattern(64), 0));
      put(client, "/f", records(64), test::pattern(10));
      CHECK(code_of(file.commit()) == Code::kExists);  // LFS 0 is sealed
      must(client.remove("/f"));
      meeting.token = token;
      meeting.await(self, 1);
      CHECK(code_of(file.commit()) == Code::kExists);
      ++meeting.come;
      meeting.await(self, 3);
      must(file.abort());
      CHECK(code_of(client.open("/f")) == Code::kNotFound);
    });
    join_all(fs, path, 1, meeting, [&](Client&, File& file, unsigned, sim::Actor& self) {
      must(file.pwrite(test::pattern(64, 2), 64));  // LFS 1 is not
      must(file.done());
      ++meeting.come;
      meeting.await(self, 2);
      CHECK(code_of(file.commit()) == Code::kExists);
      ++meeting.come;
    });
    fs.world.run();
  }
}

TEST_CASE("what a member wrote that was dropped is in nobody's way") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    Meeting meeting;
    fs.add_client("creator", path, [&](Client& client, sim::Actor& self) {
      File file = must(client.create("/f", records(64)));
      must(file.pwrite(test::pattern(64), 0));
      meeting.token = must(file.share());
      meeting.await(self, 1);
      must(file.drop(1));
      must(file.commit());
      File committed = must(client.open("/f", Client::Mode::kWrite));
      const Bytes more = test::pattern(64 * 10, 3);
      CHECK(must(committed.append(more)) == 1);
      Bytes read(more.size());
      CHECK(must(committed.pread(read, 64)) == more.size());
      CHECK(read == more);
    });
    join_all(fs, path, 1, meeting, [&](Client&, File& file, unsigned, sim::Actor&) {
      for (unsigned i = 1; i < 40; ++i) must(file.pwrite(test::pattern(64, i), i * 64));
      must(file.close());
      ++meeting.come;
    });
    fs.world.run();
  }
}

TEST_CASE("a file that is written in pieces takes in a stream, is read many at once, and committed with others") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      File file = must(client.create("/f", records(100)));
      static_cast<void>(must(file.share()));
      const Bytes bytes = test::pattern(300'050);
      char name[] = "/tmp/pif-sharing-XXXXXX";
      const int fd = ::mkstemp(name);
      REQUIRE(fd >= 0);
      static_cast<void>(::unlink(name));
      REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
      REQUIRE(::lseek(fd, 0, SEEK_SET) == 0);
      CHECK(must(import_stream(file, fd)).bytes == bytes.size());
      REQUIRE(::ftruncate(fd, 0) == 0);
      REQUIRE(::lseek(fd, 0, SEEK_SET) == 0);
      CHECK(must(export_stream(file, fd)).bytes == bytes.size());
      Bytes out(bytes.size());
      REQUIRE(::pread(fd, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
      CHECK(out == bytes);
      static_cast<void>(::close(fd));
      Bytes some(300), others(100);
      std::vector<File::ReadRequest> requests = {{5, 3, some, 0}, {1000, 1, others, 0}};
      must(file.read_many(requests));
      CHECK(std::ranges::equal(some, part(bytes, 500, 300)));
      CHECK(std::ranges::equal(others, part(bytes, 100'000, 100)));
      File other = must(client.create("/g", records(100)));
      must(other.write(test::pattern(100)));
      std::vector<File*> files = {&file, &other};
      for (const Status& committed : client.commit_many(files)) must(committed);
      CHECK(get(client, "/f") == bytes);
      CHECK(get(client, "/g") == test::pattern(100));
    });
  }
}

TEST_CASE("who is done, and whose commit was refused, reads on, holds up nobody's commit, and is told of it") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    Meeting meeting;
    const Bytes model = test::pattern(20'000);
    fs.add_client("creator", path, [&](Client& client, sim::Actor& self) {
      File file = must(client.create("/f", records(64)));
      meeting.token = must(file.share());
      must(file.pwrite(part(model, 0, 10'000), 0));
      meeting.await(self, 1);
      CHECK(code_of(file.commit()) == Code::kBusy);
      Bytes some(10'000);
      CHECK(must(file.pread(some, 0)) == some.size());
      CHECK(std::equal(some.begin(), some.end(), model.begin()));
      ++meeting.come;
      meeting.await(self, 3);
      must(file.commit());
      CHECK(get(client, "/f") == model);
    });
    join_all(fs, path, 1, meeting, [&](Client& client, File& file, unsigned, sim::Actor& self) {
      ++meeting.come;
      meeting.await(self, 2);
      must(file.pwrite(part(model, 10'000, 10'000), 10'000));
      must(file.done());
      Bytes all(model.size());
      CHECK(must(file.pread(all, 0)) == all.size());
      CHECK(all == model);
      ++meeting.come;
      while (!client.open("/f")) self.pause(std::chrono::milliseconds(10));
      must(file.commit());  // it is committed: by whom does not matter
    });
    fs.world.run();
  }
}

TEST_CASE("a commit that was refused because somebody has joined meanwhile takes what that one has written, or fails") {
  for (unsigned delay = 0; delay < 40; ++delay) {
    FileSystem fs(3);
    Meeting meeting;
    const Bytes model = test::pattern(delay % 4 < 2 ? 1000 : 20);  // 20: LFS 0 has no more rows of it than before
    bool is_refused = false;
    fs.add_client("creator", DataPath::kMessages, [&](Client& client, sim::Actor& self) {
      File file = must(client.create("/f", records(10)));
      const std::string token = must(file.share());
      if (delay % 2 == 0) must(file.pwrite(part(model, 0, 10), 0));
      meeting.token = token;
      if (file.commit()) return;
      is_refused = true;
      meeting.await(self, 1);
      const Status again = file.commit();
      if (again) CHECK(get(client, "/f") == model);
      if (delay % 2 == 1) must(again);
    });
    fs.add_client("member1", DataPath::kMessages, [&](Client& client, sim::Actor& self) {
      while (meeting.token.empty()) self.pause(std::chrono::milliseconds(1));
      self.pause(std::chrono::microseconds(100) * delay);
      auto joined = client.join(meeting.token);
      if (!joined) return;
      while (!is_refused) self.pause(std::chrono::milliseconds(1));
      if (auto done = joined->pwrite(model, 0)) must(joined->done());
      ++meeting.come;
    });
    fs.world.run();
  }
}
