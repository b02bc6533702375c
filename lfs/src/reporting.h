// What this LFS tells the PIF Server and asks it: heartbeats, and what became of components that are not known to be
// committed. Without a server everything else goes on.
#pragma once

#include "core.h"
#include "managing.h"
#include "pif/net/calls.h"

namespace pif::lfs {

class Reporting {
 public:
  Reporting(Core& core, Managing& managing) : core_(core), managing_(managing), calls_(core.world.messenger) {}

  // Takes replies to our requests, and loss of the server. False for what is not ours.
  bool offer(net::Delivery& delivery);
  void tick();
  Time next_deadline() const;

 private:
  bool has_server() const;
  bool connect();
  void lose(const Error& why);
  void beat();
  void ask_soon();
  void ask_states();
  void settled(Component& component);
  void learn_states(const std::vector<std::uint64_t>& files, const proto::FileStatesReply& reply);
  proto::NodeInfo node_info();
  net::Packet request();

  Core& core_;
  Managing& managing_;
  net::Calls calls_;
  net::PeerId server_ = 0;
  bool heard_ = false;       // an answer came on this connection
  bool beating_ = false;
  bool asking_ = false;
  bool silent_logged_ = false;
  Time next_beat_{};
  std::string capability_;
  std::int64_t capability_until_ = 0;  // wall seconds; minted anew before it expires
};

}  // namespace pif::lfs
