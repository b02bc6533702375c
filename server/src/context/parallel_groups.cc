#include "context/parallel_groups.h"

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kController = UINT32_MAX;  // in the place of a member's number
static_assert(kGroupMembersMax < kController);

Error cancelled(const std::string& why) { return {Code::kCancelled, why, {}}; }

}  // namespace

Result<ParallelGroups::ById::iterator> ParallelGroups::find(std::uint64_t id) {
  const auto found = groups_.find(id);
  if (found != groups_.end()) return found;
  return fail(Code::kNotFound,
              fmt::format("there is no group {}: the server was started again, or the group has ended", id));
}

// Groups that have ended give way.
Status ParallelGroups::check_usage(const Shape& shape) {
  const auto fits = [&] {
    const Usage& usage = users_[shape.uid];
    return usage.groups < kGroupsPerUserMax && usage.members + shape.members <= kGroupMembersPerUserMax;
  };
  for (auto at = groups_.begin(); at != groups_.end() && !fits();) {
    const auto next = std::next(at);
    if (at->second.shape.uid == shape.uid && at->second.has_ended()) erase(at);
    at = next;
  }
  if (fits()) return {};
  const Usage& usage = users_[shape.uid];
  return fail(Code::kBusy,
              fmt::format("uid {} has {} groups of {} members together; one user may have {}, of {}", shape.uid,
                          usage.groups, usage.members, kGroupsPerUserMax, kGroupMembersPerUserMax));
}

Status ParallelGroups::open(std::uint64_t id, std::uint64_t controller, const Shape& shape) {
  PIF_ASSERT(id != 0 && controller != 0 && !groups_.contains(id), id, controller);
  if (shape.members == 0) return fail(Code::kInvalid, "a group without members");
  if (shape.members > kGroupMembersMax) {
    return fail(Code::kTooLarge, fmt::format("{} members, the limit is {}", shape.members, kGroupMembersMax));
  }
  if (shape.position > INT64_MAX) return fail(Code::kInvalid, fmt::format("no file has record {}", shape.position));
  PIF_TRY(check_usage(shape));
  Group& group = groups_[id];
  group.shape = shape;
  group.controller = controller;
  group.members.resize(shape.members);
  group.at[0] = shape.members;
  Usage& usage = users_[shape.uid];
  ++usage.groups;
  usage.members += shape.members;
  by_session_[controller].emplace(id, kController);
  return {};
}

Result<ParallelGroups::Joined> ParallelGroups::join(std::uint64_t id, std::uint64_t session,
                                                    std::optional<std::uint32_t> member) {
  PIF_ASSERT(session != 0, id);
  PIF_TRY_VALUE(const auto found, find(id));
  Group& group = found->second;
  if (group.has_ended()) return fail(Code::kNotFound, fmt::format("the group {} has ended", id));
  if (group.state == State::kBroken) return fail(cancelled(group.why));
  const std::uint32_t n = group.shape.members;
  while (group.lowest_free < n && group.members[group.lowest_free].session != 0) ++group.lowest_free;
  const std::uint32_t number = member.value_or(group.lowest_free);
  if (!member && number == n) return fail(Code::kExists, fmt::format("all {} members are there already", n));
  if (number >= n) return fail(Code::kInvalid, fmt::format("there is no member {}: the group has {}", number, n));
  Member& one = group.members[number];
  if (one.session != 0) return fail(Code::kExists, fmt::format("member {} is there already", number));
  one.session = session;
  ++group.joined;
  by_session_[session].emplace(id, number);
  return Joined{number, group.shape};
}

Result<std::optional<ParallelGroups::Done>> ParallelGroups::release(std::uint64_t id, std::uint64_t session,
                                                                    std::uint64_t released, std::uint64_t wait_for,
                                                                    Waiter waiter) {
  PIF_TRY_VALUE(const auto found, find(id));
  Group& group = found->second;
  if (group.controller != session)
    return fail(Code::kPermission, fmt::format("another program is the controller of group {}", id));
  if (group.has_ended()) return fail(Code::kNotFound, fmt::format("the group {} has ended", id));
  if (group.state == State::kBroken) return fail(Code::kUnavailable, group.why);
  if (released < group.released) {
    return fail(Code::kInvalid, fmt::format("{} rounds are released already, not {}", group.released, released));
  }
  if (wait_for > released) {
    return fail(Code::kInvalid, fmt::format("{} rounds are waited for, and {} released", wait_for, released));
  }
  if (released > (INT64_MAX - group.shape.position) / group.shape.members)
    return fail(Code::kInvalid, fmt::format("{} rounds are more than any file has records for", released));
  answer_release(group, Done{group.done()});
  if (released > group.released) {
    group.released = released;
    answer_awaits(group, Released{released, false});
  }
  if (group.done() >= wait_for) return Done{group.done()};
  group.wait_for = wait_for;
  group.release = std::move(waiter);
  ++waiting_;
  return std::nullopt;
}

