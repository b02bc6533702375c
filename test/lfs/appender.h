// Appends to a file as a client does, step by step.
#pragma once

#include "node.h"
#include "pif/wire/convert.h"

namespace pif::lfs::test {

// One client's way of appending, in messages.
class Appender {
 public:
  Appender(sim::Actor& self, std::vector<Node*> nodes, TestFile file) : file_(std::move(file)) {
    for (auto* node : nodes) peers_.push_back(std::make_unique<Peer>(self, *node));
  }

  Result<proto::ReserveReply> reserve(std::uint64_t records, std::uint64_t bytes, bool fill = false) {
    auto packet = peers_[0]->request(file_.id, kMayRead | kMayWrite);
    auto* reserve = packet.envelope.mutable_reserve();
    reserve->set_file(file_.id);
    reserve->set_records(records);
    reserve->set_bytes(bytes);
    reserve->set_fill(fill);
    *reserve->mutable_shape() = shape(0);
    *reserve->mutable_known() = wire::proto_of(known);
    PIF_TRY_VALUE(auto reply, peers_[0]->call(std::move(packet)));
    return reply.envelope.reserve_reply();
  }
  net::Packet rows_packet(std::uint32_t lfs, const proto::ReserveReply& grant, std::uint64_t first, std::uint64_t count,
                          const std::string& body, std::uint32_t within = 0) {
    auto packet = peers_[lfs]->request(file_.id, kMayRead | kMayWrite);
    auto* rows = packet.envelope.mutable_append_rows();
    rows->set_file(file_.id);
    rows->set_first(first);
    rows->set_count(count);
    rows->set_generation(grant.generation());
    rows->set_within(within);
    *rows->mutable_shape() = shape(lfs);
    *rows->mutable_base() = grant.base();
    packet.body = buffer_of(body);
    return packet;
  }
  Status rows(std::uint32_t lfs, const proto::ReserveReply& grant, std::uint64_t first, std::uint64_t count,
              const std::string& body, std::uint32_t within = 0) {
    PIF_TRY(peers_[lfs]->call(rows_packet(lfs, grant, first, count, body, within)));
    return {};
  }
  net::Packet done_packet(const proto::ReserveReply& grant) {
    auto packet = peers_[0]->request(file_.id, kMayRead | kMayWrite);
    auto* done = packet.envelope.mutable_append_done();
    done->set_file(file_.id);
    done->set_ticket(grant.ticket());
    done->set_generation(grant.generation());
    return packet;
  }
  Status done(const proto::ReserveReply& grant) {
    PIF_TRY(peers_[0]->call(done_packet(grant)));
    return {};
  }
  FileLength length() {
    auto packet = peers_[0]->request(file_.id, kMayRead);
    packet.envelope.mutable_length()->set_file(file_.id);
    const auto reply = peers_[0]->call(std::move(packet));
    REQUIRE_OK(reply);
    return {reply->envelope.length_reply().file_length().records(),
            reply->envelope.length_reply().file_length().bytes()};
  }
  FileLength known;  // the directory's length, as the client knows it
  Peer& peer(std::size_t lfs) { return *peers_[lfs]; }
  std::uint32_t width() const { return static_cast<std::uint32_t>(peers_.size()); }
  const TestFile& file() const { return file_; }

  // Sends the grant's records to their LFSs, but not to those from `lfss` on.
  Status spread(const proto::ReserveReply& grant, const std::vector<std::string>& records, std::uint32_t lfss) {
    const std::uint64_t start = grant.start().records();
    for (std::uint32_t lfs = 0; lfs < lfss; ++lfs) {
      std::vector<std::string> mine;
      std::optional<std::uint64_t> first;
      for (std::uint64_t i = 0; i < records.size(); ++i) {
        if ((start + i) % width() != lfs) continue;
        if (!first) first = (start + i) / width();
        mine.push_back(records[i]);
      }
      if (mine.empty()) continue;
      std::string body;
      for (const auto& record : mine) body += record;
      if (!file_.format.is_fixed()) body = variable_body(mine);
      PIF_TRY(rows(lfs, grant, *first, mine.size(), body));
    }
    return {};
  }

 private:
  proto::ComponentShape shape(std::uint32_t lfs) const {
    auto file = file_;
    file.index = lfs;
    return file.shape();
  }
  TestFile file_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace pif::lfs::test
