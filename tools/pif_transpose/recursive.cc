#include "recursive.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "passes.h"
#include "pif/base/placement.h"
#include "pif/matrix/transpose.h"
#include "pif/tool/channel.h"
#include "pif/tool/ordered_output.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kMessageBytes = 4u << 20;
constexpr std::uint64_t kPutBytes = 4u << 20;  // of rows, before others are heard
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
  // Rows that the sender has of a band of the receiver's, in order; the grains of them that are used are in the body,
  // as many bytes of each as hold columns of the matrix.
  struct Rows {
    std::uint64_t band = 0;
    std::uint64_t first = 0;  // of the sender's rows of the band
    static auto members(auto& self) { return std::tie(self.band, self.first); }
  };
  struct Band {
    std::vector<std::byte> rows;  // row_bytes() each
    std::uint64_t come = 0;
  };
  std::uint64_t share() const { return plan_.band / dealt_.width(); }  // rows of a band that each LFS has
  // Of a band's row here: grains that are used in its first one.
  std::uint64_t row_bytes() const { return plan_.grain_bytes(plan_.used_grains(0) * plan_.band); }
  std::uint64_t rows_at_once(std::uint64_t first) const;
  std::uint64_t bytes_of(const std::vector<std::uint64_t>& places, std::uint64_t band, std::uint64_t first) const;
  Band& band_of(std::uint64_t number) { return bands_[dealt_.locate(number).row & 1]; }
  void find_places();
  [[nodiscard]] Status send_round(std::uint64_t first_band);
  [[nodiscard]] Status send_rows(std::uint64_t band);
  [[nodiscard]] Status do_band(std::uint64_t number);
  [[nodiscard]] Status put_rows(std::uint64_t band);
  [[nodiscard]] Status take(const tool::Channel<Rows>::Item& item);
  template <typename F>
  [[nodiscard]] Status go_on_until(const F& holds);

  tool::Worker& worker_;
  tool::Team& team_;
  tool::Input& input_;
  tool::Output& output_;
  const RecursivePlan& plan_;
  Passes& passes_;
  Placement dealt_;                                 // bands over the input's LFSs
  std::vector<std::uint32_t> ranks_;                // of these
  std::vector<std::vector<std::uint64_t>> places_;  // in a band, of the rows that an LFS has of it
  std::optional<tool::OrderedOutput> out_;
  std::optional<tool::Talk> talk_;
  std::optional<tool::Channel<Rows>> rows_;
  Band bands_[2];  // this worker's: the present one and the next
  Row round_ = 0;  // of the present one
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
  PIF_ASSERT(first < share(), first, share());
  const std::uint64_t most = std::max<std::uint64_t>(kMessageBytes / std::max<std::uint64_t>(row_bytes(), 1), 1);
  return std::min(most, share() - first);
}

// Of that message: zeros that the plan knows of do not travel.
std::uint64_t Bands::bytes_of(const std::vector<std::uint64_t>& places, std::uint64_t band, std::uint64_t first) const {
  std::uint64_t grains = 0;
  for (std::uint64_t i = 0; i < rows_at_once(first); ++i) grains += plan_.used_grains(places[first + i]);
  return grains * plan_.used_bytes(band);
}

Status Bands::send_rows(std::uint64_t band) {
  const std::uint32_t rank = ranks_[dealt_.locate(band).lfs];
  const auto& places = places_[input_.index()];
  const std::size_t used = plan_.used_bytes(band), grain = plan_.grain_bytes(plan_.band);
  for (std::uint64_t first = 0, count = 0; first < share(); first += count) {
    PIF_TRY(go_on_until([&] { return rows_->credit(rank).allows(bytes_of(places, band, first)); }));
    count = rows_at_once(first);
    const auto rows = passes_.rows(band * share() + first, count);
    net::Buffer body(bytes_of(places, band, first));
    std::byte* to = body.data();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::byte* from = rows.data() + i * plan_.row_bytes();
      for (std::uint64_t n = plan_.used_grains(places[first + i]); n > 0; --n, from += grain)
        to = std::copy_n(from, used, to);
    }
    if (rank != worker_.rank()) worker_.count_sent(body.size());
    PIF_TRY(rows_->send(rank, {band, first}, std::move(body)));
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
                       rows.first < share();
  const auto nonsense = [&] {
    return fail(Code::kInvalid, fmt::format("rows of band {}, which is none of this worker's", rows.band));
  };
  if (!is_mine) return nonsense();
  const auto& places = places_[static_cast<std::size_t>(found - ranks_.begin())];
  const std::uint64_t count = rows_at_once(rows.first);
  Band& band = band_of(rows.band);
  if (item.body.size() != bytes_of(places, rows.band, rows.first) || count > plan_.band - band.come) return nonsense();
  const std::size_t used = plan_.used_bytes(rows.band), grain = plan_.grain_bytes(plan_.band);
  band.rows.resize(plan_.band * row_bytes());
  const std::byte* from = item.body.data();
  for (std::uint64_t i = rows.first; i < rows.first + count; ++i) {
    std::byte* to = band.rows.data() + places[i] * row_bytes();
    for (std::uint64_t n = plan_.used_grains(places[i]); n > 0; --n, from += used, to += grain)
      std::copy_n(from, used, to);
  }
  band.come += count;
  return {};
}

// Row c of the band's transpose is row band * b + c of the whole one.
Status Bands::put_rows(std::uint64_t band) {
  const std::size_t length = output_.format().record_length;
  const std::uint64_t first = band * plan_.band, end = plan_.skipped + plan_.shape.column_count();
  std::uint64_t queued = 0;
  for (std::uint64_t row = std::max(first, plan_.skipped); row < std::min(first + plan_.band, end); ++row) {
    out_->put(row - plan_.skipped, {transposed_.data() + (row - first) * row_bytes(), length});
    if ((queued += length) < kPutBytes) continue;
    queued = 0;
    out_->flush();
    PIF_TRY(go_on_until([this] { return out_->has_room(); }));
  }
  out_->flush();
  return go_on_until([this] { return out_->has_room(); });
}

Status Bands::do_band(std::uint64_t number) {
  Band& band = band_of(number);
  PIF_TRY(go_on_until([&] { return band.come == plan_.band; }));
  const std::size_t row = row_bytes();
  transposed_.resize(band.rows.size());
  for (std::uint64_t first = 0; first < plan_.shape.row_count(); first += plan_.band) {
    const std::size_t grain = plan_.grain_bytes(first);
    matrix::transpose({band.rows.data() + grain, row}, plan_.band, plan_.band, {transposed_.data() + grain, row},
                      plan_.shape.element);
  }
  band.come = 0;
  ++round_;
  return put_rows(number);
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
