// pif-digest FILE...: a checksum of each file's records, whatever their layout.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "digest.h"
#include "pif/tool/tool_main.h"

namespace {

using pif::Result;

Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    PIF_TRY_VALUE(paths.emplace_back(), pif::tool::pif_path(name));
    PIF_TRY(controller.open(paths.back()));
  }
  PIF_TRY_VALUE(const auto digests, pif::digest::digests_of(controller, paths.size(), 0));
  std::string text;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string digest = pif::digest::to_text(digests[i].front());
    text += fmt::format("{}  {}\n", digest, paths[i]);
    controller.report().add_result(paths[i], digest);
  }
  if (!controller.report().is_json) PIF_TRY(pif::tool::print(text));
  return pif::tool::ExitCode::kDone;
}

Result<pif::tool::Plan> explain(pif::tool::Controller& controller, const std::vector<std::string>& names) {
  std::uint64_t bytes = 0;
  for (const std::string& name : names) {
    PIF_TRY_VALUE(const std::string path, pif::tool::pif_path(name));
    PIF_TRY_VALUE(const std::size_t input, controller.open(path));
    bytes += controller.input(input).file_length_seen().bytes;
  }
  return pif::tool::Plan{{"reads", fmt::format("{} bytes, each where it lies", bytes)},
                         {"moved", "nothing but digests"}};
}

}  // namespace

int main(int argc, char** argv) {
  const auto files = std::make_shared<std::vector<std::string>>();
  pif::tool::Tool tool;
  tool.name = "pif-digest";
  tool.summary = "Prints a digest of each file's records, on all LFSs at once. It does not depend on the layout.";
  tool.examples = "  pif digest /data /copy       equal files have equal digests\n  pif digest --json /data\n";
  tool.options = [files](CLI::App& app) {
    app.add_option("FILE", *files, "the files to read")->required()->type_name("FILE...");
  };
  tool.control = [files](pif::tool::Controller& controller) { return control(controller, *files); };
  tool.explain = [files](pif::tool::Controller& controller) { return explain(controller, *files); };
  tool.work = pif::digest::work;
  return pif::tool::main(argc, argv, tool);
}
