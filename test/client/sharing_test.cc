// Files that several clients create together.
#include "fixture.h"
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
