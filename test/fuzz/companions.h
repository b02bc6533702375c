// Who is around an LFS of files with parity: the PIF Server, which tells it views, and the other LFSs of its files,
// which have the rows that belong there. An input says when they are silent, refuse, or answer nonsense.
#pragma once

#include <algorithm>
#include <deque>

#include "../../lfs/src/store/catalogue.h"
#include "lfs_world.h"
#include "pif/parity/layout.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"
#include "pif/wire/views.h"

namespace pif::fuzz {

// The files there are, by id: fixed records and lines; the LFS is LFS 0 of it, or the deputy of that. Record n is known
// to everybody.
struct BevyFile {
  std::uint64_t id = 0;
  Format format = Format::lines();
  bool is_deputy = false;

  static constexpr std::uint32_t kWidth = 4;
  static constexpr std::uint64_t kFirst = 7, kCount = 4;
  static bool is_one(std::uint64_t id) { return id >= kFirst && id - kFirst < kCount; }
  static BevyFile of(std::uint64_t id) {
    must(is_one(id), "it is one of the files");
    // Two rows make a page.
    return {id, id % 2 == 1 ? Format::fixed(2048) : Format::lines(), id - kFirst >= 2};
  }

  parity::Layout layout() const { return *parity::Layout::make(kWidth, {2, 2}); }
  std::uint32_t node(LfsIndex lfs) const { return (lfs + (is_deputy ? 2 : 0)) % kWidth + 1; }
  LfsIndex own_index() const { return is_deputy ? 2 : 0; }  // of the LFS that is looked at
  LfsIndex index_of(std::uint32_t node) const { return (node - 1 + (is_deputy ? 2 : 0)) % kWidth; }
  proto::ComponentShape shape(LfsIndex index) const {
    proto::ComponentShape out;
    out.set_file(id);
    *out.mutable_format() = wire::proto_of(format);
    set_layout(*out.mutable_layout());
    out.set_index(index);
    return out;
  }
  void set_layout(proto::FileLayout& out) const {
    for (LfsIndex lfs = 0; lfs < kWidth; ++lfs) out.add_nodes(node(lfs));
    for (const std::uint32_t size : {2u, 2u}) out.add_bevies(size);
    out.set_form(wire::kFormParity);
  }

  std::string record(RecordNumber n) const {
    const char letter = static_cast<char>('a' + n % 26);
    if (format.is_fixed()) return std::string(format.record_length, letter);
    return std::string(n % 7, letter) + '\n';
  }
  FileLength length(std::uint64_t records) const {
    FileLength out{records, 0};
    for (RecordNumber n = 0; n < records; ++n) out.bytes += record(n).size();
    return out;
  }
  // The bytes of so many records, as far as `lfs` has them.
  FileLength at(LfsIndex lfs, std::uint64_t records) const {
    const auto layout = this->layout();
    FileLength out{layout.rows(lfs, records), 0};
    for (Row row = 0; row < out.records; ++row) out.bytes += record(layout.record_at({lfs, row})).size();
    return out;
  }
  // Rows first, first + step, ... as a body has them; at most kRowsMax.
  static constexpr std::uint64_t kRowsMax = 128;
  static constexpr Row kRowMask = 0xffffff;  // somebody may ask for rows that no layout has
  std::string body(LfsIndex lfs, Row first, std::uint64_t count, std::uint64_t step = 1) const {
    const auto layout = this->layout();
    std::vector<std::string> rows;
    std::string packed;
    for (std::uint64_t i = 0; i < std::min(count, kRowsMax); ++i) {
      rows.push_back(record(layout.record_at({lfs, (first + i * step) & kRowMask})));
      packed += rows.back();
    }
    return format.is_fixed() ? packed : variable(rows);
  }
};

// Flags of a request besides those of daemon.h.
inline constexpr unsigned kRightBody = 0x40;   // the rows that the request speaks of
inline constexpr unsigned kRightGrant = 0x80;  // ticket, generation and base are those that the LFS gave out last

class Companions final : public Surroundings {
 public:
  static constexpr std::uint64_t kFirstView = 5;

  explicit Companions(bool has_server) : has_server_(has_server) {}

