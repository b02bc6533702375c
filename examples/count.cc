// count SRC: how many records have a byte in them that is no ASCII. A tool without an output: it says what it has
// found.
#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "pif/tool/tool_main.h"

namespace {

bool is_plain(std::span<const std::byte> record) {
  return std::all_of(record.begin(), record.end(), [](std::byte b) { return b < std::byte{0x80}; });
}

// Every record is on one LFS, so the sum of what workers find is right. Their results travel as bytes: here as digits.
pif::Status work(pif::tool::Worker& worker) {
  PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
  std::uint64_t found = 0;
  for (pif::tool::RowBatch batch; in->is_here();) {
    PIF_TRY_VALUE(const bool more, in->next(batch));
    if (!more) break;
    batch.for_each([&](auto record) { found += is_plain(record) ? 0 : 1; });
    worker.progress(in->bytes_read(), in->bytes());
  }
  worker.set_result(std::to_string(found));
  return {};
}

pif::Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const std::string& name) {
  PIF_TRY_VALUE(const std::string source, pif::tool::pif_path(name));
  PIF_TRY(controller.open(source));
  PIF_TRY_VALUE(const auto results, controller.run({}));
  std::uint64_t found = 0;
  for (const std::string& result : results) found += std::stoull(result);
  controller.report().add_result("records_not_ascii", found);                  // for --json, --verbose and --report
  if (!controller.report().is_json) std::cout << found << "\n" << std::flush;  // stdout is one JSON document otherwise
  return found == 0 ? pif::tool::ExitCode::kDone : pif::tool::ExitCode::kNegative;
}

}  // namespace

int main(int argc, char** argv) {
  const auto source = std::make_shared<std::string>();
  pif::tool::Tool tool;
  tool.name = "count";
  tool.summary = "Counts the records of a file that are not ASCII; exit code 1 if there are any.";
  tool.examples = "  count /in\n  count --json /in | jq .results\n";
  tool.options = [source](CLI::App& app) { app.add_option("SRC", *source, "the file to read")->required(); };
  tool.control = [source](pif::tool::Controller& controller) { return control(controller, *source); };
  tool.work = work;
  return pif::tool::main(argc, argv, tool);
}
