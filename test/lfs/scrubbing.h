// Passes of a scrub, and damage that is done behind the LFSs' backs.
#pragma once

#include <cstring>

#include "bevy.h"

namespace pif::lfs::test {

struct Totals {
  std::uint64_t found = 0, repaired = 0, files = 0;
  std::string texts;
};

class Scrubbing {
 public:
  Scrubbing(Bevies& bevies, sim::Actor& self) : b_(bevies), self_(self) {}

  void ask(LfsIndex lfs, bool only_look = false, std::uint64_t rate = 0) {
    auto packet = b_.peers[lfs]->request(0, kMayManage);
    packet.envelope.mutable_scrub()->set_only_look(only_look);
    packet.envelope.mutable_scrub()->set_bytes_per_second(rate);
    REQUIRE_OK(b_.peers[lfs]->call(std::move(packet)));
  }
  proto::ScrubStatusReply status(LfsIndex lfs) {
    auto packet = b_.peers[lfs]->request(0, kMayManage);
    packet.envelope.mutable_scrub_status();
    const auto reply = b_.peers[lfs]->call(std::move(packet));
    REQUIRE_OK(reply);
    return reply->envelope.scrub_status_reply();
  }
  proto::ScrubStatusReply await(LfsIndex lfs) {
    for (int i = 0; i < 5000; ++i) {
      const auto now = status(lfs);
      if (!now.is_running()) return now;
      (void)self_.pause(std::chrono::milliseconds(50));
    }
    FAIL("LFS " << lfs << " does not come to an end");
    return {};
  }
  // What it was not compared with.
  std::string lacks(LfsIndex lfs) {
    std::string out;
    const auto done = await(lfs);
    for (const auto& damage : done.damages())
      if (damage.file() == 0) out += damage.text();
    return out;
  }
  // All LFSs at once.
  Totals pass(bool only_look = false) {
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) ask(lfs, only_look);
    Totals out;
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) {
      const auto done = await(lfs);
      out.found += done.found();
      out.repaired += done.repaired();
      out.files += done.files();
      for (const auto& damage : done.damages()) out.texts += damage.text() + "\n";
    }
    return out;
  }
  // One damage is found and repaired, another pass finds nothing, and all is as it was.
  void require_repaired() {
    const Totals first = pass();
    INFO(first.texts);
    CHECK(first.found == 1);
    CHECK(first.repaired == 1);
    require_whole();
  }
  void require_whole() {
    const Totals after = pass();
    INFO(after.texts);
    CHECK(after.found == 0);
    require_rows();
    b_.require_all_rebuilt();
    b_.require_clean();
  }
  void require_rows() {
    for (std::size_t n = 0; n < b_.records.size(); ++n) {
      const Cell cell = b_.layout.locate(n);
      const auto row = b_.peers[cell.lfs]->read(b_.file.id, cell.row, 1);
      INFO("record " << n);
      REQUIRE_OK(row);
      REQUIRE(*row == b_.body({b_.records[n]}));
    }
  }
  std::string stem(LfsIndex lfs) const { return component::stem(b_.nodes[lfs]->root(), FileId(b_.file.id)); }
  void flip(LfsIndex lfs, const std::string& ending, std::uint64_t byte) {
    b_.nodes[lfs]->disk->flip_bit(stem(lfs) + ending, byte, 3);
  }
  // Other bytes with a sum that holds.
  void make_stale(LfsIndex lfs, std::uint64_t chunk) {
    const auto shape = component::Shape::of(FileId(b_.file.id), b_.file.format, 1);
    std::uint64_t sum = 0;
    b_.nodes[lfs]->disk->edit(stem(lfs) + ".dat", [&](std::vector<std::byte>& bytes) {
      const std::span<std::byte> all(bytes);
      REQUIRE(bytes.size() >= (chunk + 1) * shape.chunk_bytes);
      const auto stale = all.subspan(chunk * shape.chunk_bytes, shape.chunk_bytes);
      stale[17] ^= std::byte{1};
      sum = shape.data_sum(chunk, stale);
    });
    b_.nodes[lfs]->disk->edit(stem(lfs) + ".sum", [&](std::vector<std::byte>& bytes) {
      std::memcpy(bytes.data() + chunk * shape.sum_bytes(), &sum, sizeof sum);
    });
  }

 private:
  Bevies& b_;
  sim::Actor& self_;
};

}  // namespace pif::lfs::test
