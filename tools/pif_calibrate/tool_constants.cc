#include "tool_constants.h"

#include <algorithm>

#include "../pif_sort/cost.h"
#include "../pif_transpose/matrix/cost.h"
#include "../pif_transpose/recursive/recursive_plan.h"
#include "pif/tool/memory.h"
#include "pif/tool/prediction.h"
#include "runs.h"
#include "solve.h"

namespace pif::calibrate {
namespace {

using C = tool::Constants;
using sort::MergeKind;

constexpr std::uint64_t kBytesOfLfs = 10'000'000, kWidthMin = 4;  // of files, on each LFS; of so many at least
constexpr std::uint32_t kShort = 100, kLong = 500;                // bytes of a record
constexpr std::uint64_t kTiny = 1000, kFew = 8000;                // records: nothing to do, and a hop for each
constexpr std::uint64_t kMemory = 32u << 20;                      // so that there are runs
constexpr std::uint64_t kBitsFew = 16384, kBitsMany = 32768;      // rows and columns of a matrix
constexpr std::uint32_t kPasses = 5;  // of a recursive transpose, or as many as the least memory makes
constexpr std::uint64_t kBlock = 64;  // records, of tokens that decide on some

std::uint64_t bytes_of(std::uint64_t lfss) { return kBytesOfLfs * std::max(lfss, kWidthMin); }

std::uint64_t bits_of(std::uint64_t lfss) { return lfss > kWidthMin ? kBitsMany : kBitsFew; }

class ToolConstants {
 public:
  // lfss: by which the files are laid out, of so many bytes, and bits of a row.
  ToolConstants(Workspace& workspace, tool::Calibration& calibration, std::vector<std::string> lfss,
                std::uint64_t bytes, std::uint64_t bits)
      : workspace_(workspace),
        calibration_(calibration),
        c_(calibration.constants),
        lfss_(std::move(lfss)),
        bytes_(bytes),
        bits_(bits) {}

  [[nodiscard]] Status measure() {
    PIF_TRY(measure_job());
    PIF_TRY(measure_copies());
    PIF_TRY(measure_local_and_split());
    PIF_TRY(measure_passes());
    PIF_TRY(measure_tokens());
    return measure_transposes();
  }

 private:
  struct SortRun {
    ToolRun run;
    sort::CostShape shape;
    MergeKind merge = MergeKind::kSplit;
  };
  std::uint32_t width() const { return static_cast<std::uint32_t>(lfss_.size()); }
  double cores() const { return std::min<double>(calibration_.hardware.cores, width()); }
  [[nodiscard]] Result<SortRun> sort(std::uint64_t records, std::uint32_t length, MergeKind merge,
                                     std::uint64_t memory = 0, std::uint64_t batch = sort::kTokenBatch);
  Formula phase_of(const SortRun& run, const char* phase) const;
  void solve_sort(Constant constant, const SortRun& run, const char* phase) {
    solve(calibration_, constant, run.run.part(phase), phase_of(run, phase));
  }
  void solve_sort(Constant of_record, Constant of_byte, const SortRun& shorter, const SortRun& longer,
                  const char* phase) {
    solve(calibration_, of_record, of_byte, {kShort, shorter.run.part(phase), phase_of(shorter, phase)},
          {kLong, longer.run.part(phase), phase_of(longer, phase)});
  }
  [[nodiscard]] Status measure_job();
  [[nodiscard]] Status measure_copy(const std::vector<std::string>& options, Constant fixed, Constant of_byte);
  [[nodiscard]] Status measure_copies();
  [[nodiscard]] Status measure_local_and_split();
  [[nodiscard]] Status measure_passes();
  [[nodiscard]] Status measure_tokens();
  [[nodiscard]] Status measure_token(std::uint64_t batch, Constant act, Constant pass, Constant work);
  struct RecursiveRun {
    ToolRun run;
    transpose::RecursiveShape shape;
  };
  [[nodiscard]] Result<RecursiveRun> transpose_in_passes(std::uint32_t passes);
  void solve_recursive(Constant constant, const RecursiveRun& run, const char* phase) {
    solve(calibration_, constant, run.run.part(phase), [&](const tool::Calibration& calibration) {
      return transpose::predict(calibration, run.shape).find(phase)->seconds();
    });
  }
  [[nodiscard]] Status measure_transposes();

