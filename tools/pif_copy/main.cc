// pif-copy SRC DST: copies a file. Same layout: every worker clones or copies the component on its own LFS, and nothing
// moves between nodes. Another width, order or subset of LFSs: the workers exchange records.
#include <memory>

#include <CLI/CLI.hpp>

#include "copy.h"
#include "pif/tool/tool_main.h"

int main(int argc, char** argv) {
  const auto wish = std::make_shared<pif::copy::Wish>();
  pif::tool::Tool tool;
  tool.name = "pif-copy";
  tool.summary = "Copies a file, on all its LFSs at once; the copy keeps format, attributes, mode, LFSs and bevies unless told.";
  tool.examples =
      "  pif-copy /a /b                  same LFSs: no record leaves its node\n"
      "  pif-copy /a /b --width 8        on 8 LFSs that the server chooses\n"
      "  pif-copy /a /b --nodes lfs2,lfs0\n"
      "  pif-copy /a /b --bevy 0         without parity\n";
  tool.options = [wish](CLI::App& app) {
    app.add_option("SRC", wish->source, "the file to copy")->required();
    app.add_option("DST", wish->target, "its copy; a file of that name is replaced when the copy is complete")->required();
    pif::tool::add_target_options(app, *wish);
  };
  tool.control = [wish](pif::tool::Controller& controller) { return pif::copy::control(controller, *wish); };
  tool.work = pif::copy::work;
  tool.explain = [wish](pif::tool::Controller& controller) { return pif::copy::explain(controller, *wish); };
  return pif::tool::main(argc, argv, tool);
}
