#include "recursive/recursive.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "pif/base/placement.h"
#include "pif/matrix/transpose.h"
#include "pif/tool/channel.h"
#include "pif/tool/ordered_output.h"
#include "pif/tool/parallel.h"
#include "pif/tool/read_ahead.h"
#include "recursive/passes.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kMessageBytes = 4u << 20;
constexpr std::uint64_t kPutBytes = 4u << 20;  // of rows, before others are heard
constexpr std::uint64_t kTilesAtOnce = 16;     // side by side, of a grain
constexpr std::uint32_t kUnderWayMax = 2;      // messages of rows from one worker to another

// The last part of figure 5.15. Bands are dealt round to the input's workers; in each round everybody first sends to
// all what it has of their bands, each beginning with another one, then takes its own, transposes its grains and puts
// its rows out. A worker that is ahead has to wait for the others' rows, so that at most the next band comes while one
// is at work.
class Bands {
 public:
  Bands(tool::Worker& worker, tool::Team& team, tool::Input& input, tool::Output& output, const RecursivePlan& plan,
        Passes& passes)
      : worker_(worker),
        team_(team),
        input_(input),
        output_(output),
        plan_(plan),
        passes_(passes),
        dealt_(input.layout().width()) {}

  [[nodiscard]] Status run();

 private:
  // Rows that the sender has of a band of the receiver's: of the first square those in order, then of the one below it.
  // The body has of each row, in each of the band's squares side by side, the grains that are used; of these as many
  // bytes as hold columns of the matrix.
  struct Rows {
    std::uint64_t band = 0;
    std::uint64_t first = 0;  // of the sender's rows of the band
    static auto members(auto& self) { return std::tie(self.band, self.first); }
  };
  struct Gathered {
    std::vector<std::byte> rows;  // of each of its squares side by side, b of band_row_bytes() each
    std::uint64_t come = 0;
  };
  using Places = std::vector<std::uint64_t>;
  std::uint64_t share() const { return plan_.band / dealt_.width(); }  // rows of a band that each LFS has in a square
  std::uint64_t all_shares() const { return plan_.down * share(); }
  std::size_t square_bytes() const { return plan_.band * plan_.band_row_bytes(); }  // of one, in memory
  std::uint64_t used_bytes(const RecursivePlan::Band& band, std::uint64_t square) const {
    return plan_.shape.element.bytes_of(plan_.columns_of(band, square).size());
  }
  std::uint64_t rows_at_once(std::uint64_t first) const;
  template <typename F>
  void for_each_row(const Places& places, const RecursivePlan::Band& band, std::uint64_t first, const F& f) const;
  std::uint64_t bytes_of(const Places& places, const RecursivePlan::Band& band, std::uint64_t first) const;
  Gathered& gathered(std::uint64_t number) { return bands_[dealt_.locate(number).row & 1]; }
  void find_places();
  const std::byte* row_of(const RecursivePlan::Band& band, std::uint64_t down, std::uint64_t row) const;
  void read_ahead(const RecursivePlan::Band& band, std::uint64_t first) const;
  [[nodiscard]] Status send_round(std::uint64_t first_band);
  [[nodiscard]] Status send_rows(std::uint64_t band);
  [[nodiscard]] Status do_band(std::uint64_t number);
  void transpose_grains(const RecursivePlan::Band& band, const std::vector<std::byte>& rows);
  [[nodiscard]] Status put_rows(const RecursivePlan::Band& band);
  [[nodiscard]] Status take(const tool::Channel<Rows>::Item& item);
  template <typename F>
  [[nodiscard]] Status go_on_until(const F& holds);

  tool::Worker& worker_;
  tool::Team& team_;
  tool::Input& input_;
  tool::Output& output_;
  const RecursivePlan& plan_;
  Passes& passes_;
  Placement dealt_;                   // bands over the input's LFSs
  std::vector<std::uint32_t> ranks_;  // of these
  std::vector<Places> places_;        // in a band, of the rows that an LFS has of it in a square
  std::optional<tool::OrderedOutput> out_;
  std::optional<tool::Talk> talk_;
  std::optional<tool::Channel<Rows>> rows_;
  Gathered bands_[2];  // this worker's: the present one and the next
  Row round_ = 0;      // of the present one
  std::vector<std::byte> transposed_;
};

// The same in all bands, because they are as long as the layout's period or several.
void Bands::find_places() {
  places_.resize(dealt_.width());
  for (std::uint64_t i = 0; i < plan_.band; ++i)
    places_[input_.layout().locate(plan_.shape.rows.begin + i).lfs].push_back(i);
}

// Sends and takes until that holds; waits only when nothing else can be done.
template <typename F>
Status Bands::go_on_until(const F& holds) {
  while (true) {
    PIF_TRY_VALUE(const bool sent, out_->step());
    if (holds()) return {};
    PIF_TRY(talk_->go_on(!sent));
  }
}

