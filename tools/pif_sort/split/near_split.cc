#include "split/near_split.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "output/output.h"
#include "output/share_merge.h"
#include "output/tails.h"
#include "pif/tool/message.h"
#include "sort.pb.h"

namespace pif::sort {

std::vector<std::uint32_t> mergers_before(std::span<const std::vector<std::uint32_t>> cores) {
  std::map<std::vector<std::uint32_t>, std::size_t> merging;  // by the cores that they may run on
  std::vector<std::uint32_t> before{0};
  for (const std::vector<std::uint32_t>& of_worker : cores) {
    const bool merges = merging[of_worker] < of_worker.size();
    if (merges) ++merging[of_worker];
    before.push_back(before.back() + (merges ? 1 : 0));
  }
  return before;
}

NearSplit::NearSplit(tool::Worker& worker, tool::Team& team, Inputs& inputs, tool::Output& output,
                     const KeyMaker& maker, const SplitOptions& options)
    : worker_(worker), team_(team), inputs_(inputs), output_(output), maker_(maker), options_(options) {}

Status NearSplit::run(Runs own) {
  PIF_TRY(share_runs(std::move(own)));
  PIF_TRY_VALUE(files_, team_.share_output(output_));
  const bool knows_rows =
      output_.format().is_fixed() && output_.layout().is_even() && !options_.unique && options_.header.empty();
  PIF_TRY(knows_rows ? put_out_rows() : put_out_stretches());
  files_.clear();  // the LFS seals only what nobody may write to any more
  return team_.barrier();
}

// ---- everybody's runs -----------------------------------------------------------------------------------------------

Status NearSplit::share_area(const Area& own, Area Runs::*area) {
  PIF_TRY_VALUE(auto all, share(team_, own, false));
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) runs_[rank].*area = std::move(all[rank]);
  return {};
}

Status NearSplit::share_counts(const Runs& own) {
  message::SharedRuns shared;
  shared.set_by_row(own.by_row);
  shared.set_has_zeros(own.traits.has_zeros);
  shared.set_is_ended(own.traits.is_ended);
  for (const std::uint64_t count : own.counts) shared.add_counts(count);
  for (const std::uint32_t core : worker_.cores()) shared.add_cores(core);
  PIF_TRY_VALUE(const auto all, team_.all_gather(shared.SerializeAsString()));
  const auto records = inputs_.rows_by_rank();
  std::vector<std::vector<std::uint32_t>> cores;
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    PIF_TRY_VALUE(const auto each, tool::parse_message<message::SharedRuns>(all[rank], rank));
    runs_[rank].by_row = each.by_row();
    runs_[rank].traits.has_zeros = each.has_zeros();
    runs_[rank].traits.is_ended = each.is_ended();
    runs_[rank].counts.assign(each.counts().begin(), each.counts().end());
    if (!holds_together(runs_[rank], inputs_.format(), records[rank], options_.first))
      return tool::sent_nonsense(
          rank, fmt::format("{} runs that are not the {} records that it has", each.counts_size(), records[rank]));
    if (each.cores().empty()) return tool::sent_nonsense(rank, "no core that it may run on");
    cores.emplace_back(each.cores().begin(), each.cores().end());
    if (options_.memory != 0)
      cores.back() = {rank};  // from scratch files all merge, each waiting for a disk of its own
  }
  mergers_before_ = mergers_before(cores);
  return {};
}

// What is shared is mapped once more, this worker's own runs too: they are not kept as they came.
Status NearSplit::share_runs(Runs own) {
  runs_.resize(worker_.width());
  PIF_TRY(share_area(own.elements, &Runs::elements));
  PIF_TRY(share_area(own.records, &Runs::records));
  PIF_TRY(share_area(own.ends, &Runs::ends));
  PIF_TRY(share_counts(own));
  for (const Runs& runs : runs_) {
    if (runs.by_row && merges()) runs.records.file.populate();  // records are picked from all of it
  }
  for (std::uint32_t source = 0; source < inputs_.ranks().size(); ++source) {
    for (const RunView& view : views_of(runs_[inputs_.ranks()[source]], inputs_.format(), maker_, source)) {
      views_.push_back(view);
      records_ += view.elements.size();
    }
  }
  if (!options_.unique) records_ = options_.sorted_max(records_);
  if (options_.memory > 0) share_memory(views_, options_.memory, worker_.threads());
  return {};
}

// ---- the share ------------------------------------------------------------------------------------------------------

// The position where the share of worker `rank` begins.
std::uint64_t NearSplit::share_begin(std::uint32_t rank, std::uint64_t alignment) const {
  const std::uint32_t all = mergers_before_.back(), before = mergers_before_[std::min(rank, worker_.width())];
  if (before == all) return records_;
  const std::uint64_t share = (records_ + all - 1) / all;
  const std::uint64_t even = std::min(share * before, records_);
  return even / alignment * alignment;
}

// ---- the output -----------------------------------------------------------------------------------------------------

// The worker of the last rank knows how all components of the output ended: whoever has one of them takes it from
// there.
Status NearSplit::take_tails(const std::string& own) {
  PIF_TRY_VALUE(const auto last, team_.broadcast(own, worker_.width() - 1));
  PIF_TRY_VALUE(const auto ends, unpack_tails(last, worker_.width() - 1, files_.size()));
  if (output_.is_made()) output_.set_tail(ends[output_.index()], false);
  return {};
}

