// Sessions of those who are connected, their peers and credentials, and the answers that a repeated request gets again.
//
// A session lives as long as its Unix connections, or 60 s past its last request over ZeroMQ; there it ends sooner when
// its last peer says Bye, or is found to be gone by a message sent to it. Then it has ended: what it had open is
// closed, and after 30 s what it was creating is aborted and the session forgotten; at once, if it was creating nothing
// and the table has its answers. A request with its credential resumes it, until then with all it was creating, later
// with its recent answers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "context/parallel_groups.h"
#include "context/shared_files.h"
#include "directory/opens.h"
#include "directory/permissions.h"
#include "directory/rows.h"
#include "pif/base/capability.h"
#include "pif/base/clock.h"
#include "pif/base/timers.h"
#include "pif/net/messenger.h"
#include "pif/server/server.h"

namespace pif::server {

inline constexpr std::int64_t kCredentialSeconds = 7 * 24 * 3600;
inline constexpr std::size_t kSessionsMax = 16384;
// Root and the owner have no limit of their own: LFSs and what repairs a file system run as they do, and who can end
// the server needs no sessions to keep others out.
inline constexpr std::size_t kSessionsPerUserMax = kSessionsMax / 4;
// Per session, in memory: more than a client has requests under way (kServerRequestsAtOnce of the library).
inline constexpr std::size_t kAnswersKept = 512;
inline constexpr std::size_t kAnswerBytesKept = 256u << 10;  // per session, in memory
inline constexpr std::size_t kCountedKept = 256;             // per session, in memory
inline constexpr std::size_t kAnswersStored = 4;             // per session at least, if there are so many
inline constexpr std::int64_t kAnswersSeconds = 24 * 3600;   // stored answers are kept

struct Answer {
  std::uint64_t request = 0;
  std::string reply;  // a packed Envelope
  std::uint64_t turn = 0;
};

struct Session {
  std::uint64_t id = 0;
  Requester who;
  std::string program;
  std::unordered_set<net::PeerId> peers;
  std::uint32_t connections = 0;  // of the peers, those whose loss the transport tells
  Time last_heard{};              // over ZeroMQ
  Time probe = kNever;  // without a connection whose loss is told: when to see whether its peers are still there
  Time ends = kNever;   // set: it has ended, and is forgotten then
  std::unordered_set<std::uint64_t> creating;  // pending files
  std::unordered_set<std::uint64_t> running;   // requests that are being answered later
  std::deque<Answer> answers;
  std::size_t answer_bytes = 0;
  bool answers_loaded = false;        // from the table
  bool answers_stored = true;         // the table has all that are here
  std::deque<std::uint64_t> counted;  // the last requests that opened or closed files

  bool has_ended() const { return ends != kNever; }
  // Something that a credential would not bring back.
  bool keeps_something() const { return !creating.empty() || !running.empty() || !answers_stored; }
  const Answer* answer_to(std::uint64_t request) const;
  // Whether a request that opens or closes files comes for the first time: sent again, because its answer was lost, it
  // must not count twice.
  bool counts(std::uint64_t request);
};

class Sessions {
 public:
  // opens, groups: who has files open, or is in a group, is not idle. shared: a session that comes back creates what it
  // is a member of.
  Sessions(const Config& config, Rows& rows, Entropy& entropy, const Opens& opens, SharedFiles& shared,
           const ParallelGroups& groups)
      : config_(config), rows_(rows), entropy_(entropy), opens_(opens), shared_(shared), groups_(groups) {}

  // The session of a request: by the envelope's credential, or by the Hello said on this connection.
  [[nodiscard]] Result<Session*> of(net::PeerId peer, const std::string& credential, const net::Identity& identity,
                                    Time now, std::int64_t wall);
  // Starts a session, or resumes the one the credential names, or goes on with the one that a Unix connection has.
  // Fills in credential, session and uid.
  [[nodiscard]] Result<Session*> hello(net::PeerId peer, const proto::Envelope& request, const net::Identity& identity,
                                       Time now, std::int64_t wall, proto::HelloReply& reply);
  // A session of which is only known what it left, a pending file or a hold: it has kAbortGrace to come back.
  Session& absent(std::uint64_t id, std::uint32_t uid, Time now);
  Session* find(std::uint64_t id);

  // A connection was lost, or has said Bye. The session if it has ended by that.
  Session* closed(net::PeerId peer, Time now);
  // Ends what has been silent for too long; calls `ended` for each, and `gone` for each that is to be forgotten now.
  void sweep(Time now, const std::function<void(Session&)>& ended, const std::function<void(Session&)>& gone);
  // Calls `probe` for each peer that was silent for a while and whose loss the transport tells only to who sends.
  void probe_silent(Time now, const std::function<void(net::PeerId)>& probe);
  std::size_t count() const;  // that have not ended

  // ---- answers ----
  // Remembers the answer to a mutating request. `stored`: it must survive with the rows of this turn.
  void remember(Session& session, std::uint64_t request, const proto::Envelope& reply, bool stored);
  // Writes what remember() wants stored; before the turn's commit.
  [[nodiscard]] Status store_answers(std::int64_t wall);
  // The turn is over; if it failed, its answers are forgotten.
  void end_turn(bool failed);
  // Erases stored answers that nobody will ask for any more, of the next `limit` rows; true at the table's end,
  // whereafter it begins again.
  [[nodiscard]] Result<bool> prune(std::int64_t wall, std::size_t limit);

 private:
  struct Peer {
    Session* session = nullptr;
    std::string credential;  // verified; empty: the session is known by Hello on this connection
    std::int64_t expiry = 0;
    std::uint64_t keys_version = 0;  // by which the credential was verified
    bool tells_loss = false;
  };
  Requester requester(std::uint32_t uid, std::vector<std::uint32_t> gids) const;
  [[nodiscard]] Result<Session*> resume(const Credential& credential, Time now);
  [[nodiscard]] Result<Session*> add(std::uint64_t id, Requester who, Time now);
  using ById = std::unordered_map<std::uint64_t, std::unique_ptr<Session>>;
  // Forgets some of the user's sessions that are idle and empty: their credentials bring them back as they were. False:
  // there are none.
  bool evict(std::uint32_t uid);
  // The same for whoever has the most sessions.
  bool evict_of_many();
  Session& insert(std::uint64_t id, Requester who, Time now);
  ById::iterator forget(ById::iterator at);
  Session* greeted(net::PeerId peer, std::uint32_t uid) const;
  [[nodiscard]] Status load_answers(Session& session);
  void attach(net::PeerId peer, const net::Identity& identity, Session& session, const std::string& credential,
              std::int64_t expiry, Time now);
  void note_contact(const Peer& peer, Session& session, Time now) const;
  void drop_answers(Session& session) const;

  const Config& config_;
  Rows& rows_;
  Entropy& entropy_;
  const Opens& opens_;
  SharedFiles& shared_;
  const ParallelGroups& groups_;
  ById sessions_;
  std::unordered_map<std::uint32_t, std::size_t> of_user_;  // how many of them
  std::unordered_map<net::PeerId, Peer> peers_;
  std::uint64_t turn_ = 1;
  std::vector<Session*> answered_;  // in this turn
  std::vector<Session*> to_store_;
  std::string prune_from_;  // key
};

}  // namespace pif::server
