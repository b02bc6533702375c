#include "calibrate.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "../pif_sort/cost.h"
#include "machine.h"
#include "tool_constants.h"

namespace pif::calibrate {
namespace {

std::string now_in_utc() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

// As large as numbers are read most easily.
std::string with_unit(double seconds) {
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  if (seconds >= 1e-6) return fmt::format("{:.3f} us", seconds * 1e6);
  return fmt::format("{:.4f} ns", seconds * 1e9);
}

tool::Plan plan_of(const tool::Calibration& calibration) {
  tool::Plan plan = {{"made", calibration.made}};
  const tool::Hardware& hardware = calibration.hardware;
  plan.emplace_back("processor", fmt::format("{}, {} cores, {} GiB, version {}", hardware.processor, hardware.cores,
                                             hardware.memory_gib, hardware.version));
  for (const std::string& lfs : hardware.lfss) plan.emplace_back("lfs", lfs);
  for (const tool::ConstantEntry& entry : tool::constant_entries()) {
    plan.emplace_back(entry.name,
                      fmt::format("{:>12}   {}", with_unit(calibration.constants.*entry.value), entry.meaning));
  }
  // Table 5.5 of the thesis, for its own merge and for ours.
  sort::CostShape shape;
  shape.records = 1'000'000;
  shape.bytes = 100 * shape.records;
  shape.width = static_cast<std::uint32_t>(hardware.lfss.size());
  for (const std::uint64_t batch : {std::uint64_t{0}, sort::kTokenBatch}) {
    shape.token_batch = batch;
    for (const auto& [name, value] : sort::thesis_constants(calibration, shape))
      plan.emplace_back(fmt::format("{}{}", batch == 0 ? "figure_" : "batched_", name), value);
  }
  return plan;
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const CalibrateOptions& wanted) {
  if (wanted.if_needed && controller.calibration()) return tool::ExitCode::kDone;
  const std::string& folder = controller.folder();
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  tool::Calibration calibration;
  calibration.hardware = tool::hardware_of(cluster);
  PIF_TRY_VALUE(const auto results, controller.run({}));
  PIF_TRY(take_measured(results, calibration.constants));
  {
    const tool::PhaseTimer timer(controller.report(), "tools", controller.client().session().clock());
    PIF_TRY(measure_tools(controller.client(), folder, calibration));
  }
  calibration.made = now_in_utc();
  for (const tool::ConstantEntry& entry : tool::constant_entries())
    controller.report().add_result(entry.name, calibration.constants.*entry.value);
  PIF_TRY(tool::save_calibration(folder, calibration));
  return tool::ExitCode::kDone;
}

Result<tool::Plan> explain(tool::Controller& controller) {
  const auto& calibration = controller.calibration();
  if (!calibration) return fail(calibration.error());
  return plan_of(*calibration);
}

}  // namespace pif::calibrate