// How many rows of a band go in the message that begins with the one numbered `first` of its sender.
std::uint64_t Bands::rows_at_once(std::uint64_t first) const {
  PIF_ASSERT(first < all_shares(), first, all_shares());
  const std::uint64_t row_bytes = plan_.blocks * plan_.grain_bytes(plan_.side);
  return std::min(std::max<std::uint64_t>(kMessageBytes / row_bytes, 1), all_shares() - first);
}

// Of that message: f(down, row, across, grains, bytes) for what a row has in each square side by side. It is row
// places[row] of the band in the squares numbered `down`; `grains` of them are used, and of each so many bytes.
template <typename F>
void Bands::for_each_row(const Places& places, const RecursivePlan::Band& band, std::uint64_t first, const F& f) const {
  for (std::uint64_t i = first; i < first + rows_at_once(first); ++i) {
    const std::uint64_t down = i / share(), row = i % share(), grains = plan_.used_grains(down, places[row]);
    for (std::uint64_t across = 0; grains > 0 && across < band.count; ++across)
      f(down, row, across, grains, used_bytes(band, band.first + across));
  }
}

// Zeros that the plan knows of do not travel.
std::uint64_t Bands::bytes_of(const Places& places, const RecursivePlan::Band& band, std::uint64_t first) const {
  std::uint64_t all = 0;
  for_each_row(places, band, first,
               [&](auto, auto, auto, std::uint64_t grains, std::size_t bytes) { all += grains * bytes; });
  return all;
}

// Of this LFS's rows of a band, in the squares numbered `down`.
const std::byte* Bands::row_of(const RecursivePlan::Band& band, std::uint64_t down, std::uint64_t row) const {
  return passes_.row(down * (plan_.side / dealt_.width()) + band.place * share() + row);
}

// What the message that begins with the row numbered `first` will have, if there is one.
void Bands::read_ahead(const RecursivePlan::Band& band, std::uint64_t first) const {
  if (first >= all_shares()) return;
  tool::ReadAhead ahead;
  for (std::uint64_t i = first; i < first + rows_at_once(first); ++i) {
    const std::uint64_t down = i / share(), row = i % share();
    if (plan_.used_grains(down, places_[input_.index()][row]) == 0) continue;  // it need not be there
    ahead.add({row_of(band, down, row) + plan_.grain_bytes(band.first * plan_.side),
               plan_.grain_bytes(band.count * plan_.side)});
  }
}

Status Bands::send_rows(std::uint64_t number) {
  const RecursivePlan::Band band = plan_.band_of(number);
  const std::uint32_t rank = ranks_[dealt_.locate(number).lfs];
  const Places& places = places_[input_.index()];
  const std::size_t grain = plan_.grain_bytes(plan_.band);
  read_ahead(band, 0);
  for (std::uint64_t first = 0; first < all_shares(); first += rows_at_once(first)) {
    const std::uint64_t size = bytes_of(places, band, first);
    read_ahead(band, first + rows_at_once(first));
    PIF_TRY(go_on_until([&] { return rows_->credit(rank).allows(size); }));
    net::Buffer body(size);
    std::byte* to = body.data();
    for_each_row(places, band, first, [&](auto down, auto row, auto across, std::uint64_t grains, std::size_t bytes) {
      const std::byte* from = row_of(band, down, row) + plan_.grain_bytes((band.first + across) * plan_.side);
      for (; grains > 0; --grains, from += grain) to = std::copy_n(from, bytes, to);
    });
    if (rank != worker_.rank()) worker_.count_sent(body.size());
    PIF_TRY(rows_->send(rank, {number, first}, std::move(body)));
  }
  return {};
}

// Each worker begins with another destination, so that they do not all go to the same one.
Status Bands::send_round(std::uint64_t first_band) {
  for (std::uint32_t i = 0; i < dealt_.width(); ++i) {
    const std::uint32_t turned = input_.index() + i, to = turned < dealt_.width() ? turned : turned - dealt_.width();
    if (first_band + to < plan_.band_count()) PIF_TRY(send_rows(first_band + to));
  }
  return {};
}

