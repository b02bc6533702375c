#include "mail.h"

#include <fmt/format.h>

#include "worker_impl.h"

namespace pif::tool {

Result<std::unique_ptr<Mail>> Mail::open(Worker& worker) {
  const auto& impl = *worker.impl_;
  const auto& here = impl.description.nodes(static_cast<int>(worker.rank()));
  PIF_TRY_VALUE(auto messenger, impl.world.listen(mail_endpoints(here, worker.job(), worker.rank())));
  return std::unique_ptr<Mail>(new Mail(worker, std::move(messenger)));
}

net::Packet Mail::packet_of(const job::Mail& mail) const {
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

Status Mail::send(std::uint32_t rank, const job::Mail& mail, net::Buffer body) {
  PIF_TRY_VALUE(const net::PeerId id, peer(rank));
  net::Packet packet = packet_of(mail);
  packet.body = std::move(body);
  if (auto sent = messenger_->send(id, std::move(packet)); !sent) {
    return fail(sent.error().code, fmt::format("cannot send to worker {}: {}", rank, sent.error().text));
  }
  return {};
}

Status Mail::pass(std::uint32_t rank, const job::Mail& mail, Handle handle) {
  const auto& node = worker_.impl_->description.nodes(static_cast<int>(rank));
  PIF_TRY_VALUE(const net::PeerId id, messenger_->connect(mail_endpoints(node, worker_.job(), rank), net::Route::kUnix));
  net::Packet packet = packet_of(mail);
  packet.handles.push_back(std::move(handle));
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

Result<std::optional<Letter>> Mail::receive(Time deadline) {
  while (true) {
    PIF_TRY_VALUE(auto delivery, messenger_->receive(deadline));
    if (!delivery) return std::nullopt;
    if (delivery->kind != net::Delivery::Kind::kPacket) continue;
    if (auto letter = open_letter(std::move(delivery->packet))) return letter;
  }
}

}  // namespace pif::tool
