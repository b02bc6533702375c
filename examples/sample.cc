// sample SRC DST: every n-th record, in its order, over as many LFSs as the user wants. The layouts differ, so records
// go to the workers they belong to, through an OrderedOutput.
#include <memory>

#include <CLI/CLI.hpp>

#include "pif/tool/ordered_output.h"
#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace {

struct Options : pif::tool::OutputOptions {
  std::string source, target;
  std::uint64_t every = 100;
};

// f(number in the output, record) for the chosen records of a batch.
template <typename F>
void choose(const pif::tool::Input& in, pif::tool::RowBatch& batch, std::uint64_t every, F&& f) {
  pif::Row row = batch.first;
  batch.for_each([&](auto record) {
    const pif::RecordNumber number = in.layout().record_at({in.index(), row++});
    if (number % every == 0) f(number / every, record);
  });
}

// Of the output. Bytes count where all records have one length: only the file's last one may be shorter.
pif::FileLength length_of(const pif::tool::Input& in, std::uint64_t every) {
  const std::uint64_t records = (in.file_length().records + every - 1) / every, length = in.format().record_length;
  if (records == 0 || !in.format().is_fixed()) return {records, 0};
  const auto last = pif::fixed_record_bytes(in.format().record_length, in.file_length(), (records - 1) * every);
  return {records, (records - 1) * length + last};
}

pif::Status work(pif::tool::Worker& worker) {
  PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
  PIF_TRY_VALUE(pif::tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(pif::tool::Team team, pif::tool::Team::join(worker));
  const std::uint64_t every = std::strtoull(std::string(worker.value()).c_str(), nullptr, 10);
  if (every == 0) return pif::fail(pif::Code::kInternal, "the job's value cannot be read");
  PIF_TRY_VALUE(auto out, pif::tool::OrderedOutput::open(worker, team, *output, length_of(*in, every), {}));
  pif::tool::RowBatch batch;
  return out.fill([&]() -> pif::Result<bool> {
    if (!in->is_here()) return false;
    PIF_TRY_VALUE(const bool more, in->next(batch));
    if (more) choose(*in, batch, every, [&](auto number, auto record) { out.put(number, record); });
    worker.progress(in->bytes_read(), in->bytes());
    return more;
  });
}

pif::Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const Options& options) {
  PIF_TRY_VALUE(const std::string source, pif::tool::pif_path(options.source));
  PIF_TRY_VALUE(const std::string target, pif::tool::pif_path(options.target));
  PIF_TRY_VALUE(const std::size_t input, controller.open(source));
  PIF_TRY_VALUE(const pif::CreateOptions create, pif::tool::options_of_output(controller, input, source, options));
  PIF_TRY(controller.create(target, create));
  return pif::tool::run_and_commit(controller, {.value = std::to_string(options.every)});
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = std::make_shared<Options>();
  pif::tool::Tool tool;
  tool.name = "sample";
  tool.summary = "Makes a file of every n-th record of another, beginning with the first.";
  tool.examples =
      "  sample --every 1000 /log /some             laid out like /log\n"
      "  sample --every 1000 --width 1 /log /some   on one LFS\n";
  tool.options = [options](CLI::App& app) {
    app.add_option("--every", options->every, "take one of so many records")->check(CLI::PositiveNumber);
    app.add_option("SRC", options->source, "the file to read")->required();
    app.add_option("DST", options->target, "the file to make")->required();
    pif::tool::add_output_options(app, *options);
  };
  tool.control = [options](pif::tool::Controller& controller) { return control(controller, *options); };
  tool.work = work;
  return pif::tool::main(argc, argv, tool);
}