  // How the LFS finds them.
  lfs::Config config() const {
    lfs::Config out = lfs_config();
    if (has_server_) out.server.set_unix_path(kServer);
    if (!has_server_) add_peers([&out]() -> proto::NodeInfo& { return out.peers.emplace_back(); });
    return out;
  }
  // A new root that has heard of their view.
  Root new_root() const {
    Root root = fuzz::new_root().copy();
    const auto store = kv::open_memory(root.catalogue);
    auto rows = store->write();
    must(rows && lfs::catalogue::put_view(**rows, view()) && (*rows)->commit(), "memory can be written");
    return root;
  }

  // ---- what an input does ----

  enum View : unsigned { kAllMembers, kCompanionsLost, kFirstLost, kSelfRebuilding, kSelfReturning, kSelfLost, kViews };
  // The server tells of it with its next answer.
  void set_view(unsigned choice) {
    states_.clear();
    switch (choice % kViews) {
      case kCompanionsLost: states_ = {{3, wire::kViewLost}, {4, wire::kViewLost}}; break;
      case kFirstLost: states_ = {{3, wire::kViewLost}}; break;
      case kSelfRebuilding: states_ = {{1, wire::kViewRebuilding}}; break;
      case kSelfReturning: states_ = {{1, wire::kViewReturning}}; break;
      case kSelfLost: states_ = {{1, wire::kViewLost}}; break;
      default: break;
    }
    make_view();
  }
  enum Answering : unsigned { kAnswers, kIsSilent, kRefuses, kSaysNonsense, kAnswerings };
  void answer_as(Input& in) {
    const unsigned how = in.byte() % kAnswerings;
    is_silent_ = how != kAnswers;
    if (how == kRefuses) return refuse(static_cast<Code>(in.byte()));
    if (how == kSaysNonsense) {
      const std::string_view envelope = in.text();
      return say(envelope, in.text());
    }
    if (how == kAnswers) answer_all();
  }
  // Between steps: who asks without end is not answered any more.
  void rest() { left_ = kAnswersMax; }

  // ---- what the LFS does ----

  void on_request(net::PeerId, net::Packet& packet, unsigned flags) override {
    if ((flags & kRightGrant) != 0) put_grant(packet.envelope);
    if ((flags & kRightBody) != 0) set_body(packet, body_of(packet.envelope));
    note(packet.envelope);
  }
  void on_answer(net::PeerId, const proto::Envelope& answer) override {
    if (answer.has_reserve_reply()) grant_ = answer.reserve_reply();
  }
  void on_ask(net::PeerId peer, const net::Packet& packet) override {
    if (open_.size() < kOpenMax) open_.push_back({peer, packet.envelope});
    if (!is_silent_) answer_all();
  }
  void on_start(FakeMessenger& messenger) override {
    messenger_ = &messenger;
    open_.clear();
  }

 private:
  static constexpr std::size_t kOpenMax = 64;
  static constexpr unsigned kAnswersMax = 256;
  static constexpr std::uint64_t kRecords = 24;  // of a file of which nobody has said how long it is
  static constexpr const char* kServer = "server";
  static void set_body(net::Packet& packet, std::string_view body) {
    packet.body = net::Buffer::copy_of(std::as_bytes(std::span(body)));
  }
  static std::string address_of(std::uint32_t node) { return "node" + std::to_string(node); }

  struct Open {
    net::PeerId peer;
    proto::Envelope request;
  };

  template <typename Add>
  static void add_peers(const Add& add) {
    for (std::uint32_t node = 1; node <= BevyFile::kWidth; ++node) {
      proto::NodeInfo& info = add();
      info.set_id(node);
      info.set_name(address_of(node));
      info.mutable_endpoints()->set_unix_path(address_of(node));
    }
  }

  std::string view() const { return wire::pack_view(test_key(), view_); }
  void make_view() {
    view_.set_index(view_.index() == 0 ? kFirstView : view_.index() + 1);
    view_.clear_nodes();
    std::uint32_t order = 0;
    for (const auto& [id, state] : states_) {
      auto& node = *view_.add_nodes();
      node.set_node(id);
      node.set_state(state);
      node.set_era(++era_);
      if (state != wire::kViewMember) node.set_lost_order(++order);
    }
  }

  // ---- users' requests ----

