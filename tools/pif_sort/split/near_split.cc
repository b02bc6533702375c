#include "split/near_split.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "pif/tool/message.h"
#include "runs/kept_share.h"
#include "runs/output.h"
#include "runs/share_merge.h"
#include "runs/tails.h"
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

NearSplit::NearSplit(tool::Worker& worker, tool::Team& team, tool::Input& input, tool::Output& output,
                     const KeyMaker& maker, bool unique, std::uint64_t memory)
    : worker_(worker), team_(team), input_(input), output_(output), maker_(maker), unique_(unique), memory_(memory) {}

Status NearSplit::run(Runs own) {
  PIF_TRY(share_runs(std::move(own)));
  PIF_TRY_VALUE(files_, team_.share_output(output_));
  const bool in_turn = !output_.format().is_fixed() || !output_.layout().is_even() || unique_;
  PIF_TRY(in_turn ? put_out_in_turn() : put_out_parallel());
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
  for (const std::uint64_t count : own.counts) shared.add_counts(count);
  for (const std::uint32_t core : worker_.cores()) shared.add_cores(core);
  PIF_TRY_VALUE(const auto all, team_.all_gather(shared.SerializeAsString()));
  PIF_TRY_VALUE(const auto records, records_by_rank(worker_, input_));
  std::vector<std::vector<std::uint32_t>> cores;
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    PIF_TRY_VALUE(const auto each, tool::parse_message<message::SharedRuns>(all[rank], rank));
    runs_[rank].by_row = each.by_row();
    runs_[rank].counts.assign(each.counts().begin(), each.counts().end());
    if (!holds_together(runs_[rank], input_.format(), records[rank]))
      return tool::sent_nonsense(
          rank, fmt::format("{} runs that are not the {} records that it has", each.counts_size(), records[rank]));
    if (each.cores().empty()) return tool::sent_nonsense(rank, "no core that it may run on");
    cores.emplace_back(each.cores().begin(), each.cores().end());
    if (memory_ != 0) cores.back() = {rank};  // from scratch files all merge, each waiting for a disk of its own
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
  PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
  for (LfsIndex lfs = 0; lfs < ranks.size(); ++lfs) {
    for (const RunView& view : views_of(runs_[ranks[lfs]], input_.format(), lfs)) {
      views_.push_back(view);
      records_ += view.elements.size();
    }
  }
  if (memory_ > 0) share_memory(views_, memory_, worker_.threads());
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

Status NearSplit::put_out_parallel() {
  const std::uint64_t alignment = ParallelOutput::alignment(output_.format(), output_.layout());
  const Range share{share_begin(worker_.rank(), alignment), share_begin(worker_.rank() + 1, alignment)};
  put_out_ = {share.end - share.begin, (share.end - share.begin) * output_.format().record_length};
  ParallelOutput out(output_, files_, records_);
  std::uint64_t done = 0;
  PIF_TRY(ShareMerge(worker_, maker_, input_, output_, views_, share).write(out, [&](std::uint64_t records) {
    done += records * output_.format().record_length;
    worker_.progress(input_.bytes() + std::min(done, input_.bytes()), 2 * input_.bytes());
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

// f(pick) for all of this worker's share in order, without those that a -u drops.
template <typename F>
Status NearSplit::for_each_pick(const F& f) {
  ShareWalk walk(maker_, input_.layout(), views_, share_begin(worker_.rank(), 1), share_begin(worker_.rank() + 1, 1),
                 unique_);
  while (const auto pick = walk.next()) PIF_TRY(f(*pick));
  return {};
}

// Where this worker's share begins when each has `count` records of its own.
Result<Range> NearSplit::count_share(std::uint64_t count) {
  PIF_TRY_VALUE(const auto counts, team_.all_gather_numbers({count}));
  Range share;
  std::uint64_t all = 0;
  for (std::uint32_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank][0] > records_ - all)
      return tool::sent_nonsense(rank, fmt::format("a share of {} records", counts[rank][0]));
    all += counts[rank][0];
    if (rank < worker_.rank()) share.begin = all;
  }
  share.end = share.begin + count;
  return share;
}

// While one worker appends to one component, the next one may append to the component before it. Where memory is short,
// the share is merged again for each component rather than kept.
Status NearSplit::put_out_in_turn() {
  if (memory_ == 0) {
    const Range all{share_begin(worker_.rank(), 1), share_begin(worker_.rank() + 1, 1)};
    PIF_TRY_VALUE(kept_, find_share(worker_, maker_, input_.layout(), views_, all, unique_));
    put_out_.records = kept_.size();
  } else {
    PIF_TRY(for_each_pick([&](Pick) -> Status {
      ++put_out_.records;
      return {};
    }));
  }
  PIF_TRY_VALUE(const Range share, count_share(put_out_.records));
  std::vector<component::Tail> tails;
  for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs) {
    component::Tail& tail = tails.emplace_back();
    PIF_TRY(team_.in_turn([&](std::string& state) -> Status {
      if (files_[lfs].data) return append_share(lfs, share, state, tail);
      return {};
    }));
  }
  return take_tails(pack_tails(tails));
}

// state: the component's end, as the worker before this one has left it; empty for the first one.
Status NearSplit::append_share(LfsIndex lfs, Range share, std::string& state, component::Tail& tail) {
  if (worker_.rank() > 0) {
    PIF_TRY_VALUE(const auto before, unpack_tails(state, worker_.rank() - 1, 1));
    if (before[0].rows != output_.layout().rows(lfs, share.begin))
      return tool::sent_nonsense(
          worker_.rank() - 1, fmt::format("{} rows of LFS {}, where {} come before this worker's", before[0].rows, lfs,
                                          output_.layout().rows(lfs, share.begin)));
    tail = before[0];
  }
  Appender appender(output_, lfs, tail, files_[lfs]);
  std::uint64_t position = share.begin;
  if (memory_ == 0) {
    PIF_TRY(appender.append(share.begin, kept_, views_, worker_.threads()));
  } else {
    PIF_TRY(for_each_pick([&](Pick pick) { return appender.offer(position++, views_[pick.run].record(pick.index)); }));
  }
  put_out_.bytes += appender.bytes();
  if (!output_.is_here() || lfs != output_.index()) worker_.count_sent(appender.bytes());
  PIF_TRY_VALUE(tail, appender.finish(share.end));
  state = pack_tails({&tail, 1});
  return {};
}

}  // namespace pif::sort
