#include "pif/tool/ordered_output.h"

#include <algorithm>

#include "move/row_flow.h"
#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 8u << 20;

}  // namespace

struct OrderedOutput::Impl {
  Impl(Team& t, Output& o, const FileLength& length, std::unique_ptr<RowFlow> f, std::uint64_t piece_rows)
      : team(t),
        output(o),
        file_length(length),
        flow(std::move(f)),
        sender(o.layout().width(), o.format().is_fixed(), piece_rows, [&layout = o.layout()](std::uint64_t number) {
          const auto place = layout.locate(number);
          return NumberedPlace{place.lfs, place.row};
        }) {}

  // The file's last record, shorter than others: by message it travels as it is, and in memory it has their room.
  std::span<const std::byte> last_record(RecordNumber number, std::span<const std::byte> record) {
    const std::uint32_t bytes = fixed_record_bytes(output.format().record_length, file_length, number);
    PIF_ASSERT(record.size() >= bytes, record.size(), bytes);
    record = record.first(bytes);
    if (flow->memory(output.layout().locate(number).lfs).empty()) return record;
    last.assign(record.begin(), record.end());
    last.resize(output.format().record_length);
    return last;
  }

  Team& team;
  Output& output;
  FileLength file_length;
  std::vector<std::byte> last;  // that record
  std::unique_ptr<RowFlow> flow;
  NumberedSender sender;
};

OrderedOutput::OrderedOutput(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OrderedOutput::OrderedOutput(OrderedOutput&&) noexcept = default;
OrderedOutput::~OrderedOutput() = default;

Result<OrderedOutput> OrderedOutput::open(Worker& worker, Team& team, Output& output, const FileLength& file_length,
                                          const Options& options) {
  const WindowSize window = WindowSize::of(output.format(), options.window_bytes, worker.width());
  PIF_TRY_VALUE(auto flow, RowFlow::open(worker, team, output, file_length, window, options.share_memory));
  if (options.has_open_end) flow->leave_open();
  flow->populate();
  return OrderedOutput(
      std::make_unique<Impl>(team, output, file_length, std::move(flow), std::max<std::uint64_t>(window.rows / 4, 1)));
}

void OrderedOutput::join(Talk& talk) {
  impl_->flow->join(talk);
  for (LfsIndex lfs = 0; lfs < impl_->output.layout().width(); ++lfs)
    impl_->sender.open(lfs, impl_->flow->credit(lfs), impl_->flow->memory(lfs));
}

void OrderedOutput::put(RecordNumber number, std::span<const std::byte> record) {
  PIF_ASSERT(number < impl_->file_length.records, number, impl_->file_length.records);
  const bool is_last = impl_->output.format().is_fixed() && number + 1 == impl_->file_length.records;
  impl_->sender.put(number, {}, is_last ? impl_->last_record(number, record) : record);
}
void OrderedOutput::flush() { impl_->sender.flush(); }
std::uint64_t OrderedOutput::queued_bytes() const { return impl_->sender.queued_bytes(); }
bool OrderedOutput::has_room() const { return queued_bytes() < kQueuedBytesMax; }
bool OrderedOutput::is_done() const { return impl_->sender.is_empty() && impl_->flow->is_written(); }

Status OrderedOutput::end(std::uint64_t records) { return impl_->flow->end(records); }

Result<bool> OrderedOutput::step() {
  return impl_->sender.step([this](RowMessage message) { return impl_->flow->send(std::move(message)); });
}

Status OrderedOutput::fill(const std::function<Result<bool>()>& put_some) {
  Talk talk(impl_->team);
  join(talk);
  for (bool has_more = true; has_more || !is_done();) {
    if (has_more && has_room()) {
      PIF_TRY_VALUE(has_more, put_some());
      flush();
    }
    PIF_TRY_VALUE(const bool sent, step());
    PIF_TRY(talk.go_on(!sent && !(has_more && has_room()) && !is_done()));
  }
  return talk.end();
}

}  // namespace pif::tool
