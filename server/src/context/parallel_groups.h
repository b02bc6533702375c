// Groups of a parallel-open (Dibble 1990, 2.4.2; docs/PROTOCOL.md "Parallel-open"): up to which round members may go,
// and how far they are. In memory alone. Plain code: requests in, news out; it knows sessions by number.
//
// A request that waits hears news once, or gives up, kJobHoldMax after it came. A member has at most one that waits,
// and so has a controller: when a newer one comes the older one hears at once how far it is.
// Costs: O(log n) for each request of a group of n; O(n) when a group is made, or ends.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "pif/base/result.h"

namespace pif::server {

inline constexpr std::uint32_t kGroupMembersMax = 16'384;
inline constexpr std::size_t kGroupsPerUserMax = 1'024;
inline constexpr std::uint64_t kGroupMembersPerUserMax = 131'072;  // of all of a user's groups: memory

class ParallelGroups {
 public:
  struct Shape {
    std::uint64_t file = 0;
    std::uint32_t members = 0;   // n: 1 to kGroupMembersMax
    std::uint64_t position = 0;  // record of member 0 in round 0
    bool writes = false;
    std::uint32_t uid = 0;
  };
  struct Joined {
    std::uint32_t member = 0;
    Shape shape;
  };
  struct Done {
    std::uint64_t rounds = 0;  // that all members have done
  };
  struct Released {
    std::uint64_t rounds = 0;
    bool ended = false;  // no more will be
  };
  using News = std::variant<Done, Released, Error>;  // Done: to the controller; Released: to members
  // Hears news, once. It calls nothing here.
  using Waiter = std::function<void(const News& news)>;

  // id: not 0, and of no other group. kInvalid, kTooLarge: no group has so many members, or no record that number;
  // kBusy: the user has too many groups, or members of groups.
  [[nodiscard]] Status open(std::uint64_t id, std::uint64_t controller, const Shape& shape);
  // The session is this member from now on; without a number, the lowest that nobody is. One session may be several.
  // kInvalid: no such number; kExists: somebody is it already, or all are there; kCancelled: a member is gone.
  [[nodiscard]] Result<Joined> join(std::uint64_t id, std::uint64_t session, std::optional<std::uint32_t> member);
  // From the controller; without a value: it waits. kInvalid: `released` falls, wait_for > released, or no record has
  // the last one's number; kUnavailable: a member is gone; kPermission: another session.
  [[nodiscard]] Result<std::optional<Done>> release(std::uint64_t id, std::uint64_t session, std::uint64_t released,
                                                    std::uint64_t wait_for, Waiter waiter);
  // From a member; without a value: it waits. kInvalid: no such number, `done` falls, or is more than was released;
  // kCancelled: another member is gone, or the controller's session has ended; kPermission: another session's.
  [[nodiscard]] Result<std::optional<Released>> await(std::uint64_t id, std::uint64_t session, std::uint32_t member,
                                                      std::uint64_t done, Waiter waiter);
  // The request waits no longer, and has heard nothing.
  Done give_up_release(std::uint64_t id);
  Released give_up_await(std::uint64_t id, std::uint32_t member);
  // By the controller: no more rounds. One that is not there, or has ended, is fine. kPermission: another session.
  [[nodiscard]] Status close(std::uint64_t id, std::uint64_t session);
  // Adds to the group's counter, and returns its value before. kInvalid: it would be below 0, or overflow; kPermission:
  // another user's; kNotFound: the group has ended.
  [[nodiscard]] Result<std::int64_t> count(std::uint64_t id, std::uint32_t uid, std::int64_t add);
  // Cancels the groups that the session controls. In groups where it is a member, that member is gone for good.
  // program: for people.
  void end_session(std::uint64_t session, const std::string& program);

  std::size_t waiting() const { return waiting_; }
  bool contains(std::uint64_t id) const { return groups_.contains(id); }
  // Whether the session controls a group that has not ended, or is a member of one that is there.
  bool is_in_use(std::uint64_t session) const { return by_session_.contains(session); }

 private:
  // kOpen -> kBroken, kClosed, kCancelled; kBroken -> kCancelled. The last two have ended: the group goes when all
  // members that it had are informed, or gone.
  enum class State : std::uint8_t {
    kOpen,
    kBroken,     // a member is gone
    kClosed,     // by its controller
    kCancelled,  // by its controller's end, or closed when it was broken
  };
  struct Member {
    std::uint64_t session = 0;  // 0: nobody yet
    std::uint64_t done = 0;     // rounds
    bool is_informed = false;   // that there are no more rounds; or it is gone
  };
  struct Group {
    Shape shape;
    State state = State::kOpen;
    std::string why;  // kBroken, kCancelled: for people
    std::uint64_t controller = 0;
    std::int64_t counter = 0;  // at least 0
    std::vector<Member> members;
    std::uint32_t joined = 0;
    std::uint32_t informed = 0;
    std::uint32_t lowest_free = 0;              // none below is free
    std::map<std::uint64_t, std::uint32_t> at;  // rounds done: how many members have done so many; n in all
    std::uint64_t released = 0;
    std::uint64_t wait_for = 0;              // of `release`
    Waiter release;                          // empty: none waits
    std::map<std::uint32_t, Waiter> awaits;  // by member

    bool has_ended() const { return state == State::kClosed || state == State::kCancelled; }
    std::uint64_t done() const { return at.begin()->first; }
  };
  struct Usage {
    std::size_t groups = 0;
    std::uint64_t members = 0;
  };
  using ById = std::map<std::uint64_t, Group>;
  using Seats = std::set<std::pair<std::uint64_t, std::uint32_t>>;  // group, member

  [[nodiscard]] Status check_usage(const Shape& shape);
  [[nodiscard]] Result<ById::iterator> find(std::uint64_t id);
  static void enter(Group& group, State state, std::string why);
  static void tell(Group& group, Member& member);
  static void note_done(Group& group, Member& member, std::uint64_t done);
  void answer_release(Group& group, const News& news);
  void answer_awaits(Group& group, const News& news);
  void cancel_awaits(Group& group);
  void lose_member(Group& group, std::uint32_t number, const std::string& program);
  void leave(std::uint64_t session, std::uint64_t group, std::uint32_t member);
  // Forgets the group if it has ended and nobody is left to be informed.
  void settle(ById::iterator at);
  void erase(ById::iterator at);

  ById groups_;
  std::unordered_map<std::uint64_t, Seats> by_session_;
  std::unordered_map<std::uint32_t, Usage> users_;
  std::size_t waiting_ = 0;
};

}  // namespace pif::server
