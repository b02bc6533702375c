#include "pif/tool/channel.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/tool/team.h"
#include "worker/debugger.h"
#include "worker/mail.h"

namespace pif::tool {
namespace {

constexpr int kTakesPerTurn = 64;
constexpr std::uint64_t kLettersMax = 1024;                  // of a line, under way
constexpr std::uint64_t kLettersReported = kLettersMax / 4;  // taken before that is reported

}  // namespace

// ---- a talk ---------------------------------------------------------------------------------------------------------

Talk::Talk(Team& team, Duration patience)
    : team_(team),
      patience_(team.worker_->is_debugged() ? kDebuggerPatience : patience),
      flows_(std::make_shared<Flows>()),
      lines_(team.worker_->width()) {
  team_.mail_->next_step();
}

Result<Flow*> Talk::flow(std::uint32_t from, std::uint32_t channel) const {
  const auto found = flows_->find(channel);
  if (found != flows_->end()) return found->second;
  return sent_nonsense(from, fmt::format("something on channel {}, which it has no part in", channel));
}

Status Talk::post(std::uint32_t to, job::Mail mail, net::Buffer body) {
  PIF_ASSERT(to < lines_.size(), to, lines_.size());
  Line& line = lines_[to];
  PIF_ASSERT(line.sent >= line.sent_taken && line.sent - line.sent_taken <= kLettersMax, line.sent, line.sent_taken);
  if (!line.queue.empty() || line.sent - line.sent_taken >= kLettersMax) {
    line.queue.emplace_back(std::make_shared<job::Mail>(std::move(mail)), std::move(body));
    return {};
  }
  ++line.sent;
  return team_.mail_->send(to, std::move(mail), std::move(body));
}

Status Talk::count_taken(std::uint32_t from) {
  Line& line = lines_[from];
  if (++line.taken - line.reported < kLettersReported) return {};
  line.reported = line.taken;
  job::Mail mail;
  mail.mutable_taken()->set_letters(line.taken);
  return team_.mail_->send(from, std::move(mail));
}

Status Talk::take_taken(std::uint32_t from, std::uint64_t letters) {
  Line& line = lines_[from];
  if (letters > line.sent) return sent_nonsense(from, fmt::format("that it took {} letters of {}", letters, line.sent));
  line.sent_taken = std::max(line.sent_taken, letters);
  while (!line.queue.empty() && line.sent - line.sent_taken < kLettersMax) {
    auto [mail, body] = std::move(line.queue.front());
    line.queue.pop_front();
    ++line.sent;
    PIF_TRY(team_.mail_->send(from, std::move(*mail), std::move(body)));
  }
  return {};
}

Status Talk::take(Letter letter) {
  if (letter.mail.has_taken()) return take_taken(letter.from, letter.mail.taken().letters());
  PIF_TRY(count_taken(letter.from));
  if (letter.mail.has_item()) {
    PIF_TRY_VALUE(Flow* const to, flow(letter.from, letter.mail.item().channel()));
    return to->take(letter.from, letter.mail.item().head(), std::move(letter.body));
  }
  if (!letter.mail.has_grant()) return sent_nonsense(letter.from, "something that is not of this step");
  PIF_TRY_VALUE(Flow* const to, flow(letter.from, letter.mail.grant().channel()));
  return to->take_limit(letter.from, letter.mail.grant().limit());
}

// Whether there was one.
Result<bool> Talk::take_one(Time deadline) {
  if (!own_.empty()) {
    Own own = std::move(own_.front());
    own_.pop_front();
    const std::uint32_t rank = team_.worker_->rank();
    PIF_TRY_VALUE(Flow* const to, flow(rank, own.channel));
    PIF_TRY(to->take(rank, own.head, std::move(own.body)));
    return true;
  }
  PIF_TRY_VALUE(auto letter, team_.mail_->receive(deadline));
  if (!letter) return false;
  PIF_TRY(take(std::move(*letter)));
  return true;
}

Status Talk::go_on(bool may_wait) {
  for (int i = 0; i < kTakesPerTurn; ++i) {
    PIF_TRY_VALUE(const bool taken, take_one(Time{}));
    if (taken) continue;
    if (i > 0 || !may_wait) return {};
    PIF_TRY(tell_all());
    PIF_TRY_VALUE(const bool came, take_one(team_.clock().now() + patience_));
    if (!came)
      return fail(Code::kTimeout, fmt::format("no other worker has said anything for {} s",
                                              std::chrono::duration_cast<std::chrono::seconds>(patience_).count()));
  }
  return {};
}

Status Talk::tell_all() {
  for (const auto& [channel, flow] : *flows_) PIF_TRY(flow->tell_all());
  return {};
}

bool Talk::has_queued() const {
  return std::any_of(flows_->begin(), flows_->end(), [](const auto& flow) { return flow.second->queued_bytes_ > 0; }) ||
         std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return !line.queue.empty(); });
}

Status Talk::flush() {
  return until([this] { return !has_queued(); });
}

Status Talk::end() {
  PIF_TRY(flush());
  PIF_TRY(tell_all());
  PIF_TRY(flush());
  return team_.barrier();
}

// ---- a channel ------------------------------------------------------------------------------------------------------

