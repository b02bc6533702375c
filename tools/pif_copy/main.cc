// pif-copy SRC DST: copies a file. Same layout: every worker clones or copies the component on its own LFS, and nothing
// moves between nodes. Another width, order or subset of LFSs: the workers exchange records.
#include <memory>

#include <CLI/CLI.hpp>

#include "copy.h"
#include "pif/tool/tool_main.h"

int main(int argc, char** argv) {
  const auto wanted = std::make_shared<pif::copy::CopyOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-copy";
  tool.summary =
      "Copies a file, on all its LFSs at once; the copy keeps format, attributes, mode, LFSs and bevies unless told.";
  tool.examples =
      "  pif-copy /a /b                  same LFSs: no record leaves its node\n"
      "  pif-copy /a /b --width 8        on 8 LFSs that the server chooses\n"
      "  pif-copy /a /b --nodes lfs2,lfs0\n"
      "  pif-copy /a /b --bevy 0         without parity\n";
  tool.options = [wanted](CLI::App& app) {
    app.add_option("SRC", wanted->source, "the file to copy")->required();
    app.add_option("DST", wanted->target, "its copy; a file of that name is replaced when the copy is complete")
        ->required();
    pif::tool::add_output_options(app, *wanted);
  };
  tool.control = [wanted](pif::tool::Controller& controller) { return pif::copy::control(controller, *wanted); };
  tool.work = pif::copy::work;
  tool.explain = [wanted](pif::tool::Controller& controller) { return pif::copy::explain(controller, *wanted); };
  return pif::tool::main(argc, argv, tool);
}
