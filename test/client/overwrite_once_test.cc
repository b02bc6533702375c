// An overwrite whose LFS dies takes effect once, whatever others write before it is sent again.
#include "fixture.h"
#include "pif/access/lfs_links.h"
#include "pif/pattern/builders.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kRecord = 100;

Bytes read_first(File& file, sim::Actor& self) {
  Bytes out(kRecord);
  while (!file.read_at(0, out, 1) && self.pause(10ms)) continue;  // while the LFS starts
  return out;
}

// The LFS is killed so many steps after an overwrite has begun, and started again; who overwrites is stopped meanwhile.
// Another client looks, overwrites the same record, and looks again when the first has ended, however. Whether it saw
// the first one's bytes before its own.
bool saw_both(unsigned steps, bool by_pieces) {
  FileSystem fs(1, steps, sim::Options{.work_max = 2ms});
  const Bytes first = pattern(kRecord, 2), other = pattern(kRecord, 3);
  std::uint64_t kill_at = UINT64_MAX;
  bool is_killed = false, has_ended = false, saw_first = false;
  fs.add_client("first", DataPath::kMessages, [&](Client& client, sim::Actor&) {
    CreateOptions options;
    options.format = Format::fixed(kRecord);
    File made = must(client.create("/f", options));
    must(made.write(pattern(10 * kRecord)));
    must(made.commit());
    File file = must(client.open("/f", Client::Mode::kWrite));
    kill_at = fs.world.steps() + steps;
    const auto record = patterns::simple_strided(0, kRecord, kRecord, 1);
    const Status done = by_pieces ? file.write_pieces({record, record, 0, 0, {}}, first) : file.write_at(0, first);
    INFO((done ? std::string() : done.error().to_string()));
    CHECK((done || access::is_lost(done.error().code)));
    has_ended = true;
  });
  fs.add_client("other", DataPath::kMessages, [&](Client& client, sim::Actor& self) {
    while (!is_killed) self.pause(1ms);
    File file = must(client.open("/f", Client::Mode::kWrite));
    saw_first = read_first(file, self) == first;
    Status done = file.write_at(0, other);
    while (!done && self.pause(10ms)) done = file.write_at(0, other);
    while (!has_ended) self.pause(10ms);
    if (saw_first) CHECK(read_first(file, self) == other);
  });
  fs.world.on_step([&](std::uint64_t step) {
    if (is_killed || step < kill_at) return;
    is_killed = true;
    if (const auto actor = fs.world.find("first")) fs.world.stall(*actor, 6s);
    fs.cluster.restart_lfs(0);
  });
  fs.world.run();
  return saw_first;
}

}  // namespace

TEST_CASE("an overwrite whose LFS dies between sync and answer is not done again over somebody else's") {
  unsigned seen = 0;
  for (unsigned steps = 1; steps <= 40; ++steps) {
    INFO("killed after " << steps << " steps");
    seen += saw_both(steps, steps % 2 == 0) ? 1 : 0;
  }
  CHECK(seen > 0);
}
