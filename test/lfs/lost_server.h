// A PIF Server that knows which files there are with parity.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "fake_server.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {

// Lists what was lost, and moves the node in its view as it is told.
struct LostServer {
  FakeServer fake;
  proto::View view;
  std::vector<proto::ListLostReply::One> files;
  unsigned lists = 0;
  std::optional<unsigned> removed_after;  // so many lists all files are gone
  unsigned silent = 0;                    // so many lists are not answered well
  std::vector<std::uint32_t> words;

  void set_state(std::uint32_t node, std::uint32_t state) {
    view.set_index(view.index() + 1);
    if (view.nodes_size() == 0) view.add_nodes();
    view.mutable_nodes(0)->set_node(node);
    view.mutable_nodes(0)->set_state(state);
    view.mutable_nodes(0)->set_era(1);
    view.mutable_nodes(0)->set_lost_order(wire::is_absent(state) ? 1 : 0);
  }
  net::Packet answer(const ClusterKey& key, const proto::Envelope& request) {
    if (request.has_list_lost() && silent > 0) {
      --silent;
      return net::error_reply(request, Error{Code::kIo, "the disk failed", {}}, "server");
    }
    auto reply = fake.answer(request);
    if (request.has_heartbeat() && request.heartbeat().view() < view.index())
      reply.envelope.mutable_heartbeat_reply()->set_view(wire::pack_view(key, view));
    if (request.has_list_lost()) list(request.list_lost(), *reply.envelope.mutable_list_lost_reply());
    if (request.has_node_lacks()) {
      note_lacks(request.node_lacks());
      reply.envelope.mutable_done();
    }
    if (request.has_node_rebuilt()) {
      words.push_back(request.node_rebuilt().state());
      set_state(request.node_rebuilt().node(), request.node_rebuilt().state());
      reply.envelope.mutable_done();
    }
    return reply;
  }
  void note_lacks(const proto::NodeLacks& said) {
    for (auto& file : files) {
      if (std::find(said.files().begin(), said.files().end(), file.file()) == said.files().end()) continue;
      file.clear_lacking();
      if (said.order() == 0) continue;
      file.add_lacking()->set_node(said.node());
      file.mutable_lacking(0)->set_order(said.order());
    }
  }
  void add_file(const TestFile& file, const FileLength& length, std::uint64_t id) {
    proto::ListLostReply::One& one = files.emplace_back();
    one.set_file(id);
    one.set_path("/" + std::to_string(id));
    *one.mutable_format() = file.shape().format();
    *one.mutable_layout() = file.shape().layout();
    one.mutable_file_length()->set_records(length.records);
    one.mutable_file_length()->set_bytes(length.bytes);
  }
  // One file at a time.
  void list(const proto::ListLost& asked, proto::ListLostReply& reply) {
    if (removed_after && lists >= *removed_after) files.clear();
    ++lists;
    reply.set_last(asked.after());
    for (const auto& file : files) {
      if (file.file() <= asked.after()) continue;
      reply.set_more(reply.files_size() > 0);
      if (reply.more()) return;
      *reply.add_files() = file;
      reply.set_last(file.file());
    }
  }
  void run(sim::Actor& self, const ClusterKey& key) {
    for (;;) {
      auto delivery = self.messenger().receive(kNever);
      if (!delivery) return;
      if (!*delivery || (*delivery)->kind != net::Delivery::Kind::kPacket) continue;
      (void)self.messenger().send((*delivery)->peer, answer(key, (*delivery)->packet.envelope));
    }
  }
};

}  // namespace pif::lfs::test
