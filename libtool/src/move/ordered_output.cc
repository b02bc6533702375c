#include "pif/tool/ordered_output.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "move/rows.h"
#include "pif/base/timers.h"

namespace pif::tool {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 8u << 20;

// A word's head behind the sign: rows (first, last, count of a message), or a row below which all is written.
enum class Kind : char { kRows = 'r', kPlaced = 'p', kSettled = 's' };
using Numbers = std::array<std::uint64_t, 3>;

std::string head_of(Kind kind, const Numbers& numbers) {
  std::string head{OrderedOutput::kSign, static_cast<char>(kind)};
  return head.append(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
}

}  // namespace

struct OrderedOutput::Impl {
  Impl(Worker& w, Team& t, Output& o, const FileLength& file_length, WindowSize size, std::vector<std::uint32_t> ranks)
      : worker(w),
        team(t),
        output(o),
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
  [[nodiscard]] Status accept(const Numbers& numbers, net::Buffer body, bool placed);
  [[nodiscard]] Status tell_settled(bool now);

  Worker& worker;
  Team& team;
  Output& output;
  WindowSize window;
  std::vector<std::uint32_t> destinations;  // ranks of the workers on the output's LFSs, in their order
  NumberedSender sender;
  std::optional<RowReceiver> receiver;  // if this LFS is one of the output's
  std::vector<SharedMemory> rings;      // of the other workers' rows, by rank; empty: rows go as messages
  Row told = 0;
};

Status OrderedOutput::Impl::send(NumberedMessage message) {
  const std::uint32_t rank = destinations[message.to];
  const Numbers numbers = {message.first, message.last, message.count};
  if (rank == worker.rank()) return accept(numbers, std::move(message.body), message.placed);
  worker.count_sent(message.record_bytes);
  if (rings.empty() || rings[rank].empty())
    return team.send(rank, head_of(Kind::kRows, numbers), std::move(message.body));
  PIF_TRY(place_records(message, output.format().record_length, rings[rank].bytes()));
  message.body.shrink(message.count * sizeof(std::uint32_t));  // what stays is where they are
  return team.send(rank, head_of(Kind::kPlaced, numbers), std::move(message.body));
}

Status OrderedOutput::Impl::accept(const Numbers& numbers, net::Buffer body, bool placed) {
  if (!receiver) return fail(Code::kInvalid, "rows came for an LFS that is not one of the output's");
  RowMessage message;
  message.first = numbers[0];
  message.count = numbers[2];
  message.stride = 0;
  message.placed = placed;
  message.body = std::move(body);
  PIF_TRY(receiver->accept(std::move(message)));
  sender.settle(output.index(), receiver->settled());
  return {};
}

// Not every row; but before this worker waits, all know of all.
Status OrderedOutput::Impl::tell_settled(bool now) {
  if (!receiver || receiver->settled() == told) return {};
  if (!now && !receiver->is_done() && receiver->settled() - told < window.rows / 8) return {};
  told = receiver->settled();
  for (std::uint32_t rank = 0; rank < worker.width(); ++rank) {
    if (rank != worker.rank()) PIF_TRY(team.send(rank, head_of(Kind::kSettled, {told, output.index(), 0})));
  }
  return {};
}

OrderedOutput::OrderedOutput(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OrderedOutput::OrderedOutput(OrderedOutput&&) noexcept = default;
OrderedOutput::~OrderedOutput() = default;

Result<OrderedOutput> OrderedOutput::open(Worker& worker, Team& team, Output& output, const FileLength& file_length,
                                          const Options& options) {
  PIF_TRY_VALUE(auto ranks, worker.ranks_on(output));
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
    for (std::uint32_t to = 0; to < impl->destinations.size(); ++to) {
      const SharedMemory& ring = impl->rings[impl->destinations[to]];
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
    if (!is_own(word)) return fail(Code::kInvalid, fmt::format("worker {} said something unknown", word.from));
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
  Numbers numbers;
  if (word.head.size() != 2 + sizeof numbers)
    return fail(Code::kInvalid, fmt::format("worker {} sent something unknown", word.from));
  std::memcpy(numbers.data(), word.head.data() + 2, sizeof numbers);
  const bool placed = word.head[1] == static_cast<char>(Kind::kPlaced);
  if (placed || word.head[1] == static_cast<char>(Kind::kRows))
    return impl_->accept(numbers, std::move(word.body), placed);
  impl_->sender.settle(static_cast<std::uint32_t>(numbers[1]), numbers[0]);
  return {};
}

bool OrderedOutput::is_done() const {
  const auto& receiver = impl_->receiver;
  return impl_->sender.is_empty() && (!receiver || (receiver->is_done() && impl_->told == receiver->settled()));
}

}  // namespace pif::tool
