// Many requests to the LFSs of one file under way at once, inside each LFS's credit; sent again where that helps. It
// never waits: call step() whenever a call has ended (net::Calls), or at next_try(). Thread-safety: none; the thread of
// its LfsLinks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pif/access/grant.h"
#include "pif/access/lfs_links.h"
#include "pif/base/clock.h"
#include "pif/base/ids.h"
#include "pif/base/result.h"

namespace pif::access {

// One request. It may be sent more than once (a lost connection, an expired capability), so `make` builds it anew.
struct BulkRequest {
  LfsIndex lfs = 0;
  std::uint64_t bytes = 0;                   // of bulk, in either direction: what it takes of the LFS's credit
  std::function<net::Packet()> make;         // operation and body; rights are put in here
  std::function<Status(net::Packet&)> take;  // the reply; may be empty; may add requests
  // Before it is sent over this link: false drops it, done without an answer. May be empty.
  std::function<Result<bool>(const Link&)> admit;
  // An error that sending again does not help, also of a connection that cannot be made: ok makes it none. Empty: it
  // ends all requests. May add requests.
  std::function<Status(Error)> refused;
  // `refused` gets it elsewhere: an LFS that is absent in the view, or was away a moment ago, is not asked.
  bool replaceable = false;
  Duration timeout = Duration::zero();  // zero: LfsLinks::timeout()
  bool in_order = false;                // always over the same connection, so that LFSs see their order
  bool patient = false;                 // asked again when the LFS says kRetry, for as long as `timeout`
  unsigned attempts = 0;
  net::CallId id = 0;      // not 0: it was sent so, in this session, without an answer, and is so again
  std::string credential;  // that it was sent with
  Time deadline{};         // of all attempts; set at the first
};

class Requests {
 public:
  // Both outlive it. The objects that `make`, `take`, `admit` and `refused` refer to outlive it, too, or drop_all().
  Requests(LfsLinks& links, Grant& grant);
  ~Requests();  // drop_all()
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // Behind what is queued for the same LFS; step() starts it. request.lfs: of the grant's file.
  void add(BulkRequest request);
  // Starts what credit allows and takes what has come, without waiting. The first error stays: all else is dropped. It
  // is the LFS's own, with its node; kTimeout or kUnavailable where sending it again does not help; what
  // LfsLinks::link(), Grant::renew() or one of the request's functions says.
  [[nodiscard]] Status step();
  // Takes what has come: whether anything had. An error stays for the next step.
  bool collect();
  // Takes in what has come for others who use the same credit, if any of these requests waits for it.
  bool collect_for_credit();
  // Forgets all of them, queued or under way: nothing of them is called any more, and their credit is free. LFSs may
  // still do what was sent.
  void drop_all();

  // How far it is. idle(): none is left; size(): queued and under way; has_news(): answers wait for the next step().
  bool idle() const { return size() == 0; }
  std::size_t size() const { return queued_count_ + running_.size(); }
  bool has_news() const { return !arrived_.empty(); }
  bool waits() const { return queued_count_ > 0; }  // for credit, or to be started
  std::uint64_t bytes() const { return bytes_; }    // of bulk, waiting and under way
  // When step() is to be called even if no call has ended. kNever: no need.
  Time next_try() const;
  // Those of the constructor.
  LfsLinks& links() { return links_; }
  Grant& grant() { return grant_; }

 private:
  using Number = std::uint64_t;
  struct Running {
    net::CallId call;
    std::uint32_t node;
    net::PeerId peer;  // of the LFS's link when it was sent
    BulkRequest request;
  };
  // Whether it is off the queue; else its LFS gives no credit yet, or is being connected.
  Result<bool> start_first(std::deque<BulkRequest>& queue);
  BulkRequest take_first(std::deque<BulkRequest>& queue);
  Status refuse_first(std::deque<BulkRequest>& queue, Error error);
  Status cannot_reach(std::deque<BulkRequest>& queue, Error error);
  std::optional<Error> why_not_asked(const BulkRequest& request);
  void start(BulkRequest request, const Link& link, net::PeerId over);
  Status finish(Running& running, Result<net::Packet> reply, bool& again);
  Status fail_or_refuse(Running& running, Error error);
  Status take_one(Number number, Result<net::Packet> reply);
  Status take_done();
  Status start_allowed();
  Status keep(Status status);
  void release(const Running& running);

  LfsLinks& links_;
  Grant& grant_;
  std::map<LfsIndex, std::deque<BulkRequest>> queued_;
  std::size_t queued_count_ = 0;
  std::uint64_t refused_count_ = 0;  // by start_allowed()
  std::unordered_map<Number, Running> running_;
  Number next_number_ = 1;
  std::vector<std::pair<Number, Result<net::Packet>>> arrived_;  // of running_, not taken yet
  std::uint64_t bytes_ = 0;
  Time not_before_{};  // nothing is started before: an LFS is too busy
  Status failed_;
};

}  // namespace pif::access
