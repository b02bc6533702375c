// Requests of parity that cannot be, of who may not, and by another view: each is answered with an error of one line,
// and changes nothing on any LFS.
#include "../../lfs/src/store/catalogue.h"

#include "bevy.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kBytes = 500;
constexpr LfsIndex kDeputy = 3;
constexpr std::uint64_t kView = 5;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;  // the longest that a file may be

proto::FileLength length_of(std::uint64_t records, std::uint64_t bytes) {
  return wire::proto_of(FileLength{records, bytes});
}

class Refusals {
 public:
  Refusals(Bevies& bevies, sim::Actor& self) : b(bevies), self_(self) {}

  // All are started again, and go by a view in which that LFS is lost.
  void lose(LfsIndex lfs) {
    proto::View view;
    view.set_index(kView);
    auto& one = *view.add_nodes();
    one.set_node(lfs + 1);
    one.set_state(wire::kViewLost);
    one.set_era(1);
    one.set_lost_order(1);
    for (auto& node : b.nodes) {
      node->kill();
      const auto store = kv::open_memory(node->catalogue);
      auto transaction = store->write();
      REQUIRE_OK(transaction);
      REQUIRE_OK(catalogue::put_view(**transaction, wire::pack_view(node->key, view)));
      REQUIRE_OK((*transaction)->commit());
      if (node.get() != b.nodes[lfs].get()) node->start();
    }
    b.absent = {lfs};
  }

  // A request that is right but for what `change` does to it.
  template <typename Request, typename Change>
  void refused(LfsIndex lfs, const Request& right, Code code, const Change& change, const std::string& body = {}) {
    Request asked = right;
    change(asked);
    const auto needed = wire::needed_rights(asked);
    refused_with(lfs, asked, code, needed.rights == kMayManage ? 0 : b.file.id, needed.rights, body);
  }
  template <typename Request>
  void refused_with(LfsIndex lfs, const Request& asked, Code code, std::uint64_t file, std::uint32_t rights,
                    const std::string& body = {}) {
    auto packet = b.peers[lfs]->request(file, rights);
    wire::OperationOf<Request>::add_request(packet.envelope) = asked;
    packet.body = buffer_of(body);
    const auto before = contents();
    const auto reply = b.peers[lfs]->call(std::move(packet));
    INFO(wire::OperationOf<Request>::kRow.name << " " << asked.SerializeAsString().size() << " bytes, rights "
                                               << rights);
    REQUIRE(!reply);
    INFO(reply.error().text);
    CHECK(reply.error().code == code);
    CHECK(!reply.error().text.empty());
    CHECK(reply.error().text.find('\n') == std::string::npos);
    CHECK(contents() == before);
  }
  template <typename Request>
  Result<net::Packet> ask(LfsIndex lfs, const Request& asked) {
    const auto needed = wire::needed_rights(asked);
    auto packet = b.peers[lfs]->request(needed.rights == kMayManage ? 0 : b.file.id, needed.rights);
    wire::OperationOf<Request>::add_request(packet.envelope) = asked;
    return b.peers[lfs]->call(std::move(packet));
  }
  // Who may do something else with the file, or this with another one.
  template <typename Request>
  void refused_without_right(LfsIndex lfs, const Request& right, const std::string& body = {}) {
    const std::uint32_t needed = wire::needed_rights(right).rights;
    for (const std::uint32_t other : {kMayRead, kMayWrite, kMayCreate})
      if (other != needed) refused_with(lfs, right, Code::kBadCapability, b.file.id, other, body);
    if (needed == kMayManage) return;
    refused_with(lfs, right, Code::kBadCapability, b.file.id + 1, needed, body);
    refused_with(lfs, right, Code::kBadCapability, b.file.id, kMayManage, body);
  }
  // Shapes that the component does not have.
  template <typename Request>
  void refused_with_other_shapes(LfsIndex lfs, const Request& right, const std::string& body = {}) {
    refused(
        lfs, right, Code::kInvalid, [](Request& r) { r.mutable_shape()->clear_layout(); }, body);
    refused(
        lfs, right, Code::kInvalid, [&](Request& r) { r.mutable_shape()->set_index((lfs + 1) % Bevies::kWidth); },
        body);
    refused(
        lfs, right, Code::kInvalid, [](Request& r) { r.mutable_shape()->set_index(1u << 31); }, body);
    refused(
        lfs, right, Code::kInvalid, [](Request& r) { r.mutable_shape()->mutable_layout()->set_form(0); }, body);
    refused(
        lfs, right, Code::kVersion, [](Request& r) { r.mutable_shape()->mutable_layout()->set_form(2); }, body);
    refused(
        lfs, right, Code::kInvalid, [](Request& r) { r.mutable_shape()->mutable_layout()->set_bevies(0, 4); }, body);
    refused(
        lfs, right, Code::kInvalid, [](Request& r) { r.mutable_shape()->mutable_layout()->clear_bevies(); }, body);
    refused(
        lfs, right, Code::kInvalid, [](Request& r) { r.mutable_shape()->mutable_format()->set_kind(9); }, body);
  }

