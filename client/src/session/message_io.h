// Bulk by message: many requests to the LFSs of one file under way at once, inside each LFS's credit.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "pif/base/ids.h"
#include "pif/client/session.h"

namespace pif::client {

class FileState;

// One request. It may be sent more than once (a lost connection, an expired capability), so `make` builds it anew.
struct BulkRequest {
  LfsIndex lfs = 0;
  std::uint64_t bytes = 0;                   // of bulk, in either direction: what it takes of the LFS's credit
  std::function<net::Packet()> make;         // operation and body; rights are put in here
  std::function<Status(net::Packet&)> take;  // the reply; may be empty
  Duration timeout = Duration::zero();       // zero: the session's
  bool in_order = false;                     // always over the same connection, so that LFSs see their order
  bool patient = false;                      // asked again when the LFS says kRetry, for as long as `timeout`
  unsigned attempts = 0;
  Time deadline{};  // of all attempts; set at the first
};

class Requests {
 public:
  explicit Requests(FileState& file);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void add(BulkRequest request);
  // Starts what credit allows and takes what has come, without waiting. The first error stays: all else is dropped.
  [[nodiscard]] Status step();
  // Takes what has come: whether anything had. An error stays for the next step.
  bool collect();
  // step(), then waits for news if nothing came.
  [[nodiscard]] Status pump();
  // Until all are done.
  [[nodiscard]] Status run();
  void drop_all();

  bool idle() const { return queued_count_ == 0 && running_.empty(); }
  bool waits() const { return queued_count_ > 0; }  // for credit, or to be started
  std::uint64_t bytes() const { return bytes_; }    // of bulk, waiting and under way

 private:
  struct Running {
    net::CallId call;
    std::uint32_t node;
    net::PeerId peer;  // as bulk was sent when the request was
    BulkRequest request;
  };
  Status start(BulkRequest request);
  Status finish(Running& running, bool& again);
  Status take_done();
  Status start_allowed();
  Status keep(Status status);
  void release(const Running& running);
  Time next_news() const;

  FileState& file_;
  std::map<LfsIndex, std::deque<BulkRequest>> queued_;
  std::size_t queued_count_ = 0;
  std::vector<Running> running_;
  std::uint64_t bytes_ = 0;
  Time not_before_{};  // nothing is started before: an LFS is too busy
  Status failed_;
};

}  // namespace pif::client
