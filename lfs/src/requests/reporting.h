// The messages of this LFS to the PIF Server: heartbeats, by which it is admitted when it has started, and questions
// what became of components that are not known to be committed. Without a server everything else goes on; without one
// in the configuration nobody need admit it.
#pragma once

#include <optional>
#include <string>

#include "context/lfs_context.h"
#include "requests/managing.h"

namespace pif::lfs {

class Reporting {
 public:
  Reporting(LfsContext& context, Managing& managing);

  // The connection is gone; context.caller hears of it, too.
  void closed(net::PeerId peer);
  // Asks the server with kMayManage. kUnavailable, perhaps at once, if there is none at present. Called by a fiber.
  [[nodiscard]] Result<net::Packet> ask(net::Packet packet);
  // The next heartbeat is sent now: its answer has what has just changed.
  void beat_soon() { beat_by(context_.now()); }
  // Calls of the disk have failed: trouble with it is reported at once.
  void look_at_disk_soon() { context_.peer_list.wanted().notify(); }
  // Why the server says that this process is to end, as it is lost; nothing: it may go on.
  const std::optional<std::string>& must_end() const { return must_end_; }

 private:
  // Each on a fiber of its own.
  void send_beats();
  void keep_asking();
  void probe_disk();

  [[nodiscard]] Result<net::Packet> call(net::Packet packet);
  void beat_by(Time at);
  bool connect();
  void lose(const Error& why);
  void beat();
  void obey(const proto::HeartbeatReply& reply);
  void learn_view(const proto::HeartbeatReply& reply, Time sent);
  void take_view(const std::string& packed);  // on a fiber of its own
  void take_files(const proto::HeartbeatReply& reply);
  void become(std::uint64_t incarnation, bool ask_all);
  void serve();
  void stop_serving(const std::string& why);

  void ask_soon();
  void ask_states();
  void settled(Component& component);
  void learn_state(FileId file, std::uint32_t state);
  void look_at_disk();
  proto::NodeInfo node_info();
  void add_right(net::Packet& packet);
  net::Packet request();

  LfsContext& context_;
  Managing& managing_;
  daemon::Event asking_;  // what became of components is to be asked
  net::PeerId server_ = 0;
  bool heard_ = false;  // an answer came on this connection
  bool silent_logged_ = false;
  bool has_kept_ = false;      // what it was offered in this life, but is not confirmed yet
  bool ask_all_ = false;       // once it serves
  bool agrees_ = false;        // the server's history is this root's: its words about files count
  std::string files_refused_;  // why, said last
  std::optional<std::string> must_end_;
  std::optional<std::string> disk_trouble_;  // how the disk fails
  std::int64_t disk_trouble_since_ = 0;      // wall seconds
  bool is_probing_ = false;
  Time next_beat_{};
  std::string capability_;
  std::int64_t capability_until_ = 0;  // wall seconds; minted anew before it expires
  std::uint64_t capability_by_ = 0;    // version of the keys
};

}  // namespace pif::lfs