// Of this worker's present band or its next one, and no more of it than there is.
Status Bands::take(const tool::Channel<Rows>::Item& item) {
  const Rows& rows = item.head;
  const auto found = std::find(ranks_.begin(), ranks_.end(), item.from);
  const Cell place = dealt_.locate(rows.band);
  const bool is_mine = rows.band < plan_.band_count() && input_.is_here() && place.lfs == input_.index() &&
                       (place.row == round_ || place.row == round_ + 1) && found != ranks_.end() &&
                       rows.first < all_shares();
  const auto nonsense = [&] {
    return fail(Code::kInvalid, fmt::format("rows of band {}, which is none of this worker's", rows.band));
  };
  if (!is_mine) return nonsense();
  const Places& places = places_[static_cast<std::size_t>(found - ranks_.begin())];
  const RecursivePlan::Band band = plan_.band_of(rows.band);
  const std::uint64_t count = rows_at_once(rows.first);
  Gathered& to = gathered(rows.band);
  if (item.body.size() != bytes_of(places, band, rows.first) || count > plan_.down * plan_.band - to.come)
    return nonsense();
  const std::size_t grain = plan_.grain_bytes(plan_.band);
  to.rows.resize(std::max<std::size_t>(to.rows.size(), band.count * square_bytes()));
  const std::byte* from = item.body.data();
  for_each_row(places, band, rows.first,
               [&](auto down, auto row, auto across, std::uint64_t grains, std::size_t bytes) {
                 std::byte* at = to.rows.data() + across * square_bytes() + places[row] * plan_.band_row_bytes() +
                                 plan_.grain_bytes(down * plan_.side);
                 for (; grains > 0; --grains, from += bytes, at += grain) std::copy_n(from, bytes, at);
               });
  to.come += count;
  return {};
}

// Threads have whole tiles of a grain.
void Bands::transpose_grains(const RecursivePlan::Band& band, const std::vector<std::byte>& rows) {
  const matrix::Element element = plan_.shape.element;
  const std::size_t pitch = plan_.band_row_bytes(), grain = plan_.grain_bytes(plan_.band);
  const std::uint64_t grains = pitch / grain, step = kTilesAtOnce * matrix::tile_elements(element);
  const std::uint64_t steps = (plan_.band + step - 1) / step;
  transposed_.resize(rows.size());
  tool::for_each_part(worker_.threads(), band.count * grains * steps, [&](std::uint64_t part) {
    const std::uint64_t square = part / steps / grains, column = part % steps * step;
    const std::uint64_t columns = plan_.columns_of(band, band.first + square).size();
    if (column >= columns) return;
    const std::size_t at = square * square_bytes() + part / steps % grains * grain;
    matrix::transpose({rows.data() + at + element.bytes_of(column), pitch}, plan_.band,
                      std::min(step, columns - column), {transposed_.data() + at + column * pitch, pitch}, element);
  });
}

// A column of the matrix is a row of the output.
Status Bands::put_rows(const RecursivePlan::Band& band) {
  const std::size_t length = output_.format().record_length;
  std::uint64_t queued = 0;
  for (std::uint64_t square = 0; square < band.count; ++square) {
    const Range columns = plan_.columns_of(band, band.first + square);
    const std::byte* const rows = transposed_.data() + square * square_bytes();
    for (std::uint64_t column = std::max(columns.begin, plan_.skipped); column < columns.end; ++column) {
      out_->put(column - plan_.skipped, {rows + (column - columns.begin) * plan_.band_row_bytes(), length});
      if ((queued += length) < kPutBytes) continue;
      queued = 0;
      out_->flush();
      PIF_TRY(go_on_until([this] { return out_->has_room(); }));
    }
  }
  out_->flush();
  return go_on_until([this] { return out_->has_room(); });
}

Status Bands::do_band(std::uint64_t number) {
  Gathered& rows = gathered(number);
  PIF_TRY(go_on_until([&] { return rows.come == plan_.down * plan_.band; }));
  const RecursivePlan::Band band = plan_.band_of(number);
  transpose_grains(band, rows.rows);
  rows.come = 0;
  ++round_;
  return put_rows(band);
}

Status Bands::run() {
  PIF_TRY_VALUE(ranks_, worker_.ranks_on(input_));
  find_places();
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, team_, output_, plan_.shape.output_file_length(), {}));
  out_.emplace(std::move(out));
  talk_.emplace(team_);
  out_->join(*talk_);
  tool::ChannelOptions options;
  options.unit = tool::Credit::Unit::kMessages;
  options.window = kUnderWayMax;
  rows_.emplace(*talk_, 1, std::move(options), [this](const tool::Channel<Rows>::Item& item) { return take(item); });
  for (std::uint64_t first = 0; input_.is_here() && first < plan_.band_count(); first += dealt_.width()) {
    PIF_TRY(send_round(first));
    if (first + input_.index() < plan_.band_count()) PIF_TRY(do_band(first + input_.index()));
  }
  PIF_TRY(go_on_until([this] { return out_->is_done(); }));
  return talk_->end();
}

}  // namespace

Result<Phases> transpose_recursively(tool::Worker& worker, tool::Team& team, tool::Input& input, tool::Output& output,
                                     const RecursivePlan& plan) {
  Time begun = worker.clock().now();
  const auto take_seconds = [&] {
    const Time now = worker.clock().now();
    return std::chrono::duration<double>(now - std::exchange(begun, now)).count();
  };
  Passes passes(worker, team, input, plan);
  PIF_TRY(passes.load());
  PIF_TRY(passes.run());
  const double pass_seconds = take_seconds();
  PIF_TRY(Bands(worker, team, input, output, plan, passes).run());
  return Phases{{kPassPhase, pass_seconds}, {kBandPhase, take_seconds()}};
}

}  // namespace pif::transpose
