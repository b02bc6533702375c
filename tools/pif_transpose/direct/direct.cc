#include "direct/direct.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "direct/columns.h"
#include "direct/woven_rows.h"
#include "matrix/row_source.h"
#include "pif/tool/channel.h"
#include "pif/tool/parts.h"

namespace pif::transpose {
namespace {

constexpr std::uint32_t kUnderWayMax = 2;  // messages from one worker to another
constexpr Duration kSilenceMax =
    std::chrono::hours(24);  // a source reads its whole share first; a worker that dies ends the job

// Of each row of the receiver's component, bytes [offset, offset + bytes) of what the sender has of it; they are in the
// body, if they are not in the receiver's window.
struct Piece {
  std::uint64_t offset = 0, bytes = 0;
  bool is_last = false;  // of the stripe; there may be none in it
  static auto members(auto& self) { return std::tie(self.offset, self.bytes, self.is_last); }
};
using Pieces = tool::Channel<Piece>;

class Direct {
 public:
  Direct(tool::Worker& worker, tool::Team& team, tool::Input& input, tool::Output& output, const DirectPlan& plan)
      : worker_(worker),
        team_(team),
        input_(input),
        output_(output),
        plan_(plan),
        share_memory_(worker.shares_machine()) {
    make_sources();
  }

  [[nodiscard]] Status run();
  const DirectTimes& times() const { return times_; }

 private:
  // Where the pieces for one destination go.
  struct Outlet {
    std::uint32_t rank = 0;
    std::byte* next = nullptr;  // the next slot's
    std::size_t pitch = 0;
    net::Buffer body;  // of a message
  };
  void make_sources();
  [[nodiscard]] Status open();
  [[nodiscard]] Status do_stripe(const Stripe& stripe);
  [[nodiscard]] Status send_rows(const Stripe& stripe);
  [[nodiscard]] Status send_batches(const Stripe& stripe, RowSource& source);
  [[nodiscard]] Status send_batch(const Stripe& stripe, RowSource& source, std::uint64_t first, std::uint64_t count);
  [[nodiscard]] Status place_rows(const Stripe& stripe);
  [[nodiscard]] Status place_part(const Stripe& stripe, std::size_t part, std::atomic<std::uint64_t>& bytes);
  [[nodiscard]] Status begin_batch(const Stripe& stripe, std::uint64_t offset, std::uint64_t bytes);
  void find_places(const Stripe& stripe, std::uint64_t bytes);
  [[nodiscard]] Status end_batch(const Stripe& stripe, const Piece& piece);
  [[nodiscard]] Status tell_last();
  [[nodiscard]] Status take(const Stripe& stripe, const Pieces::Item& item);
  bool is_shared(const Outlet& outlet) const { return outlet.rank == worker_.rank() || share_memory_; }
  double take_seconds();
  void show_progress(std::uint64_t bytes) { worker_.progress(bytes_done_ += bytes, bytes_total_); }

