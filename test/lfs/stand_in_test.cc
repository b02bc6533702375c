// One LFS stands in for another that is absent: workers get descriptors of what that one would have. docs/PROTOCOL.md
// "Stand-ins".
#include "../../lfs/src/store/catalogue.h"
#include "../../lfs/src/store/convert.h"

#include "bevy.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint64_t kView = 5;
constexpr LfsIndex kAbsent = 1;
constexpr LfsIndex kStandIn = 2;

class StoodIn : public Bevies {
 public:
  using Bevies::Bevies;

  // All are started again, and go by a view in which these are lost.
  void lose(std::initializer_list<LfsIndex> lost, std::uint64_t index = kView) {
    proto::View view;
    view.set_index(index);
    for (const LfsIndex lfs : lost) {
      auto& node = *view.add_nodes();
      node.set_node(lfs + 1);
      node.set_state(wire::kViewLost);
      node.set_era(1);
    }
    for (auto& node : nodes) {
      node->kill();
      const auto store = kv::open_memory(node->catalogue);
      auto transaction = store->write();
      REQUIRE_OK(transaction);
      REQUIRE_OK(catalogue::put_view(**transaction, wire::pack_view(node->key, view)));
      REQUIRE_OK((*transaction)->commit());
      node->start();
    }
    for (const LfsIndex lfs : lost) nodes[lfs]->kill();
  }
  Result<net::Packet> attach(LfsIndex at_lfs, LfsIndex instead_of) {
    auto packet = peers[at_lfs]->request(file.id, kMayRead);
    auto* asked = packet.envelope.mutable_attach();
    asked->set_file(file.id);
    asked->set_instead_of(instead_of);
    asked->mutable_file_length()->set_records(length().records);
    asked->mutable_file_length()->set_bytes(length().bytes);
    return peers[at_lfs]->call(std::move(packet));
  }
  Result<net::Packet> attach_new(LfsIndex at_lfs, LfsIndex instead_of) {
    auto packet = peers[at_lfs]->request(file.id, kMayCreate | kMayRead);
    *packet.envelope.mutable_attach()->mutable_create() = at(instead_of).shape();
    packet.envelope.mutable_attach()->set_instead_of(instead_of);
    return peers[at_lfs]->call(std::move(packet));
  }
  std::string bytes_on(LfsIndex lfs) {
    std::string out;
    const Records rows = split(0, records.size())[lfs];
    for (const auto& row : rows) out += row;
    return out;
  }
  component::Shape shape() const { return component::Shape::of(FileId(file.id), file.format, 1); }
  std::unique_ptr<component::Storage> storage() const { return component::make_memory_storage(nodes[kStandIn]->disk); }
  void require_restored(net::Packet reply) {
    const auto& state = reply.envelope.attach_reply().state();
    CHECK(state.shape().index() == kAbsent);
    CHECK(state.rows() == split(0, records.size())[kAbsent].size());
    const auto disk = storage();
    auto files = component::adopt(*disk, file.format, std::move(reply.handles)).value();
    const component::Reader reader(shape(), tail_of(state), files);
    std::string bytes(state.bytes(), '\0');
    REQUIRE_OK(reader.read_bytes(0, std::as_writable_bytes(std::span(bytes))));
    CHECK(bytes == bytes_on(kAbsent));
    CHECK(reader.check().value().empty());
    CHECK(code_of(files.data->write(0, std::as_bytes(std::span(bytes)))) == Code::kReadOnly);
  }
  // Rows of the absent LFS into the files that its stand-in has given.
  component::Tail fill(component::Files& files) {
    const Records rows = split(0, records.size())[kAbsent];
    component::Writer writer(shape(), {}, files);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto bytes = std::as_bytes(std::span(rows[i]));
      const auto size = static_cast<std::uint32_t>(rows[i].size());
      if (file.format.is_fixed())
        REQUIRE_OK(writer.write_rows(i, 1, {bytes.data(), file.format.record_length}));
      else
        REQUIRE_OK(writer.append_rows(std::span(&size, 1), bytes));
    }
    return writer.finish().value();
  }
  Status seal_absent(const component::Tail& tail) {
    PIF_TRY(peers[kStandIn]->seal(at(kAbsent), tail.rows, tail.bytes, tail, length()));
    return {};
  }
  // All rows but the absent LFS's, sealed.
  Status write_others(const Records& all) {
    records = all;
    for (const auto& [lfs, rows] : split(0, all.size())) {
      if (lfs == kAbsent) continue;
      std::uint64_t bytes = 0;
      for (std::size_t first = 0; first < rows.size(); ++first) {
        PIF_TRY(peers[lfs]->write(at(lfs), first, 1, body({rows[first]})));
        bytes += rows[first].size();
      }
      PIF_TRY(peers[lfs]->seal(at(lfs), rows.size(), bytes, {}, length()));
    }
    return {};
  }
};

void with_stood_in(const Format& format, const std::function<void(StoodIn&, sim::Actor&)>& body) {
  sim::World world(1);
  StoodIn bevies(world, format);
  world.spawn_main("client", [&](sim::Actor& self) {
    bevies.connect(self);
    body(bevies, self);
    bevies.peers.clear();
  });
  world.run();
}

Records some_records(const Format& format, std::size_t count) {
  return format.is_fixed() ? make_records(count, format.record_length, 1) : make_variable(count, 1);
}

const auto kFormats = {Format::fixed(500), Format::variable()};

}  // namespace

TEST_CASE("an LFS that stands in gives a worker the rows of the absent one, for reading only") {
  for (const Format& format : kFormats) {
    with_stood_in(format, [&](StoodIn& b, sim::Actor&) {
      REQUIRE_OK(b.put(some_records(format, 300)));
      b.lose({kAbsent});
      for (int again = 0; again < 2; ++again) {
        auto reply = b.attach(kStandIn, kAbsent);
        REQUIRE_OK(reply);
        b.require_restored(std::move(*reply));
      }
    });
  }
}