  static const proto::ComponentShape* shape_in(const proto::Envelope& e) {
    if (e.has_write()) return &e.write().shape();
    if (e.has_append_rows()) return &e.append_rows().shape();
    if (e.has_copy_rows()) return &e.copy_rows().shape();
    return nullptr;
  }
  static std::string body_of(const proto::Envelope& e) {
    const proto::ComponentShape* const shape = shape_in(e);
    if (shape == nullptr || !BevyFile::is_one(shape->file())) return {};
    const BevyFile file = BevyFile::of(shape->file());
    const LfsIndex own = shape->index() % BevyFile::kWidth;
    if (e.has_write()) return file.body(own, e.write().first(), e.write().count());
    if (e.has_append_rows()) return file.body(own, e.append_rows().first(), e.append_rows().count());
    return file.body(e.copy_rows().index() % BevyFile::kWidth, e.copy_rows().first(), e.copy_rows().count());
  }
  void put_grant(proto::Envelope& e) const {
    const auto put = [this](auto& asked) {
      asked.set_generation(grant_.generation());
      *asked.mutable_base() = grant_.base();
    };
    const auto put_ticket = [this](auto& asked) {
      asked.set_generation(grant_.generation());
      asked.set_ticket(grant_.ticket());
    };
    if (e.has_append_rows()) put(*e.mutable_append_rows());
    if (e.has_copy_rows()) put(*e.mutable_copy_rows());
    if (e.has_cover()) put(*e.mutable_cover());
    if (e.has_append_done()) put_ticket(*e.mutable_append_done());
    if (e.has_append_cancel()) put_ticket(*e.mutable_append_cancel());
  }
  // The companions have heard the same.
  void note(const proto::Envelope& e) {
    if (e.has_gather()) lengths_[e.gather().shape().file()] = e.gather().file_length();
    if (!e.has_cover()) return;
    lengths_[e.cover().shape().file()] = e.cover().file_length();
    generations_[e.cover().shape().file()] = e.cover().generation();
  }

  // ---- answers ----

  void refuse(Code code) {
    for (const Open& one : std::exchange(open_, {}))
      messenger_->deliver(one.peer, net::error_reply(one.request, {code, "no", {}}, "companion"));
  }
  void say(std::string_view envelope, std::string_view body) {
    if (open_.empty()) return;
    const Open one = std::move(open_.front());
    open_.pop_front();
    net::Packet packet;
    if (!packet.envelope.ParseFromArray(envelope.data(), static_cast<int>(envelope.size()))) return;
    if (!net::is_reply(packet.envelope)) return;  // what daemons ask, users with their rights ask, too
    packet.envelope.set_id(one.request.id());
    packet.envelope.set_version(kProtocolVersion);
    set_body(packet, body);
    messenger_->deliver(one.peer, std::move(packet));
  }
  void answer_all() {
    for (; !open_.empty() && left_ > 0; --left_) {
      const Open one = std::move(open_.front());
      open_.pop_front();
      net::Packet reply = net::reply_to(one.request);
      const std::string address = messenger_->address(one.peer);
      const bool known = address == kServer ? answer_as_server(one.request, reply) : answer_as_lfs(one, address, reply);
      if (!known) reply = net::error_reply(one.request, {Code::kUnsupported, "no", {}}, address);
      messenger_->deliver(one.peer, std::move(reply));
    }
  }

