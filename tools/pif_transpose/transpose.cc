#include "transpose.h"

#include <algorithm>

#include <fmt/format.h>

#include "direct_plan.h"
#include "messages.h"
#include "pif/tool/memory.h"
#include "recursive_plan.h"

namespace pif::transpose {
namespace {

struct Task {
  std::string source, target;
  std::size_t input = 0;
  JobSpec spec;
  unsigned threads = 0;
  CreateOptions options;
};

Result<Task> prepare(tool::Controller& controller, const TransposeOptions& wanted) {
  Task task;
  PIF_TRY_VALUE(task.source, tool::pif_path(wanted.source));
  PIF_TRY_VALUE(task.target, tool::pif_path(wanted.target));
  PIF_TRY_VALUE(task.input, controller.open(task.source));
  File& source = controller.input(task.input);
  PIF_TRY_VALUE(const FileLength file_length, source.file_length());
  PIF_TRY_VALUE(task.spec.shape, shape_of(task.source, source.format(), file_length, source.attributes(), wanted));
  task.spec.algorithm = wanted.algorithm;
  task.threads = wanted.threads;
  task.spec.memory = wanted.memory != 0 ? wanted.memory : tool::spare_memory();
  PIF_TRY_VALUE(task.options, tool::options_of_output(controller, task.input, task.source, wanted));
  const std::uint64_t length = task.spec.shape.output_row_bytes();
  task.options.format = Format::fixed(static_cast<std::uint32_t>(std::max<std::uint64_t>(length, 1)));
  task.options.attributes = output_attributes(std::move(task.options.attributes), task.spec.shape);
  return task;
}

// Before anything is read: a matrix of so many rows may not fit, however few of its columns are taken at a time.
Status check_memory(tool::Controller& controller, const Task& task, std::size_t output) {
  const parity::Layout& from = controller.input(task.input).layout();
  const Shape& shape = task.spec.shape;
  const bool recursive = task.spec.algorithm == Algorithm::kRecursive;
  const std::uint64_t wanted =
      recursive
          ? memory_of(plan_recursive(shape, from, task.spec.memory), from)
          : window_bytes(plan_direct(shape, from, controller.output(output).layout(), from.width(), task.spec.memory),
                         from);
  if (wanted <= 2 * std::max(task.spec.memory, tool::kMemoryMin)) return {};  // plans are not exact
  return fail(Code::kTooLarge,
              fmt::format("{}: {} rows take {} MiB at least with --algorithm {}; --memory is {} MiB", task.source,
                          shape.row_count(), wanted >> 20, recursive ? "recursive" : "direct", task.spec.memory >> 20));
}

Result<std::vector<Outcome>> run_job(tool::Controller& controller, const Task& task) {
  tool::Job job;
  job.value = pack(task.spec);
  job.threads = task.threads;
  PIF_TRY_VALUE(const auto results, controller.run(job));
  std::vector<Outcome> outcomes;
  for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
    PIF_TRY_VALUE(outcomes.emplace_back(), unpack_outcome(results[rank], rank));
  }
  return outcomes;
}

// What the workers' own plans will be: they know both layouts, too.
Phases prediction(tool::Controller& controller, const Task& task, std::size_t output,
                  const std::vector<Outcome>& outcomes, Algorithm algorithm) {
  std::vector<Constants> all;
  for (const Outcome& outcome : outcomes) all.push_back(outcome.constants);
  const Constants constants = mean_of(all);
  const Shape& shape = task.spec.shape;
  const parity::Layout& from = controller.input(task.input).layout();
  const parity::Layout& to = controller.output(output).layout();
  const std::uint64_t bytes = shape.output_file_length().bytes;
  if (algorithm == Algorithm::kRecursive) {
    const RecursivePlan plan = plan_recursive(shape, from, task.spec.memory);
    return predict(constants, RecursiveShape{plan.rows() * plan.row_bytes(), bytes, from.width(), plan.passes});
  }
  const auto workers = static_cast<std::uint32_t>(outcomes.size());
  const DirectPlan plan = plan_direct(shape, from, to, workers, task.spec.memory);
  return predict(constants, DirectShape{bytes, from.width(), to.width(), plan.stripe_count()});
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// What the workers took, beside what the formulas say. Several workers are on one machine: it is as slow as all of
// them.
void report(tool::Report& report, const Phases& predicted, const std::vector<Outcome>& outcomes) {
  for (const auto& [name, seconds] : predicted) {
    double longest = 0;
    for (const Outcome& outcome : outcomes)
      for (const auto& [measured_name, measured] : outcome.phases)
        if (measured_name == name) longest = std::max(longest, measured);
    report.predictions.push_back({name, duration_of(seconds), duration_of(longest)});
  }
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const TransposeOptions& wanted) {
  PIF_TRY_VALUE(Task task, prepare(controller, wanted));
  if (task.spec.shape.empty()) {  // no records, no components, no workers
    PIF_TRY(controller.client().create_empty(task.target, task.options));
    return tool::ExitCode::kDone;
  }
  PIF_TRY_VALUE(const std::size_t output, controller.create(task.target, task.options));
  controller.set_file_length(output, task.spec.shape.output_file_length());
  PIF_TRY(check_memory(controller, task, output));
  task.spec.measure = controller.report().is_wanted;
  PIF_TRY_VALUE(const auto outcomes, run_job(controller, task));
  if (task.spec.measure)
    report(controller.report(), prediction(controller, task, output, outcomes, wanted.algorithm), outcomes);
  PIF_TRY(controller.commit());
  return tool::ExitCode::kDone;
}

// A job that measures, and makes nothing.
Result<tool::Plan> explain(tool::Controller& controller, const TransposeOptions& wanted) {
  PIF_TRY_VALUE(Task task, prepare(controller, wanted));
  const Shape& shape = task.spec.shape;
  tool::Plan plan;
  plan.emplace_back("source", task.source);
  plan.emplace_back("target", task.target);
  plan.emplace_back("rows", std::to_string(shape.row_count()));
  plan.emplace_back("columns", std::to_string(shape.column_count()));
  plan.emplace_back("element",
                    fmt::format("{} bits{}", shape.element.bits,
                                shape.element.bits >= 8                         ? ""
                                : shape.element.order == matrix::BitOrder::kMsb ? ", the most significant first"
                                                                                : ", the least significant first"));
  plan.emplace_back("record_length", std::to_string(shape.output_row_bytes()));
  if (shape.empty()) return plan;
  PIF_TRY_VALUE(const std::size_t output, controller.create(task.target, task.options));  // it is never committed
  task.spec.measure = task.spec.measure_only = true;
  PIF_TRY_VALUE(const auto outcomes, run_job(controller, task));
  for (const auto& [algorithm, name] : kAlgorithms) {
    const Phases phases = prediction(controller, task, output, outcomes, algorithm);
    std::string parts;
    for (const auto& [part, seconds] : phases)
      parts += fmt::format("{}{:.2f} s to {}", parts.empty() ? "" : ", ", seconds, part);
    plan.emplace_back(fmt::format("predicted_{}", name),
                      fmt::format("{:.2f} s: {}{}", total_of(phases), parts,
                                  algorithm == wanted.algorithm ? " (this is what will be done)" : ""));
  }
  return plan;
}

}  // namespace pif::transpose
