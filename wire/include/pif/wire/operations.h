// The one table of operations: what each is asked with, what answers it, who may ask it of which daemon, and what
// happens when it is asked again. It has no handlers: each daemon binds its own (bindings.h). docs/PROTOCOL.md
// "Operations" is the same table for people; test/wire compares both with messages.proto.
// Pure; any thread.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "pif/base/capability.h"
#include "pif/base/ids.h"
#include "pif/proto/messages.pb.h"

namespace pif::wire {

// The peers that may ask a daemon. The daemon checks it before the handler runs.
enum class Right : std::uint8_t {
  kNone,  // nobody: the daemon does not have this operation
  kAnybody,
  kSession,        // who has a session at the PIF Server
  kOwner,          // a session of root's or of the file system's owner
  kUser,           // whose user the kernel or a credential tells
  kWorker,         // a worker of the LFS, over the socket that it was born with
  kRead,           // a capability for the file: kMayRead,
  kWrite,          // kMayWrite,
  kCreate,         // kMayCreate
  kReadOrCreate,   // Attach, ReadPieces: by what is asked for
  kWriteOrCreate,  // CopyRows: the same
  kManage,         // a capability of the cluster's daemons: kMayManage
};

enum class Again : std::uint8_t {
  kIdempotent,    // twice has the effect of once
  kDeduplicated,  // the daemon recognises it, and answers as it did
  kOnce,          // is not asked again: it has no reply, or its connection cannot be made anew
};

enum class Daemon : std::uint8_t { kServer, kLfs };

// ANSWERED(request, its field in Envelope, reply, its field, right at the server, right at an LFS, again)
// SILENT(request, its field, right at the server, right at an LFS): has no reply
// clang-format off
#define PIF_OPERATIONS(ANSWERED, SILENT) \
  /* any daemon */ \
  ANSWERED(Hello, hello, HelloReply, hello_reply, kAnybody, kAnybody, kIdempotent) \
  ANSWERED(Stats, stats, StatsReply, stats_reply, kAnybody, kAnybody, kIdempotent) \
  ANSWERED(Hold, hold, Done, done, kOwner, kManage, kIdempotent) \
  /* PIF Server: names and files */ \
  SILENT(Bye, bye, kSession, kNone) \
  ANSWERED(Stat, stat, StatReply, stat_reply, kSession, kNone, kIdempotent) \
  ANSWERED(List, list, ListReply, list_reply, kSession, kNone, kIdempotent) \
  ANSWERED(MakeFolder, make_folder, Done, done, kSession, kNone, kDeduplicated) \
  ANSWERED(Create, create, CreateReply, create_reply, kSession, kNone, kDeduplicated) \
  ANSWERED(Commit, commit, Done, done, kSession, kNone, kDeduplicated) \
  ANSWERED(Abort, abort, Done, done, kSession, kNone, kDeduplicated) \
  ANSWERED(Open, open, OpenReply, open_reply, kSession, kNone, kIdempotent) \
  ANSWERED(Close, close, Done, done, kSession, kNone, kIdempotent) \
  ANSWERED(Renew, renew, RenewReply, renew_reply, kSession, kNone, kIdempotent) \
  ANSWERED(Remove, remove, RemoveReply, remove_reply, kSession, kNone, kDeduplicated) \
  ANSWERED(Rename, rename, Done, done, kSession, kNone, kDeduplicated) \
  ANSWERED(SetAttributes, set_attributes, Done, done, kSession, kNone, kDeduplicated) \
  ANSWERED(Nodes, nodes, NodesReply, nodes_reply, kSession, kNone, kIdempotent) \
  /* PIF Server: files that several write, and parallel-open */ \
  ANSWERED(Share, share, ShareReply, share_reply, kSession, kNone, kIdempotent) \
  ANSWERED(Join, join, JoinReply, join_reply, kSession, kNone, kDeduplicated) \
  ANSWERED(MemberDone, member_done, Done, done, kSession, kNone, kDeduplicated) \
  ANSWERED(Members, members, MembersReply, members_reply, kSession, kNone, kIdempotent) \
  ANSWERED(DropMember, drop_member, Done, done, kSession, kNone, kIdempotent) \
  ANSWERED(ParallelOpen, parallel_open, ParallelOpenReply, parallel_open_reply, kSession, kNone, kDeduplicated) \
  ANSWERED(ParallelJoin, parallel_join, ParallelJoinReply, parallel_join_reply, kSession, kNone, kDeduplicated) \
  ANSWERED(Release, release, ReleaseReply, release_reply, kSession, kNone, kIdempotent) \
  ANSWERED(AwaitRounds, await_rounds, AwaitRoundsReply, await_rounds_reply, kSession, kNone, kIdempotent) \
  ANSWERED(ParallelClose, parallel_close, Done, done, kSession, kNone, kIdempotent) \
  ANSWERED(AddToCounter, add_to_counter, AddToCounterReply, add_to_counter_reply, kSession, kNone, kDeduplicated) \
  /* PIF Server: of its LFSs, and of a person who decides */ \
  ANSWERED(Heartbeat, heartbeat, HeartbeatReply, heartbeat_reply, kManage, kNone, kIdempotent) \
  ANSWERED(FileStates, file_states, FileStatesReply, file_states_reply, kManage, kNone, kIdempotent) \
  ANSWERED(ListFiles, list_files, ListFilesReply, list_files_reply, kOwner, kNone, kIdempotent) \
  ANSWERED(ListLost, list_lost, ListLostReply, list_lost_reply, kManage, kNone, kIdempotent) \
  ANSWERED(MarkFiles, mark_files, Done, done, kOwner, kNone, kIdempotent) \
  ANSWERED(AcceptStale, accept_stale, Done, done, kOwner, kNone, kIdempotent) \
  ANSWERED(ReplaceNode, replace_node, Done, done, kOwner, kNone, kIdempotent) \
  ANSWERED(NodeLost, node_lost, Done, done, kOwner, kNone, kDeduplicated) \
  ANSWERED(NodeRebuilt, node_rebuilt, Done, done, kManage, kNone, kIdempotent) \
  ANSWERED(NodeLacks, node_lacks, Done, done, kManage, kNone, kIdempotent) \
  ANSWERED(AcceptLoss, accept_loss, Done, done, kOwner, kNone, kIdempotent) \
  ANSWERED(AdoptFiles, adopt_files, Done, done, kOwner, kNone, kIdempotent) \
  /* LFS: components */ \
  ANSWERED(Attach, attach, AttachReply, attach_reply, kNone, kReadOrCreate, kIdempotent) \
  ANSWERED(Write, write, Done, done, kNone, kCreate, kIdempotent) \
  ANSWERED(WritePieces, write_pieces, Done, done, kNone, kCreate, kDeduplicated) \
  ANSWERED(ReadPieces, read_pieces, Done, done, kNone, kReadOrCreate, kIdempotent) \
  ANSWERED(SyncComponent, sync_component, Done, done, kNone, kCreate, kIdempotent) \
  ANSWERED(Preallocate, preallocate, Done, done, kNone, kCreate, kIdempotent) \
  ANSWERED(Seal, seal, SealReply, seal_reply, kNone, kCreate, kIdempotent) \
  ANSWERED(Read, read, ReadReply, read_reply, kNone, kRead, kIdempotent) \
  ANSWERED(ReadBytes, read_bytes, Done, done, kNone, kRead, kIdempotent) \
  ANSWERED(Offsets, offsets, Done, done, kNone, kRead, kIdempotent) \
  ANSWERED(Length, length, LengthReply, length_reply, kNone, kRead, kIdempotent) \
  ANSWERED(Overwrite, overwrite, Done, done, kNone, kWrite, kDeduplicated) \
  ANSWERED(OverwritePieces, overwrite_pieces, Done, done, kNone, kWrite, kDeduplicated) \
  ANSWERED(Reserve, reserve, ReserveReply, reserve_reply, kNone, kWrite, kIdempotent) \
  ANSWERED(AppendRows, append_rows, Done, done, kNone, kWrite, kDeduplicated) \
  ANSWERED(AppendDone, append_done, Done, done, kNone, kWrite, kDeduplicated) \
  ANSWERED(AppendCancel, append_cancel, Done, done, kNone, kWrite, kIdempotent) \
  /* LFS: parity */ \
  ANSWERED(Gather, gather, Done, done, kNone, kCreate, kIdempotent) \
  ANSWERED(Cover, cover, Done, done, kNone, kWrite, kIdempotent) \
  ANSWERED(CopyRows, copy_rows, Done, done, kNone, kWriteOrCreate, kIdempotent) \
  ANSWERED(NoteLength, note_length, NoteLengthReply, note_length_reply, kNone, kManage, kIdempotent) \
  ANSWERED(Reconstruct, reconstruct, ReadReply, read_reply, kNone, kRead, kIdempotent) \
  ANSWERED(AttachParity, attach_parity, AttachParityReply, attach_parity_reply, kNone, kRead, kIdempotent) \
  /* LFS: of the server, and of who looks after it */ \
  ANSWERED(Settle, settle, SettleReply, settle_reply, kNone, kManage, kIdempotent) \
  ANSWERED(ListComponents, list_components, ListComponentsReply, list_components_reply, kNone, kManage, kIdempotent) \
  ANSWERED(CheckComponent, check_component, CheckComponentReply, check_component_reply, kNone, kManage, kIdempotent) \
  ANSWERED(Flush, flush, Done, done, kNone, kManage, kIdempotent) \
  ANSWERED(Rebuild, rebuild, Done, done, kNone, kManage, kIdempotent) \
  ANSWERED(RebuildStatus, rebuild_status, RebuildStatusReply, rebuild_status_reply, kNone, kManage, kIdempotent) \
  ANSWERED(Scrub, scrub, Done, done, kNone, kManage, kIdempotent) \
  ANSWERED(ScrubStatus, scrub_status, ScrubStatusReply, scrub_status_reply, kNone, kManage, kIdempotent) \
  ANSWERED(Drill, drill, Done, done, kNone, kManage, kIdempotent) \
  ANSWERED(DrillStatus, drill_status, DrillStatusReply, drill_status_reply, kNone, kManage, kIdempotent) \
  /* LFS: of who looks where space went */ \
  ANSWERED(StoredBytes, stored_bytes, StoredBytesReply, stored_bytes_reply, kNone, kUser, kIdempotent) \
  /* LFS: worker host */ \
  ANSWERED(Spawn, spawn, SpawnReply, spawn_reply, kNone, kUser, kDeduplicated) \
  ANSWERED(JobWait, job_wait, JobWaitReply, job_wait_reply, kNone, kUser, kIdempotent) \
  ANSWERED(JobKill, job_kill, Done, done, kNone, kUser, kIdempotent) \
  ANSWERED(JobMeet, job_meet, Done, done, kNone, kUser, kIdempotent) \
  ANSWERED(WorkerStart, worker_start, WorkerStartReply, worker_start_reply, kNone, kWorker, kIdempotent) \
  SILENT(WorkerProgress, worker_progress, kNone, kWorker) \
  ANSWERED(WorkerResult, worker_result, Done, done, kNone, kWorker, kOnce) \
  ANSWERED(WorkerStream, worker_stream, WorkerStreamReply, worker_stream_reply, kNone, kWorker, kOnce) \
  ANSWERED(WorkerScratch, worker_scratch, Done, done, kNone, kWorker, kIdempotent) \
  ANSWERED(WorkerMeet, worker_meet, WorkerMeetReply, worker_meet_reply, kNone, kWorker, kIdempotent) \
  /* between a tool's processes: no daemon's */ \
  SILENT(WorkerMail, worker_mail, kNone, kNone)
// clang-format on

using OpCase = proto::Envelope::OpCase;

struct Operation {
  std::string_view name;   // of its request: "ReadBytes"
  std::string_view label;  // in statistics: "read_bytes"
  std::string_view reply_name;
  OpCase request;
  OpCase reply;  // OP_NOT_SET: it has none
  Right at_server;
  Right at_lfs;
  Again again;

