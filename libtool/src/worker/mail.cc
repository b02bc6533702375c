#include "worker/mail.h"

#include <algorithm>

#include <fmt/format.h>

#include "messages/job.h"
#include "pif/base/assert.h"
#include "pif/tool/message.h"
#include "worker/worker_impl.h"

namespace pif::tool {
namespace {

constexpr Duration kMeetPatience = std::chrono::hours(1);  // a worker that dies ends the job sooner

}  // namespace

Result<Mail*> Mail::of(Worker& worker) {
  auto& impl = *worker.impl_;
  if (impl.mail) return impl.mail.get();
  PIF_ASSERT(worker.rank() < worker.width(), worker.rank(), worker.width());
  const auto& here = impl.description.nodes(static_cast<int>(worker.rank()));
  MailPlace place;
  place.at = mail_endpoints(here, worker.job(), worker.rank());
  place.keys = {impl.description.mail_public(), impl.description.mail_secret()};
  if (!worker.shares_machine()) place.at.set_tcp(mail_tcp(here));
  PIF_TRY_VALUE(Mailbox box, impl.world.listen(place));
  std::unique_ptr<Mail> mail(new Mail(worker, std::move(box.messenger)));
  if (!worker.shares_machine()) PIF_TRY(mail->meet(box.at));
  impl.mail = std::move(mail);
  return impl.mail.get();
}

// Nobody knows the others' ports before they listen: all tell the controller, which tells all.
Status Mail::meet(const proto::Endpoints& own) {
  proto::Endpoints outside;
  outside.set_tcp(own.tcp());
  outside.set_curve_key(own.curve_key());
  PIF_TRY_VALUE(const auto all, worker_.impl_->meet(outside.SerializeAsString(), kMeetPatience));
  PIF_ASSERT(all.size() == worker_.width(), all.size(), worker_.width());
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    PIF_TRY_VALUE(far_.emplace_back(), parse_message<proto::Endpoints>(all[rank], rank));
  }
  next_report_ = messenger_->clock().now() + kLetterReportInterval;
  return {};
}

net::Packet Mail::packet_of(job::Mail mail) const {
  mail.set_step(step_);
  net::Packet packet;
  proto::WorkerMail& envelope = *packet.envelope.mutable_worker_mail();
  envelope.set_job(worker_.job());
  envelope.set_secret(worker_.impl_->description.secret());
  envelope.set_from(worker_.rank());
  envelope.set_value(mail.SerializeAsString());
  return packet;
}

Result<net::PeerId> Mail::peer(std::uint32_t rank) {
  PIF_ASSERT(rank < worker_.width(), rank, worker_.width());
  if (const auto known = peers_.find(rank); known != peers_.end()) return known->second;
  const auto& node = worker_.impl_->description.nodes(static_cast<int>(rank));
  const bool near = are_near(worker_.impl_->description, worker_.rank(), rank);
  PIF_ASSERT(near || rank < far_.size(), rank, far_.size());  // who is far has said where it listens
  PIF_TRY_VALUE(const net::PeerId id,
                near ? messenger_->connect(mail_endpoints(node, worker_.job(), rank), net::Route::kIpc)
                     : messenger_->connect(far_.at(rank), net::Route::kTcp));
  peers_.emplace(rank, id);
  return id;
}

Status Mail::send(std::uint32_t rank, job::Mail mail, net::Buffer body) {
  PIF_ASSERT(mail.number() == 0, rank, mail.number());  // it is numbered here, once
  PIF_TRY_VALUE(const net::PeerId id, peer(rank));
  TraceSpan span(worker_.impl_->trace.get(), "send", rank);
  const std::uint64_t bytes = body.size() + mail.item().head().size();
  span.set_bytes(bytes);
  worker_.impl_->bytes_messaged += bytes;
  mail.set_number(++sent_[rank]);
  net::Packet packet = packet_of(std::move(mail));
  packet.body = std::move(body);
  if (auto sent = messenger_->send(id, std::move(packet)); !sent) {
    return fail(sent.error().code, fmt::format("cannot send to worker {}: {}", rank, sent.error().text));
  }
  return {};
}

