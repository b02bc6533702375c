// The workers of a sort.
#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "messages.h"
#include "pif/base/assert.h"
#include "runs/kept_share.h"
#include "runs/merge.h"
#include "runs/output.h"
#include "runs/run.h"
#include "runs/share_merge.h"
#include "runs/tails.h"
#include "split/far_split.h"
#include "token/token_sort.h"

namespace pif::sort {
namespace {

constexpr std::size_t kBlockBytes = 4u << 20;  // of a token's block, at most

// What every worker has of the sorted runs.
struct RunsOfAll {
  std::vector<std::uint64_t> records;  // by rank
  Lengths lengths;                     // as Runs has them, of all together
  bool by_row = true;                  // as Runs, of all that have records
};

// records: that each worker has, by rank.
Result<RunsOfAll> gather(tool::Team& team, const Runs& own, std::vector<std::uint64_t> records) {
  message::RunSizes sizes;
  sizes.set_records(std::accumulate(own.counts.begin(), own.counts.end(), std::uint64_t{0}));
  own.lengths.pack(sizes);
  sizes.set_by_row(own.by_row || sizes.records() == 0);
  PIF_TRY_VALUE(const auto gathered, team.all_gather(sizes.SerializeAsString()));
  RunsOfAll all;
  all.records = std::move(records);
  for (std::uint32_t rank = 0; rank < gathered.size(); ++rank) {
    PIF_TRY_VALUE(const auto each, tool::parse_message<message::RunSizes>(gathered[rank], rank));
    const auto lengths = Lengths::unpack(each);
    if (!lengths || each.records() != all.records[rank])
      return tool::sent_nonsense(rank, fmt::format("{} sorted records of {}", each.records(), all.records[rank]));
    all.lengths.add(*lengths);
    all.by_row = all.by_row && each.by_row();
  }
  return all;
}

class Sorter {
 public:
  Sorter(tool::Worker& worker, const SortOptions& options, const KeyMaker& maker, tool::Input& input,
         tool::Output& output, tool::Team team)
      : worker_(worker),
        options_(options),
        maker_(maker),
        input_(input),
        output_(output),
        team_(std::move(team)),
        order_(maker, input.layout()) {}

  [[nodiscard]] Status run();

 private:
  double take_seconds();  // since the last call
  // 0: there is enough for everything.
  std::uint64_t own_memory() const {
    return options_.memory == 0 ? 0 : std::max<std::uint64_t>(options_.memory / worker_.width(), 1);
  }
  [[nodiscard]] Result<Runs> sort_runs();
  [[nodiscard]] Status merge_split();
  [[nodiscard]] Status merge_far();
  TokenOptions token_options(const Lengths& lengths) const;
  [[nodiscard]] Result<std::optional<InputRecords>> share_input(const Runs& own, const RunsOfAll& all);
  [[nodiscard]] Status merge_by_token();
  [[nodiscard]] Status share_runs();
  [[nodiscard]] Status share_area(const Area& own, Area Runs::*area);
  [[nodiscard]] Status share_counts(const Runs& own);
  void add_merger(std::vector<std::uint32_t> cores);
  bool merges() const { return mergers_before_[worker_.rank()] != mergers_before_[worker_.rank() + 1]; }
  [[nodiscard]] Status put_out_parallel();
  [[nodiscard]] Status put_out_in_turn();
  [[nodiscard]] Status take_tails(const std::string& own);
  [[nodiscard]] Result<std::vector<std::uint64_t>> records_by_rank() const;
  [[nodiscard]] Result<Range> count_share(std::uint64_t count);
  [[nodiscard]] Status append_share(LfsIndex lfs, Range share, std::string& state, component::Tail& tail);
  template <typename F>
  [[nodiscard]] Status for_each_pick(const F& f);
  std::uint64_t share_begin(std::uint32_t rank, std::uint64_t alignment) const;

