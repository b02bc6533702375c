// The workers of a sort.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cost.h"
#include "messages.h"
#include "pif/base/assert.h"
#include "runs/common.h"
#include "runs/run.h"
#include "split/far_split.h"
#include "split/near_split.h"
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
  own.traits.lengths.pack(sizes);
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
  Sorter(tool::Worker& worker, const SortOptions& options, const KeyMaker& maker, Inputs& inputs, tool::Output& output,
         tool::Team team)
      : worker_(worker),
        options_(options),
        maker_(maker),
        inputs_(inputs),
        output_(output),
        team_(std::move(team)),
        order_(maker, inputs.numbers()) {}

  [[nodiscard]] Status run();

 private:
  double take_seconds();  // since the last call
  // 0: there is enough for everything.
  std::uint64_t own_memory() const {
    return options_.memory == 0 ? 0 : std::max<std::uint64_t>(options_.memory / worker_.width(), 1);
  }
  First first() const { return {options_.top, options_.unique}; }
  SplitOptions split_options() const { return {options_.unique, first(), own_memory(), options_.header}; }
  [[nodiscard]] Result<Runs> sort_runs();
  [[nodiscard]] Status merge_near();
  [[nodiscard]] Status merge_far();
  TokenOptions token_options(const Lengths& lengths) const;
  [[nodiscard]] Result<std::optional<InputRecords>> share_input(const Runs& own, const RunsOfAll& all);
  [[nodiscard]] Status merge_by_token();

  tool::Worker& worker_;
  const SortOptions& options_;
  const KeyMaker& maker_;
  Inputs& inputs_;
  tool::Output& output_;
  tool::Team team_;
  Order order_;
  FileLength put_out_;  // by this worker
  Outcome outcome_;
  Time begun_;  // the present phase
};

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
  const std::uint64_t record = std::max<std::uint64_t>(
      inputs_.file_length().bytes / std::max<std::uint64_t>(inputs_.file_length().records, 1), 1);
  const std::uint64_t most = std::min<std::uint64_t>(kBlockBytes / record, KeyList::fit(lengths, kBodyBytesMax));
  token.block_records = std::clamp<std::uint64_t>(options_.token_batch, 1, std::max<std::uint64_t>(most, 1));
  return token;
}

// Where all workers see the whole input in memory, sub-files need not have its records.
Result<std::optional<InputRecords>> Sorter::share_input(const Runs& own, const RunsOfAll& all) {
  const auto key = maker_.fixed_length();
  const bool is_worth_it = key && 2 * *key <= inputs_.format().record_length;
  const tool::Input* const input = inputs_.only();
  if (input == nullptr || !all.by_row || !worker_.shares_machine() || !is_worth_it) return std::nullopt;
  PIF_TRY_VALUE(auto areas, share(team_, own.records, false));
  InputRecords records(input->layout(), inputs_.format().record_length);
  const auto rows = inputs_.rows_by_rank();
  for (const std::uint32_t rank : inputs_.ranks()) {
    if (areas[rank].bytes().size() < rows[rank] * inputs_.format().record_length)
      return tool::sent_nonsense(rank, "a component that is shorter than its rows");
    areas[rank].file.populate();
    records.add(std::move(areas[rank]));
  }
  return records;
}

Status Sorter::merge_by_token() {
  PIF_TRY_VALUE(const Runs own, sort_runs());
  PIF_TRY_VALUE(const RunsOfAll all, gather(team_, own, inputs_.rows_by_rank()));
  PIF_TRY_VALUE(const auto input_records, share_input(own, all));
  std::vector<std::uint64_t> records;
  for (const std::uint32_t rank : inputs_.ranks()) records.push_back(all.records[rank]);
  std::vector<RunView> views;
  if (inputs_.is_here()) views = views_of(own, inputs_.format(), maker_, inputs_.source());
  if (own_memory() > 0) share_memory(views, own_memory(), 1);
  TokenOptions token = token_options(all.lengths);
  if (input_records) token.input = &*input_records;
  TokenSort sort(worker_, team_, token, maker_, output_, inputs_.ranks(), std::move(records));
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
  PIF_TRY_VALUE(Runs own, load_runs(worker_, inputs_, maker_, {own_memory(), first(), options_.merge_inputs}));
  outcome_.sort_seconds = take_seconds();
  worker_.begin_phase(kMergePhase);
  return own;
}

// All workers see everybody's runs.
Status Sorter::merge_near() {
  PIF_TRY_VALUE(Runs own, sort_runs());
  NearSplit split(worker_, team_, inputs_, output_, maker_, split_options());
  PIF_TRY(split.run(std::move(own)));
  put_out_ = split.put_out();
  return {};
}

// No worker sees the others' runs.
Status Sorter::merge_far() {
  PIF_TRY_VALUE(const Runs own, sort_runs());
  std::vector<RunView> views;
  if (inputs_.is_here()) views = views_of(own, inputs_.format(), maker_, inputs_.source());
  FarSplit split(worker_, team_, inputs_, output_, maker_, split_options());
  PIF_TRY(split.run(views));
  put_out_ = split.put_out();
  return {};
}

Status Sorter::run() {
  begun_ = worker_.clock().now();
  worker_.begin_phase(kSortPhase);
  if (options_.merge != MergeKind::kSplit) {
    PIF_TRY(merge_by_token());
  } else {
    PIF_TRY(worker_.shares_machine() ? merge_near() : merge_far());
  }
  outcome_.merge_seconds = take_seconds();
  outcome_.put_out = put_out_;
  worker_.set_result(pack(outcome_));
  return {};
}

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const SortOptions options, unpack_options(worker.value()));
  PIF_TRY_VALUE(Inputs inputs, Inputs::open(worker, options.header_records));
  PIF_TRY_VALUE(KeyMaker maker, KeyMaker::make(options.keys, inputs.format()));
  if (options.check) {
    PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
    return check_share(worker, *input, maker, options.unique, options.header_records);
  }
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  PIF_TRY(find_common(team, inputs, maker));
  return Sorter(worker, options, maker, inputs, *output, std::move(team)).run();
}

}  // namespace pif::sort
