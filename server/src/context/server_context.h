// All the state of a server, and one request on its way through it.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "context/input_locks.h"
#include "context/operations.h"
#include "context/outbox.h"
#include "context/parallel_groups.h"
#include "context/registry.h"
#include "context/sessions.h"
#include "context/shared_files.h"
#include "context/turn.h"
#include "directory/directory.h"
#include "directory/numbers.h"
#include "directory/opens.h"
#include "directory/rows.h"
#include "pif/base/assert.h"
#include "pif/daemon/admission.h"
#include "pif/daemon/caller.h"
#include "pif/daemon/fibers.h"
#include "pif/daemon/replies.h"
#include "pif/net/turns.h"
#include "pif/server/server.h"

namespace pif::server {

inline constexpr std::size_t kWeightPerTurn = 4096;  // entries changed or shown
// Requests that wait at once, each on a fiber; a stack has two mappings, and the kernel gives a process 65,530.
inline constexpr std::size_t kWaitingMax = 20'480;

// Whether the server serves. Requests to one that does not yet wait.
enum class Standing : std::uint8_t {
  kGathering,  // has started a moment ago: LFSs may know more than the directory does
  kAdmitting,  // LFSs that have come become the incarnations of which new files are, a moment from now
  kServing,
  kBehind,  // one did: nobody is served, and nothing removed, until a person decides
};
// Whether LFSs may go along with this directory, and it changes.
constexpr bool goes_along(Standing standing) {
  return standing == Standing::kServing || standing == Standing::kAdmitting;
}
// Whether it will serve a moment from now: what is asked waits.
constexpr bool is_early(Standing standing) {
  return standing == Standing::kGathering || standing == Standing::kAdmitting;
}

// A commit-free time that somebody asked for.
struct HeldCommits {
  net::PeerId by = 0;  // 0: nobody
  Time until{};
};

struct ServerContext {
  ServerContext(Config config_in, World world_in);

  Config config;
  mutable std::optional<Time> refused_logged;  // when somebody's right was last refused, and said in the log
  World world;
  net::Turns turns;
  Clock& clock;
  daemon::Fibers fibers;
  daemon::Replies replies;
  daemon::Caller caller;  // of LFSs
  Turn turn{fibers};
  Rows rows;
  Numbers numbers;
  Directory directory;
  SharedFiles shared;
  ParallelGroups groups;
  Sessions sessions;
  Opens opens;
  InputLocks locks;
  Registry registry;
  Outbox outbox;
  std::unordered_map<std::uint64_t, std::uint64_t> pending;  // file being created: its session
  std::uint64_t layouts_chosen = 0;                          // since the start: whose turn it is to begin a file
  Standing standing = Standing::kGathering;
  std::string behind;             // why, for people
  std::int64_t behind_since = 0;  // wall seconds
  std::uint64_t off_pairs = 0;    // files, when they were counted last (pair_census.h)
  HeldCommits held;
  // Fibers share this state. A part of one recursive removal is done in each turn.
  daemon::Admission admission;          // news: the server may do what it might not before, or somebody is gone
  daemon::Event nodes_news{fibers};     // an LFS has come up, or somebody who waits is gone
  daemon::Event removals_over{fibers};  // one of `removals` is
  daemon::Slots removing{fibers, 1};
  std::size_t removals = 0;
  std::unordered_map<std::uint32_t, std::size_t> nodes_waiters;  // by user
  std::vector<std::uint64_t> left_open;  // files that sessions had open for writing when they ended
  Time started{};
  Time admitting_since{};
  Description description;
  // The state of this turn.
  Time now{};
  std::int64_t wall = 0;                    // seconds
  std::size_t weight = 0;                   // entries changed or shown; ends a turn that has become long
  std::set<std::uint64_t> changed_folders;  // names in them came, went or were replaced

  std::int64_t wall_ns() const { return clock.wall_ns(); }  // as fine as it gets: programs compare times of files
  bool is_held() const { return held.by != 0; }
  // Whether the server may change anything by itself.
  bool may_change() const { return goes_along(standing) && !is_held(); }
  // Until it may. Called by a fiber.
  void wait_to_change() {
    while (!may_change()) admission.news().wait();
  }
  static constexpr Duration kTick = std::chrono::seconds(1);
  // Waits so long, counted from the begin of the turn, so that all with one period share turns; but from now if
  // the turn has lasted longer. Returns when that was over. Called by a fiber.
  Time pause_for(Duration time) {
    Time due = now + time;
    if (const Time time_now = clock.now(); due <= time_now) due = time_now + time;
    fibers.sleep_until(due);
    return due;
  }
  Time next_tick() { return pause_for(kTick); }
};

struct Call {
  const daemon::Request& request;
  Session* session;  // null for LFSs, and before Hello; not after a wait
  proto::Envelope& reply;
  bool is_unanswered = false;  // nobody is there any more