Result<std::optional<ParallelGroups::Released>> ParallelGroups::await(std::uint64_t id, std::uint64_t session,
                                                                      std::uint32_t member, std::uint64_t done,
                                                                      Waiter waiter) {
  PIF_ASSERT(session != 0, id, member);
  PIF_TRY_VALUE(const auto found, find(id));
  Group& group = found->second;
  if (member >= group.shape.members) {
    return fail(Code::kInvalid, fmt::format("there is no member {}: the group has {}", member, group.shape.members));
  }
  Member& one = group.members[member];
  if (one.session != session) {
    return fail(Code::kPermission, fmt::format("{} is member {} of group {}",
                                               one.session == 0 ? "nobody" : "another program", member, id));
  }
  if (group.state == State::kBroken || group.state == State::kCancelled) {
    Error error = cancelled(group.why);
    tell(group, one);
    settle(found);
    return fail(std::move(error));
  }
  if (done < one.done) return fail(Code::kInvalid, fmt::format("{} rounds are done already, not {}", one.done, done));
  if (done > group.released) {
    return fail(Code::kInvalid, fmt::format("{} rounds are done, and only {} released", done, group.released));
  }
  note_done(group, one, done);
  const Released known{group.released, group.state == State::kClosed};
  if (known.ended) {
    if (done == group.released) tell(group, one);
    settle(found);
    return known;
  }
  if (group.release && group.done() >= group.wait_for) answer_release(group, Done{group.done()});
  if (const auto older = group.awaits.find(member); older != group.awaits.end()) {
    const Waiter waits = std::move(older->second);
    group.awaits.erase(older);
    --waiting_;
    waits(known);
  }
  if (done < group.released) return known;
  group.awaits[member] = std::move(waiter);
  ++waiting_;
  return std::nullopt;
}

Status ParallelGroups::close(std::uint64_t id, std::uint64_t session) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return {};
  Group& group = found->second;
  if (group.controller != session)
    return fail(Code::kPermission, fmt::format("another program is the controller of group {}", id));
  if (group.has_ended()) return {};
  answer_release(group, Done{group.done()});
  if (group.state == State::kOpen) {
    enter(group, State::kClosed, {});
    for (const auto& [number, waiter] : group.awaits) tell(group, group.members[number]);  // they have done all
    answer_awaits(group, Released{group.released, true});
  } else {
    enter(group, State::kCancelled, group.why);
  }
  leave(session, id, kController);
  settle(found);
  return {};
}

Result<std::int64_t> ParallelGroups::count(std::uint64_t id, std::uint32_t uid, std::int64_t add) {
  PIF_TRY_VALUE(const auto found, find(id));
  Group& group = found->second;
  if (group.shape.uid != uid) return fail(Code::kPermission, fmt::format("group {} is another user's", id));
  if (group.has_ended()) return fail(Code::kNotFound, fmt::format("the group {} has ended", id));
  PIF_ASSERT(group.counter >= 0, id, group.counter);
  if (add > INT64_MAX - group.counter || group.counter + add < 0)
    return fail(Code::kInvalid, fmt::format("{} cannot be added to {}", add, group.counter));
  return std::exchange(group.counter, group.counter + add);
}

void ParallelGroups::end_session(std::uint64_t session, const std::string& program) {
  const auto seats = by_session_.extract(session);
  if (seats.empty()) return;
  for (const auto& [id, number] : seats.mapped()) {
    const auto found = groups_.find(id);
    if (found == groups_.end()) continue;  // it went with a seat before this one
    Group& group = found->second;
    if (number != kController) {
      lose_member(group, number, program);
    } else {
      answer_release(group, cancelled("this session has ended"));
      enter(group, State::kCancelled, fmt::format("the controller of the group ({}) is gone", program));
      cancel_awaits(group);
    }
    settle(found);
  }
}

