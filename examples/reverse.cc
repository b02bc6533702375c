// reverse SRC DST: the records in the opposite order. A tool whose workers talk: record n of N belongs at N - 1 - n,
// which is mostly on another LFS, so all of them go through an OrderedOutput.
#include <memory>

#include <CLI/CLI.hpp>

#include "pif/tool/ordered_output.h"
#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace {

constexpr std::uint64_t kRowsAtOnce = 4096;

struct Names : pif::tool::OutputOptions {
  std::string source, target;
};

// Puts rows [first, first + count) of this worker's component, the last one first: so their new numbers rise.
pif::Status put_reversed(pif::tool::Input& in, pif::Row first, std::uint64_t count, pif::tool::OrderedOutput& out) {
  std::vector<pif::tool::RowBatch> batches;
  std::vector<std::span<const std::byte>> records;
  for (pif::Row row = first; row < first + count; row += batches.back().count) {
    PIF_TRY(in.read(row, first + count - row, pif::tool::kBatchBytes, batches.emplace_back()));
  }
  for (auto& batch : batches) batch.for_each([&](auto record) { records.push_back(record); });
  for (std::uint64_t i = count; i-- > 0;)
    out.put(in.file_length().records - 1 - in.layout().record_at({in.index(), first + i}), records[i]);
  out.flush();  // the batches go
  return {};
}

pif::Status work(pif::tool::Worker& worker) {
  PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
  PIF_TRY_VALUE(pif::tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(pif::tool::Team team, pif::tool::Team::join(worker));
  PIF_TRY_VALUE(auto out, pif::tool::OrderedOutput::open(worker, team, *output, in->file_length(), {}));
  pif::Row left = in->is_here() ? in->rows() : 0;
  return out.fill([&]() -> pif::Result<bool> {
    const std::uint64_t count = std::min(left, kRowsAtOnce);
    left -= count;
    PIF_TRY(put_reversed(*in, left, count, out));
    worker.progress(in->bytes_read(), in->bytes());
    return left > 0;
  });
}

pif::Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const Names& names) {
  PIF_TRY_VALUE(const std::string source, pif::tool::pif_path(names.source));
  PIF_TRY_VALUE(const std::string target, pif::tool::pif_path(names.target));
  PIF_TRY_VALUE(const std::size_t input, controller.open(source));
  pif::File& file = controller.input(input);
  PIF_TRY_VALUE(const pif::FileLength file_length, file.file_length());
  PIF_TRY_VALUE(const pif::CreateOptions options, pif::tool::options_of_output(controller, input, source, names));
  if (file.format().is_fixed() && file_length.bytes != file_length.records * file.format().record_length) {
    return pif::fail(pif::Code::kInvalid, source + ": its last record is shorter than the others");
  }
  PIF_TRY_VALUE(const std::size_t output, controller.create(target, options));
  controller.set_file_length(output, file_length);
  return pif::tool::run_and_commit(controller);
}

}  // namespace

int main(int argc, char** argv) {
  const auto names = std::make_shared<Names>();
  pif::tool::Tool tool;
  tool.name = "reverse";
  tool.summary = "Puts the records of a file in the opposite order.";
  tool.examples = "  reverse /in /out\n";
  tool.options = [names](CLI::App& app) {
    app.add_option("SRC", names->source, "the file to read")->required();
    app.add_option("DST", names->target, "the file to make")->required();
    pif::tool::add_output_options(app, *names);
  };
  tool.control = [names](pif::tool::Controller& controller) { return control(controller, *names); };
  tool.work = work;
  return pif::tool::main(argc, argv, tool);
}
