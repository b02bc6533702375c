// What is sent where while an LFS is absent in the view.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include "../sim/by_hand.h"
#include "pif/access/rebuilt_read.h"
#include "pif/access/row_copies.h"
#include "pif/access/row_sink.h"
#include "pif/access/sealing.h"
#include "pif/wire/values.h"

namespace pif::access {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kView = 7;
constexpr net::PeerId kFirstPeer = 11;  // of LFS 0

struct Sent {
  LfsIndex lfs = 0;
  proto::Envelope envelope;
  Bytes body;
};

// A file over six LFSs, two bevies of three, and connections to all of them. Those in `lost` are absent.
struct File {
  File(const Format& format, bool creating, const std::set<LfsIndex>& lost)
      : grant(parts_of(format, creating, lost), {}) {
    for (LfsIndex lfs = 0; lfs < 6; ++lfs) links.adopt(lfs + 1, "lfs" + std::to_string(lfs), kFirstPeer + lfs, 1 << 20);
    messenger.on_send = [this](net::PeerId peer, const net::Packet& packet) {
      const auto body = packet.body.span();
      sent.push_back({static_cast<LfsIndex>(peer - kFirstPeer), packet.envelope, {body.begin(), body.end()}});
    };
  }
  static FileParts parts_of(const Format& format, bool creating, const std::set<LfsIndex>& lost) {
    FileParts parts;
    parts.file = FileId(9);
    parts.path = "/f";
    parts.creating = creating;
    parts.format = format;
    parts.layout = *parity::Layout::make(6, {3, 3});
    parts.file_layout.set_form(wire::kFormParity);
    parts.view = kView;
    parts.capability = "right";
    for (LfsIndex lfs = 0; lfs < 6; ++lfs) {
      proto::NodeInfo& node = parts.nodes.emplace_back();
      node.set_id(lfs + 1);
      node.set_name("lfs" + std::to_string(lfs));
      node.set_state(1);
      node.set_view_state(lost.contains(lfs) ? wire::kViewLost : wire::kViewMember);
    }
    return parts;
  }
  const parity::Layout& layout() const { return grant.parts().layout; }
  // What has been sent since the last time, and by LFS how often.
  std::vector<Sent> take() { return std::exchange(sent, {}); }
  void answer(const Sent& request, Code code = Code::kOk) {
    net::Delivery delivery;
    delivery.peer = kFirstPeer + request.lfs;
    if (code == Code::kOk) {
      delivery.packet = net::reply_to(request.envelope);
      if (request.envelope.has_seal())
        delivery.packet.envelope.mutable_seal_reply();
      else
        delivery.packet.envelope.mutable_done();
    } else {
      delivery.packet = net::error_reply(request.envelope, {code, "said so", {}}, "lfs" + std::to_string(request.lfs));
    }
    REQUIRE(calls.offer(delivery));
  }

  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  net::Calls calls{messenger};
  LfsLinks links{messenger, calls, {}};
  Grant grant;
  std::vector<Sent> sent;
  std::uint64_t moved = 0;
};

RowSink::ByMessage by_message(Requests& requests, File& file) { return {requests, file.moved, 1 << 16, false}; }

// The rows of a CopyRows, by number: fixed ones of `length` bytes, or with lengths in front.
std::map<Row, Bytes> rows_of(const Sent& sent, std::uint64_t step, std::uint32_t length) {
  const proto::CopyRows& copy = sent.envelope.copy_rows();
  std::map<Row, Bytes> rows;
  std::size_t at = length == 0 ? copy.count() * sizeof(std::uint32_t) : 0;
  for (std::uint64_t i = 0; i < copy.count(); ++i) {
    std::uint32_t size = length;
    if (length == 0) std::memcpy(&size, sent.body.data() + i * sizeof size, sizeof size);
    size = std::min<std::uint32_t>(size, static_cast<std::uint32_t>(sent.body.size() - at));
    const auto begin = sent.body.begin() + static_cast<std::ptrdiff_t>(at);
    rows[copy.first() + i * step] = Bytes(begin, begin + size);
    at += size;
  }
  CHECK(at == sent.body.size());
  return rows;
}

}  // namespace