  bool answer_as_server(const proto::Envelope& asked, net::Packet& reply) {
    if (asked.has_heartbeat()) {
      beat(asked.heartbeat(), *reply.envelope.mutable_heartbeat_reply());
    } else if (asked.has_file_states()) {
      auto& out = *reply.envelope.mutable_file_states_reply();
      *out.mutable_moment() = moment();
      for (int i = 0; i < asked.file_states().files_size(); ++i) out.add_states(2);  // committed
    } else if (asked.has_list_lost()) {
      auto& out = *reply.envelope.mutable_list_lost_reply();
      for (std::uint64_t id = BevyFile::kFirst; id < BevyFile::kFirst + BevyFile::kCount; ++id)
        if (id > asked.list_lost().after()) add_lost(id, *out.add_files());
      out.set_last(~std::uint64_t{0});
    } else if (asked.has_node_lacks()) {
      reply.envelope.mutable_done();
    } else if (asked.has_node_rebuilt()) {
      states_[asked.node_rebuilt().node()] = asked.node_rebuilt().state();
      make_view();
      reply.envelope.mutable_done();
    } else {
      return false;
    }
    return true;
  }
  void beat(const proto::Heartbeat& heard, proto::HeartbeatReply& reply) {
    const bool asks = heard.stage() == wire::kAsks;
    reply.set_verdict(asks ? wire::kAdmitted : wire::kGoOn);
    if (asks) reply.set_incarnation(++incarnation_);
    if (heard.view() != view_.index()) reply.set_view(view());
    add_peers([&reply]() -> proto::NodeInfo& { return *reply.add_peers(); });
    reply.set_peers_count(BevyFile::kWidth);
    reply.set_lease_ms(6000);
    *reply.mutable_moment() = moment();
  }
  proto::Moment moment() const {
    proto::Moment out;
    out.set_run(1);
    out.set_index(100 + incarnation_);
    return out;
  }
  void add_lost(std::uint64_t id, proto::ListLostReply::One& out) const {
    const BevyFile file = BevyFile::of(id);
    out.set_file(id);
    out.set_path("/" + std::to_string(id));
    *out.mutable_format() = wire::proto_of(file.format);
    file.set_layout(*out.mutable_layout());
    *out.mutable_file_length() = length_of(file);
  }
  proto::FileLength length_of(const BevyFile& file) const {
    const auto at = lengths_.find(file.id);
    return at == lengths_.end() ? wire::proto_of(file.length(kRecords)) : at->second;
  }

  bool answer_as_lfs(const Open& open, const std::string& address, net::Packet& reply) {
    const proto::Envelope& asked = open.request;
    if (asked.has_hello()) {
      reply.envelope.mutable_hello_reply()->set_cluster("c1");
      reply.envelope.mutable_hello_reply()->set_node(address);
    } else if (asked.has_read() && BevyFile::is_one(asked.read().file())) {
      const BevyFile file = BevyFile::of(asked.read().file());
      const LfsIndex own = file.index_of(static_cast<std::uint32_t>(address.back() - '0'));
      give(file, {own, asked.read().first()}, asked.read().count(), std::max(asked.read().stride(), 1u), reply);
    } else if (asked.has_reconstruct() && BevyFile::is_one(asked.reconstruct().file())) {
      const auto& what = asked.reconstruct();
      const BevyFile file = BevyFile::of(what.file());
      give(file, {what.index(), what.first()}, what.count(), 1, reply);
    } else if (asked.has_length() && BevyFile::is_one(asked.length().file())) {
      auto& out = *reply.envelope.mutable_length_reply();
      *out.mutable_file_length() = length_of(BevyFile::of(asked.length().file()));
      out.set_generation(generations_[asked.length().file()]);
      out.set_view(asked.length().view());
    } else if (asked.has_note_length()) {
      *reply.envelope.mutable_note_length_reply()->mutable_noted() = asked.note_length().noted();
    } else if (asked.has_copy_rows() || asked.has_gather()) {
      reply.envelope.mutable_done();
    } else {
      return false;
    }
    return true;
  }
  void give(const BevyFile& file, Cell first, std::uint64_t count, std::uint64_t step, net::Packet& reply) {
    reply.envelope.mutable_read_reply()->set_rows(std::min(count, BevyFile::kRowsMax));
    reply.envelope.mutable_read_reply()->set_generation(generations_[file.id]);
    set_body(reply, file.body(first.lfs, first.row, count, step));
  }

  const bool has_server_;
  FakeMessenger* messenger_ = nullptr;
  bool is_silent_ = false;
  unsigned left_ = kAnswersMax;  // answers until the next step
  std::deque<Open> open_;        // requests of the LFS
  proto::View view_;
  std::map<std::uint32_t, std::uint32_t> states_;  // by node: of those that were ever something else than a member
  std::uint32_t era_ = 0;
  std::uint64_t incarnation_ = 0;
  proto::ReserveReply grant_;                           // the last
  std::map<std::uint64_t, proto::FileLength> lengths_;  // by file, as users last said
  std::map<std::uint64_t, std::uint64_t> generations_;  // of the companions' rows
};

}  // namespace pif::fuzz