  // The right that daemon checks before it does it; kNone: it does not have the operation.
  constexpr Right right_at(Daemon daemon) const { return daemon == Daemon::kServer ? at_server : at_lfs; }
};

#define PIF_ROW(request, field, answer, answer_field, at_server, at_lfs, again)                                    \
  Operation{#request,         #field,        #answer,     proto::Envelope::k##request, proto::Envelope::k##answer, \
            Right::at_server, Right::at_lfs, Again::again},
#define PIF_SILENT_ROW(request, field, at_server, at_lfs)                                                           \
  Operation{#request,         #field,        "",          proto::Envelope::k##request, proto::Envelope::OP_NOT_SET, \
            Right::at_server, Right::at_lfs, Again::kOnce},
inline constexpr std::array kOperations = {PIF_OPERATIONS(PIF_ROW, PIF_SILENT_ROW)};
#undef PIF_ROW
#undef PIF_SILENT_ROW

inline constexpr std::size_t kOpCasesMax = 192;  // field numbers of Envelope.op

namespace detail {
struct CaseInfo {
  const Operation* operation = nullptr;  // of a request
  bool is_reply = false;
};
constexpr std::array<CaseInfo, kOpCasesMax> index_operations() {
  std::array<CaseInfo, kOpCasesMax> cases{};
  for (const Operation& operation : kOperations) {
    cases[static_cast<std::size_t>(operation.request)].operation = &operation;
    if (operation.reply == proto::Envelope::OP_NOT_SET) continue;
    cases[static_cast<std::size_t>(operation.reply)].is_reply = true;
  }
  return cases;
}
inline constexpr auto kCases = index_operations();
}  // namespace detail

// The operation that a message of this number asks for, which is valid for ever; null if it is a reply, or a number
// that this program does not know. op_case: of an envelope, any number.
constexpr const Operation* find_operation(int op_case) {
  const auto index = static_cast<std::size_t>(op_case);  // huge, if it is negative
  return index < kOpCasesMax ? detail::kCases[index].operation : nullptr;
}
// Whether a message of this number answers some operation.
constexpr bool is_reply_case(int op_case) {
  const auto index = static_cast<std::size_t>(op_case);
  return index < kOpCasesMax && detail::kCases[index].is_reply;
}

// ---- by type ----
// OperationOf<proto::Read>: its row, its reply's type, and how both get into an envelope and out of it.
template <typename Request>
struct OperationOf;

#define PIF_REQUEST(name, field)                                                          \
  static constexpr OpCase kCase = proto::Envelope::k##name;                               \
  static constexpr const Operation& kRow = *find_operation(proto::Envelope::k##name);     \
  static const proto::name& request(const proto::Envelope& from) { return from.field(); } \
  static proto::name& add_request(proto::Envelope& to) { return *to.mutable_##field(); }
#define PIF_TRAITS(name, field, answer, answer_field, ...)                                 \
  template <>                                                                              \
  struct OperationOf<proto::name> {                                                        \
    PIF_REQUEST(name, field)                                                               \
    using Reply = proto::answer;                                                           \
    static const Reply& reply(const proto::Envelope& from) { return from.answer_field(); } \
    static Reply& add_reply(proto::Envelope& to) { return *to.mutable_##answer_field(); }  \
  };
#define PIF_SILENT_TRAITS(name, field, ...) \
  template <>                               \
  struct OperationOf<proto::name> {         \
    PIF_REQUEST(name, field)                \
    using Reply = void;                     \
  };
PIF_OPERATIONS(PIF_TRAITS, PIF_SILENT_TRAITS)
#undef PIF_REQUEST
#undef PIF_TRAITS
#undef PIF_SILENT_TRAITS

// A message that asks for something.
template <typename T>
concept Request = requires {
  OperationOf<T>::kCase;
};
template <Request R>
using ReplyTo = typename OperationOf<R>::Reply;

// ---- what a capability must give ----
struct NeededRights {
  FileId file;
  std::uint32_t rights = 0;  // pif::Rights; 0: no capability is needed
};

// The right that a request to an LFS needs, and for which file: by the row of its operation, and the file that the
// request itself names. File 0 with kMayManage: any. Attach alone says itself which of two rights it needs.
template <Request R>
NeededRights needed_rights([[maybe_unused]] const R& request) {
  constexpr Right right = OperationOf<R>::kRow.at_lfs;
  constexpr std::uint32_t rights = right == Right::kRead     ? kMayRead
                                   : right == Right::kWrite  ? kMayWrite
                                   : right == Right::kCreate ? kMayCreate
                                                             : 0u;
  if constexpr (right == Right::kManage) {
    return {FileId(0), kMayManage};
  } else if constexpr (rights == 0) {
    return {};
  } else if constexpr (requires {
                         { request.file() } -> std::same_as<std::uint64_t>;
                       }) {
    return {FileId(request.file()), rights};
  } else {
    return {FileId(request.shape().file()), rights};
  }
}
inline NeededRights needed_rights(const proto::Attach& attach) {
  if (attach.has_create()) return {FileId(attach.create().file()), kMayCreate};
  return {FileId(attach.file()), kMayRead};
}
inline NeededRights needed_rights(const proto::ReadPieces& read) {
  if (read.has_creating()) return {FileId(read.creating().file()), kMayCreate};
  return {FileId(read.file()), kMayRead};
}
inline NeededRights needed_rights(const proto::CopyRows& copy) {
  return {FileId(copy.shape().file()), copy.generation() == 0 ? kMayCreate : kMayWrite};
}

}  // namespace pif::wire
