#include "copy.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pif/tool/copy_class.h"
#include "pif/tool/exchange.h"
#include "pif/tool/output_options.h"

namespace pif::copy {
namespace {

// What there is to copy, and how.
struct Task {
  std::string source;
  std::string target;
  std::size_t input = 0;  // at the controller
  FileLength file_length;
  CreateOptions options;
  bool same_layout = false;
};

Result<Task> prepare(tool::Controller& controller, const CopyOptions& wanted) {
  Task task;
  PIF_TRY_VALUE(task.source, tool::pif_path(wanted.source));
  PIF_TRY_VALUE(task.target, tool::pif_path(wanted.target));
  PIF_TRY_VALUE(task.input, controller.open(task.source));
  File& source = controller.input(task.input);
  PIF_TRY_VALUE(task.file_length, source.file_length());
  PIF_TRY_VALUE(task.options, tool::options_of_output(controller, task.input, task.source, wanted));
  task.same_layout = tool::keeps_layout(source, task.options);
  return task;
}

// Each LFS copies its own rows, or workers exchange them; what is read is taken to be in the page cache.
tool::Prediction predict(const tool::Calibration& calibration, std::uint64_t bytes, std::uint32_t from,
                         std::uint32_t to, bool same_layout) {
  const tool::Constants& c = calibration.constants;
  const double cores = std::min<double>(calibration.hardware.cores, std::max(from, to));
  tool::Prediction work;
  const double all = static_cast<double>(bytes) / cores;
  work.add(tool::kWorkPhase,
           same_layout ? tool::Terms{{"copy_fixed", c.copy_fixed}, {"copy_byte", all * c.copy_byte}}
                       : tool::Terms{{"exchange_fixed", c.exchange_fixed}, {"exchange_byte", all * c.exchange_byte}});
  work.writing = work.seconds();
  const bool clones = same_layout && c.copy_durable_byte == 0;
  return tool::around_work(c, {clones ? 0 : bytes / to}, work);
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const CopyOptions& wanted) {
  PIF_TRY_VALUE(const Task task, prepare(controller, wanted));
  if (task.file_length.records == 0) {  // no records, no components, no workers
    PIF_TRY(controller.client().create_empty(task.target, task.options));
    return tool::ExitCode::kDone;
  }
  PIF_TRY_VALUE(const std::size_t output, controller.create(task.target, task.options));
  controller.set_file_length(output, task.file_length);
  controller.set_copy_of(output, task.input);
  controller.predict([&](const tool::Calibration& calibration) {
    return predict(calibration, task.file_length.bytes, controller.input(task.input).layout().width(),
                   controller.output(output).layout().width(), task.same_layout);
  });
  return tool::run_and_commit(controller);
}

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  if (tool::have_same_layout(*input, *output)) return tool::copy_component(worker, *input, *output);
  return tool::exchange(worker, *input, *output);
}

Result<tool::Plan> explain(tool::Controller& controller, const CopyOptions& wanted) {
  PIF_TRY_VALUE(const Task task, prepare(controller, wanted));
  const auto& options = task.options;
  tool::Plan plan;
  plan.emplace_back("source", task.source);
  plan.emplace_back("target", task.target);
  plan.emplace_back("records", std::to_string(task.file_length.records));
  plan.emplace_back("bytes", std::to_string(task.file_length.bytes));
  plan.emplace_back("source_width", std::to_string(controller.input(task.input).layout().width()));
  plan.emplace_back("target_width", std::to_string(options.nodes.empty() ? options.width : options.nodes.size()));
  if (!options.nodes.empty()) plan.emplace_back("target_nodes", fmt::format("{}", fmt::join(options.nodes, ",")));
  plan.emplace_back("method", task.same_layout ? "each LFS clones or copies what it has of the file"
                                               : "workers exchange records in large batches");
  const auto& calibration = controller.calibration();
  tool::add_assumptions(plan, calibration, task.file_length.bytes);
  if (!calibration || task.file_length.records == 0) return plan;
  plan.emplace_back("predicted",
                    predict(*calibration, task.file_length.bytes, controller.input(task.input).layout().width(),
                            tool::width_of(options), task.same_layout)
                        .to_text());
  return plan;
}

}  // namespace pif::copy