  tool::Worker& worker_;
  tool::Team& team_;
  tool::Input& input_;
  tool::Output& output_;
  const DirectPlan& plan_;
  const bool share_memory_;
  std::vector<std::unique_ptr<RowSource>> rows_read_;  // of this LFS: all, or each thread's part, in their order
  std::optional<WovenRows> rows_;                      // if this LFS is one of the output's
  std::vector<std::uint32_t> sources_;                 // ranks, by LFS of the input
  std::vector<Outlet> outlets_;                        // by LFS of the output
  std::vector<tool::SharedMemory> windows_;            // of others, by rank; empty: not shared
  std::vector<std::byte*> places_;                     // of pieces, by column
  std::vector<std::byte> unwanted_;                    // where columns go that are not wanted
  std::vector<bool> is_over_;                          // by LFS of the input: it has sent all of the stripe
  tool::Talk* talk_ = nullptr;                         // of the stripe
  Pieces* pieces_ = nullptr;
  DirectTimes times_;
  Time begun_;
  std::uint64_t bytes_done_ = 0, bytes_total_ = 0;
};

Status Direct::open() {
  PIF_TRY_VALUE(sources_, worker_.ranks_on(input_));
  PIF_TRY_VALUE(const auto destinations, worker_.ranks_on(output_));
  for (const std::uint32_t rank : destinations) outlets_.push_back({rank, nullptr, 0, {}});
  if (output_.is_made()) {
    rows_.emplace(worker_, output_, input_.layout(), plan_);
    PIF_TRY(rows_->open());
  }
  if (share_memory_) {
    const tool::SharedMemory none;
    PIF_TRY_VALUE(windows_, team_.share(rows_ ? rows_->memory() : none));
    if (input_.is_here()) {
      for (const Outlet& outlet : outlets_)
        if (outlet.rank != worker_.rank())
          windows_[outlet.rank].populate(plan_.place_of(input_.index(), 0), plan_.slots * plan_.pitch);
    }
  }
  bytes_total_ = input_.bytes() +
                 plan_.shape.output_file_length().bytes / output_.layout().width();  // near enough for people's eyes
  return {};
}

double Direct::take_seconds() {
  const Time now = worker_.clock().now();
  return std::chrono::duration<double>(now - std::exchange(begun_, now)).count();
}

// ---- a source -------------------------------------------------------------------------------------------------------

// Bytes of the row that have the stripe's columns.
Range bytes_of(const Stripe& stripe, matrix::Element element) {
  return {(stripe.columns.begin - stripe.skipped) * element.bits / 8, element.bytes_of(stripe.columns.end)};
}

// A thread's rows begin with whole tiles, so that no two write to one line of the cache. Pieces that are sent go out
// from one thread, batch by batch.
void Direct::make_sources() {
  const Range rows = rows_here(input_, plan_.shape.rows);
  const std::uint64_t tile = matrix::tile_elements(plan_.shape.element);
  const std::uint64_t most = share_memory_ ? worker_.threads() : 1;
  const tool::Parts parts({0, rows.size()}, {.most = most, .unit = tile});  // pieces begin with the first row
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Range part = parts[i];
    rows_read_.push_back(std::make_unique<RowSource>(input_, Range{rows.begin + part.begin, rows.begin + part.end}));
  }
}

Status Direct::send_rows(const Stripe& stripe) {
  for (const auto& rows : rows_read_) rows->begin_stripe(bytes_of(stripe, plan_.shape.element));
  PIF_TRY(share_memory_ ? place_rows(stripe) : send_batches(stripe, *rows_read_.front()));
  for (const auto& rows : rows_read_) input_.count_read(rows->take_bytes_read());
  return tell_last();
}

// Straight into the windows.
Status Direct::place_rows(const Stripe& stripe) {
  if (!input_.is_here()) return {};
  PIF_TRY(begin_batch(stripe, 0, 0));
  find_places(stripe, plan_.pitch);
  std::atomic<std::uint64_t> bytes = 0;
  PIF_TRY(worker_.run_tasks(rows_read_.size(), [&](std::size_t part) { return place_part(stripe, part, bytes); }));
  bytes_done_ += bytes;
  return end_batch(stripe, {0, plan_.shape.element.bytes_of(rows_here(input_, plan_.shape.rows).size()), false});
}

// bytes: of rows that are done, by all parts.
Status Direct::place_part(const Stripe& stripe, std::size_t part, std::atomic<std::uint64_t>& bytes) {
  const matrix::Element element = plan_.shape.element;
  const Range columns = bytes_of(stripe, element);
  RowSource& source = *rows_read_[part];
  std::uint64_t before = 0;  // rows of this LFS
  for (std::size_t i = 0; i < part; ++i) before += rows_read_[i]->count();
  const std::uint64_t at_once = plan_.rows_at_once(1);
  for (std::uint64_t first = 0; first < source.count(); first += at_once) {
    const std::uint64_t count = std::min(at_once, source.count() - first);
    PIF_TRY_VALUE(const matrix::ConstRows in, source.next(count));
    const matrix::RowPlaces to{places_, element.bytes_of(before + first)};
    matrix::transpose(in, count, places_.size(), to, element);
    bytes += count * (columns.end - columns.begin);
    if (part == 0) worker_.progress(bytes_done_ + bytes, bytes_total_);  // that one is on the worker's own thread
  }
  return {};
}

Status Direct::send_batches(const Stripe& stripe, RowSource& source) {
  const std::uint64_t at_once = plan_.rows_at_once(worker_.threads());
  for (std::uint64_t first = 0; first < source.count(); first += at_once)
    PIF_TRY(send_batch(stripe, source, first, std::min(at_once, source.count() - first)));
  return {};
}

Status Direct::send_batch(const Stripe& stripe, RowSource& source, std::uint64_t first, std::uint64_t count) {
  const matrix::Element element = plan_.shape.element;
  const Piece piece{element.bytes_of(first), element.bytes_of(count), false};
  PIF_TRY_VALUE(const matrix::ConstRows in, source.next(count));
  PIF_TRY(begin_batch(stripe, piece.offset, piece.bytes));
  find_places(stripe, piece.bytes);
  transpose_columns(worker_.threads(), in, count, places_, element);
  show_progress(count * (bytes_of(stripe, element).end - bytes_of(stripe, element).begin));
  return end_batch(stripe, piece);
}

// Room for the pieces: in the destination's window, or in a message, when few enough are under way.
Status Direct::begin_batch(const Stripe& stripe, std::uint64_t offset, std::uint64_t bytes) {
  const parity::Layout& layout = output_.layout();
  for (LfsIndex lfs = 0; lfs < outlets_.size(); ++lfs) {
    Outlet& outlet = outlets_[lfs];
    const std::uint64_t slots = layout.rows(lfs, stripe.records).size();
    if (slots == 0) continue;
    if (is_shared(outlet)) {
      const tool::SharedMemory& window = outlet.rank == worker_.rank() ? rows_->memory() : windows_[outlet.rank];
      outlet.next = window.bytes().data() + plan_.place_of(input_.index(), 0) + offset;
      outlet.pitch = plan_.pitch;
      continue;
    }
    PIF_TRY(talk_->until([&] { return pieces_->credit(outlet.rank).allows(slots * bytes); }));
    outlet.body = net::Buffer(slots * bytes);
    outlet.next = outlet.body.data();
    outlet.pitch = bytes;
  }
  return {};
}

void Direct::find_places(const Stripe& stripe, std::uint64_t bytes) {
  unwanted_.resize(bytes);
  places_.assign(stripe.skipped, unwanted_.data());
  for (RecordNumber record = stripe.records.begin; record < stripe.records.end; ++record) {
    Outlet& outlet = outlets_[output_.layout().locate(record).lfs];
    places_.push_back(outlet.next);
    outlet.next += outlet.pitch;
  }
}

Status Direct::end_batch(const Stripe& stripe, const Piece& piece) {
  const parity::Layout& layout = output_.layout();
  for (LfsIndex lfs = 0; lfs < outlets_.size(); ++lfs) {
    Outlet& outlet = outlets_[lfs];
    const std::uint64_t slots = layout.rows(lfs, stripe.records).size();
    if (outlet.rank != worker_.rank()) worker_.count_sent(slots * piece.bytes);
    if (slots == 0 || is_shared(outlet)) continue;
    PIF_TRY(pieces_->send(outlet.rank, piece, std::move(outlet.body)));
  }
  return {};
}

Status Direct::tell_last() {
  if (!input_.is_here()) return {};
  for (const Outlet& outlet : outlets_) PIF_TRY(pieces_->send(outlet.rank, {0, 0, true}));
  return {};
}

// ---- a destination --------------------------------------------------------------------------------------------------

Status Direct::take(const Stripe& stripe, const Pieces::Item& item) {
  const auto found = std::find(sources_.begin(), sources_.end(), item.from);
  const auto source = static_cast<LfsIndex>(found - sources_.begin());
  if (found == sources_.end() || is_over_[source])
    return fail(Code::kInvalid, "pieces, when it has none or no more of the stripe");
  is_over_[source] = item.head.is_last;
  if (item.head.is_last) return {};
  if (!rows_) return fail(Code::kInvalid, "pieces to where there are none");
  return rows_->accept(stripe, source, item.head.offset, item.head.bytes, item.body.span());
}

// ---- both -----------------------------------------------------------------------------------------------------------

Status Direct::do_stripe(const Stripe& stripe) {
  is_over_.assign(sources_.size(), false);
  tool::Talk talk(team_, kSilenceMax);
  tool::ChannelOptions options;
  options.unit = tool::Credit::Unit::kMessages;
  options.window = kUnderWayMax;
  Pieces pieces(talk, 1, std::move(options), [&](const Pieces::Item& item) { return take(stripe, item); });
  talk_ = &talk;
  pieces_ = &pieces;
  times_.wait += take_seconds();
  PIF_TRY(send_rows(stripe));
  times_.transpose += take_seconds();
  PIF_TRY(
      talk.until([this] { return !output_.is_here() || std::count(is_over_.begin(), is_over_.end(), false) == 0; }));
  times_.wait += take_seconds();
  if (rows_) PIF_TRY(rows_->write(stripe));
  times_.put_together += take_seconds();
  return talk.end();  // before the windows are filled again
}

Status Direct::run() {
  begun_ = worker_.clock().now();
  PIF_TRY(open());
  for (std::uint64_t i = 0; i < plan_.stripe_count(); ++i) PIF_TRY(do_stripe(plan_.stripe(i)));
  return {};
}

}  // namespace

Result<DirectTimes> transpose_directly(tool::Worker& worker, tool::Team& team, tool::Input& input, tool::Output& output,
                                       const DirectPlan& plan) {
  Direct direct(worker, team, input, output, plan);
  PIF_TRY(direct.run());
  return direct.times();
}

}  // namespace pif::transpose