void ParallelGroups::lose_member(Group& group, std::uint32_t number, const std::string& program) {
  PIF_ASSERT(number < group.members.size() && group.members[number].session != 0, number, group.members.size());
  tell(group, group.members[number]);
  if (group.state != State::kOpen) return;
  enter(group, State::kBroken, fmt::format("member {} ({}) of the group is gone", number, program));
  answer_release(group, Error{Code::kUnavailable, group.why, {}});
  cancel_awaits(group);
}

void ParallelGroups::enter(Group& group, State state, std::string why) {
  PIF_ASSERT(!group.has_ended() && state != State::kOpen && (group.state == State::kOpen || state == State::kCancelled),
             static_cast<int>(group.state), static_cast<int>(state));
  group.state = state;
  group.why = std::move(why);
}

void ParallelGroups::tell(Group& group, Member& member) {
  if (!std::exchange(member.is_informed, true)) ++group.informed;
  PIF_ASSERT(group.informed <= group.joined, group.informed, group.joined);
}

void ParallelGroups::note_done(Group& group, Member& member, std::uint64_t done) {
  PIF_ASSERT(done >= member.done && done <= group.released, done, member.done, group.released);
  if (done == member.done) return;
  const auto before = group.at.find(member.done);
  PIF_ASSERT(before != group.at.end() && before->second > 0, member.done);
  if (--before->second == 0) group.at.erase(before);
  ++group.at[done];
  member.done = done;
}

void ParallelGroups::answer_release(Group& group, const News& news) {
  if (!group.release) return;
  PIF_ASSERT(waiting_ > 0);
  --waiting_;
  std::exchange(group.release, nullptr)(news);
}

void ParallelGroups::answer_awaits(Group& group, const News& news) {
  PIF_ASSERT(waiting_ >= group.awaits.size(), waiting_, group.awaits.size());
  waiting_ -= group.awaits.size();
  for (const auto& [number, waiter] : std::exchange(group.awaits, {})) waiter(news);
}

void ParallelGroups::cancel_awaits(Group& group) {
  for (const auto& [number, waiter] : group.awaits) tell(group, group.members[number]);
  answer_awaits(group, cancelled(group.why));
}

ParallelGroups::Done ParallelGroups::give_up_release(std::uint64_t id) {
  Group& group = groups_.at(id);
  PIF_ASSERT(group.release && waiting_ > 0, id, waiting_);
  group.release = nullptr;
  --waiting_;
  return {group.done()};
}

ParallelGroups::Released ParallelGroups::give_up_await(std::uint64_t id, std::uint32_t member) {
  Group& group = groups_.at(id);
  const std::size_t erased = group.awaits.erase(member);
  PIF_ASSERT(erased == 1 && waiting_ > 0, id, member, waiting_);
  --waiting_;
  return {group.released, false};
}

void ParallelGroups::leave(std::uint64_t session, std::uint64_t group, std::uint32_t member) {
  const auto theirs = by_session_.find(session);
  if (theirs == by_session_.end()) return;  // it has ended
  theirs->second.erase({group, member});
  if (theirs->second.empty()) by_session_.erase(theirs);
}

void ParallelGroups::settle(ById::iterator at) {
  const Group& group = at->second;
  if (group.has_ended() && group.informed == group.joined) erase(at);
}

void ParallelGroups::erase(ById::iterator at) {
  const auto& [id, group] = *at;
  PIF_ASSERT(group.has_ended() && group.awaits.empty() && !group.release, id, group.awaits.size());
  for (std::uint32_t number = 0; number < group.members.size(); ++number) {
    if (group.members[number].session != 0) leave(group.members[number].session, id, number);
  }
  leave(group.controller, id, kController);
  const auto user = users_.find(group.shape.uid);
  PIF_ASSERT(user != users_.end() && user->second.groups > 0 && user->second.members >= group.shape.members, id);
  user->second.members -= group.shape.members;
  if (--user->second.groups == 0) users_.erase(user);
  groups_.erase(at);
}

}  // namespace pif::server
