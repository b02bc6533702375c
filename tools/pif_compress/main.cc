// pif-compress SRC DST: a file whose record n is record n of SRC, compressed, on the LFS where that is.
#include <memory>

#include <CLI/CLI.hpp>

#include "compress.h"
#include "pif/base/decimal.h"
#include "pif/tool/threads.h"
#include "stored.h"

int main(int argc, char** argv) {
  const auto wanted = std::make_shared<pif::compress::CompressOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-compress";
  tool.summary = "Compresses a file with zstd, record by record, on all its LFSs at once; nothing is moved.";
  tool.examples =
      "  pif compress /log /log.z                 any record can be read alone\n"
      "  pif compress --context /log /log.z       smaller: records follow one another\n"
      "  pif compress --level 19 /log /log.z      smaller, and slower\n"
      "  pif decompress /log.z /log\n";
  tool.options = [wanted](CLI::App& app) {
    app.add_option("SRC", wanted->source, "the file to compress")->required();
    app.add_option("DST", wanted->target, "the compressed file to make, laid out as SRC")->required();
    app.add_option("-l,--level", wanted->level, "of zstd: 1 is fast, 19 is small (default: 3)")
        ->check(CLI::Range(1, pif::compress::kLevelMax))
        ->transform(pif::whole_number)
        ->type_name("N");
    app.add_flag("--context", wanted->has_chains,
                 "compress each record with those before it on its LFS: chains of up to 64");
    app.add_flag("--no-clobber", wanted->no_clobber, "fail if DST is there");
    pif::tool::add_threads_option(app, wanted->threads);
  };
  tool.control = [wanted](pif::tool::Controller& controller) { return pif::compress::control(controller, *wanted); };
  tool.explain = [wanted](pif::tool::Controller& controller) { return pif::compress::explain(controller, *wanted); };
  tool.work = pif::compress::work;
  return pif::tool::main(argc, argv, tool);
}