Flow::Flow(Talk& talk, std::uint32_t channel, ChannelOptions options, Take take)
    : talk_(talk), flows_(talk.flows_), channel_(channel), options_(std::move(options)), take_(std::move(take)) {
  const std::uint32_t width = talk_.team_.worker_->width();
  PIF_ASSERT(!is_rows() || options_.rows.size() == width, options_.rows.size(), width);
  to_ = std::vector<To>(width);
  from_.resize(width);
  for (std::uint32_t rank = 0; rank < width; ++rank) {
    const std::uint64_t rows = is_rows() ? options_.rows[rank] : 0;
    to_[rank].credit = Credit(options_.unit, options_.window, rows, options_.share);
  }
  for (const std::uint32_t rank : options_.senders) from_.at(rank).is_granted = true;
  for (From& from : from_) from.is_granted = from.is_granted || options_.senders.empty();
  const bool is_new = flows_->emplace(channel_, this).second;
  PIF_ASSERT(is_new, channel_);
}

Flow::~Flow() {
  const std::size_t erased = flows_->erase(channel_);
  PIF_ASSERT(erased == 1, channel_);
}

Status Flow::send(std::uint32_t to, std::string head, net::Buffer body, std::uint64_t bytes, Range rows) {
  PIF_ASSERT(to < to_.size(), to, to_.size());
  To& receiver = to_[to];
  Queued message{std::move(head), std::move(body), bytes, rows};
  if (receiver.queue.empty() && receiver.credit.allows(bytes, rows)) return transmit(to, std::move(message));
  queued_bytes_ += bytes + Credit::kMessageBytes;
  receiver.queue.push_back(std::move(message));
  return {};
}

Status Flow::transmit(std::uint32_t to, Queued message) {
  to_[to].credit.use(message.bytes, message.rows);
  if (to == talk_.team_.worker_->rank()) {
    talk_.own_.push_back({channel_, std::move(message.head), std::move(message.body)});
    return {};
  }
  job::Mail mail;
  mail.mutable_item()->set_channel(channel_);
  mail.mutable_item()->set_head(std::move(message.head));
  return talk_.post(to, std::move(mail), std::move(message.body));
}

Status Flow::take_limit(std::uint32_t from, std::uint64_t limit) {
  To& receiver = to_[from];
  if (limit < options_.window || !receiver.credit.settle(limit - options_.window))
    return sent_nonsense(from,
                         fmt::format("leave to send up to {} on channel {}, more than there is", limit, channel_));
  while (!receiver.queue.empty() && receiver.credit.allows(receiver.queue.front().bytes, receiver.queue.front().rows)) {
    Queued next = std::move(receiver.queue.front());
    receiver.queue.pop_front();
    PIF_ASSERT(queued_bytes_ >= next.bytes + Credit::kMessageBytes, queued_bytes_, next.bytes);
    queued_bytes_ -= next.bytes + Credit::kMessageBytes;
    PIF_TRY(transmit(from, std::move(next)));
  }
  return {};
}

bool Flow::is_settled() const {
  PIF_ASSERT(is_rows(), channel_);  // less than a step of other windows is not granted yet
  return std::all_of(to_.begin(), to_.end(), [](const To& to) { return to.queue.empty() && to.credit.is_settled(); });
}

// Rows beyond the limit the function itself finds, which knows what it lacks.
Status Flow::take(std::uint32_t from, std::string_view head, net::Buffer body) {
  From& sender = from_[from];
  const std::uint64_t cost = to_[from].credit.cost(body.size());
  if (!is_rows()) {
    PIF_ASSERT(sender.come >= sender.settled, sender.come, sender.settled);
    if (!Credit::fits(sender.come - sender.settled, cost, options_.window))
      return sent_nonsense(from, fmt::format("more than it may on channel {}", channel_));
    sender.come += cost;
  }
  if (const auto taken = take_(from, head, std::move(body)); !taken) return sent_wrong(from, taken.error());
  return is_rows() || options_.is_kept ? Status() : settle(from, cost);
}

Status Flow::settle(std::uint32_t from, std::uint64_t count) { return rise(from, from_[from].settled + count); }

Status Flow::settle_rows(Row row) {
  PIF_ASSERT(is_rows(), row);
  for (std::uint32_t from = 0; from < from_.size(); ++from) PIF_TRY(rise(from, row));
  return {};
}

Status Flow::rise(std::uint32_t from, std::uint64_t settled) {
  From& sender = from_[from];
  PIF_ASSERT(settled >= sender.settled && (is_rows() || settled <= sender.come), settled, sender.settled, sender.come);
  sender.settled = settled;
  const bool is_granted =
      from == talk_.team_.worker_->rank() || settled - sender.granted >= Credit::grant_step(options_.window);
  return is_granted ? tell(from) : Status();
}

Status Flow::tell(std::uint32_t from) {
  From& sender = from_[from];
  PIF_ASSERT(sender.granted <= sender.settled, sender.granted, sender.settled);
  if (sender.granted == sender.settled || !sender.is_granted) return {};
  sender.granted = sender.settled;
  const std::uint64_t limit = sender.settled + options_.window;
  if (from == talk_.team_.worker_->rank()) return take_limit(from, limit);
  job::Mail mail;
  mail.mutable_grant()->set_channel(channel_);
  mail.mutable_grant()->set_limit(limit);
  return talk_.post(from, std::move(mail));
}

// Who waits for rows must know of the last one.
Status Flow::tell_all() {
  for (std::uint32_t from = 0; is_rows() && from < from_.size(); ++from) PIF_TRY(tell(from));
  return {};
}

}  // namespace pif::tool