  tool::Worker& worker_;
  const SortOptions& options_;
  const KeyMaker& maker_;
  tool::Input& input_;
  tool::Output& output_;
  tool::Team team_;
  Order order_;
  std::vector<Runs> runs_;  // of all workers, by rank
  std::vector<RunView> views_;
  std::vector<component::Files> files_;
  std::uint64_t records_ = 0;
  // Of workers with a share of the result: how many have a lower rank, by rank, and in the end all of them.
  std::vector<std::uint32_t> mergers_before_;
  std::map<std::vector<std::uint32_t>, std::size_t> merging_on_;  // of these, by the cores that they may run on
  std::vector<Pick> kept_;                                        // this worker's share, where there is memory for it
  FileLength put_out_;                                            // by this worker
  Outcome outcome_;
  Time begun_;  // the present phase
};

Status Sorter::share_area(const Area& own, Area Runs::*area) {
  PIF_TRY_VALUE(auto all, share(team_, own, false));
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) runs_[rank].*area = std::move(all[rank]);
  return {};
}

// Of the input, what the worker of each rank has.
Result<std::vector<std::uint64_t>> Sorter::records_by_rank() const {
  PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
  std::vector<std::uint64_t> records(worker_.width());
  for (LfsIndex lfs = 0; lfs < ranks.size(); ++lfs)
    records[ranks[lfs]] += input_.layout().rows(lfs, input_.file_length().records);
  return records;
}

Status Sorter::share_counts(const Runs& own) {
  message::SharedRuns shared;
  shared.set_by_row(own.by_row);
  for (const std::uint64_t count : own.counts) shared.add_counts(count);
  for (const std::uint32_t core : worker_.cores()) shared.add_cores(core);
  PIF_TRY_VALUE(const auto all, team_.all_gather(shared.SerializeAsString()));
  PIF_TRY_VALUE(const auto records, records_by_rank());
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    PIF_TRY_VALUE(const auto each, tool::parse_message<message::SharedRuns>(all[rank], rank));
    runs_[rank].by_row = each.by_row();
    runs_[rank].counts.assign(each.counts().begin(), each.counts().end());
    if (!holds_together(runs_[rank], input_.format(), records[rank]))
      return tool::sent_nonsense(
          rank, fmt::format("{} runs that are not the {} records that it has", each.counts_size(), records[rank]));
    if (each.cores().empty()) return tool::sent_nonsense(rank, "no core that it may run on");
    add_merger({each.cores().begin(), each.cores().end()});
  }
  return {};
}

// The worker of the next rank may run on these cores. In memory, more that merge than there are cores for gain nothing,
// and each maps all records. From scratch files each waits for a disk of its own.
void Sorter::add_merger(std::vector<std::uint32_t> cores) {
  if (mergers_before_.empty()) mergers_before_.push_back(0);
  const std::size_t most = cores.size();
  std::size_t& merging = merging_on_[std::move(cores)];
  const bool merges = options_.memory != 0 || merging < most;
  if (merges) ++merging;
  mergers_before_.push_back(mergers_before_.back() + (merges ? 1 : 0));
}

Status Sorter::share_runs() {
  PIF_TRY_VALUE(const Runs own, sort_runs());
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
  return {};
}

// The position where the share of worker `rank` begins.
std::uint64_t Sorter::share_begin(std::uint32_t rank, std::uint64_t alignment) const {
  const std::uint32_t all = mergers_before_.back(), before = mergers_before_[std::min(rank, worker_.width())];
  if (before == all) return records_;
  const std::uint64_t share = (records_ + all - 1) / all;
  const std::uint64_t even = std::min(share * before, records_);
  return even / alignment * alignment;
}

// The worker of the last rank knows how all components of the output ended: whoever has one of them takes it from
// there.
Status Sorter::take_tails(const std::string& own) {
  PIF_TRY_VALUE(const auto last, team_.broadcast(own, worker_.width() - 1));
  PIF_TRY_VALUE(const auto ends, unpack_tails(last, worker_.width() - 1, files_.size()));
  if (output_.is_made()) output_.set_tail(ends[output_.index()], false);
  return {};
}

