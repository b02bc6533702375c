#include "mail.h"

#include <algorithm>

#include <fmt/format.h>

#include "worker_impl.h"

namespace pif::tool {

Result<Mail*> Mail::of(Worker& worker) {
  auto& impl = *worker.impl_;
  if (impl.mail) return impl.mail.get();
  const auto& here = impl.description.nodes(static_cast<int>(worker.rank()));
  PIF_TRY_VALUE(auto messenger, impl.world.listen(mail_endpoints(here, worker.job(), worker.rank())));
  impl.mail.reset(new Mail(worker, std::move(messenger)));
  return impl.mail.get();
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
  if (const auto known = peers_.find(rank); known != peers_.end()) return known->second;
  const auto& node = worker_.impl_->description.nodes(static_cast<int>(rank));
  PIF_TRY_VALUE(const net::PeerId id, messenger_->connect(mail_endpoints(node, worker_.job(), rank), net::Route::kIpc));
  peers_.emplace(rank, id);
  return id;
}

Status Mail::send(std::uint32_t rank, job::Mail mail, net::Buffer body) {
  PIF_TRY_VALUE(const net::PeerId id, peer(rank));
  net::Packet packet = packet_of(std::move(mail));
  packet.body = std::move(body);
  if (auto sent = messenger_->send(id, std::move(packet)); !sent) {
    return fail(sent.error().code, fmt::format("cannot send to worker {}: {}", rank, sent.error().text));
  }
  return {};
}

Status Mail::pass(std::uint32_t rank, job::Mail mail, std::vector<Handle> handles) {
  const auto& node = worker_.impl_->description.nodes(static_cast<int>(rank));
  PIF_TRY_VALUE(const net::PeerId id, messenger_->connect(mail_endpoints(node, worker_.job(), rank), net::Route::kUnix));
  net::Packet packet = packet_of(std::move(mail));
  packet.handles = std::move(handles);
  return messenger_->send(id, std::move(packet));
}

// Nothing if it is no letter of this job.
std::optional<Letter> Mail::open_letter(net::Packet packet) const {
  const proto::WorkerMail& envelope = packet.envelope.worker_mail();
  const bool ours = envelope.job() == worker_.job() && envelope.secret() == worker_.impl_->description.secret() &&
                    envelope.from() < worker_.width();
  Letter letter;
  if (!ours || !letter.mail.ParseFromString(envelope.value())) return std::nullopt;
  letter.from = envelope.from();
  letter.body = std::move(packet.body);
  letter.handles = std::move(packet.handles);
  return letter;
}

std::optional<Letter> Mail::kept() {
  std::erase_if(early_, [this](const Letter& letter) { return letter.mail.step() < step_; });
  const auto found = std::find_if(early_.begin(), early_.end(),
                                  [this](const Letter& letter) { return letter.mail.step() == step_; });
  if (found == early_.end()) return std::nullopt;
  Letter letter = std::move(*found);
  early_.erase(found);
  return letter;
}

Result<std::optional<Letter>> Mail::receive(Time deadline) {
  if (!early_.empty()) {
    if (auto letter = kept()) return letter;
  }
  while (true) {
    PIF_TRY_VALUE(auto delivery, messenger_->receive(deadline));
    if (!delivery) return std::nullopt;
    if (delivery->kind != net::Delivery::Kind::kPacket) continue;
    auto letter = open_letter(std::move(delivery->packet));
    if (!letter || letter->mail.step() < step_) continue;
    if (letter->mail.step() == step_) return letter;
    early_.push_back(std::move(*letter));
  }
}

}  // namespace pif::tool
