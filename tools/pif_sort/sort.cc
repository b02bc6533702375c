#include "sort.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "merge.h"
#include "output.h"
#include "run.h"
#include "token_sort.h"

namespace pif::sort {
namespace {

constexpr std::size_t kBatchBytes = 4u << 20;  // of records, merged and written at once
using Json = nlohmann::json;

// ---- what the controller tells the workers --------------------------------------------------------------------------

std::string pack(const Wish& wish) {
  Json keys = Json::array();
  for (const std::string& key : wish.keys.keys) keys.push_back(key);
  const std::string separator = wish.keys.separator ? std::string(1, *wish.keys.separator) : std::string();
  return Json{{"keys", keys},
              {"separator", Json::binary({separator.begin(), separator.end()})},
              {"numeric", wish.keys.numeric},
              {"reverse", wish.keys.reverse},
              {"blanks", wish.keys.skip_blanks},
              {"unique", wish.unique},
              {"memory", wish.memory},
              {"merge", static_cast<int>(wish.merge)},
              {"batch", wish.token_batch}}
      .dump(-1, ' ', true);
}

Wish unpack(std::string_view text) {
  const Json json = Json::parse(text);
  Wish wish;
  for (const auto& key : json.at("keys")) wish.keys.keys.push_back(key.get<std::string>());
  const auto& separator = json.at("separator").at("bytes");
  if (!separator.empty()) wish.keys.separator = static_cast<char>(separator.at(0).get<int>());
  wish.keys.numeric = json.at("numeric").get<bool>();
  wish.keys.reverse = json.at("reverse").get<bool>();
  wish.keys.skip_blanks = json.at("blanks").get<bool>();
  wish.unique = json.at("unique").get<bool>();
  wish.memory = json.at("memory").get<std::uint64_t>();
  wish.merge = static_cast<MergeKind>(json.at("merge").get<int>());
  wish.token_batch = json.at("batch").get<std::uint64_t>();
  return wish;
}

// ---- a worker -------------------------------------------------------------------------------------------------------

class Sorter {
 public:
  Sorter(tool::Worker& worker, const Wish& wish, const KeyMaker& maker, tool::Input& input, tool::Output& output, tool::Team team)
      : worker_(worker), wish_(wish), maker_(maker), input_(input), output_(output), team_(std::move(team)),
        order_(maker, input.layout()) {}

  [[nodiscard]] Status run();

 private:
  TokenOptions token_options() const;
  [[nodiscard]] Status merge_by_token();
  [[nodiscard]] Result<std::uint32_t> rank_of(LfsIndex lfs) const;
  [[nodiscard]] Status share_runs();
  [[nodiscard]] Status share_area(const Area& own, Area Runs::*area);
  [[nodiscard]] Status share_counts(const Runs& own);
  [[nodiscard]] Status put_out_parallel();
  [[nodiscard]] Status put_out_in_turn();
  [[nodiscard]] Status take_tails(const std::string& own);
  [[nodiscard]] Result<Share> count_share(std::uint64_t count);
  [[nodiscard]] Status append_share(LfsIndex lfs, Share share, std::string& state);
  template <typename F>
  [[nodiscard]] Status for_each_pick(const F& f);
  std::uint64_t cut_rank(std::uint32_t rank, std::uint64_t alignment) const;
  Merger merger(std::uint64_t begin, std::uint64_t end);
  std::optional<Pick> last_before(const std::vector<std::size_t>& cut);

  tool::Worker& worker_;
  const Wish& wish_;
  const KeyMaker& maker_;
  tool::Input& input_;
  tool::Output& output_;
  tool::Team team_;
  Order order_;
  std::vector<Runs> runs_;        // of all workers, by rank
  std::vector<RunView> views_;
  std::vector<component::Files> files_;
  std::uint64_t records_ = 0;
  Extent put_out_;                // by this worker
};

Status Sorter::share_area(const Area& own, Area Runs::*area) {
  PIF_TRY_VALUE(auto memories, team_.share(own.memory));
  PIF_TRY_VALUE(auto files, team_.share(own.file));
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    (runs_[rank].*area).memory = std::move(memories[rank]);
    (runs_[rank].*area).file = std::move(files[rank]);
  }
  return {};
}

Status Sorter::share_counts(const Runs& own) {
  PIF_TRY_VALUE(const auto all, team_.all_gather(fmt::format("{} {}", own.by_row ? 1 : 0, fmt::join(own.counts, " "))));
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    std::istringstream text(all[rank]);
    text >> runs_[rank].by_row;
    for (std::uint64_t count = 0; text >> count;) runs_[rank].counts.push_back(count);
  }
  return {};
}