Status Mail::pass(std::uint32_t rank, job::Mail mail, std::vector<Handle> handles) {
  PIF_ASSERT(rank < worker_.width(), rank, worker_.width());
  const auto& node = worker_.impl_->description.nodes(static_cast<int>(rank));
  if (!are_near(worker_.impl_->description, worker_.rank(), rank)) {
    return fail(Code::kUnavailable, fmt::format("worker {} is on another machine, where nothing can be shared", rank));
  }
  PIF_TRY_VALUE(const net::PeerId id,
                messenger_->connect(mail_endpoints(node, worker_.job(), rank), net::Route::kUnix));
  net::Packet packet = packet_of(std::move(mail));
  packet.handles = std::move(handles);
  return messenger_->send(id, std::move(packet));
}

Status Mail::take_packet(net::Packet packet) {
  const proto::WorkerMail& envelope = packet.envelope.worker_mail();
  const bool ours = envelope.job() == worker_.job() && envelope.secret() == worker_.impl_->description.secret() &&
                    envelope.from() < worker_.width();
  if (!ours) return {};
  Letter letter;
  letter.from = envelope.from();
  PIF_TRY_VALUE(letter.mail, parse_message<job::Mail>(envelope.value(), envelope.from()));
  letter.body = std::move(packet.body);
  if (worker_.impl_->trace) worker_.impl_->trace->add_now("receive", letter.from, letter.body.size());
  letter.handles = std::move(packet.handles);
  const std::uint64_t number = letter.mail.number();
  if (number == 0) {
    ready_.push_back(std::move(letter));
    return {};
  }
  LetterOrder<Letter>& order = orders_[envelope.from()];
  order.add(number, std::move(letter));
  while (auto next = order.take()) ready_.push_back(std::move(*next));
  return {};
}

std::optional<Letter> Mail::kept() {
  std::erase_if(early_, [this](const Letter& letter) { return letter.mail.step() < step_; });
  const auto found =
      std::find_if(early_.begin(), early_.end(), [this](const Letter& letter) { return letter.mail.step() == step_; });
  if (found == early_.end()) return std::nullopt;
  Letter letter = std::move(*found);
  early_.erase(found);
  return letter;
}

job::LetterCounts Mail::letters() const {
  job::LetterCounts counts;
  if (far_.empty()) return counts;
  PIF_ASSERT(far_.size() == worker_.width(), far_.size(), worker_.width());
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    const auto sent = sent_.find(rank);
    counts.add_sent(sent == sent_.end() ? 0 : sent->second);
    const auto order = orders_.find(rank);
    counts.add_taken(order == orders_.end() ? 0 : order->second.taken());
    counts.add_highest(order == orders_.end() ? 0 : order->second.highest());
  }
  return counts;
}

// A connection over tcp that breaks loses what is under way, and ZeroMQ connects again without a word. So the
// controller gets counts from whoever waits, and has taken all that has come.
Result<std::optional<net::Delivery>> Mail::await(Time deadline) {
  TraceSpan span(deadline == Time{} ? nullptr : worker_.impl_->trace.get(), "wait");
  if (far_.empty()) return messenger_->receive(deadline);
  PIF_TRY_VALUE(auto come, messenger_->receive(Time{}));
  if (come || deadline == Time{}) return come;
  while (true) {
    const Time now = messenger_->clock().now();
    if (now >= next_report_) {
      job::WorkerStatus status;
      *status.mutable_letters() = letters();
      worker_.impl_->send_status(status);
      next_report_ = now + kLetterReportInterval;
    }
    PIF_TRY_VALUE(auto delivery, messenger_->receive(std::min(deadline, next_report_)));
    if (delivery || deadline <= next_report_) return delivery;
  }
}

Result<std::optional<Letter>> Mail::receive(Time deadline) {
  if (!early_.empty()) {
    if (auto letter = kept()) return letter;
  }
  while (true) {
    while (!ready_.empty()) {
      Letter letter = std::move(ready_.front());
      ready_.pop_front();
      if (letter.mail.step() == step_) return letter;
      if (letter.mail.step() > step_) early_.push_back(std::move(letter));
    }
    PIF_TRY_VALUE(auto delivery, await(deadline));
    if (!delivery) return std::nullopt;
    if (delivery->kind == net::Delivery::Kind::kPacket) PIF_TRY(take_packet(std::move(delivery->packet)));
  }
}

}  // namespace pif::tool
