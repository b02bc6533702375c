// The session at the PIF Server: it begins with Hello, and lives on over broken connections and restarts of the server.
// Thread-safety: none; the Client's thread. Others, and forked children, get kInvalid (src/session/one_user.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "pif/access/lfs_links.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/client/client.h"
#include "pif/net/caller.h"

namespace pif::client {

class OneUser;

// A change that is asked for at the server.
struct Change {
  std::string what;      // "the file was committed": what is not known without an answer
  std::string path;      // where to look then
  bool settles = false;  // asked again in another session, it still gets its own answer
  Duration patience{};   // for an answer, if that is more than the timeout
};
inline constexpr Duration kCommitPatience = std::chrono::seconds(30);

// The error of a change that got no answer: its outcome is not known. Other errors stay as they are.
Error outcome_unknown(Error error, const std::string& what, const std::string& path);

class ServerSession {
 public:
  struct World {
    net::Messenger& messenger;
    net::Caller& caller;
    access::LfsLinks& links;  // get the session's credential
    OneUser& user;
  };
  // Where the server is; asked before each Hello.
  using Where = std::function<proto::Endpoints()>;
  // All that `world` names outlives it. cluster: of servers of other file systems kInvalid; empty: any.
  ServerSession(const World& world, Where where, net::Route route, std::string cluster, const ConnectOptions& options);

  // Connects and says Hello: a new session, or the one that there was. kInvalid: a server of another file system;
  // kUnavailable, kTimeout: it cannot be reached; else what it says (kPermission, kBusy, kVersion).
  [[nodiscard]] Status hello(Time deadline);
  // Says Hello again where the credential is a day old: one that has expired is refused by everybody, whatever it is
  // shown for. Most calls do nothing. If the server does not answer, the old one stays for now.
  void keep_credential() {
    if (peer_ != 0 && clock().wall_seconds() >= renew_at_) renew_old_credential();
  }
  // A new credential now: somebody has refused the one that there is. Errors: those of hello().
  [[nodiscard]] Status renew_credential(Time deadline);
  // Over ZeroMQ the server would not see the end by itself.
  void say_bye();
  // Id of the file system, as the server says; empty before the first Hello if none was given.
  const std::string& cluster() const { return cluster_; }
  // How often it has said Hello: if more often than before, the server may have forgotten what was open.
  std::uint64_t hellos() const { return hellos_; }
  std::uint32_t uid() const { return uid_; }  // as the server takes us for

  // Asks the server. If the connection breaks (the server restarts) it connects again, resumes the session, and sends
  // the same request again, until the deadline: all requests to the server are safe to repeat. Zero: the options'
  // timeout.
  [[nodiscard]] Result<net::Packet> ask(net::Packet request, Duration timeout = Duration::zero());
  // The same for what changes something: an error says so when the outcome is not known, and where to look.
  [[nodiscard]] Result<net::Packet> change(net::Packet request, const Change& change);
  // Several of them under way at once; answers in the order asked. As many `changes` as requests.
  std::vector<Result<net::Packet>> change_all(std::vector<net::Packet> requests, const std::vector<Change>& changes);
  // Several requests under way at once; answers in the order asked.
  std::vector<Result<net::Packet>> ask_all(std::vector<net::Packet> requests, Duration timeout = Duration::zero());
  // The same, and each answer is handed over as soon as it is its turn, while the server works at the next. `take` may
  // ask the server itself.
  using TakeReply = std::function<void(Result<net::Packet>)>;
  void ask_all(std::vector<net::Packet> requests, const TakeReply& take, Duration timeout = Duration::zero());

  // Over the connection that there is, for who does not wait; nothing: there is none. on_reply: as net::Calls.
  std::optional<net::CallId> start(net::Packet request, net::Calls::OnReply on_reply);

  // The same where nobody wants the answer. False: there is no connection.
  bool tell(net::Packet request);

  // For who lets time pass without asking the server: connects again if the connection was lost, and, where silence
  // ends a session (ZeroMQ), breaks it. Most calls do nothing. now: wall seconds.
  void keep_alive(std::int64_t now) {
    if (now >= alive_at_) say_alive();
  }
  // The transport says that this peer is gone.
  void closed(net::PeerId peer) {
    if (peer == peer_) is_lost();
  }

 private:
  struct Asked;  // how a request went
  [[nodiscard]] Status hello_by(net::Route route, Time deadline);
  [[nodiscard]] Status hello_over(net::PeerId peer, Time deadline);
  void renew_old_credential();
  net::Packet hello_packet() const;
  // sent_in: the session in which it was sent before, without an answer; 0: it was not.
  Asked try_until(net::Packet request, Time deadline, std::uint64_t sent_in = 0);
  [[nodiscard]] Result<net::Packet> change_again(net::Packet request, const Change& change, std::uint64_t sent_in);
  using AskAgain = std::function<Result<net::Packet>(std::size_t index, net::Packet request, std::uint64_t sent_in)>;
  // again_until: what has no answer by `deadline` is asked again before this.
  void ask_each(std::vector<net::Packet> requests, Time deadline, Time again_until, const AskAgain& again,
                const TakeReply& take);
  void say_alive();
  void is_lost();
  [[nodiscard]] Status wait_a_moment(Time deadline);
  Clock& clock() { return world_.messenger.clock(); }
  Duration or_default(Duration timeout) const { return timeout > Duration::zero() ? timeout : timeout_; }

  const World world_;
  const Where where_;
  const net::Route route_;
  const std::string program_;
  const Duration timeout_;
  proto::Endpoints server_;
  net::PeerId peer_ = 0;
  std::int64_t alive_at_ = std::numeric_limits<std::int64_t>::max();  // until there was a server
  std::int64_t renew_at_ = std::numeric_limits<std::int64_t>::max();  // wall seconds: of the credential
  std::uint64_t number_ = 0;                                          // of the session at the server
  std::uint64_t hellos_ = 0;
  std::string cluster_;
  std::uint32_t uid_ = 0;
};

}  // namespace pif::client