Status NearSplit::put_out_rows() {
  const std::uint64_t alignment = ParallelOutput::alignment(output_.format(), output_.layout());
  const Range share{share_begin(worker_.rank(), alignment), share_begin(worker_.rank() + 1, alignment)};
  put_out_ = {share.end - share.begin, (share.end - share.begin) * output_.format().record_length};
  ParallelOutput out(output_, files_, records_);
  std::uint64_t done = 0;
  PIF_TRY(ShareMerge(worker_, maker_, inputs_.numbers(), output_, views_, share).write(out, [&](std::uint64_t records) {
    done += records * output_.format().record_length;
    worker_.progress(inputs_.bytes() + std::min(done, inputs_.bytes()), 2 * inputs_.bytes());
  }));
  worker_.count_sent(out.moved_bytes());
  std::string tails;
  PIF_TRY(team_.in_turn([&](std::string& state) -> Status {
    Status finished = out.finish(state, worker_.rank());
    tails = state;
    return finished;
  }));
  return take_tails(tails);
}

// Which numbers this worker's share has when each has `count` records of its own: the last ones may be too many.
Result<Range> NearSplit::count_share(std::uint64_t count) {
  PIF_TRY_VALUE(const auto counts, team_.all_gather_numbers({count}));
  Range share;
  const std::uint64_t there = records_ + options_.header.size();
  std::uint64_t all = 0;
  for (std::uint32_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank][0] > there - all)
      return tool::sent_nonsense(rank, fmt::format("a share of {} records", counts[rank][0]));
    all += counts[rank][0];
    if (rank < worker_.rank()) share.begin = all;
  }
  const std::uint64_t most = options_.put_out_max(all);
  share = {std::min(share.begin, most), std::min(share.begin + count, most)};
  return share;
}

// Where this worker's stretch of each component begins, when each worker has so many bytes for them.
Result<std::vector<std::uint64_t>> NearSplit::bytes_before(const std::vector<std::uint64_t>& own) {
  PIF_TRY_VALUE(const auto all, team_.all_gather_numbers(own));
  const std::uint64_t most = inputs_.bytes_max();
  std::vector<std::uint64_t> before(own.size());
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t lfs = 0; lfs < own.size(); ++lfs) {
      if (all[rank][lfs] > most - sum)
        return tool::sent_nonsense(rank, fmt::format("{} bytes for LFS {}", all[rank][lfs], lfs));
      sum += all[rank][lfs];
      if (rank < worker_.rank()) before[lfs] += all[rank][lfs];
    }
  }
  return before;
}

namespace {

std::vector<Bytes> records_of(std::span<const std::string> texts) {
  std::vector<Bytes> records;
  for (const std::string& text : texts) records.push_back(std::as_bytes(std::span(text)));
  return records;
}

}  // namespace

Status NearSplit::put_out_stretches() {
  const Range positions{share_begin(worker_.rank(), 1), share_begin(worker_.rank() + 1, 1)};
  std::vector<Bytes> header;  // before the first share
  if (worker_.rank() == 0) header = records_of(options_.header);
  Stretches out(worker_, output_, files_,
                {maker_, inputs_.numbers(), views_, options_.unique, options_.memory == 0, header}, positions);
  PIF_TRY_VALUE(const std::uint64_t records, out.count());
  PIF_TRY_VALUE(const Range share, count_share(records));
  if (share.size() < records) out.cut(share.size());
  PIF_TRY_VALUE(const auto bytes, out.measure(share.begin));
  PIF_TRY_VALUE(const auto before, bytes_before(bytes));
  put_out_ = {share.size(), std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0})};
  worker_.count_sent(put_out_.bytes - (output_.is_here() ? bytes[output_.index()] : 0));
  std::uint64_t done = 0;
  PIF_TRY(out.write(before, [&](std::uint64_t written) {
    done += written;
    worker_.progress(inputs_.bytes() + std::min(done, inputs_.bytes()), 2 * inputs_.bytes());
  }));
  std::string tails;
  PIF_TRY(team_.in_turn([&](std::string& state) { return finish_stretches(out, state, tails); }));
  return take_tails(tails);
}

// state: how the components go on, as the worker before this one has left them. tails: how they end, if this is the
// last one.
Status NearSplit::finish_stretches(Stretches& out, std::string& state, std::string& tails) {
  std::vector<component::Seam> seams(files_.size());
  if (worker_.rank() > 0) {
    PIF_TRY_VALUE(seams, unpack_seams(state, worker_.rank() - 1, files_.size()));
    for (const component::Seam& seam : seams)
      if (auto fits = component::check_seam(output_.shape(), seam); !fits)
        return tool::sent_wrong(worker_.rank() - 1, fits.error());
  }
  PIF_TRY(out.finish(seams));
  state = pack_seams(seams);
  if (worker_.rank() + 1 < worker_.width()) return {};
  std::vector<component::Tail> ends(files_.size());
  for (std::size_t lfs = 0; lfs < files_.size(); ++lfs) {
    if (!files_[lfs].data) continue;
    PIF_TRY_VALUE(ends[lfs], component::end_at(output_.shape(), files_[lfs], seams[lfs]));
  }
  tails = pack_tails(ends);
  return {};
}

}  // namespace pif::sort
