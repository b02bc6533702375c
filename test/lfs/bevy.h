// Six LFSs in two bevies of three, and one file on them, written, gathered, appended to and read in messages. Some of
// them may be absent.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "../../lfs/src/store/catalogue.h"

#include "node.h"
#include "pif/parity/layout.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {

using Records = std::vector<std::string>;

class Bevies {
 public:
  static constexpr std::uint32_t kWidth = 6;
  static constexpr std::uint64_t kView = 5;  // in which some are absent

  // server: the Unix socket of a PIF Server that they report to; empty: of none.
  Bevies(sim::World& world, const Format& format, const std::string& server = {}) {
    file.id = 7;
    file.format = format;
    file.bevies = {3, 3};
    file.nodes.clear();
    for (std::uint32_t i = 0; i < kWidth; ++i) {
      nodes.push_back(std::make_unique<Node>(world, "lfs" + std::to_string(i), i + 1));
      file.nodes.push_back(i + 1);
    }
    for (auto& node : nodes) {
      for (const auto& other : nodes) {
        auto& info = node->peers.emplace_back();
        info.set_id(other->id());
        info.set_name(other->name());
        info.mutable_endpoints()->set_unix_path("sim:" + other->name());
        info.mutable_endpoints()->set_ipc("sim:" + other->name());
      }
      node->server.set_unix_path(server);
      node->start();
    }
  }
  virtual ~Bevies() = default;
  // From inside the client's actor.
  void connect(sim::Actor& self) {
    for (auto& node : nodes) peers.push_back(std::make_unique<Peer>(self, *node));
  }

  TestFile at(LfsIndex lfs) const {
    TestFile out = file;
    out.index = lfs;
    return out;
  }
  std::string body(const Records& rows) const {
    if (!file.format.is_fixed()) return variable_body(rows);
    std::string out;
    for (const auto& row : rows) out += row;
    return out;
  }
  FileLength length() const {
    FileLength out{records.size(), 0};
    for (const auto& record : records) out.bytes += record.size();
    return out;
  }
  // Of records [begin, end): by LFS.
  std::map<LfsIndex, Records> split(std::size_t begin, std::size_t end) const {
    std::map<LfsIndex, Records> out;
    for (auto n = begin; n < end; ++n) out[layout.locate(n).lfs].push_back(records[n]);
    return out;
  }

  // ---- absence ----

  // A view in which these are absent; they were lost in this order.
  static proto::View view_without(const std::vector<LfsIndex>& lost, std::uint64_t index = kView,
                                  std::uint32_t state = wire::kViewLost) {
    proto::View view;
    view.set_index(index);
    for (const LfsIndex lfs : lost) {
      auto& node = *view.add_nodes();
      node.set_node(lfs + 1);
      node.set_state(state);
      node.set_era(1);
      node.set_lost_order(static_cast<std::uint32_t>(view.nodes_size()));
    }
    return view;
  }
  // All are started again, and go by such a view. From now on what clients do is done without these.
  void lose(const std::vector<LfsIndex>& lost, std::uint32_t state = wire::kViewLost) {
    absent = lost;
    view = kView;
    for (auto& node : nodes) {
      node->kill();
      put_view(*node, view_without(lost, kView, state));
      node->start();
    }
  }
  // Nobody may need them from now on.
  void lose_and_kill(const std::vector<LfsIndex>& lost) {
    lose(lost);
    for (const LfsIndex lfs : lost) nodes[lfs]->kill();
    are_absent_dead = true;
  }
  bool is_absent(LfsIndex lfs) const { return std::find(absent.begin(), absent.end(), lfs) != absent.end(); }

  // ---- a file that is created ----