  // The requester of an operation that needs a session.
  const Requester& who() const {
    PIF_ASSERT(session != nullptr, request.envelope().op_case());
    return session->who;
  }
};

template <auto kHandler>
Status Operations::run(ServerContext& context, Call& call) {
  using R = RequestOf<kHandler>;
  using Operation = wire::OperationOf<R>;
  const R& ask = Operation::request(call.request.envelope());
  if constexpr (!std::is_invocable_v<decltype(kHandler), ServerContext&, Call&, const R&>) {
    return kHandler(context, call, ask, Operation::add_reply(call.reply));
  } else if constexpr (std::is_same_v<wire::ReplyTo<R>, proto::Done>) {
    call.reply.mutable_done();
    return kHandler(context, call, ask);
  } else {
    static_assert(std::is_void_v<wire::ReplyTo<R>>, "the handler must fill in a reply");
    return kHandler(context, call, ask);
  }
}

// ---- operations, by the files that have them; an error of a handler leaves no row written ----
void bind_reading(Operations& operations);
void bind_names(Operations& operations);
void bind_removing(Operations& operations);
void bind_lifecycle(Operations& operations);
void bind_sharing(Operations& operations);
void bind_parallel_open(Operations& operations);
void bind_opening(Operations& operations);
void bind_admission(Operations& operations);
void bind_rescue(Operations& operations);
void bind_views(Operations& operations);
void bind_lost_files(Operations& operations);

// ---- shared between them ----
// The file whose entry this is loses its name, in this turn: its row becomes doomed, or goes at once if no LFS has a
// component of it.
[[nodiscard]] Status doom(ServerContext& context, std::uint64_t parent, std::string_view name,
                          const proto::StoredEntry& entry);
// It was removed or replaced, and somebody may have it open: to LFSs it is committed as before. row: the file's.
bool is_open_still(const ServerContext& context, std::uint64_t file, const proto::StoredFile& row);
// A file being created is given up, in this turn.
[[nodiscard]] Status abort_pending(ServerContext& context, std::uint64_t file);
// Whether a pending file may be committed with this length, as far as its members are concerned. kUnavailable: one is
// gone; kBusy: one is writing; kInvalid: one has written more.
[[nodiscard]] Status check_members(ServerContext& context, const proto::StoredFile& row,
                                   const proto::FileLength& file_length);
// The session was a member of the pending file, and is none any more.
bool is_dropped(const proto::StoredFile& row, std::uint64_t session);
// kBusy if the session is creating too many files to have one more.
[[nodiscard]] Status check_creating(const Session& session);
// kOldView: the view has changed since `view`, in which the pending file was begun, and the file has parity, so that
// rows of absent LFSs are with others. view: 0 if it is not known.
[[nodiscard]] Status check_view(const ServerContext& context, std::uint64_t view, const proto::StoredFile& row);
// kTooLarge over kAttributeBytesMax.
[[nodiscard]] Status check_named(const google::protobuf::Map<std::string, std::string>& named);
// kBadCapability unless the envelope's capability is kMayManage.
[[nodiscard]] Status require_manager(const ServerContext& context, const proto::Envelope& request);
// A capability for one file.
std::string capability_for(const ServerContext& context, std::uint64_t file, std::uint32_t uid, std::uint32_t rights,
                           std::uint64_t epoch);
// Files that nobody has open any more: if they are doomed, the LFSs may be told.
void released(ServerContext& context, const std::vector<std::uint64_t>& files);
// The session has ended: what it had open is closed.
void end_session(ServerContext& context, Session& session);
// The times of `changed_folders` move, in this turn.
[[nodiscard]] Status store_folder_times(ServerContext& context);
// Files of `left_open` count as written to, in this turn: nobody will say whether they were.
[[nodiscard]] Status note_left_open(ServerContext& context);
void describe_nodes(ServerContext& context, proto::NodesReply& reply);
// The peer is gone: what it waits for is dropped.
void forget_waiting(ServerContext& context, net::PeerId peer);
// kBusy if too many requests wait already.
[[nodiscard]] Status check_room(const ServerContext& context);
// kNotFound if the directory does not know it.
[[nodiscard]] Result<Node*> known_node(ServerContext& context, std::uint32_t id);
// Where the server may do that by itself: nodes that are silent for too long are lost from now on.
[[nodiscard]] Status declare_silent(ServerContext& context);
// kPermission unless root or the file system's owner asks.
[[nodiscard]] Status require_owner(const Requester& who);
// Looks for a newer description, which counts from now on.
void refresh_description(ServerContext& context);
// Admits LFSs from now on: once all that the directory knows have presented themselves, or the time for that is over.
void end_gathering(ServerContext& context);
void begin_admitting(ServerContext& context);
// Serves from now on: once all LFSs that have come are admitted, or the time for that is over. Files that are made
// before would be of incarnations that end at this moment.
void end_admitting(ServerContext& context);
// Both, where commits are not held.
void go_on_to_serve(ServerContext& context);

}  // namespace pif::server