Result<std::uint32_t> Sorter::rank_of(LfsIndex lfs) const {
  const auto rank = worker_.rank_on(input_.file().nodes[lfs].id());
  if (!rank) return fail(Code::kInternal, fmt::format("there is no worker on {}", input_.file().nodes[lfs].name()));
  return *rank;
}

Status Sorter::share_runs() {
  PIF_TRY_VALUE(const Runs own, load_runs(worker_, input_, maker_, wish_.memory / worker_.width()));
  runs_.resize(worker_.width());
  PIF_TRY(share_area(own.elements, &Runs::elements));
  PIF_TRY(share_area(own.records, &Runs::records));
  PIF_TRY(share_area(own.ends, &Runs::ends));
  PIF_TRY(share_counts(own));
  for (LfsIndex lfs = 0; lfs < input_.layout().width(); ++lfs) {
    PIF_TRY_VALUE(const std::uint32_t rank, rank_of(lfs));
    for (const RunView& view : views_of(runs_[rank], input_.format(), lfs)) {
      views_.push_back(view);
      records_ += view.elements.size();
    }
  }
  return {};
}

// Where the share of worker `rank` begins.
std::uint64_t Sorter::cut_rank(std::uint32_t rank, std::uint64_t alignment) const {
  if (rank >= worker_.width()) return records_;
  const std::uint64_t share = (records_ + worker_.width() - 1) / worker_.width();
  const std::uint64_t even = std::min(share * rank, records_);
  return even / alignment * alignment;
}

Merger Sorter::merger(std::uint64_t begin, std::uint64_t end) {
  return Merger(views_, cut_at(views_, begin, order_), cut_at(views_, end, order_), order_);
}

// The worker of the last rank knows how all components of the output ended: whoever has one of them takes it from there.
Status Sorter::take_tails(const std::string& own) {
  PIF_TRY_VALUE(const auto all, team_.all_gather(own));
  PIF_TRY_VALUE(const auto ends, unpack_tails(all.back(), files_.size()));
  if (output_.is_made()) output_.set_tail(ends[output_.index()], false);
  return {};
}

Status Sorter::put_out_parallel() {
  const std::uint64_t alignment = ParallelOutput::alignment(output_.format(), output_.layout());
  const Share share{cut_rank(worker_.rank(), alignment), cut_rank(worker_.rank() + 1, alignment)};
  put_out_ = {share.end - share.begin, (share.end - share.begin) * output_.format().record_length};
  ParallelOutput out(output_, files_, records_);
  Merger merge = merger(share.begin, share.end);
  const std::size_t at_once = std::max<std::size_t>(1, kBatchBytes / output_.format().record_length);
  std::vector<Pick> picks;
  for (std::uint64_t first = share.begin; first < share.end; first += picks.size()) {
    picks.clear();
    for (; picks.size() < at_once && !merge.is_done(); merge.advance()) picks.push_back(merge.peek());
    PIF_TRY(out.write(first, picks, views_));
    const std::uint64_t done = (first - share.begin + picks.size()) * output_.format().record_length;
    worker_.progress(input_.bytes() + std::min(done, input_.bytes()), 2 * input_.bytes());
  }
  std::string tails;
  PIF_TRY(team_.in_turn([&](std::string& state) {
    Status finished = out.finish(state);
    tails = state;
    return finished;
  }));
  return take_tails(tails);
}

// The record just before a cut.
std::optional<Pick> Sorter::last_before(const std::vector<std::size_t>& cut) {
  std::optional<Pick> last;
  for (std::uint32_t run = 0; run < views_.size(); ++run) {
    if (cut[run] == 0) continue;
    const Pick pick{run, static_cast<std::uint32_t>(cut[run] - 1)};
    if (!last || order_.less(views_[last->run], last->index, views_[run], pick.index)) last = pick;
  }
  return last;
}

// f(pick) for all of this worker's share in order, without those that a -u drops.
template <typename F>
Status Sorter::for_each_pick(const F& f) {
  const std::uint64_t begin = cut_rank(worker_.rank(), 1), end = cut_rank(worker_.rank() + 1, 1);
  std::vector<std::size_t> from = cut_at(views_, begin, order_);
  std::optional<Pick> last = last_before(from);
  Merger merge(views_, std::move(from), cut_at(views_, end, order_), order_);
  for (; !merge.is_done(); merge.advance()) {
    const Pick pick = merge.peek();
    const bool again = wish_.unique && last &&
                       order_.compare_keys(views_[last->run], last->index, views_[pick.run], pick.index) == 0;
    if (again) continue;
    PIF_TRY(f(pick));
    last = pick;
  }
  return {};
}

