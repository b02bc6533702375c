// pif-count FILE: lines and words of a file, counted by a worker on every LFS. `pif wc` runs it for large files.
#include <memory>

#include <CLI/CLI.hpp>

#include "count.h"
#include "pif/tool/tool_main.h"

int main(int argc, char** argv) {
  const auto options = std::make_shared<pif::counts::CountOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-count";
  tool.summary = "Counts lines and words of a file, on all its LFSs at once. pif wc runs it for large files.";
  tool.examples = "  pif-count --json /log.txt | jq .results\n  pif-count -L --json /log.txt\n";
  tool.options = [options](CLI::App& app) {
    app.add_option("FILE", options->path, "the file to read")->required();
    app.add_flag("-L,--max-line-length", options->longest, "columns of the longest line, too");
  };
  tool.control = [options](pif::tool::Controller& controller) { return pif::counts::control(controller, *options); };
  tool.work = pif::counts::work;
  return pif::tool::main(argc, argv, tool);
}