TEST_CASE("several workers that ask for the same rows at once get all of them") {
  with_stood_in(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    REQUIRE_OK(b.put(some_records(b.file.format, 300)));
    b.lose({kAbsent});
    REQUIRE_OK(b.attach(kStandIn, kAbsent));
    std::vector<net::CallId> calls;
    for (int i = 0; i < 5; ++i) {
      auto packet = b.peers[kStandIn]->request(b.file.id, kMayRead);
      auto* asked = packet.envelope.mutable_attach();
      asked->set_file(b.file.id);
      asked->set_instead_of(kAbsent);
      asked->mutable_file_length()->set_records(b.length().records - 1);  // others than before
      asked->mutable_file_length()->set_bytes(b.length().bytes - 500);
      calls.push_back(b.peers[kStandIn]->start(std::move(packet)));
    }
    for (const auto call : calls) {
      auto reply = b.peers[kStandIn]->wait(call);
      REQUIRE_OK(reply);
      CHECK(reply->handles.size() == 2);
    }
  });
}

TEST_CASE("nobody stands in for an LFS that takes part, for itself, or without those who keep its parity") {
  with_stood_in(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    REQUIRE_OK(b.put(some_records(b.file.format, 60)));
    CHECK(code_of(b.attach(kStandIn, kAbsent)) == Code::kOldView);
    CHECK(code_of(b.attach(kStandIn, kStandIn)) == Code::kInvalid);
    CHECK(code_of(b.attach(kStandIn, 17)) == Code::kInvalid);
    CHECK(code_of(b.attach_new(kStandIn, kAbsent)) == Code::kOldView);
    b.lose({kAbsent, b.layout.parity_of({kAbsent, 0}).lfs});
    CHECK(code_of(b.attach(kStandIn, kAbsent)) == Code::kUnavailable);
  });
}

TEST_CASE("rows that a worker writes instead of an absent LFS can be rebuilt from their parity") {
  for (const Format& format : kFormats) {
    with_stood_in(format, [&](StoodIn& b, sim::Actor&) {
      b.lose({kAbsent});
      REQUIRE_OK(b.write_others(some_records(format, 300)));
      component::Tail tail;
      {
        auto reply = b.attach_new(kStandIn, kAbsent);
        REQUIRE_OK(reply);
        const auto disk = b.storage();
        auto files = component::adopt(*disk, format, std::move(reply->handles)).value();
        tail = b.fill(files);
      }
      component::Tail wrong = tail;
      --wrong.rows;
      CHECK(code_of(b.seal_absent(wrong)) == Code::kInvalid);
      REQUIRE_OK(b.seal_absent(tail));
      REQUIRE_OK(b.seal_absent(tail));  // the same answer
      CHECK(code_of(b.attach_new(kStandIn, kAbsent)) == Code::kExists);
      for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) {
        if (lfs == kAbsent || b.layout.parity_rows(lfs, b.records.size()) == 0) continue;
        REQUIRE_OK(b.gather(lfs));
      }
      for (std::size_t n = 0; n < b.records.size(); ++n) {
        const Cell cell = b.layout.locate(n);
        if (cell.lfs != kAbsent) continue;  // of others' groups it would be needed itself
        const auto found = b.rebuilt(cell);
        REQUIRE_OK(found);
        CHECK(*found == b.body({b.records[n]}));
      }
    });
  }
}

TEST_CASE("what is written instead of an absent LFS is not sealed while somebody could still write it") {
  with_stood_in(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    b.lose({kAbsent});
    b.records = some_records(b.file.format, 60);
    auto reply = b.attach_new(kStandIn, kAbsent);
    REQUIRE_OK(reply);
    const auto disk = b.storage();
    std::optional files = component::adopt(*disk, b.file.format, std::move(reply->handles)).value();
    const component::Tail tail = b.fill(*files);
    CHECK(code_of(b.seal_absent(tail)) == Code::kBusy);
    files.reset();
    CHECK(code_of(b.seal_absent(tail)) == Code::kOk);
  });
}

TEST_CASE("a stand-in that was started again has lost what was written there, and says so") {
  with_stood_in(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    b.lose({kAbsent});
    b.records = some_records(b.file.format, 60);
    component::Tail tail;
    {
      auto reply = b.attach_new(kStandIn, kAbsent);
      REQUIRE_OK(reply);
      const auto disk = b.storage();
      auto files = component::adopt(*disk, b.file.format, std::move(reply->handles)).value();
      tail = b.fill(files);
    }
    b.nodes[kStandIn]->restart();
    CHECK(code_of(b.seal_absent(tail)) == Code::kNotFound);
  });
}

TEST_CASE("a gather that is meant for an absent LFS is done at its stand-in") {
  with_stood_in(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    b.lose({kAbsent});
    b.records = some_records(b.file.format, 60);
    auto packet = b.peers[kStandIn]->request(b.file.id, kMayCreate | kMayRead);
    *packet.envelope.mutable_gather()->mutable_shape() = b.at(kAbsent).shape();
    packet.envelope.mutable_gather()->set_view(kView);
    CHECK(code_of(b.peers[kStandIn]->call(std::move(packet))) == Code::kOk);
    auto older = b.peers[kStandIn]->request(b.file.id, kMayCreate | kMayRead);
    *older.envelope.mutable_gather()->mutable_shape() = b.at(kAbsent).shape();
    older.envelope.mutable_gather()->set_view(kView - 1);
    CHECK(code_of(b.peers[kStandIn]->call(std::move(older))) == Code::kOldView);
  });
}

}  // namespace pif::lfs::test