  proto::Gather gather(LfsIndex lfs) const {
    proto::Gather out;
    *out.mutable_shape() = b.at(lfs).shape();
    *out.mutable_file_length() = wire::proto_of(b.length());
    return out;
  }
  // Of ten records behind those that are there.
  proto::Cover cover(LfsIndex lfs, const proto::ReserveReply& grant) const {
    proto::Cover out;
    *out.mutable_shape() = b.at(lfs).shape();
    out.set_first(b.records.size());
    out.set_count(10);
    out.set_generation(grant.generation());
    *out.mutable_base() = grant.base();
    *out.mutable_file_length() = length_of(b.records.size() + 10, (b.records.size() + 10) * kBytes);
    return out;
  }
  // The row of `lost` at `first`, to who keeps its parity.
  proto::CopyRows copy(LfsIndex lost, Row first) const {
    proto::CopyRows out;
    *out.mutable_shape() = b.at(keeper_of({lost, first})).shape();
    out.set_index(lost);
    out.set_first(first);
    out.set_count(1);
    out.set_view(kView);
    return out;
  }
  LfsIndex keeper_of(Cell cell) const { return b.layout.parity_of(cell).lfs; }
  proto::NoteLength note(std::uint64_t generation) const {
    proto::NoteLength out;
    *out.mutable_shape() = b.at(kDeputy).shape();
    out.set_generation(generation);
    *out.mutable_noted()->mutable_file_length() = wire::proto_of(b.length());
    out.mutable_noted()->set_generation(generation);
    return out;
  }
  proto::Reconstruct reconstruct(Cell cell) const {
    proto::Reconstruct out;
    out.set_file(b.file.id);
    out.set_index(cell.lfs);
    out.set_first(cell.row);
    out.set_count(1);
    *out.mutable_file_length() = wire::proto_of(b.length());
    return out;
  }
  proto::ReserveReply reserve() {
    auto grant = b.reserve(10, 10 * kBytes);
    REQUIRE_OK(grant);
    return *grant;
  }

  Bevies& b;