// Where this worker's share begins when each has `count` records of its own.
Result<Share> Sorter::count_share(std::uint64_t count) {
  PIF_TRY_VALUE(const auto counts, team_.all_gather(std::to_string(count)));
  Share share;
  for (std::uint32_t rank = 0; rank < worker_.rank(); ++rank) share.begin += std::stoull(counts[rank]);
  share.end = share.begin + count;
  return share;
}

// While one worker appends to one component, the next one may append to the component before it. The share is merged again
// for each component rather than kept: memory does not grow with it.
Status Sorter::put_out_in_turn() {
  const OutputRecord record(output_.format());
  PIF_TRY(for_each_pick([&](Pick pick) -> Status {
    ++put_out_.records;
    put_out_.bytes += record.size(views_[pick.run].record(pick.index));
    return {};
  }));
  PIF_TRY_VALUE(const Share share, count_share(put_out_.records));
  std::string own_tails;
  for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs) {
    std::string tail = pack_tails(std::vector<component::Tail>(1));
    PIF_TRY(team_.in_turn([&](std::string& state) {
      Status appended;
      if (files_[lfs].data) appended = append_share(lfs, share, state);
      if (!state.empty()) tail = state;
      return appended;
    }));
    own_tails += tail;
  }
  return take_tails(own_tails);
}

Status Sorter::append_share(LfsIndex lfs, Share share, std::string& state) {
  component::Tail tail;
  if (!state.empty()) {
    PIF_TRY_VALUE(const auto before, unpack_tails(state, 1));
    tail = before[0];
  }
  Appender appender(output_, lfs, tail, files_[lfs]);
  std::uint64_t rank = share.begin;
  PIF_TRY(for_each_pick([&](Pick pick) { return appender.offer(rank++, views_[pick.run].record(pick.index)); }));
  PIF_TRY_VALUE(tail, appender.finish(share.end));
  state = pack_tails({&tail, 1});
  return {};
}

// A block is worth a message, but no more than a few MiB, however long records are.
TokenOptions Sorter::token_options() const {
  TokenOptions options;
  options.pipelined = wish_.merge == MergeKind::kPipelined;
  options.figure = wish_.token_batch == 0;
  options.in_memory = wish_.memory == 0;
  const std::uint64_t record = std::max<std::uint64_t>(input_.extent().bytes / std::max<std::uint64_t>(input_.extent().records, 1), 1);
  options.block_records = std::clamp<std::uint64_t>(wish_.token_batch, 1, std::max<std::uint64_t>(kBatchBytes / record, 1));
  return options;
}

Status Sorter::merge_by_token() {
  PIF_TRY_VALUE(const Runs own, load_runs(worker_, input_, maker_, wish_.memory / worker_.width()));
  const std::uint64_t count = std::accumulate(own.counts.begin(), own.counts.end(), std::uint64_t{0});
  PIF_TRY_VALUE(const auto counts, team_.all_gather(std::to_string(count)));
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint64_t> records;
  for (LfsIndex lfs = 0; lfs < input_.layout().width(); ++lfs) {
    PIF_TRY_VALUE(const std::uint32_t rank, rank_of(lfs));
    ranks.push_back(rank);
    records.push_back(std::stoull(counts[rank]));
  }
  std::vector<RunView> views;
  if (input_.is_here()) views = views_of(own, input_.format(), input_.index());
  TokenSort sort(worker_, team_, token_options(), maker_, output_, std::move(ranks), std::move(records));
  PIF_TRY(sort.run(std::move(views), order_));
  const Extent& shipped = sort.shipped();
  worker_.set_result(fmt::format("{} {} {} {}", shipped.records, shipped.bytes, sort.counts().hops, sort.counts().crossings));
  return {};
}

Status Sorter::run() {
  if (wish_.merge != MergeKind::kSplit) return merge_by_token();
  PIF_TRY(share_runs());
  PIF_TRY_VALUE(files_, team_.share_output(output_));
  const bool in_turn = !output_.format().is_fixed() || output_.layout().has_parity() || wish_.unique;
  PIF_TRY(in_turn ? put_out_in_turn() : put_out_parallel());
  files_.clear();  // the LFS seals only what nobody may write to any more
  worker_.set_result(fmt::format("{} {} 0 0", put_out_.records, put_out_.bytes));
  return team_.barrier();
}

// ---- the controller -------------------------------------------------------------------------------------------------

// What the machine has to spare, less a quarter for the page cache to write with.
std::uint64_t spare_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024 / 4 * 3;
  }
  return 1u << 30;
}

