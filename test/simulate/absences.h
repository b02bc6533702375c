// LFSs that are away: killed, without power, replaced by an empty root, unheard, or standing still; and the person who
// says that they are lost, replaces their roots, and has these rebuilt. The next one is taken away when the server says
// that all are members again; the same one may be struck while it comes back. Where the plan has overlaps, a second one
// of the pair may go and come in between, both with what they had.
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
  bool is_over() const { return left_ == 0 && first_.stage == Stage::kNobody && second_.stage == Stage::kNobody; }

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
  struct Away {
    Stage stage = Stage::kNobody;
    Strike kind = Strike::kTakeAway;
    unsigned lfs = 0;
    Time until{};  // at least
    Time returning_since{};
    bool is_lost = false;      // in the view
    bool says_lost = false;    // the person does not wait until the server declares it lost
    bool is_replaced = false;  // its root is the new one; the server is to be told
  };
  Time now() const { return cluster_.world().now(); }
  std::uint64_t pick(std::uint64_t limit) { return cluster_.world().pick(limit); }
  Duration up_to(Duration least, Duration most);
  Duration some_time(Strike kind);
  bool may_overlap(std::size_t number) const;
  void take(Away& one, Strike kind);
  void take_down(unsigned lfs);
  void fail_disk(unsigned lfs);
  void cut_off(unsigned lfs, Duration time);
  void step(Away& one);
  void come_back(Away& one);
  void note(const proto::NodesReply& nodes, Time begin);
  void look_after(Away& one, client::Session& session, const proto::NodesReply& nodes);
  void replace(Away& one, client::Session& session);
  void rebuild(client::Session& session, const proto::NodeInfo& node) const;
  std::string capability(client::Session& session) const;

  Shared& shared_;
  sim::Cluster& cluster_;
  Away first_;
  Away second_;                        // another one, beside it
  std::size_t left_ = 0;               // strikes that take one away, to come
  std::vector<std::uint32_t> states_;  // by LFS, in the view that was seen last
  std::uint64_t losses_ = 0;
};

}  // namespace pif::simulate
