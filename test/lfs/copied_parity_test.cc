// Parity of a file that is a copy of another one: its pages are copied where they are right. docs/PROTOCOL.md "Copied
// pages".
#include "bevy.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kShort = 500;     // eight records to a page's stretch
constexpr std::uint32_t kLong = 5000;     // one
constexpr std::size_t kWholePages = 120;  // records of which none needs a frame, if they are long
constexpr std::uint64_t kSource = 7, kCopy = 8;

// A file, and another one that gets the same rows.
class Copies {
 public:
  explicit Copies(Bevies& bevies) : b(bevies) {}

  // The rows are there and sealed; the parity is not.
  void copy_rows(const Records& all) {
    b.file.id = kCopy;
    REQUIRE_OK(b.write(all));
  }
  net::Packet gather_packet(LfsIndex lfs, const std::string& source) {
    auto packet = b.peers[lfs]->request(kCopy, kMayCreate | kMayRead);
    auto* gather = packet.envelope.mutable_gather();
    *gather->mutable_shape() = b.at(lfs).shape();
    gather->mutable_file_length()->set_records(b.length().records);
    gather->mutable_file_length()->set_bytes(b.length().bytes);
    gather->set_copied_from(source);
    return packet;
  }
  std::string right(std::uint64_t file = kSource, std::uint32_t rights = kMayRead, std::uint64_t epoch = 0) {
    return b.peers[0]->mint_rights(file, rights, epoch);
  }
  Status gather_all(const std::string& source) {
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs)
      if (b.layout.parity_rows(lfs, b.records.size()) > 0) PIF_TRY(b.peers[lfs]->call(gather_packet(lfs, source)));
    return {};
  }
  // How often LFSs were asked for rows or descriptors.
  std::uint64_t asked() {
    std::uint64_t count = 0;
    for (auto& peer : b.peers) {
      net::Packet packet;
      packet.envelope.mutable_stats();
      const auto reply = peer->call(std::move(packet));
      REQUIRE_OK(reply);
      for (const auto& operation : reply->envelope.stats_reply().operations())
        if (operation.name() == "read" || operation.name() == "attach") count += operation.count();
    }
    return count;
  }
  // Makes the copy's parity; how often members were asked for it.
  std::uint64_t copy_parity(const std::string& source) {
    const std::uint64_t before = asked();
    REQUIRE_OK(gather_all(source));
    REQUIRE_OK(b.settle());
    return asked() - before;
  }
  std::vector<std::string> damages_of_copy() {
    std::vector<std::string> out;
    for (auto& node : b.nodes) {
      const auto report = node->check();
      REQUIRE_OK(report);
      for (const auto& damage : report->damages)
        if (damage.find("file 8") != std::string::npos || damage.find("0000000000000008") != std::string::npos)
          out.push_back(damage);
    }
    return out;
  }

  Bevies& b;
};

using Body = std::function<void(Copies&)>;

// `all` are the records of the source and the copy; body: with the copy's rows in place.
void with_copy(const Format& format, const Records& all, const Body& body) {
  with_bevies(format, [&](Bevies& b, sim::Actor&) {
    Copies copies(b);
    REQUIRE_OK(b.put(all));
    copies.copy_rows(all);
    body(copies);
  });
}

}  // namespace

TEST_CASE("the pages of a copy come from its source: no member is asked") {
  with_copy(Format::fixed(kLong), make_records(kWholePages, kLong, 1), [](Copies& c) {
    CHECK(c.copy_parity(c.right()) == 0);
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs)
      CHECK(c.b.state(lfs).pages() == c.b.layout.parity_rows(lfs, kWholePages));
    c.b.require_all_rebuilt();
    c.b.require_clean();
    for (auto& node : c.b.nodes) node->crash();
    for (auto& node : c.b.nodes) node->start();
    c.b.require_all_rebuilt();
  });
}

TEST_CASE("rows of a copy that are in no page get frames of its own") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const Records all = format.is_fixed() ? make_records(411, kShort, 1) : make_variable(1701, 1);
  with_copy(format, all, [](Copies& c) {
    CHECK(c.copy_parity(c.right()) > 0);
    CHECK(c.b.state(1).pages() > 0);
    c.b.require_all_rebuilt();
    c.b.require_clean();
  });
}

TEST_CASE("a source that the requester may not read is not used") {
  const int which = GENERATE(0, 1, 2, 3, 4, 5);
  with_copy(Format::fixed(kLong), make_records(kWholePages, kLong, 1), [&](Copies& c) {
    ClusterKey other_key;
    const std::int64_t later = INT64_MAX / 2;
    const auto made = [&](const ClusterKey& key, std::uint32_t uid, std::int64_t expiry) {
      return mint(key, Capability{FileId(kSource), uid, kMayRead, 0, expiry});
    };
    const std::vector<std::string> wrong = {
        "nonsense",
        made(other_key, 1000, later),          // forged
        made(c.b.nodes[0]->key, 1001, later),  // another user's
        made(c.b.nodes[0]->key, 1000, 0),      // expired
        c.right(kSource, kMayWrite),           // not for reading
        c.right(0, kMayRead),                  // of no file
    };
    CHECK(c.copy_parity(wrong[static_cast<std::size_t>(which)]) > 0);
    c.b.require_all_rebuilt();
    c.b.require_clean();
  });
}