 private:
  // All that LFSs have of files, by path and node.
  std::map<std::string, std::string> contents() {
    std::map<std::string, std::string> out;
    for (auto& node : b.nodes) {
      for (const auto& path : node->disk->files(node->root() + "/data"))
        node->disk->edit(path, [&](std::vector<std::byte>& bytes) {
          out[path].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
      const auto store = kv::open_memory(node->catalogue);
      REQUIRE_OK(catalogue::each(*store, FileId(0), [&](FileId file, const Result<proto::ComponentState>& state) {
        out[node->name() + " " + std::to_string(file.value)] = state->SerializeAsString();
        return true;
      }));
    }
    return out;
  }

  sim::Actor& self_;
};

void with_refusals(const Format& format, const std::function<void(Refusals&)>& body) {
  with_bevies(format, [&](Bevies& b, sim::Actor& self) {
    Refusals refusals(b, self);
    body(refusals);
  });
}

TEST_CASE("a gather that cannot be, of who may not, or by another view, changes nothing") {
  with_refusals(Format::fixed(kBytes), [](Refusals& r) {
    REQUIRE_OK(r.b.write(make_records(100, kBytes, 1)));
    const auto right = r.gather(1);
    using G = proto::Gather;
    r.refused_without_right(1, right);
    r.refused_with_other_shapes(1, right);
    r.refused(1, right, Code::kInvalid, [](G& g) { *g.mutable_file_length() = length_of(100, 100 * kBytes + 1); });
    r.refused(1, right, Code::kInvalid, [](G& g) { *g.mutable_file_length() = length_of(100, 99 * kBytes); });
    r.refused(1, right, Code::kTooLarge, [](G& g) { *g.mutable_file_length() = length_of(kHuge + 1, kHuge); });
    r.refused(1, right, Code::kTooLarge, [](G& g) { *g.mutable_file_length() = length_of(1, ~std::uint64_t{0}); });
    r.refused(1, right, Code::kRetry, [](G& g) { g.set_view(kView); });
    REQUIRE_OK(r.b.gather_all());
    REQUIRE_OK(r.b.settle());
    r.b.require_all_rebuilt();
    r.b.require_clean();
  });
}

TEST_CASE("a cover that cannot be, of who may not, or by another view, changes nothing") {
  with_refusals(Format::fixed(kBytes), [](Refusals& r) {
    REQUIRE_OK(r.b.put(make_records(100, kBytes, 1)));
    const auto grant = r.reserve();
    const LfsIndex lfs = r.keeper_of(r.b.layout.locate(100));
    const auto right = r.cover(lfs, grant);
    using C = proto::Cover;
    r.refused_without_right(lfs, right);
    r.refused_with_other_shapes(lfs, right);
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.mutable_shape()->mutable_format()->set_record_length(100); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.set_count(0); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.set_count(11); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.set_first(~std::uint64_t{0}), c.set_count(111); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.set_count(~std::uint64_t{0}); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.set_generation(0); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { c.clear_base(); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { *c.mutable_base() = length_of(100, 1); });
    r.refused(lfs, right, Code::kInvalid, [](C& c) { *c.mutable_file_length() = length_of(110, 110); });
    r.refused(lfs, right, Code::kTooLarge, [](C& c) { *c.mutable_file_length() = length_of(~std::uint64_t{0}, 7); });
    r.refused(lfs, right, Code::kRetry, [](C& c) { c.set_view(kView); });
    r.refused(lfs, right, Code::kRetry, [](C&) {});  // the rows are not there
    r.b.require_all_rebuilt();
    REQUIRE_OK(r.b.cancel(grant));
    REQUIRE_OK(r.b.append(make_records(10, kBytes, 2)));
    r.b.require_all_rebuilt();
    r.b.require_clean();
  });
}

// Such lengths once made windows of 0 bytes out of 2^64, by which the LFS divided.
std::vector<std::uint64_t> strange_lengths() {
  std::vector<std::uint64_t> out;
  for (unsigned bits = 40; bits <= 62; ++bits)
    for (const int off : {-33, -32, -5, -4, -2, -1, 0})
      out.push_back((std::uint64_t{1} << bits) + static_cast<std::uint64_t>(off));
  return out;
}

TEST_CASE("rows are rebuilt by lengths of variable records that nobody can have") {
  with_refusals(Format::variable(), [](Refusals& r) {
    REQUIRE_OK(r.b.put(make_variable(400, 1)));
    const Cell cell = r.b.layout.locate(0);
    const LfsIndex lfs = r.keeper_of(cell);
    REQUIRE(r.b.state(lfs).pages() > 0);
    for (const std::uint64_t bytes : strange_lengths()) {
      auto asked = r.reconstruct(cell);
      *asked.mutable_file_length() = length_of(1, bytes);
      const auto row = r.ask(lfs, asked);
      REQUIRE_OK(row);
      CHECK(bytes_of(row->body) == r.b.body({r.b.records[0]}));
    }
  });
}

TEST_CASE("covers of lengths of variable records that nobody can have find no rows") {
  with_refusals(Format::variable(), [](Refusals& r) {
    const auto grant = r.reserve();
    const LfsIndex lfs = r.keeper_of(r.b.layout.locate(0));
    for (const std::uint64_t bytes : strange_lengths()) {
      auto asked = r.cover(lfs, grant);
      asked.set_count(1);
      *asked.mutable_file_length() = length_of(1, bytes);
      CHECK(code_of(r.ask(lfs, asked)) == Code::kRetry);
    }
    REQUIRE_OK(r.b.cancel(grant));
    REQUIRE_OK(r.b.append(make_variable(10, 2)));
    r.b.require_all_rebuilt();
  });
}

// The second cover's layout was once taken for the component's, which had fewer LFSs.
TEST_CASE("a component that a cover has begun has the layout that it was begun with") {
  with_refusals(Format::fixed(kBytes), [](Refusals& r) {
    const auto grant = r.reserve();
    auto narrow = r.cover(1, grant);
    for (int i = 0; i < 2; ++i) {
      narrow.mutable_shape()->mutable_layout()->set_bevies(i, 2);
      narrow.mutable_shape()->mutable_layout()->mutable_nodes()->RemoveLast();
    }
    CHECK(code_of(r.ask(1, narrow)) == Code::kRetry);  // its rows are not there, but the component is begun
    r.refused(1, r.cover(1, grant), Code::kInvalid, [](proto::Cover&) {});
    r.refused(1, narrow, Code::kInvalid, [](proto::Cover& c) { c.mutable_shape()->mutable_format()->set_kind(2); });
    CHECK(code_of(r.ask(1, narrow)) == Code::kRetry);
  });
}

// Who may write a file may say that it is longer than it is. Pages and rows up to there were once looked for, one by
// one.
TEST_CASE("a scrub of a file that is said to be endless comes to its end") {
  const auto format = GENERATE(Format::fixed(kBytes), Format::variable());
  with_refusals(format, [&](Refusals& r) {
    REQUIRE_OK(r.b.put(format.is_fixed() ? make_records(100, kBytes, 1) : make_variable(100, 1)));
    const std::uint64_t records = std::uint64_t{1} << (format.is_fixed() ? 38 : 48);
    const auto grant = r.b.reserve(records, records * (format.is_fixed() ? kBytes : 1));
    REQUIRE_OK(grant);
    REQUIRE_OK(r.b.done(*grant));
    for (const LfsIndex lfs : {0u, 1u, kDeputy}) {
      REQUIRE_OK(r.ask(lfs, proto::Scrub()));
      proto::ScrubStatusReply status;
      for (int i = 0; i < 1000 && (i == 0 || status.is_running()); ++i) {
        (void)r.b.peers[lfs]->self().pause(std::chrono::milliseconds(50));
        const auto reply = r.ask(lfs, proto::ScrubStatus());
        REQUIRE_OK(reply);
        status = reply->envelope.scrub_status_reply();
      }
      CHECK_FALSE(status.is_running());
      CHECK(status.found() > 0);
      CHECK(status.found() < 10'000);
    }
    r.b.require_all_rebuilt();
  });
}

TEST_CASE("copies that cannot be, of who may not, or by another view, change nothing") {
  with_refusals(Format::variable(), [](Refusals& r) {
    constexpr LfsIndex kLost = 1;
    r.lose(kLost);
    const LfsIndex lfs = r.keeper_of({kLost, 0});
    const auto right = r.copy(kLost, 0);
    const std::string body = r.b.body({"row"});
    using C = proto::CopyRows;
    r.refused_without_right(lfs, right, body);
    r.refused_with_other_shapes(lfs, right, body);
    const auto bad = [&](Code code, const std::function<void(C&)>& change) {
      r.refused(lfs, right, code, change, body);
    };
    bad(Code::kOldView, [](C& c) { c.set_view(kView - 1); });
    bad(Code::kRetry, [](C& c) { c.set_view(kView + 1); });
    bad(Code::kInvalid, [](C& c) { c.set_index(2); });  // it is there
    bad(Code::kInvalid, [](C& c) { c.set_index(6); });
    bad(Code::kInvalid, [](C& c) { c.set_index(~0u); });
    bad(Code::kInvalid, [](C& c) { c.set_first(1); });  // another one keeps its parity
    bad(Code::kTooLarge, [](C& c) { c.set_first(~std::uint64_t{0} - 1); });
    bad(Code::kTooLarge, [](C& c) { c.set_count(kHuge); });
    bad(Code::kInvalid, [](C& c) { c.set_count(0); });
    bad(Code::kInvalid, [](C& c) { c.set_count(2); });
    for (const auto& wrong :
         {std::string(), std::string("\3\0\0", 3), std::string("\4\0\0\0row", 7), std::string("\2\0\0\0row", 7)})
      r.refused(
          lfs, right, Code::kInvalid, [](C&) {}, wrong);
    r.refused(
        lfs, right, Code::kTooLarge, [](C&) {}, std::string("\xff\xff\xff\xffrow", 7));
    // Of an append.
    auto added = right;
    added.set_generation(1);
    r.refused_without_right(lfs, added, body);
    r.refused(
        lfs, added, Code::kInvalid, [](C&) {}, body);  // without `base`
    r.refused(
        lfs, added, Code::kTooLarge, [](C& c) { *c.mutable_base() = length_of(kHuge + 1, 0); }, body);
    r.refused(
        lfs, added, Code::kNotFound, [](C& c) { *c.mutable_base() = length_of(100, 100); }, body);
  });
}

TEST_CASE("a note that cannot be, of who may not, or by another view, changes nothing") {
  with_refusals(Format::fixed(kBytes), [](Refusals& r) {
    REQUIRE_OK(r.b.put(make_records(100, kBytes, 1)));
    REQUIRE_OK(r.b.append(make_records(10, kBytes, 2)));
    const std::uint64_t generation = r.b.state(kDeputy).noted_generation();
    REQUIRE(generation > 0);
    const auto right = r.note(generation + 1);
    using N = proto::NoteLength;
    r.refused_without_right(kDeputy, right);
    r.refused_with_other_shapes(kDeputy, right);
    r.refused(kDeputy, right, Code::kInvalid,
              [](N& n) { n.mutable_shape()->mutable_format()->set_record_length(kBytes + 1), n.clear_noted(); });
    const auto bad = [&](Code code, std::uint64_t records, std::uint64_t bytes) {
      r.refused(kDeputy, right, code,
                [&](N& n) { *n.mutable_noted()->mutable_file_length() = length_of(records, bytes); });
    };
    bad(Code::kInvalid, 200, 7);
    bad(Code::kInvalid, 0, 7);
    bad(Code::kInvalid, 200, 200 * kBytes + 1);
    bad(Code::kTooLarge, ~std::uint64_t{0}, ~std::uint64_t{0});
    r.refused(kDeputy, right, Code::kRetry, [&](N& n) { n.set_generation(generation - 1); });
    r.refused(kDeputy, right, Code::kRetry, [](N& n) { n.set_view(kView); });
    auto elsewhere = right;
    *elsewhere.mutable_shape() = r.b.at(4).shape();
    r.refused(4, elsewhere, Code::kInvalid, [](N&) {});  // it is not the deputy
    REQUIRE_OK(r.b.append(make_records(10, kBytes, 3)));
    r.b.require_all_rebuilt();
    r.b.require_clean();
  });
}

TEST_CASE("rows that are rebuilt are of who may read, of this keeper, and of lengths that the file can have") {
  with_refusals(Format::fixed(kBytes), [](Refusals& r) {
    REQUIRE_OK(r.b.put(make_records(100, kBytes, 1)));
    const Cell cell = r.b.layout.locate(0);
    const LfsIndex lfs = r.keeper_of(cell);
    const auto right = r.reconstruct(cell);
    using R = proto::Reconstruct;
    r.refused_without_right(lfs, right);
    r.refused(lfs, right, Code::kBadCapability, [](R& a) { a.set_file(8); });
    r.refused(lfs, right, Code::kInvalid, [&](R& a) { a.set_index(lfs); });
    r.refused(lfs, right, Code::kInvalid, [](R& a) { a.set_index(~0u); });
    r.refused(lfs, right, Code::kEndOfFile, [](R& a) { a.set_count(0); });
    r.refused(lfs, right, Code::kEndOfFile, [](R& a) { a.set_first(100); });
    r.refused(lfs, right, Code::kEndOfFile,
              [](R& a) { a.set_first(~std::uint64_t{0}), a.set_count(~std::uint64_t{0}); });
    r.refused(lfs, right, Code::kEndOfFile, [](R& a) { a.clear_file_length(); });
    r.refused(lfs, right, Code::kInvalid, [](R& a) { *a.mutable_file_length() = length_of(100, 1); });
    r.refused(lfs, right, Code::kTooLarge, [](R& a) { *a.mutable_file_length() = length_of(~std::uint64_t{0}, 1); });
    // Longer than it is: its parity has nothing of that.
    r.refused(lfs, right, Code::kCorrupt, [&](R& a) {
      a.set_first(100), a.set_count(2);
      *a.mutable_file_length() = length_of(1000, 1000 * kBytes);
    });
  });
}

}  // namespace
}  // namespace pif::lfs::test