Status Sorter::put_out_parallel() {
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
Status Sorter::for_each_pick(const F& f) {
  ShareWalk walk(maker_, input_.layout(), views_, share_begin(worker_.rank(), 1), share_begin(worker_.rank() + 1, 1),
                 options_.unique);
  while (const auto pick = walk.next()) PIF_TRY(f(*pick));
  return {};
}

// Where this worker's share begins when each has `count` records of its own.
Result<Range> Sorter::count_share(std::uint64_t count) {
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
Status Sorter::put_out_in_turn() {
  if (options_.memory == 0) {
    const Range all{share_begin(worker_.rank(), 1), share_begin(worker_.rank() + 1, 1)};
    PIF_TRY_VALUE(kept_, find_share(worker_, maker_, input_.layout(), views_, all, options_.unique));
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
Status Sorter::append_share(LfsIndex lfs, Range share, std::string& state, component::Tail& tail) {
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
  if (options_.memory == 0) {
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

// A block is worth a message, but no more than a few MiB, however long records are; and its keys fit into a message
// (and its records into as much), also where the longest ones meet.
TokenOptions Sorter::token_options(const Lengths& lengths) const {
  TokenOptions token;
  token.pipelined = options_.merge == MergeKind::kPipelined;
  token.figure = options_.token_batch == 0;
  token.in_memory = options_.memory == 0;
  token.share_memory = worker_.shares_machine();
  token.unique = options_.unique;
  token.key_bytes = lengths.longest();
  const std::uint64_t record =
      std::max<std::uint64_t>(input_.file_length().bytes / std::max<std::uint64_t>(input_.file_length().records, 1), 1);
  const std::uint64_t most = std::min<std::uint64_t>(kBlockBytes / record, KeyList::fit(lengths, kBodyBytesMax));
  token.block_records = std::clamp<std::uint64_t>(options_.token_batch, 1, std::max<std::uint64_t>(most, 1));
  return token;
}

// Where all workers see the whole input in memory, sub-files need not have its records.
Result<std::optional<InputRecords>> Sorter::share_input(const Runs& own, const RunsOfAll& all) {
  const auto key = maker_.fixed_length();
  const bool is_worth_it = key && 2 * *key <= input_.format().record_length;
  if (!all.by_row || !worker_.shares_machine() || !is_worth_it) return std::nullopt;
  PIF_TRY_VALUE(auto areas, share(team_, own.records, false));
  PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
  InputRecords records(input_.layout(), input_.format().record_length);
  for (LfsIndex lfs = 0; lfs < ranks.size(); ++lfs) {
    const std::uint64_t rows = input_.layout().rows(lfs, input_.file_length().records);
    if (areas[ranks[lfs]].bytes().size() < rows * input_.format().record_length)
      return tool::sent_nonsense(ranks[lfs], "a component that is shorter than its rows");
    const Area& area = areas[ranks[lfs]];
    area.file.populate();
    records.add(std::move(areas[ranks[lfs]]));
  }
  return records;
}

Status Sorter::merge_by_token() {
  PIF_TRY_VALUE(const Runs own, sort_runs());
  PIF_TRY_VALUE(auto by_rank, records_by_rank());
  PIF_TRY_VALUE(const RunsOfAll all, gather(team_, own, std::move(by_rank)));
  PIF_TRY_VALUE(const auto input_records, share_input(own, all));
  PIF_TRY_VALUE(auto ranks, worker_.ranks_on(input_));
  std::vector<std::uint64_t> records;
  for (const std::uint32_t rank : ranks) records.push_back(all.records[rank]);
  std::vector<RunView> views;
  if (input_.is_here()) views = views_of(own, input_.format(), input_.index());
  TokenOptions token = token_options(all.lengths);
  if (input_records) token.input = &*input_records;
  TokenSort sort(worker_, team_, token, maker_, output_, std::move(ranks), std::move(records));
  PIF_TRY(sort.run(std::move(views), order_));
  outcome_.counts = sort.counts();
  put_out_ = sort.shipped();
  return {};
}

double Sorter::take_seconds() {
  const Time now = worker_.clock().now();
  return std::chrono::duration<double>(now - std::exchange(begun_, now)).count();
}

// The local phase.
Result<Runs> Sorter::sort_runs() {
  PIF_TRY_VALUE(Runs own, load_runs(worker_, input_, maker_, own_memory()));
  outcome_.sort_seconds = take_seconds();
  return own;
}

// No worker sees the others' runs.
Status Sorter::merge_far() {
  PIF_TRY_VALUE(const Runs own, sort_runs());
  std::vector<RunView> views;
  if (input_.is_here()) views = views_of(own, input_.format(), input_.index());
  FarSplit split(worker_, team_, input_, output_, maker_, options_.unique, own_memory());
  PIF_TRY(split.run(views));
  put_out_ = split.put_out();
  return {};
}

Status Sorter::merge_split() {
  PIF_TRY(share_runs());
  PIF_TRY_VALUE(files_, team_.share_output(output_));
  const bool in_turn = !output_.format().is_fixed() || !output_.layout().is_even() || options_.unique;
  PIF_TRY(in_turn ? put_out_in_turn() : put_out_parallel());
  files_.clear();  // the LFS seals only what nobody may write to any more
  return team_.barrier();
}

Status Sorter::run() {
  begun_ = worker_.clock().now();
  if (options_.merge != MergeKind::kSplit) {
    PIF_TRY(merge_by_token());
  } else {
    PIF_TRY(worker_.shares_machine() ? merge_split() : merge_far());
  }
  outcome_.merge_seconds = take_seconds();
  outcome_.put_out = put_out_;
  worker_.set_result(pack(outcome_));
  return {};
}

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const SortOptions options, unpack_options(worker.value()));
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(const KeyMaker maker, KeyMaker::make(options.keys, input->format()));
  if (options.check) return check_share(worker, *input, maker, options.unique);
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  return Sorter(worker, options, maker, *input, *output, std::move(team)).run();
}

}  // namespace pif::sort