  Status write(const Records& all) {
    records = all;
    for (const auto& [lfs, rows] : split(0, all.size())) {
      if (is_absent(lfs)) {
        PIF_TRY(write_absent(lfs, {0, rows.size()}, nullptr));
        continue;
      }
      std::uint64_t bytes = 0;
      for (std::size_t first = 0; first < rows.size(); first += 10) {  // a packet is small
        const Records part(rows.begin() + static_cast<std::ptrdiff_t>(first),
                           rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + 10, rows.size())));
        PIF_TRY(peers[lfs]->write(at(lfs), first, part.size(), body(part)));
      }
      for (const auto& row : rows) bytes += row.size();
      PIF_TRY(peers[lfs]->seal(at(lfs), rows.size(), bytes, {}, length()));
    }
    return {};
  }
  Status gather(LfsIndex lfs, std::optional<FileLength> file_length = {}) {
    PIF_TRY(peers[lfs]->call(gather_packet(lfs, file_length)));
    return {};
  }
  net::Packet gather_packet(LfsIndex lfs, std::optional<FileLength> file_length = {}) {
    auto packet = peers[lfs]->request(file.id, kMayCreate | kMayRead);
    auto* gather = packet.envelope.mutable_gather();
    *gather->mutable_shape() = at(lfs).shape();
    const FileLength whole = file_length.value_or(length());
    gather->mutable_file_length()->set_records(whole.records);
    gather->mutable_file_length()->set_bytes(whole.bytes);
    gather->set_view(view);
    return packet;
  }
  Status gather_all() {
    for (LfsIndex lfs = 0; lfs < kWidth; ++lfs)
      if (!is_absent(lfs) && layout.parity_rows(lfs, records.size()) > 0) PIF_TRY(gather(lfs));
    return {};
  }
  Status settle() {
    for (LfsIndex lfs = 0; lfs < kWidth; ++lfs)
      if (!is_absent(lfs)) PIF_TRY(peers[lfs]->settle({file.id}, {}));
    return {};
  }
  Status put(const Records& all) {
    PIF_TRY(write(all));
    PIF_TRY(gather_all());
    return settle();
  }

  // Row of an LFS, as the keeper of its parity rebuilds it. count: of rows asked for; the first that is given.
  Result<std::string> rebuilt(Cell cell, std::uint64_t count = 1) {
    const LfsIndex keeper = layout.parity_of(cell).lfs;
    auto packet = peers[keeper]->request(file.id, kMayRead);
    auto* asked = packet.envelope.mutable_reconstruct();
    asked->set_file(file.id);
    asked->set_index(cell.lfs);
    asked->set_first(cell.row);
    asked->set_count(count);
    asked->mutable_file_length()->set_records(length().records);
    asked->mutable_file_length()->set_bytes(length().bytes);
    PIF_TRY_VALUE(auto reply, peers[keeper]->call(std::move(packet)));
    rows_given = reply.envelope.read_reply().rows();
    return bytes_of(reply.body);
  }
  // Every record out of its parity.
  void require_all_rebuilt() { require_rebuilt(); }
  // Every `step`-th. While LFSs are absent, of theirs only: for those of others the absent ones' rows are needed.
  void require_rebuilt(std::size_t step = 1) {
    for (std::size_t n = 0, seen = 0; n < records.size(); ++n) {
      if (!absent.empty() && !is_absent(layout.locate(n).lfs)) continue;
      if (seen++ % step != 0) continue;
      const auto found = rebuilt(layout.locate(n));
      INFO("record " << n << (found ? "" : found.error().to_string()));
      REQUIRE(found);
      REQUIRE(*found == body({records[n]}));
    }
  }
  void require_clean() {
    for (LfsIndex lfs = 0; lfs < kWidth; ++lfs) {
      if (are_absent_dead && is_absent(lfs)) continue;
      const auto report = nodes[lfs]->check();
      REQUIRE_OK(report);
      INFO(nodes[lfs]->name());
      CHECK(report->damages == std::vector<std::string>());
    }
  }
  proto::ComponentState state(LfsIndex lfs) {
    auto packet = peers[lfs]->request(file.id, kMayRead);
    packet.envelope.mutable_attach_parity()->set_file(file.id);
    auto reply = peers[lfs]->call(std::move(packet));
    REQUIRE_OK(reply);
    return reply->envelope.attach_parity_reply().state();
  }

  // ---- appends ----

  // As a client: again, while the sequencer asks its deputy.
  Result<proto::ReserveReply> reserve(std::uint64_t count, std::uint64_t bytes, bool fill = false) {
    auto reply = reserve_once(count, bytes, fill);
    for (unsigned i = 0; i < 500 && !reply && reply.error().code == Code::kRetry; ++i) {
      (void)peers[0]->self().pause(std::chrono::milliseconds(10));
      reply = reserve_once(count, bytes, fill);
    }
    return reply;
  }
  Result<proto::ReserveReply> reserve_once(std::uint64_t count, std::uint64_t bytes, bool fill) {
    auto packet = peers[0]->request(file.id, kMayRead | kMayWrite);
    auto* reserve = packet.envelope.mutable_reserve();
    reserve->set_file(file.id);
    reserve->set_records(count);
    reserve->set_bytes(bytes);
    reserve->set_fill(fill);
    *reserve->mutable_shape() = at(0).shape();
    PIF_TRY_VALUE(auto reply, peers[0]->call(std::move(packet)));
    return reply.envelope.reserve_reply();
  }
  Status append_rows(LfsIndex lfs, const proto::ReserveReply& grant, Row first, const Records& rows,
                     std::uint32_t within = 0) {
    auto packet = peers[lfs]->request(file.id, kMayRead | kMayWrite);
    auto* asked = packet.envelope.mutable_append_rows();
    asked->set_file(file.id);
    asked->set_first(first);
    asked->set_count(rows.size());
    asked->set_generation(grant.generation());
    asked->set_within(within);
    *asked->mutable_shape() = at(lfs).shape();
    *asked->mutable_base() = grant.base();
    packet.body = buffer_of(body(rows));
    PIF_TRY(peers[lfs]->call(std::move(packet)));
    return {};
  }
  // Records [first, size()) of the file as `records` has it now.
  Status cover(LfsIndex lfs, const proto::ReserveReply& grant, RecordNumber first) {
    PIF_TRY(peers[lfs]->call(cover_packet(lfs, grant, first)));
    return {};
  }
  net::Packet cover_packet(LfsIndex lfs, const proto::ReserveReply& grant, RecordNumber first) {
    auto packet = peers[lfs]->request(file.id, kMayRead | kMayWrite);
    auto* asked = packet.envelope.mutable_cover();
    *asked->mutable_shape() = at(lfs).shape();
    asked->set_first(first);
    asked->set_count(records.size() - first);
    asked->set_generation(grant.generation());
    *asked->mutable_base() = grant.base();
    asked->mutable_file_length()->set_records(length().records);
    asked->mutable_file_length()->set_bytes(length().bytes);
    asked->set_view(view);
    return packet;
  }
  Status cover_all(const proto::ReserveReply& grant, RecordNumber first) {
    std::map<LfsIndex, int> keepers;
    for (auto n = first; n < records.size(); ++n) keepers[layout.parity_of(layout.locate(n)).lfs] = 1;
    for (const auto& [lfs, one] : keepers)
      if (!is_absent(lfs)) PIF_TRY(cover(lfs, grant, first));
    return {};
  }
  Status done(const proto::ReserveReply& grant) {
    auto packet = peers[0]->request(file.id, kMayRead | kMayWrite);
    packet.envelope.mutable_append_done()->set_file(file.id);
    packet.envelope.mutable_append_done()->set_ticket(grant.ticket());
    packet.envelope.mutable_append_done()->set_generation(grant.generation());
    PIF_TRY(peers[0]->call(std::move(packet)));
    return {};
  }
  Status cancel(const proto::ReserveReply& grant) {
    auto packet = peers[0]->request(file.id, kMayRead | kMayWrite);
    packet.envelope.mutable_append_cancel()->set_file(file.id);
    packet.envelope.mutable_append_cancel()->set_ticket(grant.ticket());
    packet.envelope.mutable_append_cancel()->set_generation(grant.generation());
    PIF_TRY(peers[0]->call(std::move(packet)));
    return {};
  }
  // Rows where they belong, not covered yet.
  Result<proto::ReserveReply> send_rows(const Records& added) {
    std::uint64_t bytes = 0;
    for (const auto& record : added) bytes += record.size();
    PIF_TRY_VALUE(const auto grant, reserve(added.size(), bytes));
    const std::size_t first = records.size();
    REQUIRE(grant.start().records() == first);
    records.insert(records.end(), added.begin(), added.end());
    for (const auto& [lfs, rows] : split(first, records.size())) {
      const Row row = layout.rows(lfs, first);
      PIF_TRY(is_absent(lfs) ? write_absent(lfs, {row, row + rows.size()}, &grant)
                             : append_rows(lfs, grant, row, rows));
    }
    return grant;
  }
  // Rows durable and covered, not published yet.
  Result<proto::ReserveReply> begin_append(const Records& added) {
    const std::size_t first = records.size();
    PIF_TRY_VALUE(const auto grant, send_rows(added));
    PIF_TRY(cover_all(grant, first));
    return grant;
  }
  Status append(const Records& added) {
    PIF_TRY_VALUE(const auto grant, begin_append(added));
    return done(grant);
  }

  parity::Layout layout = *parity::Layout::make(kWidth, {3, 3});
  TestFile file;
  Records records;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Peer>> peers;
  std::uint64_t rows_given = 0;
  std::vector<LfsIndex> absent;
  std::uint64_t view = 0;        // that requests are of
  bool are_absent_dead = false;  // their disks are not looked at

 protected:
  // Rows of an absent LFS are written (no grant) or appended.
  virtual Status write_absent(LfsIndex, Range, const proto::ReserveReply*) { return {}; }

 private:
  static void put_view(Node& node, const proto::View& view) {
    const auto store = kv::open_memory(node.catalogue);
    auto transaction = store->write();
    REQUIRE_OK(transaction);
    REQUIRE_OK(catalogue::put_view(**transaction, wire::pack_view(node.key, view)));
    REQUIRE_OK((*transaction)->commit());
  }
};

inline Records make_records(std::size_t count, std::size_t bytes, unsigned seed) {
  Records out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(pattern(bytes, static_cast<unsigned>(seed * 1000 + i)));
  return out;
}
inline Records make_variable(std::size_t count, unsigned seed) {
  Records out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(pattern((i * 37 + seed) % 200, static_cast<unsigned>(seed * 1000 + i)));
  return out;
}
inline Records make_for(const Format& format, std::size_t count, unsigned seed) {
  return format.is_fixed() ? make_records(count, format.record_length, seed) : make_variable(count, seed);
}

// Runs body(B&, sim::Actor&) as a client of LFSs that serve.
template <typename B = Bevies, typename Body>
void with_bevies(const Format& format, const Body& body) {
  sim::World world(1);
  B bevies(world, format);
  world.spawn_main("client", [&](sim::Actor& self) {
    bevies.connect(self);
    body(bevies, self);
    bevies.peers.clear();
  });
  world.run();
}

}  // namespace pif::lfs::test
