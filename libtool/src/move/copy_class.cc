#include "pif/tool/copy_class.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/assert.h"
#include "pif/base/inheriting.h"

namespace pif::tool {
namespace {

struct Names {
  std::string source;
  std::string target;
};

// Who may not read the source may not read what is made of it either.
Result<CreateOptions> like(Controller& controller, std::size_t input, const std::string& source) {
  PIF_TRY_VALUE(const Entry entry, controller.client().stat(source));
  File& file = controller.input(input);
  CreateOptions options;
  options.format = file.format();
  options.nodes.assign(file.nodes().begin(), file.nodes().end());
  options.bevies.assign(file.layout().bevies().begin(), file.layout().bevies().end());
  if (options.bevies.empty()) options.bevy = kNoBevies;
  options.inherits_layout = false;
  options.same_host_ok = true;  // as its source is
  options.mode = entry.mode;
  options.attributes = file.attributes();
  return options;
}

Result<ExitCode> control(Controller& controller, const Names& names) {
  PIF_TRY_VALUE(const std::string source, pif_path(names.source));
  PIF_TRY_VALUE(const std::string target, pif_path(names.target));
  PIF_TRY_VALUE(const std::size_t in, controller.open(source));
  PIF_TRY_VALUE(const CreateOptions options, like(controller, in, source));
  PIF_TRY(controller.create(target, options));
  return run_and_commit(controller);
}

}  // namespace

bool have_same_layout(const Component& a, const Component& b) {
  const auto same_node = [](const proto::NodeInfo& x, const proto::NodeInfo& y) { return x.id() == y.id(); };
  return a.layout() == b.layout() && std::equal(a.file().nodes.begin(), a.file().nodes.end(), b.file().nodes.begin(),
                                                b.file().nodes.end(), same_node);
}

Status transform(Worker& worker, Input& input, Output& output, const BatchFunction& f) {
  if (!have_same_layout(input, output)) {
    return fail(Code::kInvalid,
                fmt::format("{} and {} are laid out differently", input.file().path, output.file().path));
  }
  RowBatch batch;
  while (true) {
    PIF_TRY_VALUE(const bool more, input.next(batch));
    if (!more) return {};
    PIF_ASSERT(batch.count > 0 && batch.first + batch.count <= input.rows(), batch.first, batch.count, input.rows());
    PIF_TRY(f(batch));
    PIF_TRY(output.write(batch));
    worker.progress(input.bytes_read(), input.bytes());
  }
}

Status copy_component(Worker& worker, Input& input, Output& output) {
  if (input.rows() == 0) return {};
  if (!input.is_exact()) {  // somebody died appending to it: the rows beyond the file's length are not part of it
    RowBatch batch;
    for (Row row = 0; row < input.rows(); row += batch.count) {
      PIF_TRY(input.read(row, input.rows() - row, kBatchBytes, batch));
      PIF_ASSERT(batch.first == row && batch.count > 0, row, batch.first, batch.count);
      PIF_TRY(output.write(batch));
      worker.progress(input.bytes_read(), input.bytes());
    }
    return {};
  }
  bool cloned = false;
  const auto keep_going = [&](std::uint64_t bytes) {
    worker.progress(bytes, input.bytes());
    return true;  // who wants to end a worker kills it
  };
  PIF_TRY_VALUE(const component::Tail tail,
                component::copy_component(input.shape(), input.tail(), input.files(), output.shape(), output.files(),
                                          &cloned, keep_going));
  PIF_ASSERT(tail.rows == input.rows() && tail.bytes == input.bytes(), tail.rows, input.rows(), tail.bytes);
  input.count_read(cloned ? 0 : tail.bytes);
  output.set_tail(tail, cloned);
  return {};
}

Tool copy_class_tool(const std::string& name, const std::string& summary, BatchFunction f) {
  const auto names = std::make_shared<Names>();
  Tool tool;
  tool.name = name;
  tool.summary = summary;
  tool.examples = fmt::format("  {} /in /out\n", name);
  tool.options = [names](CLI::App& app) {
    app.add_option("SRC", names->source, "the file to read")->required();
    app.add_option("DST", names->target, "the file to make, laid out as SRC")->required();
  };
  tool.control = [names](Controller& controller) { return control(controller, *names); };
  tool.work = [f = std::move(f)](Worker& worker) -> Status {
    PIF_TRY_VALUE(Input* const input, worker.input(0));
    PIF_TRY_VALUE(Output* const output, worker.output(0));
    if (!input->is_here() || input->rows() == 0) return {};
    return transform(worker, *input, *output, f);
  };
  return tool;
}

}  // namespace pif::tool
