// The workers of a transpose.
#include "direct/direct.h"
#include "matrix/cost.h"
#include "messages.h"
#include "recursive/recursive.h"

namespace pif::transpose {
namespace {

Result<Phases> transpose(tool::Worker& worker, const JobSpec& spec, tool::Input& input, tool::Output& output) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  if (spec.algorithm == Algorithm::kRecursive) {
    const RecursivePlan plan = plan_recursive(spec.shape, input.layout(), spec.memory);
    return transpose_recursively(worker, team, input, output, plan);
  }
  const DirectPlan plan = plan_direct(spec.shape, input.layout(), output.layout(), worker.width(), spec.memory);
  PIF_TRY_VALUE(const DirectTimes times, transpose_directly(worker, team, input, output, plan));
  return Phases{{kTransposePhase, times.transpose}, {kWritePhase, times.put_together}, {"wait for others", times.wait}};
}

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(const JobSpec spec,
                unpack_job_spec(worker.value(), input->file_length().records, input->format().record_length));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  Outcome outcome;
  PIF_TRY_VALUE(outcome.phases, transpose(worker, spec, *input, *output));
  worker.set_result(pack(outcome));
  return {};
}

}  // namespace pif::transpose
