#include "pif/tool/ordered_output.h"

#include <algorithm>

#include <fmt/format.h>

#include "job.pb.h"
#include "move/rows.h"
#include "pif/base/assert.h"
#include "pif/base/timers.h"
#include "pif/tool/message.h"

namespace pif::tool {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 8u << 20;

using Rows = job::OutputMessage::Rows;

std::string head_of(const job::OutputMessage& message) { return OrderedOutput::kSign + message.SerializeAsString(); }

}  // namespace

struct OrderedOutput::Impl {
  Impl(Worker& w, Team& t, Output& o, const FileLength& file_length, WindowSize size, std::vector<std::uint32_t> ranks)
      : worker(w),
        team(t),
        output(o),
        records(file_length.records),
        window(size),
        destinations(std::move(ranks)),
        sender(o.layout().width(), limits(), [&layout = o.layout()](std::uint64_t number) {
          const auto place = layout.locate(number);
          return NumberedPlace{place.lfs, place.row};
        }) {
    if (output.is_here()) receiver.emplace(output, file_length, window);
  }

  NumberedLimits limits() const {
    NumberedLimits out;
    out.fixed_length = output.format().is_fixed();
    out.window_rows = window.rows;
    out.piece_rows = std::max<std::uint64_t>(window.rows / 4, 1);
    if (!out.fixed_length) out.share_bytes = window.share;
    return out;
  }
  [[nodiscard]] Status send(NumberedMessage message);
  [[nodiscard]] Status accept(std::uint32_t from, const Rows& rows, net::Buffer body);
  [[nodiscard]] Status settle(std::uint32_t from, Row row);
  [[nodiscard]] Status tell_settled(bool now);

  Worker& worker;
  Team& team;
  Output& output;
  std::uint64_t records;  // of the whole output
  WindowSize window;
  std::vector<std::uint32_t> destinations;  // ranks of the workers on the output's LFSs, in their order
  NumberedSender sender;
  std::optional<RowReceiver> receiver;  // if this LFS is one of the output's
  std::vector<SharedMemory> rings;      // of the other workers' rows, by rank; empty: rows go as messages
  Row told = 0;
};

Status OrderedOutput::Impl::send(NumberedMessage numbered) {
  PIF_ASSERT(numbered.to < destinations.size() && numbered.count > 0, numbered.to, destinations.size(), numbered.count);
  const std::uint32_t rank = destinations[numbered.to];
  job::OutputMessage message;
  Rows& rows = *message.mutable_rows();
  rows.set_first(numbered.first);
  rows.set_last(numbered.last);
  rows.set_count(numbered.count);
  rows.set_placed(numbered.placed);
  if (rank == worker.rank()) return accept(rank, rows, std::move(numbered.body));
  worker.count_sent(numbered.record_bytes);
  if (rings.empty() || rings[rank].empty()) return team.send(rank, head_of(message), std::move(numbered.body));
  PIF_TRY(place_records(numbered, output.format().record_length, rings[rank].bytes()));
  std::span<const std::byte> rest = std::as_const(numbered.body).span();
  const auto gaps = RowGaps::take(rest, numbered.count, Room::kAsNeeded);
  PIF_ASSERT(gaps.has_value(), numbered.body.size(), numbered.count);
  numbered.body.shrink(numbered.body.size() - rest.size());  // what stays is where they are
  rows.set_placed(true);
  return team.send(rank, head_of(message), std::move(numbered.body));
}

Status OrderedOutput::Impl::accept(std::uint32_t from, const Rows& rows, net::Buffer body) {
  if (!receiver) return sent_nonsense(from, "rows for an LFS that is not one of the output's");
  RowMessage message;
  message.first = rows.first();
  message.count = rows.count();
  message.stride = 0;
  message.placed = rows.placed();
  message.body = std::move(body);
  if (const auto taken = receiver->accept(std::move(message)); !taken) return sent_wrong(from, taken.error());
  sender.settle(output.index(), receiver->settled());
  return {};
}

Status OrderedOutput::Impl::settle(std::uint32_t from, Row row) {
  const auto found = std::find(destinations.begin(), destinations.end(), from);
  const auto lfs = static_cast<LfsIndex>(found - destinations.begin());
  if (found == destinations.end() || row > output.layout().rows(lfs, records))
    return sent_nonsense(from, fmt::format("that row {} of its component is written, which it does not have", row));
  sender.settle(lfs, row);
  return {};
}

