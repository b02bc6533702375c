// Parallel-open: a controller, its members, and who dies.
#include "pif/client/parallel.h"

#include <set>

#include "fixture.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

CreateOptions records(std::uint32_t length) {
  CreateOptions options;
  options.format = Format::fixed(length);
  return options;
}

struct Meeting {
  std::string token;
  unsigned come = 0;
};

void add_members(FileSystem& fs, DataPath path, unsigned members, Meeting& meeting,
                 const std::function<void(ParallelMember&, sim::Actor&)>& body) {
  for (unsigned i = 0; i < members; ++i) {
    fs.add_client("member" + std::to_string(i), path, [&meeting, body](Client& client, sim::Actor& self) {
      while (meeting.token.empty()) self.pause(1ms);
      ParallelMember member = must(ParallelMember::join(client, meeting.token));
      ++meeting.come;
      body(member, self);
    });
  }
}

}  // namespace

TEST_CASE("seven members over three LFSs read a file from a record on, each its own records, up to the end") {
  for (const DataPath path : kBothPaths) {
    for (const std::uint64_t at_once : {1u, 5u, 1000u}) {
      FileSystem fs(3);
      Meeting meeting;
      const Bytes all = test::pattern(100 * 503);
      std::vector<char> seen(503);
      fs.add_client("controller", path, [&](Client& client, sim::Actor&) {
        put(client, "/f", records(100), all);
        File file = must(client.open("/f"));
        ParallelController controller = must(ParallelController::open(file, {.members = 7, .position = 10}));
        meeting.token = controller.token();
        std::uint64_t moved = 0;
        while (const std::uint64_t some = must(controller.read(at_once))) moved += some;
        CHECK(moved == 493);
        must(controller.wait());
        must(controller.close());
      });
      add_members(fs, path, 7, meeting, [&](ParallelMember& member, sim::Actor&) {
        Bytes out(100 * 3);
        std::uint64_t round = 0;
        while (const auto some = must(member.read(out))) {
          for (std::uint64_t i = 0; i < some->records; ++i, ++round) {
            const std::uint64_t record = 10 + round * 7 + member.index();
            CHECK(text_of(part(out, i * 100, 100)) == text_of(part(all, record * 100, 100)));
            ++seen.at(record);
          }
        }
      });
      fs.world.run();
      CHECK(std::count(seen.begin(), seen.begin() + 10, 0) == 10);
      CHECK(std::count(seen.begin() + 10, seen.end(), 1) == 493);
    }
  }
}

TEST_CASE("members read records of variable length, and the lengths with them") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    Meeting meeting;
    std::vector<std::uint32_t> lengths;
    std::vector<std::size_t> begins;
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < 300; ++i) {
      lengths.push_back(i * 7919 % 1000);
      begins.push_back(bytes);
      bytes += lengths.back();
    }
    const Bytes all = test::pattern(bytes);
    std::vector<char> seen(300);
    fs.add_client("controller", path, [&](Client& client, sim::Actor&) {
      CreateOptions options;
      options.format = Format::variable();
      File made = must(client.create("/v", options));
      must(made.write_batch(lengths, all));
      must(made.commit());
      File file = must(client.open("/v"));
      ParallelController controller = must(ParallelController::open(file, {.members = 7}));
      meeting.token = controller.token();
      while (must(controller.read(9)) > 0) continue;
      must(controller.close());
    });
    add_members(fs, path, 7, meeting, [&](ParallelMember& member, sim::Actor&) {
      Bytes none;
      CHECK(code_of(member.read(none)) == Code::kInvalid);
      std::uint64_t record = member.index();
      while (const auto some = must(member.read_batch(2000))) {
        CHECK((some->lengths.size() == 1 || some->data.size() <= 2000));
        std::size_t at = 0;
        for (const std::uint32_t length : some->lengths) {
          REQUIRE(length == lengths.at(record));
          CHECK(text_of(part(some->data, at, length)) == text_of(part(all, begins[record], length)));
          ++seen.at(record);
          at += length;
          record += 7;
        }
      }
    });
    fs.world.run();
    CHECK(std::count(seen.begin(), seen.end(), 1) == 300);
  }
}

TEST_CASE("members write a file together, round by round, and it is there when the controller commits it") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    Meeting meeting;
    const Bytes all = test::pattern(64 * 5 * 40);
    fs.add_client("controller", path, [&](Client& client, sim::Actor& self) {
      File file = must(client.create("/f", records(64)));
      ParallelController controller = must(ParallelController::open(file, {.members = 5}));
      meeting.token = controller.token();
      must(controller.write(10));
      must(controller.write(30));
      must(controller.close());
      while (meeting.come < 10) self.pause(1ms);
      must(file.commit());
      CHECK(get(client, "/f") == all);
    });
    add_members(fs, path, 5, meeting, [&](ParallelMember& member, sim::Actor&) {
      Bytes own;
      for (std::size_t round = 0; round < 40; ++round) {
        const auto record = part(all, (round * 5 + member.index()) * 64, 64);
        own.insert(own.end(), record.begin(), record.end());
      }
      must(member.write(part(own, 0, 64 * 13)));
      must(member.write(part(own, 64 * 13, own.size())));
      CHECK(code_of(member.write(part(own, 0, 64))) == Code::kEndOfFile);
      must(member.done());
      ++meeting.come;
    });
    fs.world.run();
  }
}