TEST_CASE("a source that is not here, is the copy itself, or has other records is not used") {
  const std::uint64_t source = GENERATE(99u, kCopy, 6u);
  with_bevies(Format::fixed(kLong), [&](Bevies& b, sim::Actor&) {
    Copies c(b);
    // File 6 has as many records, of another length.
    b.file.id = 6;
    b.file.format = Format::fixed(kLong - 1);
    REQUIRE_OK(b.put(make_records(kWholePages, kLong - 1, 2)));
    b.file.format = Format::fixed(kLong);
    c.copy_rows(make_records(kWholePages, kLong, 1));
    CHECK(c.copy_parity(c.right(source)) > 0);
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("a damaged page is made anew out of rows, with those behind it") {
  const char* file = GENERATE(".par", ".psum");
  const bool clones = GENERATE(true, false);
  with_copy(Format::fixed(kLong), make_records(kWholePages, kLong, 1), [&](Copies& c) {
    Node& node = *c.b.nodes[1];
    if (!clones)
      node.disk->set_fault(
          [](std::string_view call, std::string_view) { return call == "clone" ? Code::kUnsupported : Code::kOk; });
    const std::uint64_t entry = std::string(file) == ".par" ? kLong : 48;
    node.disk->flip_bit(component::stem(node.root(), FileId(kSource)) + file, 3 * entry + 20, 1);
    CHECK(c.copy_parity(c.right()) > 0);
    c.b.require_all_rebuilt();
    CHECK(c.damages_of_copy() == std::vector<std::string>());
  });
}

TEST_CASE("a row that is damaged in the source is still rebuilt in the copy") {
  with_copy(Format::fixed(kLong), make_records(kWholePages, kLong, 1), [&](Copies& c) {
    Node& node = *c.b.nodes[2];
    node.disk->flip_bit(component::stem(node.root(), FileId(kCopy)) + ".dat", 20, 1);
    CHECK(c.copy_parity(c.right()) == 0);
    const auto found = c.b.rebuilt({2, 0});
    REQUIRE_OK(found);
    CHECK(*found == c.b.records[c.b.layout.record_at({2, 0})]);
  });
}

TEST_CASE("a source that is appended to meanwhile gives the pages that it had") {
  with_bevies(Format::fixed(kLong), [&](Bevies& b, sim::Actor&) {
    Copies c(b);
    const Records all = make_records(100, kLong, 1);
    REQUIRE_OK(b.put(all));
    for (unsigned i = 0; i < 5; ++i) REQUIRE_OK(b.append(make_records(20, kLong, 2 + i)));
    b.records.clear();
    c.copy_rows(all);
    c.copy_parity(c.right());
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("a copy that is longer than its source's pages gets the others out of rows") {
  with_bevies(Format::fixed(kLong), [&](Bevies& b, sim::Actor&) {
    Copies c(b);
    Records all = make_records(60, kLong, 1);
    REQUIRE_OK(b.put(all));
    const Records more = make_records(kWholePages - all.size(), kLong, 2);
    all.insert(all.end(), more.begin(), more.end());
    b.records.clear();
    c.copy_rows(all);
    CHECK(c.copy_parity(c.right()) > 0);
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("a keeper that is killed while it copies pages copies them again") {
  for (unsigned step = 1; step < 12; ++step) {
    with_copy(Format::fixed(kLong), make_records(kWholePages, kLong, 1), [&](Copies& c) {
      Node& node = *c.b.nodes[1];
      unsigned writes = 0;
      node.disk->set_fault([&](std::string_view call, std::string_view path) {
        const bool is_parity = path.find("8.p") != std::string_view::npos;
        return is_parity && (call == "write" || call == "sync" || call == "clone" || call == "resize") &&
                       ++writes >= step
                   ? Code::kIo
                   : Code::kOk;
      });
      const auto failed = c.b.peers[1]->call(c.gather_packet(1, c.right()));
      node.crash();
      node.start();
      if (failed) CHECK(writes < step);
      // Rows that were sealed are there; what there was of parity counts for nothing.
      REQUIRE_OK(c.gather_all(c.right()));
      REQUIRE_OK(c.b.settle());
      c.b.require_all_rebuilt();
      c.b.require_clean();
    });
  }
}

}  // namespace pif::lfs::test