  Workspace& workspace_;
  tool::Calibration& calibration_;
  tool::Constants& c_;
  std::vector<std::string> lfss_;
  std::uint64_t bytes_, bits_;
};

const char* name_of(MergeKind merge) {
  const auto found =
      std::find_if(sort::kMerges.begin(), sort::kMerges.end(), [&](const auto& entry) { return entry.first == merge; });
  return found->second;
}

Result<ToolConstants::SortRun> ToolConstants::sort(std::uint64_t records, std::uint32_t length, MergeKind merge,
                                                   std::uint64_t memory, std::uint64_t batch) {
  SortRun made;
  made.merge = merge;
  made.shape = {records, records * length, width(), 0, memory, batch};
  std::vector<std::string> options = {"-k", "0:10", "--merge", name_of(merge)};
  if (merge != MergeKind::kSplit) options.insert(options.end(), {"--token-batch", std::to_string(batch)});
  if (memory > 0) options.insert(options.end(), {"--memory", std::to_string(memory)});
  const std::string name = records <= kFew ? std::to_string(records) : length == kShort ? "short" : "long";
  PIF_TRY_VALUE(made.run, workspace_.run("sort", std::move(options), name));
  return made;
}

Formula ToolConstants::phase_of(const SortRun& run, const char* phase) const {
  return [shape = run.shape, merge = run.merge, phase](const tool::Calibration& calibration) {
    return sort::predict(calibration, shape, merge).find(phase)->seconds();
  };
}

// What a sort of next to nothing takes.
Status ToolConstants::measure_job() {
  PIF_TRY_VALUE(const SortRun tiny, sort(kTiny, kShort, MergeKind::kSplit));
  const ToolRun& run = tiny.run;
  c_.connect = run.phase("connect");
  c_.create = run.phase("create");
  c_.spawn = run.phase("spawn");
  c_.start = std::max(0.0, run.phase("work") - run.parts_together());
  c_.seal = run.phase("seal");
  c_.commit = run.phase("commit");
  c_.merge_fixed = run.part(sort::kMergePhase);
  PIF_TRY_VALUE(const SortRun token, sort(kTiny, kShort, MergeKind::kToken));
  solve_sort(&C::pass_fixed, token, sort::kMergePhase);
  PIF_TRY_VALUE(const SortRun flow, sort(kTiny, kShort, MergeKind::kPipelined));
  c_.flow_fixed = flow.run.part(sort::kMergePhase);
  return {};
}

Status ToolConstants::measure_copy(const std::vector<std::string>& options, Constant fixed, Constant of_byte) {
  PIF_TRY_VALUE(const ToolRun tiny, workspace_.run("copy", options, std::to_string(kTiny)));
  PIF_TRY_VALUE(const ToolRun whole, workspace_.run("copy", options, "short"));
  c_.*fixed = std::max(0.0, tiny.phase("work") - c_.start);
  if (options.empty()) c_.copy_durable_byte = whole.count("bytes_cloned") > 0 ? 0 : c_.durable_byte;
  const double seconds = std::max(0.0, whole.phase("work") - tiny.phase("work"));
  c_.*of_byte = seconds * cores() / static_cast<double>(bytes_ - kTiny * kShort);
  return {};
}

Status ToolConstants::measure_copies() {
  PIF_TRY(measure_copy({}, &C::copy_fixed, &C::copy_byte));
  c_.exchange_fixed = c_.copy_fixed;
  c_.exchange_byte = c_.copy_byte;
  if (width() < 2) return {};
  std::string others = lfss_.back();
  for (std::size_t i = 0; i + 1 < lfss_.size(); ++i) others += "," + lfss_[i];
  return measure_copy({"--nodes", others}, &C::exchange_fixed, &C::exchange_byte);
}

Status ToolConstants::measure_local_and_split() {
  const std::uint64_t few = bytes_ / kLong, many = bytes_ / kShort;
  PIF_TRY_VALUE(const SortRun shorter, sort(many, kShort, MergeKind::kSplit));
  PIF_TRY_VALUE(const SortRun longer, sort(few, kLong, MergeKind::kSplit));
  solve_sort(&C::sort_record, &C::sort_byte, shorter, longer, sort::kSortPhase);
  solve_sort(&C::merge_record, &C::merge_byte, shorter, longer, sort::kMergePhase);
  PIF_TRY_VALUE(const SortRun shorter_runs, sort(many, kShort, MergeKind::kSplit, kMemory));
  PIF_TRY_VALUE(const SortRun longer_runs, sort(few, kLong, MergeKind::kSplit, kMemory));
  solve_sort(&C::run_record, &C::run_byte, shorter_runs, longer_runs, sort::kSortPhase);
  solve_sort(&C::merge_run_record, shorter_runs, sort::kMergePhase);
  return {};
}

Status ToolConstants::measure_passes() {
  const std::uint64_t few = bytes_ / kLong, many = bytes_ / kShort;
  PIF_TRY_VALUE(const SortRun shorter, sort(many, kShort, MergeKind::kToken));
  PIF_TRY_VALUE(const SortRun longer, sort(few, kLong, MergeKind::kToken));
  solve_sort(&C::pass_record, &C::pass_byte, shorter, longer, sort::kMergePhase);
  PIF_TRY_VALUE(const SortRun on_disk, sort(many, kShort, MergeKind::kToken, kMemory));
  PIF_TRY_VALUE(const SortRun longer_on_disk, sort(few, kLong, MergeKind::kToken, kMemory));
  solve_sort(&C::pass_disk_record, &C::pass_disk_byte, on_disk, longer_on_disk, sort::kMergePhase);
  PIF_TRY_VALUE(const SortRun flow, sort(many, kShort, MergeKind::kPipelined));
  PIF_TRY_VALUE(const SortRun longer_flow, sort(few, kLong, MergeKind::kPipelined));
  solve_sort(&C::flow_record, &C::flow_byte, flow, longer_flow, sort::kMergePhase);
  // What a block takes, from blocks of one record and of many: a + k and a + n k.
  PIF_TRY_VALUE(const SortRun ones, sort(kFew, kShort, MergeKind::kToken, 0, 1));
  const double block = static_cast<double>(sort::kTokenBatch), one = ones.run.count("token_act_ns") * 1e-9;
  c_.token_key = std::max(0.0, (shorter.run.count("token_act_ns") * 1e-9 - one) / (block - 1));
  c_.token_act = std::max(0.0, one - c_.token_key);
  return {};
}

// Tokens at all levels at once use all cores; one after another they wait for each other.
Status ToolConstants::measure_token(std::uint64_t batch, Constant act, Constant pass, Constant work) {
  PIF_TRY_VALUE(const SortRun flow, sort(kFew, kShort, MergeKind::kPipelined, 0, batch));
  PIF_TRY_VALUE(const SortRun token, sort(kFew, kShort, MergeKind::kToken, 0, batch));
  if (batch == 0) c_.*act = token.run.count("token_act_ns") * 1e-9;
  c_.*pass = 0;
  solve_sort(work, flow, sort::kMergePhase);
  const double at_once = c_.*work;
  solve_sort(work, token, sort::kMergePhase);
  c_.*work = std::min(c_.*work, at_once);
  solve_sort(pass, token, sort::kMergePhase);
  return {};
}

Status ToolConstants::measure_tokens() {
  PIF_TRY(measure_token(1, &C::token_act, &C::token_pass, &C::token_work));
  PIF_TRY_VALUE(const SortRun blocks, sort(bytes_ / kShort, kShort, MergeKind::kToken, 0, kBlock));
  solve_sort(&C::block_work, blocks, sort::kMergePhase);
  return measure_token(0, &C::figure_act, &C::figure_pass, &C::figure_work);
}

Status ToolConstants::measure_transposes() {
  const std::uint64_t bytes = bits_ * bits_ / 8;
  const auto solve_direct = [&](const ToolRun& run, const char* phase, Constant constant,
                                const transpose::DirectShape& shape) {
    solve(calibration_, constant, run.part(phase), [&](const tool::Calibration& calibration) {
      return transpose::predict(calibration, shape).find(phase)->seconds();
    });
  };
  const std::vector<std::string> columns = {"--columns", std::to_string(bits_)};
  PIF_TRY_VALUE(const ToolRun direct, workspace_.run("transpose", columns, "bits"));
  // Each destination has all rows' pieces of its columns in its windows: all of the matrix, all together.
  const transpose::DirectShape shape{bytes, width(), width(), 1, bytes, 0};
  solve_direct(direct, transpose::kTransposePhase, &C::turn_byte, shape);
  solve_direct(direct, transpose::kWritePhase, &C::weave_byte, shape);
  const auto rest = [&](const ToolRun& run) {
    return run.phase("work") - run.part(transpose::kTransposePhase) - run.part(transpose::kWritePhase);
  };
  const std::vector<std::string> few = {"--columns", std::to_string(8 * kShort)};
  PIF_TRY_VALUE(const ToolRun tiny_direct, workspace_.run("transpose", few, std::to_string(kTiny)));
  c_.direct_fixed = std::max(0.0, rest(tiny_direct) - c_.start);
  c_.window_byte = std::max(0.0, rest(direct) - rest(tiny_direct)) * cores() / static_cast<double>(bytes);
  // A matrix of next to nothing.
  PIF_TRY_VALUE(const ToolRun tiny,
                workspace_.run("transpose", {"--columns", std::to_string(8 * kShort), "--algorithm", "recursive"},
                               std::to_string(kTiny)));
  c_.band_fixed = tiny.part(transpose::kBandPhase);
  PIF_TRY_VALUE(const RecursiveRun one_band, transpose_in_passes(0));
  solve_recursive(&C::load_byte, one_band, transpose::kPassPhase);
  solve_recursive(&C::band_byte, one_band, transpose::kBandPhase);
  PIF_TRY_VALUE(const RecursiveRun some, transpose_in_passes(1));
  PIF_TRY_VALUE(const RecursiveRun many, transpose_in_passes(kPasses));
  // What scratch files take is taken once, however many passes there are.
  c_.parts_byte = c_.pass_half_byte = 0;
  if (many.shape.passes > some.shape.passes) {
    const auto each = [&](const RecursiveRun& run) {
      return run.run.part(transpose::kPassPhase) * cores() / static_cast<double>(run.shape.bytes);
    };
    c_.pass_half_byte = std::max(0.0, each(many) - each(some)) / (many.shape.passes - some.shape.passes);
  }
  solve_recursive(&C::parts_byte, some, transpose::kPassPhase);
  solve_recursive(&C::small_band_byte, many, transpose::kBandPhase);
  return {};
}

// With memory for the bands of so many passes, or as many of these as the least memory makes; 0: as much as there is.
Result<ToolConstants::RecursiveRun> ToolConstants::transpose_in_passes(std::uint32_t passes) {
  RecursiveRun made;
  std::vector<std::string> options = {"--columns", std::to_string(bits_), "--algorithm", "recursive"};
  std::uint64_t memory = UINT64_MAX;
  if (passes > 0) {
    const std::uint64_t bands = 3 * width() * (bits_ >> passes) * (bits_ / 8);
    memory = std::max(bands + bands / 8, tool::kMemoryMin);
    options.insert(options.end(), {"--memory", std::to_string(memory)});
  }
  const transpose::Shape shape{{1, matrix::BitOrder::kMsb}, {0, bits_}, {0, bits_}};
  PIF_TRY_VALUE(const parity::Layout layout, parity::Layout::make(width()));
  const transpose::RecursivePlan plan = transpose::plan_recursive(shape, layout, memory);
  made.shape = {plan.rows() * plan.row_bytes(), bits_ * bits_ / 8, width(), plan.passes};
  PIF_TRY_VALUE(made.run, workspace_.run("transpose", std::move(options), "bits"));
  return made;
}

}  // namespace

Status measure_tools(Client& client, const std::string& where, tool::Calibration& calibration) {
  PIF_TRY_VALUE(Workspace workspace, Workspace::make(client, where));
  PIF_TRY(workspace.put(std::to_string(kTiny), kTiny, kShort));
  PIF_TRY(workspace.put(std::to_string(kFew), kFew, kShort));
  const std::uint64_t lfss_here = calibration.hardware.lfss.size();
  const std::uint64_t bytes = bytes_of(lfss_here), bits = bits_of(lfss_here);
  PIF_TRY(workspace.put("short", bytes / kShort, kShort));
  PIF_TRY(workspace.put("long", bytes / kLong, kLong));
  PIF_TRY(workspace.put("bits", bits, static_cast<std::uint32_t>(bits / 8)));
  PIF_TRY_VALUE(auto lfss, workspace.lfss("short"));
  return ToolConstants(workspace, calibration, std::move(lfss), bytes, bits).measure();
}

}  // namespace pif::calibrate