TEST_CASE("a member that dies is named by the controller's next call within two seconds, and the others end") {
  FileSystem fs(3);
  Meeting meeting;
  unsigned cancelled = 0;
  fs.add_client("controller", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    put(client, "/f", records(100), test::pattern(100 * 5000));
    File file = must(client.open("/f"));
    ParallelController controller = must(ParallelController::open(file, {.members = 4, .rounds_in_flight = 2}));
    meeting.token = controller.token();
    while (meeting.come < 4) self.pause(1ms);
    static_cast<void>(must(controller.read(1)));
    fs.world.kill(*fs.world.find("member2"));
    const Time killed = self.clock().now();
    Result<std::uint64_t> read = 1;
    while (read && *read > 0) read = controller.read(1);
    CHECK(code_of(read) == Code::kUnavailable);
    CHECK(read.error().text.find("member2") != std::string::npos);
    CHECK(self.clock().now() - killed < 2s);
    while (cancelled < 3) self.pause(1ms);
  });
  add_members(fs, DataPath::kDescriptors, 4, meeting, [&](ParallelMember& member, sim::Actor&) {
    Bytes out(100);
    while (true) {
      const auto some = member.read(out);
      if (some && *some) continue;
      CHECK(code_of(some) == Code::kCancelled);
      break;
    }
    ++cancelled;
  });
  fs.world.run();
}

TEST_CASE("a slow member costs the controller waiting: no more rounds are released than its credit") {
  FileSystem fs(2);
  Meeting meeting;
  std::uint64_t slow = 0;
  fs.add_client("controller", DataPath::kDescriptors, [&](Client& client, sim::Actor&) {
    put(client, "/f", records(100), test::pattern(100 * 200));
    File file = must(client.open("/f"));
    ParallelController controller = must(ParallelController::open(file, {.members = 2, .rounds_in_flight = 3}));
    meeting.token = controller.token();
    std::uint64_t released = 0;
    while (must(controller.read(1)) > 0) CHECK(++released <= slow + 3 + 1);
    must(controller.close());
  });
  add_members(fs, DataPath::kDescriptors, 2, meeting, [&](ParallelMember& member, sim::Actor& self) {
    Bytes out(100);
    while (const auto some = must(member.read(out))) {
      if (member.index() == 0) continue;
      self.pause(10ms);
      slow += some->records;
    }
  });
  fs.world.run();
}

TEST_CASE("a member may take longer for its rounds than anybody waits for an answer, as long as it does some") {
  FileSystem fs(2);
  Meeting meeting;
  fs.add_client("controller", DataPath::kDescriptors, [&](Client& client, sim::Actor&) {
    put(client, "/f", records(100), test::pattern(100 * 200));
    File file = must(client.open("/f"));
    ParallelController controller = must(ParallelController::open(file, {.members = 2, .rounds_in_flight = 1}));
    meeting.token = controller.token();
    CHECK(must(controller.read(100)) == 200);
    must(controller.close());
  });
  add_members(fs, DataPath::kDescriptors, 2, meeting, [&](ParallelMember& member, sim::Actor& self) {
    Bytes out(100);
    while (must(member.read(out))) self.pause(2s);
  });
  fs.world.run();
}

TEST_CASE("a token that is none is refused, and a member that there is already") {
  FileSystem fs(2);
  fs.run(DataPath::kDescriptors, [](Client& client) {
    put(client, "/f", records(100), test::pattern(1000));
    File file = must(client.open("/f"));
    CHECK(code_of(ParallelController::open(file, {.members = 0})) == Code::kInvalid);
    ParallelController controller = must(ParallelController::open(file, {.members = 2}));
    CHECK(code_of(ParallelMember::join(client, "")) == Code::kBadCapability);
    CHECK(code_of(ParallelMember::join(client, std::string(60, 'x'))) == Code::kBadCapability);
    std::string forged = controller.token();
    forged[8] = static_cast<char>(forged[8] ^ 1);
    CHECK(code_of(ParallelMember::join(client, forged)) == Code::kBadCapability);
    ParallelMember member = must(ParallelMember::join(client, controller.token(), 1));
    CHECK(member.index() == 1);
    CHECK(code_of(ParallelMember::join(client, controller.token(), 1)) == Code::kExists);
    CHECK(code_of(ParallelMember::join(client, controller.token(), 2)) == Code::kInvalid);
    Bytes small(99);
    CHECK(code_of(member.read(small)) == Code::kInvalid);
    CHECK(code_of(member.write(small)) == Code::kInvalid);
    CHECK(code_of(controller.write(1)) == Code::kInvalid);
  });
}
