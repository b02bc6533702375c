// LFSs that are away, one at a time: killed, without power, replaced by an empty root, unheard, or standing still; and
// the person who says that they are lost, replaces their roots, and has these rebuilt. The next one is taken away when
// the server says that all are members again; the same one may be struck while it comes back.
//
//   kNobody -> kAway -> kReturning -> kNobody;  kAway -> kReplacing -> kReturning;  kReturning -> kAway
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pif/client/session.h"
#include "pif/proto/messages.pb.h"
#include "simulate/shared.h"

namespace pif::simulate {

class Absences {
 public:
  explicit Absences(Shared& shared);

  // ---- strikes ----
  // Whether the strike of this number may happen now; else it waits.
  bool may_begin(std::size_t number) const;
  void begin(Strike kind);
  // Before each step of the world: who was away for long enough is started again.
  void step();
  // All are started again, and everybody reaches everybody.
  void heal();
  // Nobody is away, and nobody will be.
  bool is_over() const { return left_ == 0 && stage_ == Stage::kNobody; }

  // ---- the person ----
  // Looks who takes part, and does what there is to do.
  void look(client::Session& session);
  // Whether all LFSs are up, and members.
  bool are_members(const proto::NodesReply& nodes) const;
  // What of it is not so, and why, for people.
  std::string trouble(client::Session& session, const proto::NodesReply& nodes) const;
  std::uint64_t losses() const { return losses_; }

 private:
  enum class Stage : std::uint8_t { kNobody, kAway, kReplacing, kReturning };
  Time now() const { return cluster_.world().now(); }
  std::uint64_t pick(std::uint64_t limit) { return cluster_.world().pick(limit); }
  Duration up_to(Duration least, Duration most);
  Duration some_time(Strike kind);
  void take_down();
  void cut_off(Duration time);
  void come_back();
  void note(const proto::NodesReply& nodes, Time begin);
  void replace(client::Session& session);
  void rebuild(client::Session& session, const proto::NodeInfo& node) const;
  std::string capability(client::Session& session) const;

  Shared& shared_;
  sim::Cluster& cluster_;
  Stage stage_ = Stage::kNobody;
  Strike kind_ = Strike::kTakeAway;
  unsigned lfs_ = 0;  // who is away
  Time until_{};      // at least
  Time returning_since_{};
  bool is_lost_ = false;               // in the view
  bool says_lost_ = false;             // the person does not wait until the server declares it lost
  bool is_replaced_ = false;           // its root is the new one; the server is to be told
  std::size_t left_ = 0;               // strikes that take one away, to come
  std::vector<std::uint32_t> states_;  // by LFS, in the view that was seen last
  std::uint64_t losses_ = 0;
};

}  // namespace pif::simulate
