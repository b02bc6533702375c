// Messages between workers: a talk is a step of the team in which messages travel, a channel is one kind of them, with
// a head and bytes behind it. Every worker may send to every worker, itself too, as far as the receiver lets it:
// credit, in messages, bytes or rows (credit.h). Messages beyond it wait at the sender until there is more.
//
//   struct Counts { std::uint32_t records = 0; static auto members(auto& self) { return std::tie(self.records); } };
//
//   Talk talk(team);
//   Channel<Counts> counts(talk, 1, {}, [&](Channel<Counts>::Item item) -> Status { ... });
//   while (has_more) {
//     counts.send(rank, {n}, std::move(body));
//     PIF_TRY(talk.until([&] { return counts.queued_bytes() < kMost; }));
//   }
//   PIF_TRY(talk.until([&] { return everything has come; }));
//   return talk.end();
//
// All workers begin a talk, open the same channels, and end it. Messages are taken in until(), go_on() and end() only,
// so that none comes before its channel is open. Nobody waits for ever: kTimeout when all others were silent for the
// talk's patience, in end() for the team's. Errors of a talk: that; kCorrupt names a worker that sent what cannot be;
// what a channel's function says. After an error the talk is of no more use. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/assert.h"
#include "pif/base/result.h"
#include "pif/base/timers.h"
#include "pif/net/buffer.h"
#include "pif/tool/credit.h"
#include "pif/tool/head.h"
#include "pif/tool/message.h"

namespace pif::job {
class Mail;
}

namespace pif::tool {

class Flow;
class Team;
struct Letter;

class Talk {
 public:
  // The team outlives it.
  explicit Talk(Team& team, Duration patience = kWorkerSilenceMax);
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  // Takes what is there, some messages. With may_wait it waits for the first one; before that, all are granted what
  // they may send.
  [[nodiscard]] Status go_on(bool may_wait);
  // Until that holds; waits only if it does not.
  template <typename F>
  [[nodiscard]] Status until(const F& holds) {
    while (!holds()) PIF_TRY(go_on(true));
    return {};
  }
  // Returns when nothing waits to be sent.
  [[nodiscard]] Status flush();
  // Sends what still waits. Returns when all workers have come here, so that nothing is sent to one who has left.
  [[nodiscard]] Status end();

 private:
  friend class Flow;
  struct Own {
    std::uint32_t channel = 0;
    std::string head;
    net::Buffer body;
  };
  // Between this worker and another one. Short letters take room, too, and the transport has room for some thousands
  // for a peer: so many are under way, of all channels, and others wait here, in their order.
  struct Line {
    std::uint64_t sent = 0, sent_taken = 0;  // to it, and what it said it took
    std::uint64_t taken = 0, reported = 0;   // from it, and what this worker said
    std::deque<std::pair<std::shared_ptr<job::Mail>, net::Buffer>> queue;
  };
  bool has_queued() const;
  [[nodiscard]] Status post(std::uint32_t to, job::Mail mail, net::Buffer body = {});
  [[nodiscard]] Status count_taken(std::uint32_t from);
  [[nodiscard]] Status take_taken(std::uint32_t from, std::uint64_t letters);
  [[nodiscard]] Status take(Letter letter);
  [[nodiscard]] Result<bool> take_one(Time deadline);
  [[nodiscard]] Status tell_all();
  [[nodiscard]] Result<Flow*> flow(std::uint32_t from, std::uint32_t channel) const;

  Team& team_;
  Duration patience_;
  using Flows = std::map<std::uint32_t, Flow*>;  // by channel
  std::shared_ptr<Flows> flows_;                 // the channels', too: whichever goes first
  std::vector<Line> lines_;                      // by rank
  std::deque<Own> own_;                          // to this worker itself
};

struct ChannelOptions {
  Credit::Unit unit = Credit::Unit::kBytes;
  std::uint64_t window = 4u << 20;  // that each worker may have under way to each, in that unit
  // kRows: by rank, how many rows that worker gets.
  std::vector<std::uint64_t> rows;
  std::uint64_t share = UINT64_MAX;    // Credit::share
  std::vector<std::uint32_t> senders;  // kRows: ranks of those that send to this worker; none: all workers
  // Messages and bytes: the receiver says when it is done with them (settle); else that is when it has taken them.
  bool is_kept = false;
};

// A channel without the type of its heads: what Channel, which says more, is made of.
class Flow {
 public:
  using Take = std::function<Status(std::uint32_t from, std::string_view head, net::Buffer body)>;
  // Opens it, until its end.
  Flow(Talk& talk, std::uint32_t channel, ChannelOptions options, Take take);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  ~Flow();

