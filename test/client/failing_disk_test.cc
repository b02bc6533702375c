// Files with parity while the disk of one LFS fails, and its daemon is alive.
#include "fixture.h"
#include "pif/client/session.h"
#include "pif/pattern/builders.h"
#include "pif/wire/values.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

CreateOptions in_order(const Format& format) {
  CreateOptions options;
  options.format = format;
  options.nodes = {1, 2, 3, 4};
  options.bevy = 2;
  return options;
}

// Calls of this name, on files with this end of their path, fail so.
struct Failing {
  std::string call, end;
  Code code = Code::kIo;
};

const std::vector<Failing> kFailing = {
    {"read", ".dat"},
    {"read", ".sum"},
    {"read", ".idx"},
    {"read", ".isum"},
    {"read", ""},
    {"open", ""},
    {"size", ""},
    {"read", ".dat", Code::kReadOnly},
    {"read", ".dat", Code::kEndOfFile},  // short reads
    {"read", "", Code::kNoSpace},
    {"open", "", Code::kPermission},
    {"open", ".dat", Code::kNotFound},
};

void fail_disk(FileSystem& fs, unsigned lfs, const Failing& failing) {
  fs.cluster.disk(lfs).set_fault([failing](std::string_view call, std::string_view path) {
    const bool is_data = path.find("/data/") != std::string_view::npos;
    return call == failing.call && is_data && path.ends_with(failing.end) ? failing.code : Code::kOk;
  });
}

void check_fixed(File& file, const Bytes& bytes, std::uint32_t length) {
  CHECK(get(file) == bytes);
  Bytes record(length);
  for (RecordNumber n = 0; n < bytes.size() / length; n += 7) {
    CHECK(must(file.read_at(n, record, 1)) == 1);
    CHECK(std::equal(record.begin(), record.end(), bytes.begin() + static_cast<std::ptrdiff_t>(n * length)));
  }
  Bytes within(3);
  for (std::uint64_t offset = 2; offset + 3 < bytes.size(); offset += 5 * length + 1) {
    CHECK(must(file.pread(within, offset)) == 3);
    CHECK(std::equal(within.begin(), within.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset)));
  }
  const std::uint64_t count = bytes.size() / length;
  File::Pieces pieces{patterns::simple_strided(1, 5, length, count), patterns::range(0, 5 * count), 0, 0, {}};
  Bytes some(5 * count);
  CHECK(must(file.read_pieces(pieces, some)) == some.size());
  for (std::size_t i = 0; i < some.size(); ++i) REQUIRE(some[i] == bytes[i / 5 * length + 1 + i % 5]);
  Bytes all(bytes.size());
  CHECK(must(file.wait(must(file.start_read(0, all, count)))) == count);
  CHECK(all == bytes);
}

void check_lines(File& file, const Bytes& bytes, std::uint64_t records) {
  const RecordBatch batch = must(file.read_batch_at(0, records, bytes.size()));
  CHECK(batch.data == bytes);
  CHECK(get(file) == bytes);
}

}  // namespace

TEST_CASE("a file with parity is read whatever fails at one of its LFSs") {
  for (const DataPath path : kBothPaths) {
    for (const Failing& failing : kFailing) {
      for (const unsigned lfs : {0u, 1u, 3u}) {
        CAPTURE(failing.call, failing.end, lfs);
        FileSystem fs(4);
        fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
          const Bytes bytes = pattern(10 * 997);
          put(client, "/f", in_order(Format::fixed(10)), bytes);
          Bytes text;
          for (std::uint8_t i = 0; i < 200; ++i) {
            text.insert(text.end(), i % 7, std::byte{'x'});
            text.push_back(std::byte{'\n'});
          }
          File lines = must(client.create("/lines", in_order(Format::lines())));
          std::vector<std::uint32_t> lengths;
          for (std::uint32_t i = 0; i < 200; ++i) lengths.push_back(i % 7 + 1);
          must(lines.write_batch(lengths, text));
          must(lines.commit());
          File open_before = must(client.open("/f"));
          File lines_before = must(client.open("/lines"));
          check_fixed(open_before, bytes, 10);
          check_lines(lines_before, text, 200);
          self.pause(1s);  // what was written is at rest
          fail_disk(fs, lfs, failing);
          check_fixed(open_before, bytes, 10);
          check_lines(lines_before, text, 200);
          File open_now = must(client.open("/f"));
          File lines_now = must(client.open("/lines"));
          check_fixed(open_now, bytes, 10);
          check_lines(lines_now, text, 200);
          fs.cluster.disk(lfs).set_fault({});
        });
        fs.world.run();
      }
    }
  }
}

namespace {

std::uint32_t view_state(Client& client, unsigned lfs) {
  const proto::NodesReply reply = must(client.session().call(proto::Nodes()));
  for (const proto::NodeInfo& node : reply.nodes())
    if (node.id() == lfs + 1) return node.view_state();
  return 0;
}

void await_state(Client& client, sim::Actor& self, unsigned lfs, std::uint32_t state) {
  for (int i = 0; i < 120 && view_state(client, lfs) != state; ++i) self.pause(1s);
  REQUIRE(view_state(client, lfs) == state);
}

}  // namespace

TEST_CASE("an append waits until the LFS whose disk fails is lost; then files are made without it, and it ends") {
  for (const unsigned failing : {0u, 1u, 2u}) {
    for (const std::string what : {"sync", "write", "kv.commit", ""}) {
      CAPTURE(failing, what);
      sim::World world(1);
      sim::Cluster cluster(world, 4, {.faulty = true, .bevy = 2, .declares_lost = true});
      world.spawn_main(
          "client",
          [&](sim::Actor& self) {
            sim::ClientSide side(self);
            ClientWorld of_client = side.world();
            of_client.threads_max = 1;
            ConnectOptions options;
            options.timeout = 60s;
            Client client = must(Client::connect_in(of_client, sim::Cluster::kServer, options));
            must(client.status(4));
            Bytes bytes = pattern(95);
            put(client, "/f", in_order(Format::fixed(10)), bytes);
            cluster.faults(failing).fail_at(
                0, sim::Fault::kIoError, true,
                [what](std::string_view call, std::string_view) { return what.empty() || call == what; });
            const Bytes more = pattern(777, 3);
            File file = must(client.open("/f", Client::Mode::kWrite));
            CHECK(must(file.append_bytes(more)) == bytes.size());
            bytes.insert(bytes.end(), more.begin(), more.end());
            CHECK(get(file) == bytes);
            await_state(client, self, failing, wire::kViewLost);
            put(client, "/new", in_order(Format::fixed(10)), bytes);
            CHECK(get(client, "/new") == bytes);
            for (int i = 0; i < 10 && cluster.lfs_runs(failing); ++i) self.pause(1s);
            CHECK(!cluster.lfs_runs(failing));
            cluster.faults(failing).heal();
            cluster.restart_lfs(failing);
            await_state(client, self, failing, wire::kViewMember);
            cluster.kill_lfs(failing ^ 1u);
            CHECK(get(client, "/f") == bytes);
            CHECK(get(client, "/new") == bytes);
          },
          sim::Who{0, {0}});
      world.run();
    }
  }
}
