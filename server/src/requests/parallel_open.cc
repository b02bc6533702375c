// Parallel-open: docs/PROTOCOL.md "Parallel-open". What is known of groups is in context/parallel_groups.h.
#include <fmt/format.h>

#include <algorithm>

#include "context/server_context.h"
#include "context/tokens.h"
#include "pif/base/assert.h"
#include "pif/base/timers.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

// Being created: by members only, for others cannot write it. Else open in this session, with the right for it.
Status check_file(ServerContext& context, const Call& call, const proto::ParallelOpen& ask) {
  PIF_TRY_VALUE(const auto row, context.rows.file(ask.file()));
  if (row && row->state() == kPending) {
    const bool is_member = std::any_of(row->members().begin(), row->members().end(), [&](const auto& member) {
      return member.session() == call.session->id && member.state() != wire::kMemberDropped;
    });
    if (is_member) return {};
    return fail(Code::kPermission,
                fmt::format("this program is no member of {}, which is being created: share it", ask.file()));
  }
  const Holder* holder = context.opens.find(ask.file(), call.session->id);
  if (holder == nullptr)
    return fail(Code::kStaleFile, fmt::format("file {} is not open here, nor being created", ask.file()));
  if ((holder->rights & (ask.writes() ? kMayWrite : kMayRead)) != 0) return {};
  return fail(Code::kPermission,
              fmt::format("file {} is not open for {} here", ask.file(), ask.writes() ? "writing" : "reading"));
}

Status parallel_open(ServerContext& context, Call& call, const proto::ParallelOpen& ask,
                     proto::ParallelOpenReply& reply) {
  PIF_TRY(check_file(context, call, ask));
  std::uint64_t id = 0;
  while (id == 0 || context.groups.contains(id)) id = context.world.entropy.next();
  const std::uint32_t uid = call.who().uid;
  PIF_TRY(context.groups.open(id, call.session->id, {ask.file(), ask.members(), ask.position(), ask.writes(), uid}));
  reply.set_group(id);
  reply.set_token(mint_token(context.config.key, kGroupTag, {id, uid, context.wall + kTokenSeconds}));
  return {};
}

Status parallel_join(ServerContext& context, Call& call, const proto::ParallelJoin& ask,
                     proto::ParallelJoinReply& reply) {
  PIF_TRY_VALUE(const std::uint64_t id,
                verify_token(context.config.key, kGroupTag, ask.token(), call.who().uid, context.wall));
  std::optional<std::uint32_t> member;
  if (ask.has_member()) member = ask.member();
  PIF_TRY_VALUE(const auto joined, context.groups.join(id, call.session->id, member));
  reply.set_group(id);
  reply.set_member(joined.member);
  reply.set_members(joined.shape.members);
  reply.set_position(joined.shape.position);
  reply.set_file(joined.shape.file);
  reply.set_writes(joined.shape.writes);
  return {};
}

// One request that may wait for news of its group.
class Listening {
 public:
  explicit Listening(daemon::Fibers& fibers) : fibers_(fibers) {}
  // It may outlive this.
  ParallelGroups::Waiter waiter() {
    return [heard = heard_, &fibers = fibers_](const ParallelGroups::News& news) {
      heard->news = news;
      if (heard->wait) fibers.wake(*heard->wait);
    };
  }
  // Nothing: there was none until then.
  const std::optional<ParallelGroups::News>& wait(Time until) {
    PIF_ASSERT(!heard_->news && !heard_->wait);
    heard_->wait = fibers_.begin_wait();
    // What is found out at the same moment is news still: that a member's session is over.
    if (!fibers_.wait(*heard_->wait, until)) fibers_.settle();
    return heard_->news;
  }

 private:
  struct Heard {
    std::optional<ParallelGroups::News> news;
    std::optional<daemon::Fibers::WaitId> wait;
  };
  daemon::Fibers& fibers_;
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
};

// Where too many wait it is over at once: who asked is told how far it is, and asks again.
Time until_when(const ServerContext& context) {
  const bool has_room = context.groups.waiting() <= kGroupMembersMax && check_room(context);
  return has_room ? context.now + kJobHoldMax : context.now;
}

// An error, or the other one that may come.
template <typename Expected>
Result<Expected> expected(const ParallelGroups::News& news) {
  if (const Error* error = std::get_if<Error>(&news)) return fail(*error);
  return std::get<Expected>(news);
}

Status release(ServerContext& context, Call& call, const proto::Release& ask, proto::ReleaseReply& reply) {
  Listening listening(context.fibers);
  PIF_TRY_VALUE(auto done, context.groups.release(ask.group(), call.session->id, ask.released(), ask.wait_for(),
                                                  listening.waiter()));
  if (!done) {
    const auto& news = listening.wait(until_when(context));
    PIF_TRY_VALUE(done, news ? expected<ParallelGroups::Done>(*news) : context.groups.give_up_release(ask.group()));
  }
  reply.set_done(done->rounds);
  return {};
}

Status await_rounds(ServerContext& context, Call& call, const proto::AwaitRounds& ask, proto::AwaitRoundsReply& reply) {
  Listening listening(context.fibers);
  PIF_TRY_VALUE(auto released,
                context.groups.await(ask.group(), call.session->id, ask.member(), ask.done(), listening.waiter()));
  if (!released) {
    const auto& news = listening.wait(until_when(context));
    PIF_TRY_VALUE(released, news ? expected<ParallelGroups::Released>(*news)
                                 : context.groups.give_up_await(ask.group(), ask.member()));
  }
  reply.set_released(released->rounds);
  reply.set_ended(released->ended);
  return {};
}

Status parallel_close(ServerContext& context, Call& call, const proto::ParallelClose& ask) {
  return context.groups.close(ask.group(), call.session->id);
}

Status add_to_counter(ServerContext& context, Call& call, const proto::AddToCounter& ask,
                      proto::AddToCounterReply& reply) {
  PIF_TRY_VALUE(const std::int64_t before, context.groups.count(ask.group(), call.who().uid, ask.add()));
  reply.set_before(before);
  return {};
}

}  // namespace

void bind_parallel_open(Operations& operations) {
  operations.bind<parallel_open>();
  operations.bind<parallel_join>();
  operations.bind<release>();
  operations.bind<await_rounds>();
  operations.bind<parallel_close>();
  operations.bind<add_to_counter>();
}

}  // namespace pif::server