struct Task {
  std::string source, target;
  std::size_t input = 0;
  Extent extent;
  std::uint64_t memory = 0;  // 0: all of it is sorted in memory
  CreateOptions options;
};

Result<Task> prepare(tool::Controller& controller, const Wish& wish) {
  Task task;
  PIF_TRY_VALUE(task.source, tool::pif_path(wish.source));
  PIF_TRY_VALUE(task.input, controller.open(task.source));
  File& source = controller.input(task.input);
  PIF_TRY_VALUE(task.extent, source.extent());
  const Format& format = source.format();
  PIF_TRY(KeyMaker::make(wish.keys, format));
  const bool short_last = format.is_fixed() && task.extent.bytes != task.extent.records * format.record_length;
  if (short_last) {
    return fail(Code::kInvalid, fmt::format("{}: the last record is shorter than {} bytes: records of one length can be sorted "
                                            "only if all have it (pif put --record-length, or --lines)",
                                            task.source, format.record_length));
  }
  if (wish.check) return task;
  if (wish.unique && wish.merge != MergeKind::kSplit) {
    return fail(Code::kUnsupported, "-u is done by the split merge only: leave --merge away");
  }
  PIF_TRY_VALUE(task.target, tool::pif_path(wish.target));
  const std::uint64_t memory = wish.memory != 0 ? wish.memory : spare_memory();
  const std::uint64_t times = wish.merge == MergeKind::kSplit ? 1 : 2;  // sub-files beside the runs
  task.memory = times * run_bytes(format, task.extent) > memory ? memory : 0;
  PIF_TRY_VALUE(const Entry entry, controller.client().stat(task.source));
  task.options.format = format;
  task.options.mode = entry.mode;
  task.options.attributes = source.attributes();
  task.options.exclusive = wish.no_clobber;
  if (wish.width) {
    task.options.width = *wish.width;
  } else {
    task.options.nodes.assign(source.nodes().begin(), source.nodes().end());
    task.options.bevies.assign(source.layout().bevies().begin(), source.layout().bevies().end());
  }
  return task;
}

Result<tool::ExitCode> check(tool::Controller& controller, const Wish& wish, const Task& task) {
  PIF_TRY_VALUE(const KeyMaker maker, KeyMaker::make(wish.keys, controller.input(task.input).format()));
  std::string disorder;
  PIF_TRY_VALUE(const bool sorted, is_sorted(controller.input(task.input), task.source, maker, wish.unique, disorder));
  if (sorted) return tool::ExitCode::kDone;
  fmt::print(stderr, "pif-sort: {}\n", disorder);
  return tool::ExitCode::kNegative;
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const Wish& wish) {
  PIF_TRY_VALUE(const Task task, prepare(controller, wish));
  if (wish.check) return check(controller, wish, task);
  if (task.extent.records == 0) {
    PIF_TRY(controller.client().create_empty(task.target, task.options));
    return tool::ExitCode::kDone;
  }
  PIF_TRY_VALUE(const std::size_t output, controller.create(task.target, task.options));
  if (task.options.format.is_fixed() && !wish.unique) controller.set_extent(output, task.extent);
  tool::Job job;
  Wish told = wish;
  told.memory = task.memory;
  job.value = pack(told);
  PIF_TRY_VALUE(const auto results, controller.run(job));
  Extent extent;
  for (const std::string& result : results) {
    std::size_t end = 0;
    extent.records += std::stoull(result, &end);
    extent.bytes += std::stoull(result.substr(end));
  }
  controller.set_extent(output, extent);
  PIF_TRY(controller.commit());
  return tool::ExitCode::kDone;
}

Status work(tool::Worker& worker) {
  const Wish wish = unpack(worker.value());
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(const KeyMaker maker, KeyMaker::make(wish.keys, input->format()));
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  return Sorter(worker, wish, maker, *input, *output, std::move(team)).run();
}

Result<tool::Plan> explain(tool::Controller& controller, const Wish& wish) {
  PIF_TRY_VALUE(const Task task, prepare(controller, wish));
  tool::Plan plan;
  plan.emplace_back("source", task.source);
  plan.emplace_back("target", task.target);
  plan.emplace_back("records", std::to_string(task.extent.records));
  plan.emplace_back("bytes", std::to_string(task.extent.bytes));
  plan.emplace_back("memory_needed", std::to_string(run_bytes(controller.input(task.input).format(), task.extent)));
  plan.emplace_back("runs", task.memory == 0 ? "in memory, one on each LFS"
                                             : fmt::format("in scratch files, made in {} MiB", task.memory >> 20));
  plan.emplace_back("merge", "split: every worker merges its own share of all sorted components");
  return plan;
}

}  // namespace pif::sort
