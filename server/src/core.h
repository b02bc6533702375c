// All the state of a server, and one request on its way through it.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "directory.h"
#include "opens.h"
#include "outbox.h"
#include "pif/net/stats.h"
#include "pif/server/server.h"
#include "registry.h"
#include "rows.h"
#include "sessions.h"

namespace pif::server {

// Numbers for files and folders: durable before they are used, never used twice. Taken from the table in blocks.
class Ids {
 public:
  explicit Ids(Rows& rows) : rows_(rows) {}
  [[nodiscard]] Status load();
  [[nodiscard]] Result<std::uint64_t> next();

 private:
  Rows& rows_;
  std::uint64_t next_ = 0;
  std::uint64_t limit_ = 0;  // durable: nothing from here on was ever used
};

// A `Nodes` request that waits for LFSs to come up; no more of it than that, for there may be many.
struct NodesWaiter {
  net::PeerId peer = 0;
  std::uint64_t request = 0;  // id
  std::uint32_t wait_up = 0;
  std::uint32_t uid = 0;
  Time arrived{};
  Time deadline{};
  Time next_sign{};  // of life
};

// A recursive Remove, a bounded part of which is done in each turn.
struct RemoveJob {
  net::PeerId peer = 0;
  std::uint64_t session = 0;
  proto::Envelope request;
  Requester who;
  Time arrived{};
  int path = 0;                   // of the request, the one being removed
  struct Level {
    std::uint64_t folder;
    std::uint64_t parent;
    std::string name;
  };
  std::vector<Level> levels;      // folders being emptied, outermost first
  proto::RemoveReply reply;
  Time next_sign{};
};

struct Core {
  Core(Config config_in, World world_in);

  Config config;
  World world;
  Clock& clock;
  Rows rows;
  Ids ids;
  Directory directory;
  Sessions sessions;
  Opens opens;
  Registry registry;
  Outbox outbox;
  net::Stats stats;
  std::unordered_map<std::uint64_t, std::uint64_t> pending;  // file being created: its session
  std::vector<NodesWaiter> waiters;
  std::deque<RemoveJob> jobs;
  Time started{};
  // Of this turn.
  Time now{};
  std::int64_t wall = 0;   // seconds
  std::size_t weight = 0;  // entries changed or shown; ends a turn that has become long

  std::int64_t wall_ns() const { return wall * 1'000'000'000; }
};

struct Call {
  net::PeerId peer;
  const proto::Envelope& request;
  Session* session;         // null for LFSs, and before Hello
  proto::Envelope& reply;
  Time arrived{};
  bool deferred = false;    // somebody will answer later

  const Requester& who() const { return session->who; }
};

// ---- operations; an error leaves no row written ----
using Handler = Status (*)(Core&, Call&);
Status hello(Core& core, Call& call);
Status bye(Core& core, Call& call);
Status counters(Core& core, Call& call);
Status stats(Core& core, Call& call);
Status stat(Core& core, Call& call);
Status list(Core& core, Call& call);
Status make_folder(Core& core, Call& call);
Status create(Core& core, Call& call);
Status commit(Core& core, Call& call);
Status abort_create(Core& core, Call& call);
Status open(Core& core, Call& call);
Status close(Core& core, Call& call);
Status remove(Core& core, Call& call);
Status rename(Core& core, Call& call);
Status set_attributes(Core& core, Call& call);
Status nodes(Core& core, Call& call);
Status heartbeat(Core& core, Call& call);
Status file_states(Core& core, Call& call);
Status list_files(Core& core, Call& call);
Status renew(Core& core, Call& call);

// ---- shared between them ----
// The file whose entry this is loses its name, in this turn: its row becomes doomed, or goes at once if no LFS has a
// component of it.
[[nodiscard]] Status doom(Core& core, std::uint64_t parent, std::string_view name, const proto::StoredEntry& entry);
// A file being created is given up, in this turn.
[[nodiscard]] Status abort_pending(Core& core, std::uint64_t file);
// kTooLarge over kAttributeBytesMax.
[[nodiscard]] Status check_named(const google::protobuf::Map<std::string, std::string>& named);
// kBadCapability unless the envelope's capability is kMayManage.
[[nodiscard]] Status require_manager(const Core& core, const proto::Envelope& request);
// A capability for one file.
std::string capability_for(const Core& core, std::uint64_t file, std::uint32_t uid, std::uint32_t rights, std::uint64_t epoch);
// Files that nobody has open any more: if they are doomed, the LFSs may be told.
void released(Core& core, const std::vector<std::uint64_t>& files);
// The session has ended: what it had open is closed.
void end_session(Core& core, Session& session);
// Up to `budget` entries of the job at the front; true when it is done.
[[nodiscard]] Result<bool> step_remove(Core& core, RemoveJob& job, std::size_t budget);
void describe_nodes(Core& core, proto::NodesReply& reply);

}  // namespace pif::server
