// Messages between the workers of one job: by rank, in order from each to each, at most once, strangers' dropped.
// Messages with descriptors go another way, and may overtake. A letter that is lost with a connection over tcp holds up
// all that follow it on its way, until the controller notices and ends the job (controller/letter_ledger.h).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "job.pb.h"
#include "messages/letter_order.h"
#include "pif/base/clock.h"
#include "pif/base/handle.h"
#include "pif/net/messenger.h"
#include "pif/tool/worker.h"

namespace pif::tool {

struct Letter {
  std::uint32_t from = 0;  // rank
  job::Mail mail;
  net::Buffer body;
  std::vector<Handle> handles;
};

class Mail {
 public:
  // The worker's own, opened when first asked for.
  static Result<Mail*> of(Worker& worker);

  // Workers do common work in steps, all in the same order. Each message sent belongs to the present step; one for a
  // later step is kept for it, and one of an earlier step is dropped.
  void next_step() { ++step_; }

  // A worker that is not there yet gets it later.
  [[nodiscard]] Status send(std::uint32_t rank, job::Mail mail, net::Buffer body = {});
  // To a worker on this machine that has sent something already; kUnavailable if it is on another.
  [[nodiscard]] Status pass(std::uint32_t rank, job::Mail mail, std::vector<Handle> handles);
  // The next letter of this step; nothing at the deadline. If there are workers on other machines, the controller is
  // informed now and then how many letters there were, and ends the job if some were lost on the way.
  Result<std::optional<Letter>> receive(Time deadline);

  // So far; none where all workers are on this machine, which loses no letters.
  job::LetterCounts letters() const;

 private:
  Mail(Worker& worker, std::unique_ptr<net::Messenger> messenger) : worker_(worker), messenger_(std::move(messenger)) {}
  [[nodiscard]] Status meet(const proto::Endpoints& own);
  net::Packet packet_of(job::Mail mail) const;
  Result<net::PeerId> peer(std::uint32_t rank);
  // Puts it into ready_, and what was waiting for it; unless it is no letter of this job, or came before. kCorrupt for
  // one of a worker of this job that cannot be read.
  [[nodiscard]] Status take_packet(net::Packet packet);
  // The next message; nothing at the deadline.
  Result<std::optional<net::Delivery>> await(Time deadline);
  std::optional<Letter> kept();

  Worker& worker_;
  std::unique_ptr<net::Messenger> messenger_;
  std::vector<proto::Endpoints>
      far_;  // where workers of other machines reach each other, by rank; empty: there are none
  std::unordered_map<std::uint32_t, net::PeerId> peers_;
  std::unordered_map<std::uint32_t, std::uint64_t> sent_;  // letters, by rank
  std::unordered_map<std::uint32_t, LetterOrder<Letter>> orders_;
  std::deque<Letter> ready_;  // come, of any step
  std::uint32_t step_ = 0;
  std::deque<Letter> early_;
  Time next_report_{};  // when the controller gets the next counts of letters
};

}  // namespace pif::tool
