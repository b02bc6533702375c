#include "map.h"

#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "pif/base/print.h"
#include "pif/tool/made.h"
#include "pif/tool/slow_output.h"

namespace pif::map {
namespace {

struct Opened {
  CreateOptions options;  // of the output
  std::string target;
};

Result<Opened> open(tool::Controller& controller, MapOptions& options) {
  Opened opened;
  PIF_TRY_VALUE(const std::string source, tool::pif_path(options.source));
  options.task.has_output = !options.target.empty();
  if (options.task.has_output) {
    PIF_TRY_VALUE(opened.target, tool::pif_path(options.target));
  }
  PIF_TRY_VALUE(const std::size_t input, controller.open(source));
  if (!options.task.has_output) return opened;
  PIF_TRY_VALUE(opened.options, tool::options_of_output(controller, input, source, options));
  opened.options.format = Format::lines();
  opened.options.attributes.clear();  // a header is one of the source's columns
  if (options.task.each && !tool::keeps_layout(controller.input(input), opened.options))
    return fail(Code::kInvalid, "with --each the output is laid out like its source");
  return opened;
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, MapOptions& options) {
  if (options.target.empty() && controller.report().is_json)
    return fail(Code::kInvalid, "with --json a file must be made: standard output is the report's");
  PIF_TRY_VALUE(const Opened opened, open(controller, options));
  if (options.task.has_output) PIF_TRY(controller.create(opened.target, opened.options));
  tool::SlowOutput output;
  tool::Job job{.value = tool::pack_head(options.task)};
  job.stream.take = [&](tool::StreamKey, std::string_view frame) -> Result<bool> {
    PIF_TRY(output.written());
    if (frame.starts_with(kWords))
      print_error(std::string(frame.substr(1)));
    else
      output.add(frame.substr(1));
    return true;
  };
  job.stream.is_full = [&] { return output.is_full(); };
  job.stream.pause = [&] { return output.push(); };
  PIF_TRY_VALUE(const auto results, controller.run(job));
  PIF_TRY_VALUE(const FileLength made, tool::sum_of_made(results));
  controller.report().add_result("records", made.records);
  if (options.task.has_output) {
    controller.set_file_length(0, made);
    PIF_TRY(controller.commit());
  }
  PIF_TRY(output.finish());
  return tool::ExitCode::kDone;
}

Result<tool::Plan> explain(tool::Controller& controller, MapOptions& options) {
  PIF_TRY(open(controller, options));
  File& source = controller.input(0);
  tool::Plan plan;
  plan.emplace_back("command", options.task.command);
  plan.emplace_back("runs", fmt::format("once on each of {} LFSs", source.layout().width()));
  const std::uint64_t p = source.layout().width(), bytes = source.file_length_seen().bytes;
  plan.emplace_back("moved", options.task.by > 0
                                 ? fmt::format("about {} bytes, to have equal fields together", bytes / p * (p - 1))
                             : options.task.each && options.task.has_output ? "nothing"
                                                                            : "what the command writes");
  return plan;
}

}  // namespace pif::map
