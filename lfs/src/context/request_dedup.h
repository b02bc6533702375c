// Which requests were carried out already: one that was delayed, or sent again, may come after later requests of
// others, and must not undo what they did. Pure: time comes in. Thread-safety: none.
//
// Rules: (1) a request is known for 60 s, and longer only while it is among the newest kRequestsMax. (2) A sender's
// numbers rise; so one that is not above the newest that was forgotten of it may have been done, and nobody knows.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "pif/base/clock.h"
#include "redo/redo_requests.h"

namespace pif::lfs {

class RequestDedup {
 public:
  static constexpr Duration kKeptFor = std::chrono::seconds(60);
  static constexpr std::size_t kRequestsMax = 1u << 20;
  // The highest number of a forgotten request is kept for so many senders. When one more comes, the half whose requests
  // were forgotten longest ago is dropped.
  static constexpr std::size_t kSendersMax = 1u << 16;
  // Processes that share a session begin at numbers that differ in what is above these bits: each is a sender.
  static constexpr unsigned kSenderShift = 24;

  enum class Known : std::uint8_t {
    kNew,
    kDone,
    kForgotten,  // it may have been done
  };

  Known look(const RequestKey& key) const;
  void add(const RequestKey& key, Time now);
  // Forgets what is older than kKeptFor.
  void expire(Time now);
  // All that is known, for the redo log, and back.
  LoggedRequests snapshot() const;
  void load(const LoggedRequests& requests, Time now);

 private:
  struct Done {
    RequestKey key;
    Time at;
  };
  struct Forgotten {
    std::uint64_t request = 0;  // the newest
    Time at;
  };
  static RequestKey sender_of(const RequestKey& key) { return {key.session, key.request >> kSenderShift}; }
  void forget_first(Time now);
  void raise(const RequestKey& key, Time now);
  void drop_senders();

  std::unordered_set<RequestKey, RequestKeyHash> done_;
  std::deque<Done> order_;
  std::unordered_map<RequestKey, Forgotten, RequestKeyHash> forgotten_;  // by sender
};

}  // namespace pif::lfs
