#include "pif/tool/exchange.h"

#include <unordered_map>

#include <fmt/format.h>

#include "rows.h"
#include "worker_impl.h"

namespace pif::tool {
namespace {

constexpr int kTakesPerTurn = 32;  // messages taken between two looks at what may be sent

}  // namespace

// Carries parcels and credit between the workers of a job.
class Exchange {
 public:
  Exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options);
  [[nodiscard]] Status open();
  [[nodiscard]] Status run();

 private:
  [[nodiscard]] Status send_parcel(Parcel parcel);
  [[nodiscard]] Status take(net::Delivery& delivery);
  [[nodiscard]] Status take_batch(net::Packet packet);
  [[nodiscard]] Status take_messages(bool may_wait);
  [[nodiscard]] Status tell_settled(bool now);
  [[nodiscard]] Result<net::PeerId> peer(std::uint32_t rank);
  [[nodiscard]] Status send_to(std::uint32_t rank, net::Packet packet);
  bool is_ours(std::uint64_t job, const std::string& secret) const;
  bool is_done() const;
  void show_progress();

  Worker& worker_;
  Input& input_;
  Output& output_;
  ExchangeOptions options_;
  WindowSize window_;
  std::unique_ptr<net::Messenger> messenger_;
  std::optional<RowSender> sender_;      // if this LFS is one of the input's
  std::optional<RowReceiver> receiver_;  // if it is one of the output's
  std::vector<std::uint32_t> sources_;   // ranks of the workers with rows of the input
  Row told_ = 0;                         // settled rows that the sources know of
  std::unordered_map<std::uint32_t, net::PeerId> peers_;
  std::uint64_t bytes_taken_ = 0;
};

Exchange::Exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options)
    : worker_(worker), input_(input), output_(output), options_(options) {}

Status Exchange::open() {
  if (input_.format() != output_.format()) {
    return fail(Code::kInvalid, fmt::format("{} and {} have different record formats", input_.file().path, output_.file().path));
  }
  const parity::Layout& from = input_.layout();
  for (LfsIndex lfs = 0; lfs < from.width(); ++lfs) {
    if (from.rows(lfs, input_.extent().records) == 0) continue;
    const auto rank = worker_.rank_on(input_.file().nodes[lfs].id());
    if (!rank) return fail(Code::kInternal, fmt::format("there is no worker on {}", input_.file().nodes[lfs].name()));
    sources_.push_back(*rank);
  }
  window_ = WindowSize::of(input_.format(), options_.window_bytes, static_cast<std::uint32_t>(sources_.size()));
  if (input_.is_here() && input_.rows() > 0) sender_.emplace(input_, output_.layout(), window_);
  if (output_.is_here()) receiver_.emplace(output_, input_.extent(), window_);
  const auto& impl = *worker_.impl_;
  const auto& here = impl.description.nodes(static_cast<int>(worker_.rank()));
  PIF_TRY_VALUE(messenger_, impl.world.listen(exchange_endpoint(here, worker_.job(), worker_.rank())));
  return {};
}

bool Exchange::is_done() const {
  return (!receiver_ || receiver_->is_done()) && (!sender_ || sender_->is_settled());
}

Status Exchange::run() {
  if (receiver_) PIF_TRY(receiver_->advance());
  while (!is_done()) {
    bool sent = false;
    if (sender_) {
      PIF_TRY_VALUE(sent, sender_->step([this](Parcel parcel) { return send_parcel(std::move(parcel)); }));
      // A block that is sent is followed by the next one at once.
      sent = sent || !sender_->is_waiting();
    }
    PIF_TRY(tell_settled(!sent));
    if (is_done()) break;
    PIF_TRY(take_messages(!sent));
    show_progress();
  }
  return tell_settled(true);
}

// ---- rows ---------------------------------------------------------------------------------------------------------

Status Exchange::send_parcel(Parcel parcel) {
  const auto rank = worker_.rank_on(output_.file().nodes[parcel.to].id());
  if (!rank) return fail(Code::kInternal, fmt::format("there is no worker on {}", output_.file().nodes[parcel.to].name()));
  if (*rank == worker_.rank()) {
    PIF_TRY(receiver_->accept(std::move(parcel)));
    sender_->settle(output_.index(), receiver_->settled());
    return {};
  }
  worker_.count_sent(parcel.record_bytes);
  net::Packet packet;
  proto::Batch& batch = *packet.envelope.mutable_batch();
  batch.set_job(worker_.job());
  batch.set_secret(worker_.impl_->description.secret());
  batch.set_from(worker_.rank());
  batch.set_first(parcel.first);
  batch.set_count(parcel.count);
  batch.set_stride(parcel.stride);
  packet.body = std::move(parcel.body);
  return send_to(*rank, std::move(packet));
}