  // As Channel's; rows: of kRows.
  const Credit& credit(std::uint32_t to) const {
    PIF_ASSERT(to < to_.size(), to, to_.size());
    return to_[to].credit;
  }
  [[nodiscard]] Status send(std::uint32_t to, std::string head, net::Buffer body, std::uint64_t bytes, Range rows);
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  bool is_settled() const;
  // kRows: rows below are done with.
  [[nodiscard]] Status settle_rows(Row row);
  // Messages or bytes: so many more of that sender's.
  [[nodiscard]] Status settle(std::uint32_t from, std::uint64_t count);

 private:
  friend class Talk;
  struct Queued {
    std::string head;
    net::Buffer body;
    std::uint64_t bytes = 0;
    Range rows;
  };
  struct To {
    Credit credit;
    std::deque<Queued> queue;
  };
  struct From {
    std::uint64_t come = 0, settled = 0, granted = 0;
    bool is_granted = false;  // of rows
  };
  [[nodiscard]] Status transmit(std::uint32_t to, Queued message);
  [[nodiscard]] Status take(std::uint32_t from, std::string_view head, net::Buffer body);
  [[nodiscard]] Status take_limit(std::uint32_t from, std::uint64_t limit);
  [[nodiscard]] Status tell(std::uint32_t from);
  [[nodiscard]] Status tell_all();
  [[nodiscard]] Status rise(std::uint32_t from, std::uint64_t settled);
  bool is_rows() const { return options_.unit == Credit::Unit::kRows; }

  Talk& talk_;
  std::shared_ptr<Talk::Flows> flows_;
  std::uint32_t channel_;
  ChannelOptions options_;
  Take take_;
  std::vector<To> to_;      // by rank
  std::vector<From> from_;  // by rank
  std::uint64_t queued_bytes_ = 0;
};

// T: a Head, which is asked where it is complete.
template <typename T>
class Channel {
 public:
  struct Item {
    std::uint32_t from = 0;  // rank
    T head;
    net::Buffer body;
  };
  using Take = std::function<Status(Item)>;

  // The talk is there whenever it is used. number: any, the same at all workers for the same channel, one channel each;
  // 0 is an OrderedOutput's. take: gets every message; what it calls kInvalid is called the sender's nonsense
  // (kCorrupt).
  Channel(Talk& talk, std::uint32_t number, ChannelOptions options, Take take)
      : flow_(talk, number, std::move(options),
              [take = std::move(take)](std::uint32_t from, std::string_view bytes, net::Buffer body) -> Status {
                auto head = unpack_head<T>(bytes);
                if (!head) return fail(Code::kInvalid, "its message cannot be read");
                return take({from, std::move(*head), std::move(body)});
              }) {
    static_assert(Head<T>);
  }

  // Goes when there is credit; what is sent between two workers goes in that order. to < width.
  [[nodiscard]] Status send(std::uint32_t to, const T& head, net::Buffer body = {}) {
    const std::uint64_t bytes = body.size();
    return flow_.send(to, pack_head(head), std::move(body), bytes, {});
  }
  // For kRows: from its first row to behind its last one, and the bytes that count as under way.
  [[nodiscard]] Status send_rows(std::uint32_t to, const T& head, net::Buffer body, Range rows, std::uint64_t bytes) {
    return flow_.send(to, pack_head(head), std::move(body), bytes, rows);
  }

  // Valid as long as the channel.
  const Credit& credit(std::uint32_t to) const { return flow_.credit(to); }
  // Bytes of messages that wait for credit: their bodies, and Credit::kMessageBytes for each.
  std::uint64_t queued_bytes() const { return flow_.queued_bytes(); }
  // For kRows: nothing waits for credit, and all receivers are done with what was sent.
  bool is_settled() const { return flow_.is_settled(); }

  // At the receiver. kRows: it is done with the rows below, of all senders. ChannelOptions::is_kept: with so many more
  // messages or bytes (Credit::cost) of that one's.
  [[nodiscard]] Status settle_rows(Row row) { return flow_.settle_rows(row); }
  [[nodiscard]] Status settle(std::uint32_t from, std::uint64_t count) { return flow_.settle(from, count); }

 private:
  Flow flow_;
};

}  // namespace pif::tool