TEST_CASE("fixed rows of an absent LFS go to those that keep their parity, a short last one, too") {
  File file(Format::fixed(4), true, {0});
  Requests requests(file.links, file.grant);
  RowSink sink(file.grant.parts(), 0, by_message(requests, file));
  CHECK(sink.copies());
  Bytes data(5 * 4 - 1);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  REQUIRE(sink.write_rows(0, 5, {data.data(), 4}, 3).has_value());
  REQUIRE(sink.finish());
  CHECK(sink.rows() == 5);
  CHECK(sink.bytes() == data.size());
  REQUIRE(requests.step().has_value());
  std::map<Row, Bytes> got;
  for (const Sent& sent : file.take()) {
    REQUIRE(sent.envelope.has_copy_rows());
    const proto::CopyRows& copy = sent.envelope.copy_rows();
    CHECK(copy.shape().index() == sent.lfs);
    CHECK(copy.index() == 0);
    CHECK(copy.generation() == 0);
    CHECK(copy.view() == kView);
    for (auto& [row, bytes] : rows_of(sent, 2, 4)) {
      CHECK(file.layout().parity_of({0, row}).lfs == sent.lfs);
      CHECK(got.emplace(row, bytes).second);
    }
  }
  REQUIRE(got.size() == 5);
  for (const auto& [row, bytes] : got) {
    const std::size_t size = row == 4 ? 3 : 4;
    CHECK(bytes == Bytes(data.begin() + static_cast<std::ptrdiff_t>(row * 4),
                         data.begin() + static_cast<std::ptrdiff_t>(row * 4 + size)));
  }
}

TEST_CASE("variable rows of an absent LFS go to their keepers with their lengths") {
  File file(Format::lines(), true, {4});
  Requests requests(file.links, file.grant);
  RowSink sink(file.grant.parts(), 4, by_message(requests, file));
  std::vector<Bytes> rows;
  for (Row row = 0; row < 7; ++row) {
    rows.emplace_back(row * 3 + 1, static_cast<std::byte>('a' + row));
    REQUIRE(sink.append_row(row, rows.back()).has_value());
  }
  REQUIRE(sink.flush().has_value());
  REQUIRE(requests.step().has_value());
  std::map<Row, Bytes> got;
  for (const Sent& sent : file.take()) {
    REQUIRE(sent.envelope.has_copy_rows());
    CHECK(sent.envelope.copy_rows().index() == 4);
    for (auto& [row, bytes] : rows_of(sent, 2, 0)) {
      CHECK(file.layout().parity_of({4, row}).lfs == sent.lfs);
      CHECK(got.emplace(row, bytes).second);
    }
  }
  REQUIRE(got.size() == rows.size());
  for (const auto& [row, bytes] : got) CHECK(bytes == rows[row]);
}

TEST_CASE("a row whose keeper is absent, too, is refused as soon as it is written, and both are named") {
  const LfsIndex keeper = File(Format::fixed(4), true, {}).layout().parity_of({0, 1}).lfs;
  File file(Format::fixed(4), true, {0, keeper});
  Requests requests(file.links, file.grant);
  RowSink sink(file.grant.parts(), 0, by_message(requests, file));
  const Bytes row(4);
  REQUIRE(sink.write_rows(0, 1, {row.data(), 4}).has_value());
  const auto refused = sink.write_rows(1, 1, {row.data(), 4});
  REQUIRE(!refused);
  CHECK(refused.error().code == Code::kUnavailable);
  for (const std::string& name : {std::string("/f"), std::string("lfs0"), "lfs" + std::to_string(keeper)})
    CHECK(refused.error().text.find(name) != std::string::npos);
}

TEST_CASE("copies for a grant bear its generation and base") {
  File file(Format::fixed(4), false, {0});
  Requests requests(file.links, file.grant);
  CopyOptions options;
  options.generation = 77;
  options.base = {12, 48};
  const RowRange rows{0, 3, 1, file.layout().record_at({0, 3}), true};
  REQUIRE(add_copies(requests, rows, {{}, Bytes(4)}, options).has_value());
  REQUIRE(requests.step().has_value());
  const auto sent = file.take();
  REQUIRE(sent.size() == 1);
  const proto::CopyRows& copy = sent[0].envelope.copy_rows();
  CHECK(copy.generation() == 77);
  CHECK(copy.base().records() == 12);
  CHECK(copy.first() == 3);
  CHECK(copy.count() == 1);
}

TEST_CASE("an absent LFS is neither sealed nor asked to gather") {
  File file(Format::fixed(4), true, {1});
  Requests requests(file.links, file.grant);
  const std::uint64_t records = 60;
  std::vector<ComponentEnd> ends;
  std::set<LfsIndex> others = {0, 2, 3, 4, 5};
  for (const LfsIndex lfs : others) {
    const std::uint64_t rows = file.layout().rows(lfs, records);
    ends.push_back({lfs, false, {rows, rows * 4, 0, 0}});
  }
  Sealing sealing;
  sealing.start(requests, {records, records * 4}, ends, std::chrono::seconds(5));
  REQUIRE(requests.step().has_value());
  std::set<LfsIndex> asked;
  for (const Sent& sent : file.take()) {
    CHECK(sent.envelope.has_seal());
    CHECK(asked.insert(sent.lfs).second);
    file.answer(sent);
  }
  CHECK(asked == others);
  REQUIRE(requests.step().has_value());
  CHECK(sealing.state() == Sealing::State::kGathering);
  asked.clear();
  for (const Sent& sent : file.take()) {
    REQUIRE(sent.envelope.has_gather());
    CHECK(sent.envelope.gather().view() == kView);
    CHECK(asked.insert(sent.lfs).second);
    file.answer(sent);
  }
  CHECK(asked == others);
  REQUIRE(requests.step().has_value());
  CHECK(sealing.state() == Sealing::State::kSealed);
}

