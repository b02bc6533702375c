// What becomes of a copy with parity when one of its parts dies: the whole copy, with right parity, or none of it.
#include "../../tools/pif_copy/copy.h"
#include "libtool/tool_fixtures.h"
#include "pif/client/session.h"

namespace pif {
namespace {

constexpr unsigned kLfss = 4;
constexpr std::uint32_t kRecordBytes = 4096;  // a page has one parity row
constexpr unsigned kRecords = 96;             // all in pages

std::vector<std::byte> record(RecordNumber n) {
  std::vector<std::byte> bytes(kRecordBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((n + 1) * (i + 7) >> 3);
  return bytes;
}

class KilledCopy final : public sim::KilledTool {
 public:
  explicit KilledCopy(std::uint64_t seed) : KilledTool(seed, kLfss, copy::work) {}

 private:
  void put(Client& client) override {
    CreateOptions options;
    options.format = Format::fixed(kRecordBytes);
    options.nodes = {1, 2, 3, 4};
    options.bevy = 2;
    File file = sim::must(client.create("/in", options));
    for (RecordNumber n = 0; n < kRecords; ++n) sim::must(file.write(record(n)));
    sim::must(file.commit());
  }
  bool control_tool(tool::Controller& controller) override {
    copy::CopyOptions wanted;
    wanted.source = "/in";
    wanted.target = "/out";
    return copy::control(controller, wanted).has_value();
  }
  // As it is, and as the keeper of its parity rebuilds it.
  static void require_record(Client& client, File& file, RecordNumber n) {
    std::vector<std::byte> bytes(kRecordBytes);
    REQUIRE(sim::must(file.read_at(n, bytes, 1)) == 1);
    REQUIRE(bytes == record(n));
    const client::FileParts& parts = client::parts_of(file);
    const Cell cell = parts.layout.locate(n);
    net::Packet packet;
    auto& asked = *packet.envelope.mutable_reconstruct();
    asked.set_file(parts.file.value);
    asked.set_index(cell.lfs);
    asked.set_first(cell.row);
    asked.set_count(1);
    asked.mutable_file_length()->set_records(kRecords);
    asked.mutable_file_length()->set_bytes(std::uint64_t{kRecords} * kRecordBytes);
    packet.envelope.set_capability(parts.capability);
    const auto keeper = parts.nodes[parts.layout.parity_of(cell).lfs];
    const net::Packet reply = sim::must(client.session().ask_node(keeper, std::move(packet)));
    const auto rebuilt = reply.body.span();
    REQUIRE(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin(), bytes.end()));
  }
  void look(Client& client) override {
    if (succeeded()) REQUIRE(client.stat("/out"));
    for (const char* path : {"/in", "/out"}) {
      if (!client.stat(path)) continue;
      File file = sim::must(client.open(path));
      for (RecordNumber n = 0; n < kRecords; ++n) require_record(client, file, n);
    }
  }
};

}  // namespace

TEST_CASE("whoever dies at whatever moment of a copy, there is a whole one with its parity, or none") {
  std::uint64_t seed = 0;
  unsigned kills = 0;
  for (const char* victim : {"/", "lfs", "controller"}) {
    for (std::uint64_t steps = 20; steps < 3000; steps = steps * 5 / 4) {
      INFO(victim << " at step " << steps);
      kills += KilledCopy(++seed).run(victim, steps) ? 1 : 0;
    }
  }
  REQUIRE(kills > 20);
}

}  // namespace pif
