// pif-decompress SRC DST: the file that pif-compress made SRC of.
#include <memory>

#include <CLI/CLI.hpp>

#include "decompress.h"
#include "pif/tool/threads.h"

int main(int argc, char** argv) {
  const auto wanted = std::make_shared<pif::decompress::DecompressOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-decompress";
  tool.summary = "Makes the file again that pif compress has compressed, on all its LFSs at once.";
  tool.examples =
      "  pif decompress /log.z /log\n"
      "  pif copy --width 8 /log.z /8.z; pif decompress /8.z /log      over 8 LFSs\n";
  tool.options = [wanted](CLI::App& app) {
    app.add_option("SRC", wanted->source, "the compressed file")->required();
    app.add_option("DST", wanted->target, "the file to make, laid out as SRC")->required();
    app.add_flag("--no-clobber", wanted->no_clobber, "fail if DST is there");
    pif::tool::add_threads_option(app, wanted->threads);
  };
  tool.control = [wanted](pif::tool::Controller& controller) { return pif::decompress::control(controller, *wanted); };
  tool.explain = [wanted](pif::tool::Controller& controller) { return pif::decompress::explain(controller, *wanted); };
  tool.work = pif::decompress::work;
  return pif::tool::main(argc, argv, tool);
}