Status Exchange::take_batch(net::Packet packet) {
  if (!receiver_) return fail(Code::kInvalid, "rows came for an LFS that is not one of the output's");
  const proto::Batch& batch = packet.envelope.batch();
  Parcel parcel;
  parcel.first = batch.first();
  parcel.count = batch.count();
  parcel.stride = batch.stride();
  bytes_taken_ += packet.body.size();
  parcel.body = std::move(packet.body);
  PIF_TRY(receiver_->accept(std::move(parcel)));
  if (sender_) sender_->settle(output_.index(), receiver_->settled());
  return {};
}

// ---- messages -----------------------------------------------------------------------------------------------------

bool Exchange::is_ours(std::uint64_t job, const std::string& secret) const {
  return job == worker_.job() && secret == worker_.impl_->description.secret();
}

Status Exchange::take(net::Delivery& delivery) {
  if (delivery.kind != net::Delivery::Kind::kPacket) return {};
  const proto::Envelope& envelope = delivery.packet.envelope;
  if (envelope.has_batch() && is_ours(envelope.batch().job(), envelope.batch().secret())) {
    return take_batch(std::move(delivery.packet));
  }
  if (envelope.has_grant() && is_ours(envelope.grant().job(), envelope.grant().secret()) && sender_) {
    const proto::Grant& grant = envelope.grant();
    const Row settled = grant.limit() >= window_.rows ? grant.limit() - window_.rows : 0;
    if (grant.from() >= worker_.width()) return {};
    const std::uint32_t node = worker_.node_id(grant.from());
    for (LfsIndex lfs = 0; lfs < output_.layout().width(); ++lfs) {
      if (output_.file().nodes[lfs].id() == node) sender_->settle(lfs, settled);
    }
  }
  return {};  // a stranger's message is nobody's business
}

// Takes what is there; waits for the first message if nothing else can be done.
Status Exchange::take_messages(bool may_wait) {
  Time until = may_wait ? worker_.clock().now() + options_.silence : Time{};
  for (int i = 0; i < kTakesPerTurn; ++i) {
    PIF_TRY_VALUE(auto delivery, messenger_->receive(until));
    if (!delivery && may_wait && i == 0) {
      return fail(Code::kTimeout, fmt::format("no other worker has sent anything for {} s",
                                              std::chrono::duration_cast<std::chrono::seconds>(options_.silence).count()));
    }
    if (!delivery) return {};
    PIF_TRY(take(*delivery));
    until = Time{};
  }
  return {};
}

// Sources need not know of every row that is written; but before this worker waits, they know of all.
Status Exchange::tell_settled(bool now) {
  if (!receiver_ || receiver_->settled() == told_) return {};
  if (!now && !receiver_->is_done() && receiver_->settled() - told_ < window_.rows / 4) return {};
  told_ = receiver_->settled();
  for (const std::uint32_t rank : sources_) {
    if (rank == worker_.rank()) continue;
    net::Packet packet;
    proto::Grant& grant = *packet.envelope.mutable_grant();
    grant.set_job(worker_.job());
    grant.set_secret(worker_.impl_->description.secret());
    grant.set_from(worker_.rank());
    grant.set_limit(told_ + window_.rows);
    PIF_TRY(send_to(rank, std::move(packet)));
  }
  return {};
}

Result<net::PeerId> Exchange::peer(std::uint32_t rank) {
  if (const auto known = peers_.find(rank); known != peers_.end()) return known->second;
  const auto& node = worker_.impl_->description.nodes(static_cast<int>(rank));
  PIF_TRY_VALUE(const net::PeerId id, messenger_->connect(exchange_endpoint(node, worker_.job(), rank), net::Route::kIpc));
  peers_.emplace(rank, id);
  return id;
}

Status Exchange::send_to(std::uint32_t rank, net::Packet packet) {
  PIF_TRY_VALUE(const net::PeerId id, peer(rank));
  if (auto sent = messenger_->send(id, std::move(packet)); !sent) {
    return fail(sent.error().code, fmt::format("cannot send rows to worker {}: {}", rank, sent.error().text));
  }
  return {};
}

void Exchange::show_progress() {
  const std::uint64_t expected =
      receiver_ ? input_.extent().bytes / output_.layout().width() : 0;  // near enough for people's eyes
  const std::uint64_t own = sender_ ? input_.bytes() : 0;
  worker_.progress(input_.bytes_read() + bytes_taken_, own + expected);
}

Status exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options) {
  Exchange exchange(worker, input, output, options);
  PIF_TRY(exchange.open());
  return exchange.run();
}

}  // namespace pif::tool
