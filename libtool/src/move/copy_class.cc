#include "pif/tool/copy_class.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/assert.h"
#include "pif/base/inheriting.h"
#include "pif/tool/threads.h"

namespace pif::tool {
namespace {

struct Wanted {
  std::string source;
  std::string target;
  unsigned threads = 0;
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
  options.same_host_ok = true;       // as its source is
  options.mode = entry.mode & 0777;  // what is made gives nobody its owner's rights
  options.attributes = file.attributes();
  return options;
}

Result<ExitCode> control(Controller& controller, const Wanted& wanted) {
  PIF_TRY_VALUE(const std::string source, pif_path(wanted.source));
  PIF_TRY_VALUE(const std::string target, pif_path(wanted.target));
  PIF_TRY_VALUE(const std::size_t in, controller.open(source));
  PIF_TRY_VALUE(const CreateOptions options, like(controller, in, source));
  PIF_TRY(controller.create(target, options));
  Job job;
  job.threads = wanted.threads;
  return run_and_commit(controller, job);
}

// Batches that are read, given to F by as many threads, and written, in this order: while others are at work on some,
// this thread writes those before them, reads the next ones, and then takes one itself.
class Transformation {
 public:
  Transformation(Worker& worker, Input& input, Output& output, const BatchFunction& f, unsigned threads)
      : worker_(worker), input_(input), output_(output), f_(f), sets_{Set(threads), Set(threads)} {}
  [[nodiscard]] Status run();

 private:
  struct Set {
    explicit Set(unsigned threads) : batches(threads) {}
    std::vector<RowBatch> batches;
    std::size_t read = 0;  // of them
  };
  [[nodiscard]] Status read(Set& set);
  [[nodiscard]] Status write(Set& set);

  Worker& worker_;
  Input& input_;
  Output& output_;
  const BatchFunction& f_;
  std::array<Set, 2> sets_;
};

Status Transformation::read(Set& set) {
  for (set.read = 0; set.read < set.batches.size(); ++set.read) {
    PIF_TRY_VALUE(const bool more, input_.next(set.batches[set.read]));
    if (!more) break;
  }
  return {};
}

Status Transformation::write(Set& set) {
  for (std::size_t i = 0; i < set.read; ++i) PIF_TRY(output_.write(set.batches[i]));
  set.read = 0;
  worker_.progress(input_.bytes_read(), input_.bytes());
  return {};
}

Status Transformation::run() {
  Set* now = &sets_[0];
  Set* other = &sets_[1];  // what was before, and what comes next
  PIF_TRY(read(*now));
  while (now->read > 0) {
    std::vector<std::future<Status>> at_work;
    for (std::size_t i = 1; i < now->read; ++i)
      at_work.push_back(worker_.start([this, &batch = now->batches[i]] { return f_(batch); }));
    Status done = write(*other);
    if (done) done = read(*other);
    if (done) done = f_(now->batches[0]);
    for (auto& each : at_work) {
      Status changed = each.get();
      if (done) done = std::move(changed);
    }
    PIF_TRY(std::move(done));
    std::swap(now, other);
  }
  return write(*other);
}

}  // namespace

bool have_same_layout(const Component& a, const Component& b) {
  const auto same_node = [](const proto::NodeInfo& x, const proto::NodeInfo& y) { return x.id() == y.id(); };
  return a.layout() == b.layout() && std::equal(a.file().nodes.begin(), a.file().nodes.end(), b.file().nodes.begin(),
                                                b.file().nodes.end(), same_node);
}

Status transform(Worker& worker, Input& input, Output& output, const BatchFunction& f, Calls calls) {
  if (!have_same_layout(input, output)) {
    return fail(Code::kInvalid,
                fmt::format("{} and {} are laid out differently", input.file().path, output.file().path));
  }
  if (calls == Calls::kAtOnce && worker.threads() > 1)
    return Transformation(worker, input, output, f, worker.threads()).run();
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

Tool copy_class_tool(const std::string& name, const std::string& summary, BatchFunction f, Calls calls) {
  const auto wanted = std::make_shared<Wanted>();
  Tool tool;
  tool.name = name;
  tool.summary = summary;
  tool.examples = fmt::format("  {} /in /out\n", name);
  tool.options = [wanted, calls](CLI::App& app) {
    app.add_option("SRC", wanted->source, "the file to read")->required();
    app.add_option("DST", wanted->target, "the file to make, laid out as SRC")->required();
    if (calls == Calls::kAtOnce) add_threads_option(app, wanted->threads);
  };
  tool.control = [wanted](Controller& controller) { return control(controller, *wanted); };
  tool.work = [f = std::move(f), calls](Worker& worker) -> Status {
    PIF_TRY_VALUE(Input* const input, worker.input(0));
    PIF_TRY_VALUE(Output* const output, worker.output(0));
    if (!input->is_here() || input->rows() == 0) return {};
    return transform(worker, *input, *output, f, calls);
  };
  return tool;
}

}  // namespace pif::tool
