// pif-map 'COMMAND' SRC [DST]: any filter as a tool.
#include <memory>

#include <CLI/CLI.hpp>

#include "map.h"

namespace {

void add_options(CLI::App& app, pif::map::MapOptions& options) {
  pif::map::Task& task = options.task;
  app.add_option("COMMAND", task.command, "for the shell; gets records on its standard input")->required();
  app.add_option("SRC", options.source, "the file to read")->required();
  app.add_option("DST", options.target, "the file of lines to make (default: standard output)");
  auto* const each = app.add_flag("--each", task.each, "line n of the output is made of record n, and nothing moves");
  auto* const by =
      app.add_option("--by", task.by, "records with the same text in this field (from 1) go to one command")
          ->check(CLI::Range(1, 100'000))
          ->type_name("FIELD");
  by->excludes(each);
  pif::tool::add_field_options(app, task);
  pif::tool::add_output_options(app, options);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = std::make_shared<pif::map::MapOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-map";
  tool.summary = "Runs a command of the shell once on every LFS of a file: it reads that LFS's records on stdin.";
  tool.examples =
      "  pif map 'wc -l' /log                            one line of each LFS\n"
      "  pif map --each 'cut -d, -f2' /table /second     record n is made of record n\n"
      "  pif map 'grep -v DEBUG || true' /log /short     any number of records\n"
      "  pif map --by 1 'sort | uniq -c' /log /counts    equal first fields at one command\n"
      "A command that ends with another exit code than 0, on any LFS, fails all; DST appears whole or not at all.\n";
  tool.options = [options](CLI::App& app) { add_options(app, *options); };
  tool.control = [options](pif::tool::Controller& controller) { return pif::map::control(controller, *options); };
  tool.explain = [options](pif::tool::Controller& controller) { return pif::map::explain(controller, *options); };
  tool.work = pif::map::work;
  tool.prints = true;
  return pif::tool::main(argc, argv, tool);
}