// Not every row; but before this worker waits, all know of all.
Status OrderedOutput::Impl::tell_settled(bool now) {
  if (!receiver || receiver->settled() == told) return {};
  if (!now && !receiver->is_done() && receiver->settled() - told < window.rows / 8) return {};
  PIF_ASSERT(receiver->settled() > told, receiver->settled(), told);
  told = receiver->settled();
  job::OutputMessage message;
  message.mutable_settled()->set_row(told);
  for (std::uint32_t rank = 0; rank < worker.width(); ++rank) {
    if (rank != worker.rank()) PIF_TRY(team.send(rank, head_of(message)));
  }
  return {};
}

OrderedOutput::OrderedOutput(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OrderedOutput::OrderedOutput(OrderedOutput&&) noexcept = default;
OrderedOutput::~OrderedOutput() = default;

Result<OrderedOutput> OrderedOutput::open(Worker& worker, Team& team, Output& output, const FileLength& file_length,
                                          const Options& options) {
  PIF_TRY_VALUE(auto ranks, worker.ranks_on(output));
  PIF_ASSERT(ranks.size() == output.layout().width(), ranks.size(), output.layout().width());
  const WindowSize window = WindowSize::of(output.format(), options.window_bytes, worker.width());
  auto impl = std::make_unique<Impl>(worker, team, output, file_length, window, std::move(ranks));
  if (impl->receiver) {
    PIF_TRY(impl->receiver->open());
    PIF_TRY(impl->receiver->advance());
    impl->sender.settle(output.index(), impl->receiver->settled());
  }
  if (options.share_memory && worker.shares_machine() && output.format().is_fixed()) {
    const SharedMemory none;
    PIF_TRY_VALUE(impl->rings, team.share(impl->receiver ? impl->receiver->memory() : none));
    const std::uint64_t ring_bytes = window.rows * output.format().record_length;
    for (std::uint32_t to = 0; to < impl->destinations.size(); ++to) {
      const std::uint32_t rank = impl->destinations[to];
      const SharedMemory& ring = impl->rings[rank];
      if (!ring.empty() && ring.bytes().size() != ring_bytes)
        return sent_nonsense(rank, fmt::format("a window of {} bytes, not of {}", ring.bytes().size(), ring_bytes));
      ring.populate(0, ring.bytes().size());
      impl->sender.give_memory(to, ring.bytes());
    }
  }
  return OrderedOutput(std::move(impl));
}

void OrderedOutput::put(RecordNumber number, std::span<const std::byte> record) {
  impl_->sender.put(number, {}, record);
}
void OrderedOutput::flush() { impl_->sender.flush(); }
std::uint64_t OrderedOutput::queued_bytes() const { return impl_->sender.queued_bytes(); }

bool OrderedOutput::has_room() const { return queued_bytes() < kQueuedBytesMax; }

Status OrderedOutput::go_on(bool has_more) {
  PIF_TRY_VALUE(const bool sent, step());
  const bool may_wait = !sent && !(has_more && has_room()) && !is_done();
  return impl_->team.receive_some(may_wait ? kWorkerSilenceMax : Duration::zero(), [this](Message word) -> Status {
    if (!is_own(word)) return sent_nonsense(word.from, "a word of another part of the tool");
    return take(std::move(word));
  });
}

Result<bool> OrderedOutput::step() {
  PIF_TRY_VALUE(const bool sent,
                impl_->sender.step([this](NumberedMessage message) { return impl_->send(std::move(message)); }));
  PIF_TRY(impl_->tell_settled(!sent));
  return sent;
}

Status OrderedOutput::take(Message word) {
  const std::string_view text = std::string_view(word.head).substr(std::min<std::size_t>(word.head.size(), 1));
  PIF_TRY_VALUE(const auto message, parse_message<job::OutputMessage>(text, word.from));
  switch (message.what_case()) {
    case job::OutputMessage::kRows: return impl_->accept(word.from, message.rows(), std::move(word.body));
    case job::OutputMessage::kSettled: return impl_->settle(word.from, message.settled().row());
    case job::OutputMessage::WHAT_NOT_SET: break;
  }
  return sent_nonsense(word.from, "a message about an output that says nothing");
}

bool OrderedOutput::is_done() const {
  const auto& receiver = impl_->receiver;
  return impl_->sender.is_empty() && (!receiver || (receiver->is_done() && impl_->told == receiver->settled()));
}

}  // namespace pif::tool
