// One LFS stands in for another that is absent: workers get descriptors of what that one would have. docs/PROTOCOL.md
// "Stand-ins".
#include "../../lfs/src/store/convert.h"

#include "bevy.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {
namespace {

constexpr LfsIndex kAbsent = 1;
constexpr LfsIndex kStandIn = 2;

class StoodIn : public Bevies {
 public:
  using Bevies::Bevies;

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
};

const auto kFormats = {Format::fixed(500), Format::variable()};

}  // namespace

TEST_CASE("an LFS that stands in gives a worker the rows of the absent one, for reading only") {
  for (const Format& format : kFormats) {
    with_bevies<StoodIn>(format, [&](StoodIn& b, sim::Actor&) {
      REQUIRE_OK(b.put(make_for(format, 300, 1)));
      b.lose_and_kill({kAbsent});
      for (int again = 0; again < 2; ++again) {
        auto reply = b.attach(kStandIn, kAbsent);
        REQUIRE_OK(reply);
        b.require_restored(std::move(*reply));
      }
    });
  }
}

TEST_CASE("several workers that ask for the same rows at once get all of them") {
  with_bevies<StoodIn>(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_for(b.file.format, 300, 1)));
    b.lose_and_kill({kAbsent});
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
  with_bevies<StoodIn>(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_for(b.file.format, 60, 1)));
    CHECK(code_of(b.attach(kStandIn, kAbsent)) == Code::kOldView);
    CHECK(code_of(b.attach(kStandIn, kStandIn)) == Code::kInvalid);
    CHECK(code_of(b.attach(kStandIn, 17)) == Code::kInvalid);
    CHECK(code_of(b.attach_new(kStandIn, kAbsent)) == Code::kOldView);
    b.lose_and_kill({kAbsent, b.layout.parity_of({kAbsent, 0}).lfs});
    CHECK(code_of(b.attach(kStandIn, kAbsent)) == Code::kUnavailable);
  });
}

TEST_CASE("rows that a worker writes instead of an absent LFS can be rebuilt from their parity") {
  for (const Format& format : kFormats) {
    with_bevies<StoodIn>(format, [&](StoodIn& b, sim::Actor&) {
      b.lose_and_kill({kAbsent});
      REQUIRE_OK(b.write(make_for(format, 300, 1)));
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
      REQUIRE_OK(b.gather_all());
      b.require_rebuilt();
    });
  }
}

TEST_CASE("what is written instead of an absent LFS is not sealed while somebody could still write it") {
  with_bevies<StoodIn>(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    b.lose_and_kill({kAbsent});
    b.records = make_for(b.file.format, 60, 1);
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
  with_bevies<StoodIn>(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    b.lose_and_kill({kAbsent});
    b.records = make_for(b.file.format, 60, 1);
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
  with_bevies<StoodIn>(Format::fixed(500), [](StoodIn& b, sim::Actor&) {
    b.lose_and_kill({kAbsent});
    b.records = make_for(b.file.format, 60, 1);
    auto packet = b.peers[kStandIn]->request(b.file.id, kMayCreate | kMayRead);
    *packet.envelope.mutable_gather()->mutable_shape() = b.at(kAbsent).shape();
    packet.envelope.mutable_gather()->set_view(Bevies::kView);
    CHECK(code_of(b.peers[kStandIn]->call(std::move(packet))) == Code::kOk);
    auto older = b.peers[kStandIn]->request(b.file.id, kMayCreate | kMayRead);
    *older.envelope.mutable_gather()->mutable_shape() = b.at(kAbsent).shape();
    older.envelope.mutable_gather()->set_view(Bevies::kView - 1);
    CHECK(code_of(b.peers[kStandIn]->call(std::move(older))) == Code::kOldView);
  });
}

}  // namespace pif::lfs::test
