// pif-summarize FILE: count, sums, quantiles, different values and groups of the fields of a file's records.
#include <memory>

#include <CLI/CLI.hpp>

#include "summarize.h"

namespace {

void add_options(CLI::App& app, pif::summarize::SummarizeOptions& options) {
  pif::summarize::Query& query = options.query;
  app.add_option(
         "-f,--field", options.fields,
         "a field: its number from 1, a CSV column's name, or OFFSET:LENGTH:TYPE of records of one length, with "
         "TYPE u, i or f, and be behind it for the highest byte first; may be given again")
      ->allow_extra_args(false)
      ->type_name("FIELD");
  app.add_option("--by", options.by, "one line for each text of this field")->type_name("FIELD");
  pif::tool::add_field_options(app, query);
  app.add_option("--quantiles", options.quantiles, "parts of 1, with commas between (default: 0.25,0.5,0.75)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("LIST");
  app.add_option("--histogram", query.bins, "how many numbers are in each of N parts from the smallest to the largest")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  app.add_option("--top", query.top, "the N most frequent texts of each field, and exactly how many different ones")
      ->check(CLI::Range(1, 100'000))
      ->type_name("N");
  app.add_flag("--exact", query.exact, "count different texts exactly, each one in memory");
  app.add_flag("--strict", query.strict, "fail at the first field that is no number, or not there");
  app.add_option("FILE", options.path, "the file to read")->required();
  app.final_callback([&options] {
    const bool has_list = options.query.bins + options.query.top > 0 || options.query.exact;
    if (!options.by.empty() && has_list) throw CLI::ValidationError("--by", "goes without --histogram, --top, --exact");
    if (options.by.empty() && options.fields.empty()) throw CLI::ValidationError("--field", "is needed, or --by");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = std::make_shared<pif::summarize::SummarizeOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-summarize";
  tool.summary = "Says what the fields of a file's records are: sums, quantiles, different values, groups.";
  tool.examples =
      "  pif summarize -f 9 /web.log                        numbers in the ninth field\n"
      "  pif summarize --csv -f price -f weight /table      columns by name\n"
      "  pif summarize --csv --by city -f price /table      one line of each city\n"
      "  pif summarize -f 7 --top 10 /web.log               the most frequent values\n"
      "  pif summarize -f 0:8:f --histogram 20 /doubles     of binary records\n";
  tool.options = [options](CLI::App& app) { add_options(app, *options); };
  tool.control = [options](pif::tool::Controller& controller) { return pif::summarize::control(controller, *options); };
  tool.explain = [options](pif::tool::Controller& controller) { return pif::summarize::explain(controller, *options); };
  tool.work = pif::summarize::work;
  return pif::tool::main(argc, argv, tool);
}
