#include "move/row_flow.h"

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::tool {

RowFlow::RowFlow(Worker& worker, Output& output, const FileLength& file_length, const WindowSize& window)
    : worker_(worker), output_(output), records_(file_length.records), window_(window) {
  if (output.is_here()) receiver_.emplace(output, file_length, window);
}

Result<std::unique_ptr<RowFlow>> RowFlow::open(Worker& worker, Team& team, Output& output,
                                               const FileLength& file_length, const WindowSize& window,
                                               bool share_memory) {
  std::unique_ptr<RowFlow> flow(new RowFlow(worker, output, file_length, window));
  PIF_TRY_VALUE(flow->ranks_, worker.ranks_on(output));
  PIF_ASSERT(flow->ranks_.size() == output.layout().width(), flow->ranks_.size(), output.layout().width());
  if (flow->receiver_) {
    PIF_TRY(flow->receiver_->open());
    PIF_TRY(flow->receiver_->advance());
  }
  if (share_memory && output.format().is_fixed()) PIF_TRY(flow->share_windows(team));
  return flow;
}

Status RowFlow::share_windows(Team& team) {
  const SharedMemory none;
  PIF_TRY_VALUE(windows_, team.share_near(receiver_ ? receiver_->memory() : none));
  const std::uint64_t bytes = window_.rows * output_.format().record_length;
  for (const std::uint32_t rank : ranks_) {
    const std::size_t size = windows_[rank].bytes().size();
    if (size > 0 && size != bytes)
      return sent_nonsense(rank, fmt::format("a window of {} bytes, not of {}", size, bytes));
  }
  return {};
}

void RowFlow::join(Talk& talk, std::vector<std::uint32_t> senders) {
  ChannelOptions options;
  options.unit = Credit::Unit::kRows;
  options.window = window_.rows;
  options.senders = std::move(senders);
  if (!output_.format().is_fixed()) options.share = window_.share;
  options.rows.resize(worker_.width());
  for (LfsIndex lfs = 0; lfs < ranks_.size(); ++lfs) options.rows[ranks_[lfs]] = output_.layout().rows(lfs, records_);
  channel_.emplace(talk, 0, std::move(options), [this](Channel<Rows>::Item item) { return take(std::move(item)); });
}

Status RowFlow::end(std::uint64_t records) {
  if (records > records_)
    return fail(Code::kInvalid,
                fmt::format("{}: {} records, where {} at most were to come", output_.file().path, records, records_));
  return receiver_ ? receiver_->end(output_.layout().rows(output_.index(), records)) : Status();
}

std::span<std::byte> RowFlow::memory(LfsIndex to) const {
  return windows_.empty() ? std::span<std::byte>() : windows_[ranks_[to]].bytes();
}

void RowFlow::populate() const {
  for (LfsIndex lfs = 0; lfs < ranks_.size() && !windows_.empty(); ++lfs)
    windows_[ranks_[lfs]].populate(0, memory(lfs).size());
}

// What stays in the message is where the records are.
Status RowFlow::place(RowMessage& message) const {
  PIF_TRY(place_records(message, output_.format().record_length, memory(message.to)));
  std::span<const std::byte> rest = std::as_const(message.body).span();
  const auto gaps = RowGaps::take(rest, message.count, Room::kAsNeeded);
  PIF_ASSERT(gaps.has_value(), message.body.size(), message.count);
  message.body.shrink(message.body.size() - rest.size());
  message.placed = true;
  return {};
}

Status RowFlow::send(RowMessage message) {
  PIF_ASSERT(message.to < ranks_.size() && message.count > 0, message.to, ranks_.size(), message.count);
  const std::uint32_t rank = ranks_[message.to];
  if (rank != worker_.rank()) worker_.count_sent(message.record_bytes);
  if (!message.placed && !memory(message.to).empty()) PIF_TRY(place(message));
  return channel_->send_rows(rank, {message.first, message.count, message.stride, message.placed},
                             std::move(message.body), message.rows(), message.record_bytes);
}

Status RowFlow::take(Channel<Rows>::Item item) {
  if (!receiver_) return fail(Code::kInvalid, "rows for an LFS that is not one of the output's");
  RowMessage message;
  message.first = item.head.first;
  message.count = item.head.count;
  message.stride = item.head.stride;
  message.placed = item.head.placed;
  const std::uint64_t bytes = item.body.size();
  message.body = std::move(item.body);
  PIF_TRY(receiver_->accept(std::move(message)));
  bytes_taken_ += item.head.placed ? item.head.count * output_.format().record_length : bytes;
  return channel_->settle_rows(receiver_->settled());
}

}  // namespace pif::tool
