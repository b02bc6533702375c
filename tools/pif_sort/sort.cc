#include "sort.h"

#include <algorithm>

#include <fmt/format.h>

#include "cost.h"
#include "messages.h"
#include "pif/base/print.h"
#include "task.h"

namespace pif::sort {
namespace {

// By the workers. Nothing if they cannot.
Result<std::optional<OrderCheck>> check_by_workers(tool::Controller& controller, const SortOptions& wanted,
                                                   const Task& task, const KeyMaker& maker) {
  tool::Job job;
  SortOptions for_workers = wanted;
  for_workers.keys = task.keys;
  job.value = pack(for_workers);
  job.threads = wanted.threads;
  PIF_TRY_VALUE(const auto results, controller.run(job));
  OrderCheck order;
  CheckOutcome first;  // of the worker that knows the lowest suspect
  for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
    PIF_TRY_VALUE(const CheckOutcome outcome, unpack_check(results[rank], rank, task.file_length));
    if (!outcome.is_done) return std::nullopt;
    order.bytes += outcome.bytes;
    if (outcome.suspect && (!first.suspect || *outcome.suspect < *first.suspect)) first = outcome;
  }
  order.records = task.file_length.records;
  if (!first.suspect) return order;
  // Looked at once more, to say what is wrong as if it had been met here.
  const Range around{*first.suspect - std::min<std::uint64_t>(*first.suspect, 1), *first.suspect + 1};
  PIF_TRY_VALUE(OrderCheck found, check_order(controller.input(0), task.sources[0], maker, wanted.unique, around));
  if (found.sorted)
    return fail(Code::kInternal,
                fmt::format("{}: record {} is in order, but a worker could not check it{}{}", task.sources[0],
                            *first.suspect, first.error.empty() ? "" : ": ", first.error));
  found.records = *first.suspect + 1;
  found.bytes = order.bytes;
  return found;
}

Result<OrderCheck> check_anywhere(tool::Controller& controller, const SortOptions& wanted, const Task& task) {
  File& file = controller.input(0);
  PIF_TRY_VALUE(const KeyMaker maker, KeyMaker::make(task.keys, file.format()));
  if (task.file_length.bytes >= wanted.check_by_workers && task.file_length.records > 0) {
    PIF_TRY_VALUE(const auto order, check_by_workers(controller, wanted, task, maker));
    if (order) return *order;
  }
  const tool::PhaseTimer timer(controller.report(), "check", controller.client().session().clock());
  const std::uint64_t first = std::min(wanted.header_records, task.file_length.records);
  PIF_TRY_VALUE(OrderCheck order,
                check_order(file, task.sources[0], maker, wanted.unique, {first, task.file_length.records}));
  order.records += first;
  return order;
}

Result<tool::ExitCode> check(tool::Controller& controller, const SortOptions& wanted, const Task& task) {
  tool::Report& report = controller.report();
  PIF_TRY_VALUE(const OrderCheck order, check_anywhere(controller, wanted, task));
  report.bytes_client_side = order.bytes;
  report.add_result("sorted", order.sorted);
  report.add_result("records_checked", order.records);
  if (order.sorted) return tool::ExitCode::kDone;
  report.add_result("first_out_of_order", order.records - 1);
  print_error(fmt::format("pif-sort: {}\n", one_line(order.disorder)));
  return tool::ExitCode::kNegative;
}

CostShape cost_shape(tool::Controller& controller, const SortOptions& wanted, const Task& task) {
  return {task.file_length.records,
          task.file_length.bytes,
          controller.input(0).layout().width(),
          wanted.threads,
          task.memory,
          wanted.token_batch};
}

// The whole job, with what is not the workers'.
tool::Prediction predict_job(const tool::Calibration& calibration, const CostShape& shape,
                             std::uint32_t width_of_output, MergeKind merge) {
  const tool::JobShape job{shape.bytes / std::max(width_of_output, 1U)};
  return tool::around_work(calibration.constants, job, predict(calibration, shape, merge));
}

Result<std::vector<Outcome>> run_job(tool::Controller& controller, const SortOptions& wanted, const Task& task) {
  SortOptions for_workers = wanted;
  for_workers.memory = task.memory;
  for_workers.keys = task.keys;
  for_workers.header = task.header;
  tool::Job job;
  job.value = pack(for_workers);
  job.threads = wanted.threads;
  PIF_TRY_VALUE(const auto results, controller.run(job));
  // A line that lacked its end gets it.
  const FileLength most{task.file_length.records, task.file_length.bytes + task.sources.size()};
  std::vector<Outcome> outcomes;
  for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
    PIF_TRY_VALUE(outcomes.emplace_back(), unpack_outcome(results[rank], rank, most));
  }
  return outcomes;
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// What the workers took. hop: a word's way from worker to worker, if it is known.
void report(tool::Report& report, const std::vector<Outcome>& outcomes, bool by_token, std::optional<double> hop) {
  double sort = 0, end = 0;
  MergeCounts counts;
  for (const Outcome& outcome : outcomes) {
    sort = std::max(sort, outcome.sort_seconds);
    end = std::max(end, outcome.sort_seconds + outcome.merge_seconds);
    counts.add(outcome.counts);
  }
  const double merge = end - sort;  // who has sorted waits for the others
  report.parts.emplace_back(kSortPhase, duration_of(sort));
  report.parts.emplace_back(kMergePhase, duration_of(merge));
  if (!by_token) return;
  report.counts.emplace_back("token_hops", counts.hops);
  report.counts.emplace_back("token_crossings", counts.crossings);
  report.counts.emplace_back("token_hops_per_second",
                             static_cast<std::uint64_t>(static_cast<double>(counts.hops) / std::max(merge, 1e-9)));
  report.counts.emplace_back("token_act_ns",
                             counts.hops == 0 ? 0 : static_cast<std::uint64_t>(counts.acted.count()) / counts.hops);
  if (hop) report.counts.emplace_back("token_pass_ns", static_cast<std::uint64_t>(*hop * 1e9));
}

// To the local output.
Result<tool::ExitCode> put_out(tool::Controller& controller, const SortOptions& wanted, Task& task, File& sorted) {
  PIF_TRY(task.local->write(controller, sorted));
  PIF_TRY(task.local->publish(wanted.no_clobber));
  return tool::ExitCode::kDone;
}

Result<tool::ExitCode> put_out_nothing(tool::Controller& controller, const SortOptions& wanted, Task& task) {
  if (task.local) return put_out(controller, wanted, task, controller.input(0));
  PIF_TRY(controller.client().create_empty(task.path, task.options));
  return tool::ExitCode::kDone;
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const SortOptions& wanted) {
  PIF_TRY_VALUE(Task task, prepare(controller, wanted));
  if (wanted.check) return check(controller, wanted, task);
  if (task.file_length.records == 0) return put_out_nothing(controller, wanted, task);
  PIF_TRY_VALUE(const std::size_t output, controller.create(task.path, task.options));
  if (task.options.format.is_fixed() && !wanted.unique && wanted.top == 0 && task.header.empty())
    controller.set_file_length(output, task.file_length);
  const std::uint32_t width = controller.output(output).layout().width();
  controller.predict([&](const tool::Calibration& calibration) {
    return predict_job(calibration, cost_shape(controller, wanted, task), width, wanted.merge);
  });
  PIF_TRY_VALUE(const auto outcomes, run_job(controller, wanted, task));
  FileLength file_length;
  for (const Outcome& outcome : outcomes) {
    file_length.records += outcome.put_out.records;
    file_length.bytes += outcome.put_out.bytes;
  }
  if (controller.report().is_wanted) {
    std::optional<double> hop;
    if (const auto& calibration = controller.calibration()) hop = calibration->constants.hop;
    report(controller.report(), outcomes, wanted.merge != MergeKind::kSplit, hop);
  }
  controller.set_file_length(output, file_length);
  if (!task.local) {
    PIF_TRY(controller.commit());
    return tool::ExitCode::kDone;
  }
  PIF_TRY_VALUE(File sorted, controller.read_unseen(output));
  return put_out(controller, wanted, task, sorted);
}

Result<tool::Plan> explain(tool::Controller& controller, const SortOptions& wanted) {
  const auto is_local = [](const std::string& name) { return !parse_operand(name).value_or(Operand()).is_path(); };
  if (std::any_of(wanted.sources.begin(), wanted.sources.end(), is_local))
    return fail(Code::kUnsupported, "local files are read before anything is known of them: there is no plan");
  PIF_TRY_VALUE(const Task task, prepare(controller, wanted));
  tool::Plan plan;
  plan.emplace_back("source", fmt::format("{}", fmt::join(task.sources, " ")));
  plan.emplace_back("target", task.target.name);
  plan.emplace_back("records", std::to_string(task.file_length.records));
  plan.emplace_back("bytes", std::to_string(task.file_length.bytes));
  plan.emplace_back("runs", task.memory == 0 ? "in memory, one on each LFS"
                                             : fmt::format("in scratch files, made in {} MiB", task.memory >> 20));
  if (task.file_length.records == 0 || wanted.check) return plan;
  const auto& calibration = controller.calibration();
  tool::add_assumptions(plan, calibration, task.file_length.bytes);
  if (!calibration) return plan;
  const CostShape shape = cost_shape(controller, wanted, task);
  const std::uint32_t width = tool::width_of(task.options);
  for (const auto& [kind, name] : kMerges) {
    plan.emplace_back(fmt::format("predicted_{}", name),
                      predict_job(*calibration, shape, width, kind).to_text() +
                          (kind == wanted.merge ? " (this is what will be done)" : ""));
  }
  if (wanted.merge != MergeKind::kSplit)
    for (auto& line : thesis_constants(*calibration, shape)) plan.push_back(std::move(line));
  plan.emplace_back("merge", "split is the default: every record moves once, and nothing is serial");
  return plan;
}

}  // namespace pif::sort
