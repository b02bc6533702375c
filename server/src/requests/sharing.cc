// Files that several write: docs/PROTOCOL.md "Files that several write". Their members are in the file's row; what is
// found by session, and whether one is known, is in context/shared_files.h.
#include <fmt/format.h>

#include <algorithm>

#include "context/server_context.h"
#include "context/tokens.h"
#include "pif/base/assert.h"
#include "pif/base/format.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"
#include "requests/layouts.h"

namespace pif::server {
namespace {

using wire::MemberState;

constexpr int kMembersMax = 4096;
constexpr std::size_t kPageBytes = 60u << 10;  // of a reply in pages, so that it fits every transport
constexpr int kMembersOfWeight = 64;           // of a row that is read or written: as an entry

// The row of a file that is being created.
Result<proto::StoredFile> pending_row(ServerContext& context, std::uint64_t file, std::string_view after_commit) {
  PIF_TRY_VALUE(auto row, context.rows.file(file));
  if (!row || row->state() == kDoomed) {
    return fail(Code::kStaleFile,
                fmt::format("file {} is not being created any more: it was aborted, or removed", file));
  }
  if (row->state() == kCommitted)
    return fail(Code::kStaleFile, fmt::format("{} is committed already: {}", row->name(), after_commit));
  context.weight += 1 + static_cast<std::size_t>(row->members_size() / kMembersOfWeight);
  return std::move(*row);
}

// The same, of the requester's own.
Result<proto::StoredFile> own_pending_row(ServerContext& context, const Call& call, std::uint64_t file) {
  PIF_TRY_VALUE(auto row, pending_row(context, file, "it has no members any more"));
  const std::uint32_t owner = row.entry().attributes().owner();
  if (call.who().all_powerful || call.who().uid == owner) return row;
  return fail(Code::kPermission, fmt::format("{} is being created by uid {}", row.name(), owner));
}

std::string name_of(const proto::StoredFile& row, int member) {
  return fmt::format("member {} ({}) of {}", member, row.members(member).program(), row.name());
}

// Its number; -1: it is none, and never was.
int find_member(const proto::StoredFile& row, std::uint64_t session) {
  const auto& members = row.members();
  const auto found = std::find_if(members.begin(), members.end(),
                                  [session](const proto::StoredMember& one) { return one.session() == session; });
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

// The requester's number. kPermission: it is no member. kCancelled: it was dropped.
Result<int> own_member(const Call& call, const proto::StoredFile& row) {
  const int member = find_member(row, call.session->id);
  if (member < 0) return fail(Code::kPermission, fmt::format("this program is no member of {}", row.name()));
  if (row.members(member).state() == wire::kMemberDropped) {
    return fail(Code::kCancelled,
                fmt::format("{} was dropped: what it has written does not count", name_of(row, member)));
  }
  return member;
}

MemberState state_of(ServerContext& context, const proto::StoredMember& member) {
  const auto stored = static_cast<MemberState>(member.state());
  if (stored != wire::kMemberWriting) return stored;
  const Session* session = context.sessions.find(member.session());
  return session == nullptr || session->has_ended() ? wire::kMemberGone : wire::kMemberWriting;
}

// The requester becomes the file's next member, in this turn.
Status add_member(ServerContext& context, const Call& call, std::uint64_t file, proto::StoredFile& row) {
  const std::uint64_t session = call.session->id;
  PIF_ASSERT(find_member(row, session) < 0 && row.members_size() < kMembersMax, file, row.members_size());
  proto::StoredMember& member = *row.add_members();
  member.set_session(session);
  member.set_state(wire::kMemberWriting);
  member.set_program(call.session->program);
  PIF_TRY(context.rows.put_file(file, row));
  // At once: in this very turn the other members may be forgotten.
  context.shared.add(file, session, true);
  const bool is_joining = call.session->creating.insert(file).second;  // whoever began the file creates it already
  context.rows.on_abort([&context, file, session, is_joining] {
    context.shared.remove(file, session);
    Session* joined = context.sessions.find(session);
    if (joined != nullptr && is_joining) joined->creating.erase(file);
  });
  return {};
}

Status begin_sharing(ServerContext& context, const Call& call, const proto::Share& ask, proto::StoredFile& row) {
  if (call.session->id != row.session()) {
    return fail(Code::kPermission,
                fmt::format("{} is not shared yet, which only the program that creates it may do", row.name()));
  }
  PIF_TRY_VALUE(const Format format, wire::format_of(row.entry().format()));
  if (!format.is_fixed())
    return fail(Code::kUnsupported, "records of variable length have an order that only one can give");
  if (ask.incarnations_size() != row.entry().layout().nodes_size()) {
    return fail(Code::kInvalid,
                fmt::format("{} incarnations of {} LFSs", ask.incarnations_size(), row.entry().layout().nodes_size()));
  }
  PIF_TRY(check_view(context, row.view(), row));
  *row.mutable_incarnations() = ask.incarnations();
  return add_member(context, call, ask.file(), row);
}

Status share(ServerContext& context, Call& call, const proto::Share& ask, proto::ShareReply& reply) {
  PIF_TRY_VALUE(auto row, own_pending_row(context, call, ask.file()));
  if (row.members().empty()) {
    PIF_TRY(begin_sharing(context, call, ask, row));
  } else {
    PIF_TRY(own_member(call, row));
  }
  const Token token{ask.file(), row.entry().attributes().owner(), context.wall + kTokenSeconds};
  reply.set_token(mint_token(context.config.key, kJoinTag, token));
  return {};
}

void describe(ServerContext& context, std::uint64_t file, const proto::StoredFile& row, proto::JoinReply& reply) {
  const proto::StoredEntry& entry = row.entry();
  reply.set_file(file);
  reply.set_member(static_cast<std::uint32_t>(row.members_size() - 1));
  reply.set_name(row.name());
  *reply.mutable_format() = entry.format();
  *reply.mutable_layout() = entry.layout();
  context.registry.describe(entry.layout(), context.now, *reply.mutable_nodes());
  reply.set_capability(capability_for(context, file, entry.attributes().owner(), kMayCreate | kMayRead, entry.epoch()));
  reply.set_epoch(entry.epoch());
  reply.set_view(row.view());
  *reply.mutable_incarnations() = row.incarnations();
  *reply.mutable_named() = entry.attributes().named();
}

Status join(ServerContext& context, Call& call, const proto::Join& ask, proto::JoinReply& reply) {
  PIF_TRY_VALUE(const std::uint64_t file,
                verify_token(context.config.key, kJoinTag, ask.token(), call.who().uid, context.wall));
  PIF_TRY_VALUE(auto row, pending_row(context, file, "join after commit"));
  if (find_member(row, call.session->id) >= 0) {
    PIF_TRY_VALUE(const int member, own_member(call, row));
    return fail(Code::kExists, fmt::format("this program is {} already", name_of(row, member)));
  }
  if (row.members().empty()) return fail(Code::kStaleFile, fmt::format("{} is not shared", row.name()));
  if (row.members_size() >= kMembersMax) {
    return fail(Code::kTooLarge, fmt::format("{} has {} members, and nobody else can join", row.name(), kMembersMax));
  }
  PIF_TRY(check_creating(*call.session));
  PIF_TRY(add_member(context, call, file, row));
  describe(context, file, row, reply);
  return {};
}

Status member_done(ServerContext& context, Call& call, const proto::MemberDone& ask) {
  PIF_TRY_VALUE(auto row, pending_row(context, ask.file(), "it was committed without this word"));
  PIF_TRY_VALUE(const int number, own_member(call, row));
  PIF_TRY(check_file_length(row.entry().format(), ask.file_length()));
  proto::StoredMember& member = *row.mutable_members(number);
  const bool is_done = member.state() == wire::kMemberDone;
  // Said again, perhaps by a message that was late: never less than before.
  if (is_done && ask.file_length().bytes() <= member.file_length().bytes()) return {};
  member.set_state(wire::kMemberDone);
  *member.mutable_file_length() = ask.file_length();
  return context.rows.put_file(ask.file(), row);
}

Status members(ServerContext& context, Call& call, const proto::Members& ask, proto::MembersReply& reply) {
  PIF_TRY_VALUE(const auto row, own_pending_row(context, call, ask.file()));
  const auto count = static_cast<std::uint32_t>(row.members_size());
  std::size_t bytes = 0;
  for (std::uint32_t number = std::min(ask.from(), count); number < count; ++number) {
    if (bytes >= kPageBytes) {
      reply.set_more(true);
      break;
    }
    const proto::StoredMember& member = row.members(static_cast<int>(number));
    proto::MembersReply::One& one = *reply.add_members();
    one.set_member(number);
    one.set_state(state_of(context, member));
    one.set_program(member.program());
    if (one.state() == wire::kMemberDone) *one.mutable_file_length() = member.file_length();
    bytes += one.ByteSizeLong();
  }
  return {};
}

Status drop_member(ServerContext& context, Call& call, const proto::DropMember& ask) {
  PIF_TRY_VALUE(auto row, own_pending_row(context, call, ask.file()));
  if (ask.member() >= static_cast<std::uint32_t>(row.members_size())) {
    return fail(Code::kNotFound,
                fmt::format("{} has no member {}: it has {}", row.name(), ask.member(), row.members_size()));
  }
  proto::StoredMember& member = *row.mutable_members(static_cast<int>(ask.member()));
  if (member.state() != wire::kMemberWriting) return {};  // dropped already; or it has given its word, which counts
  member.set_state(wire::kMemberDropped);
  return context.rows.put_file(ask.file(), row);
}

bool is_shorter(const proto::FileLength& one, const proto::FileLength& than) {
  return one.bytes() < than.bytes() || one.records() < than.records();
}

}  // namespace

void bind_sharing(Operations& operations) {
  operations.bind<share>();
  operations.bind<join>();
  operations.bind<member_done>();
  operations.bind<members>();
  operations.bind<drop_member>();
}

bool is_dropped(const proto::StoredFile& row, std::uint64_t session) {
  const int member = find_member(row, session);
  return member >= 0 && row.members(member).state() == wire::kMemberDropped;
}

Status check_members(ServerContext& context, const proto::StoredFile& row, const proto::FileLength& file_length) {
  int writing = -1;
  for (int i = 0; i < row.members_size(); ++i) {
    const proto::StoredMember& member = row.members(i);
    const MemberState state = state_of(context, member);
    if (state == wire::kMemberGone) {
      return fail(Code::kUnavailable,
                  fmt::format("{} is gone, and has not said that it is done: unless it comes back, drop it to commit "
                              "the file without its word, or give the file up",
                              name_of(row, i)));
    }
    if (state == wire::kMemberWriting && writing < 0) writing = i;
    if (state != wire::kMemberDone || !is_shorter(file_length, member.file_length())) continue;
    return fail(Code::kInvalid,
                fmt::format("{} has written {} records ({} bytes), and the file would have {} ({} bytes)",
                            name_of(row, i), member.file_length().records(), member.file_length().bytes(),
                            file_length.records(), file_length.bytes()));
  }
  if (writing < 0) return {};
  return fail(Code::kBusy, fmt::format("{} is writing still", name_of(row, writing)));
}

}  // namespace pif::server
