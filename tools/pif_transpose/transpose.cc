#include "transpose.h"

#include <algorithm>

#include <fmt/format.h>

#include "direct/direct_plan.h"
#include "matrix/cost.h"
#include "messages.h"
#include "pif/tool/memory.h"
#include "recursive/recursive_plan.h"

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

// The whole job, by what the workers' own plans will be: they know both layouts, too.
tool::Prediction predict_job(const tool::Calibration& calibration, tool::Controller& controller, const Task& task,
                             std::size_t output, Algorithm algorithm) {
  const Shape& shape = task.spec.shape;
  const parity::Layout& from = controller.input(task.input).layout();
  const parity::Layout& to = controller.output(output).layout();
  const std::uint64_t bytes = shape.output_file_length().bytes;
  const tool::JobShape job{bytes / to.width()};
  if (algorithm == Algorithm::kRecursive) {
    const RecursivePlan plan = plan_recursive(shape, from, task.spec.memory);
    const RecursiveShape recursive{plan.rows() * plan.row_bytes(), bytes, from.width(), plan.passes};
    return tool::around_work(calibration.constants, job, predict(calibration, recursive));
  }
  const std::uint32_t workers = std::max(from.width(), to.width());  // or more, where they are others
  const DirectPlan plan = plan_direct(shape, from, to, workers, task.spec.memory);
  const DirectShape direct{
      bytes, from.width(), to.width(), plan.stripe_count(), to.width() * plan.window_bytes(from.width()), task.threads};
  return tool::around_work(calibration.constants, job, predict(calibration, direct));
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// What the workers took. Several workers are on one machine: it is as slow as all of them.
void report(tool::Report& report, const std::vector<Outcome>& outcomes) {
  Phases longest;
  for (const Outcome& outcome : outcomes) {
    for (const auto& [name, seconds] : outcome.phases) {
      const auto found =
          std::find_if(longest.begin(), longest.end(), [&name = name](const auto& one) { return one.first == name; });
      if (found == longest.end()) {
        longest.emplace_back(name, seconds);
      } else {
        found->second = std::max(found->second, seconds);
      }
    }
  }
  for (const auto& [name, seconds] : longest) report.parts.emplace_back(name, duration_of(seconds));
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
  controller.predict([&](const tool::Calibration& calibration) {
    return predict_job(calibration, controller, task, output, wanted.algorithm);
  });
  PIF_TRY_VALUE(const auto outcomes, run_job(controller, task));
  report(controller.report(), outcomes);
  PIF_TRY(controller.commit());
  return tool::ExitCode::kDone;
}

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
  const auto& calibration = controller.calibration();
  tool::add_assumptions(plan, calibration, shape.output_file_length().bytes);
  if (!calibration) return plan;
  PIF_TRY_VALUE(const std::size_t output, controller.create(task.target, task.options));  // it is never committed
  for (const auto& [algorithm, name] : kAlgorithms) {
    plan.emplace_back(fmt::format("predicted_{}", name),
                      predict_job(*calibration, controller, task, output, algorithm).to_text() +
                          (algorithm == wanted.algorithm ? " (this is what will be done)" : ""));
  }
  return plan;
}

}  // namespace pif::transpose