TEST_CASE("a file of which a keeper goes by a newer view must be written again, and is told so") {
  File file(Format::fixed(4), true, {1});
  Requests requests(file.links, file.grant);
  Sealing sealing;
  sealing.start(requests, {60, 240}, {}, std::chrono::seconds(5));
  REQUIRE(requests.step().has_value());
  const auto gathers = file.take();
  REQUIRE(!gathers.empty());
  file.answer(gathers[0], Code::kOldView);
  const Status failed = requests.step();
  REQUIRE(!failed);
  CHECK(failed.error().code == Code::kOldView);
  CHECK(failed.error().text.find("/f: an LFS was lost, or came back") == 0);
}

TEST_CASE("an LFS that is absent is not asked for rows: those that keep their parity are") {
  File file(Format::fixed(4), false, {0});
  Requests requests(file.links, file.grant);
  Bytes out(60 * 4);
  const ReadPart part{{0, 0, 4, file.layout().record_at({0, 0}), false}, out.data(), 0, {60, 240}, 0};
  read_by_message(requests, part, file.moved);
  REQUIRE(requests.step().has_value());
  REQUIRE(requests.step().has_value());  // what the first has added
  const auto sent = file.take();
  CHECK(sent.size() == 2);
  for (const Sent& one : sent) {
    CHECK(one.envelope.has_reconstruct());
    CHECK(one.lfs >= 3);
  }
  CHECK(!file.links.was_away(1));  // it was not tried
}

TEST_CASE("of rows that an LFS does not know of yet the parity is asked for") {
  File file(Format::fixed(4), false, {});
  Requests requests(file.links, file.grant);
  Bytes out(60 * 4);
  const ReadPart part{{0, 0, 1, file.layout().record_at({0, 0}), true}, out.data(), 0, {60, 240}, 0};
  read_by_message(requests, part, file.moved);
  REQUIRE(requests.step().has_value());
  const auto read = file.take();
  REQUIRE(read.size() == 1);
  CHECK(read[0].envelope.has_read());
  file.answer(read[0], Code::kEndOfFile);
  REQUIRE(requests.step().has_value());
  const auto rebuilt = file.take();
  REQUIRE(rebuilt.size() == 1);
  CHECK(rebuilt[0].envelope.has_reconstruct());
}

// It may not know yet that others do without it, and answer with frames of what was cancelled since.
TEST_CASE("a keeper that is absent is not asked for the rows of an LFS that is silent") {
  const auto layout = *parity::Layout::make(6, {3, 3});
  const LfsIndex keeper = layout.parity_of({0, 0}).lfs;
  const RowRange rows{0, 0, 1, layout.record_at({0, 0}), true};
  std::optional<Error> error;
  SECTION("fixed records") {
    File file(Format::fixed(4), false, {keeper});
    Requests requests(file.links, file.grant);
    Bytes out(60 * 4);
    read_rebuilt(requests, {rows, out.data(), 0, {60, 240}, 0}, file.moved, {Code::kTimeout, "it is silent", "lfs0"});
    const auto status = requests.step();
    REQUIRE(!status);
    error = status.error();
    CHECK(file.take().empty());
  }
  SECTION("variable records") {
    File file(Format::variable(), false, {keeper});
    Requests requests(file.links, file.grant);
    FetchedRows out;
    read_rows_rebuilt(requests, rows, out, file.moved, {Code::kTimeout, "it is silent", "lfs0"});
    const auto status = requests.step();
    REQUIRE(!status);
    error = status.error();
    CHECK(file.take().empty());
  }
  REQUIRE(error);
  CHECK(error->code == Code::kUnavailable);
  CHECK(error->text.find("it is silent") != std::string::npos);
  CHECK(error->text.find("lfs" + std::to_string(keeper)) != std::string::npos);
}

TEST_CASE("a file goes by the newest view that it was given, also for who was lost in the one before") {
  File file(Format::fixed(4), false, {0});
  const proto::NodeInfo& first = file.grant.parts().nodes[0];
  CHECK(file.grant.parts().is_absent(0));
  std::vector<proto::NodeInfo> nodes(2);
  nodes[0].set_id(3);
  nodes[0].set_view_state(wire::kViewLost);
  nodes[1].set_id(1);
  nodes[1].set_view_state(wire::kViewReturning);
  nodes[1].mutable_endpoints()->set_tcp("tcp://elsewhere:1");
  file.grant.set_view(8, nodes);
  CHECK(file.grant.parts().view == 8);
  CHECK(!file.grant.parts().is_absent(0));
  CHECK(file.grant.parts().is_absent(2));
  CHECK(!file.grant.parts().is_absent(1));
  CHECK(first.endpoints().tcp() == "tcp://elsewhere:1");
  CHECK(first.name() == "lfs0");
}

}  // namespace pif::access
