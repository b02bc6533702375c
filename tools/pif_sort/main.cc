// pif-sort SRC... DST: sorts the records of files.
#include <map>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "pif/tool/memory.h"
#include "pif/tool/threads.h"
#include "pif/tool/tool_main.h"
#include "sort.h"

namespace {

// One character, or \t or \0.
std::string set_separator(const std::string& text, pif::sort::SortOptions& wanted) {
  if (text == "\\t") {
    wanted.keys.separator = '\t';
  } else if (text == "\\0") {
    wanted.keys.separator = '\0';
  } else if (text.size() == 1) {
    wanted.keys.separator = text[0];
  } else {
    return "a separator is one character, or \\t or \\0";
  }
  return {};
}

// Where it goes: the last file, unless -o said it.
void find_target(const CLI::App& app, pif::sort::SortOptions& wanted, bool is_said) {
  if (!is_said) {
    if (wanted.sources.size() < 2)
      throw CLI::ValidationError("DST", "is needed behind what is sorted (- is standard output), or -o DST, or -c");
    wanted.target = std::move(wanted.sources.back());
    wanted.sources.pop_back();
  }
  const bool prints = app.get_option("--json")->count() + app.get_option("--verbose")->count() > 0 ||
                      app.get_option("--report")->results() == std::vector<std::string>{"-"};
  if (wanted.target == "-" && prints)
    throw CLI::ValidationError("-", "standard output cannot bear the records and a report");
}

// How texts are compared: for keys that have no letters of their own.
void add_letters(CLI::App& app, pif::sort::KeyOptions& keys) {
  app.add_flag("-n", keys.numeric, "by numeric value (not for OFF:LEN, which has types)");
  app.add_flag("-g", keys.general_numeric, "by value of floating-point numbers: 1e-3, 0x1p4, inf, nan");
  app.add_flag("-h", keys.human_numeric, "by value of numbers with a suffix: 2K before 1G");
  app.add_flag("-M", keys.month, "by month: JAN before FEB");
  app.add_flag("-V", keys.version, "by version: 1.9 before 1.10");
  app.add_flag("-f", keys.fold, "lower-case letters count as upper-case ones");
  app.add_flag("-d", keys.only_dictionary, "only blanks, letters and digits count");
  app.add_flag("-i", keys.only_printing, "only printable characters count");
  app.add_flag("-r", keys.reverse, "largest first; equal ones stay as they are");
  app.add_flag("-b", keys.skip_blanks, "fields begin behind their blanks");
  app.add_flag("-z", keys.null_ended, "SRC must have records that end in a zero byte (files know their own records)");
}

// Which records the result has.
void add_kept(CLI::App& app, pif::sort::SortOptions& wanted) {
  app.add_flag("-u", wanted.unique, "of records with equal keys only the first");
  app.add_option("--header-lines", wanted.header_records,
                 "the first N records stay first, as they are; of several inputs those of the first one, and those of "
                 "the others are left out")
      ->transform(pif::whole_number)
      ->type_name("N");
  app.add_option("--top", wanted.top,
                 "only the first N records of the sorted order, as head -n N behind it has them (beside "
                 "header lines)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62))
      ->transform(pif::whole_number)
      ->type_name("N");
  app.add_flag("-m", wanted.merge_inputs,
               "every SRC is said to be sorted: they are merged (what is not in order is sorted all the same)");
  app.add_flag_callback(
      "-s", [] {}, "accepted: pif-sort is always stable");
}

void add_options(CLI::App& app, const std::shared_ptr<pif::sort::SortOptions>& wanted) {
  app.set_help_flag("--help", "Print this help message and exit");  // -h is an order, as in sort(1)
  app.add_option(
         "FILE", wanted->sources,
         "what is sorted together, all of one format; then DST, the sorted file, replaced when it is complete "
         "(it may be one of these). /a is in the file system; a, ./a and file:/a are local, - is standard input "
         "or output")
      ->required()
      ->type_name("SRC... DST");
  auto* const target =
      app.add_option("-o,--output", wanted->target, "this is DST, and all other files are sorted, as in sort(1)")
          ->type_name("DST");
  app.add_option("-k,--key", wanted->keys.keys, "sort by this; may be given again")
      ->type_name("KEY")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "-t",
         [wanted](const std::string& text) {
           if (const std::string wrong = set_separator(text, *wanted); !wrong.empty())
             throw CLI::ValidationError("-t", wrong);
         },
         "character between fields")
      ->type_name("C");
  app.add_flag("--csv", wanted->keys.csv,
               "SRC is CSV text (pif put --csv); a key is a column, by name or number: -k price:n, -k 3:nr. -t: its "
               "separator, else a comma");
  add_letters(app, wanted->keys);
  app.add_option("-T,--temporary", wanted->temporary,
                 "folder of the file system where local files wait, without a name (default: that of DST, or of SRC)")
      ->type_name("FOLDER")
      ->transform([](const std::string& folder) {
        const auto path = pif::tool::pif_path(folder);
        if (!path) throw CLI::ValidationError("-T", path.error().text);
        return *path;
      });
  add_kept(app, *wanted);
  auto* const check =
      app.add_flag("-c", wanted->check, "only say whether SRC is sorted: exit code 1 and the first that is not");
  pif::tool::add_memory_option(app, wanted->memory, "what needs more is sorted in runs, on the disks of its LFSs");
  pif::tool::add_threads_option(app, wanted->threads);
  std::map<std::string, pif::sort::MergeKind> kinds;
  for (const auto& [kind, name] : pif::sort::kMerges) kinds.emplace(name, kind);
  app.add_option("--merge", wanted->merge,
                 "how the sorted components become one file: split (default), token (pass by pass), or "
                 "pipelined (all passes at once)")
      ->transform(CLI::CheckedTransformer(kinds).description(""))
      ->type_name("split|token|pipelined");
  app.add_option("--token-batch", wanted->token_batch,
                 fmt::format("records that a token decides on at once (default {}; fewer if some are long); 0: one "
                             "record per hop, as in figure 5.4 of the thesis",
                             pif::sort::kTokenBatch))
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 20))
      ->transform(pif::whole_number)
      ->type_name("N");
  pif::tool::add_output_options(app, *wanted);
  for (const char* const of_output :
       {"-m", "--merge", "--token-batch", "--top", "--width", "--nodes", "--bevy", "--no-clobber"})
    check->excludes(app.get_option(of_output));
  check->excludes(target);
  app.final_callback([&app, wanted, target] {
    if (wanted->check && wanted->sources.size() > 1) throw CLI::ValidationError("-c", "looks at one file");
    if (wanted->merge != pif::sort::MergeKind::kSplit && wanted->top + wanted->header_records > 0)
      throw CLI::ValidationError(wanted->top > 0 ? "--top" : "--header-lines", "needs --merge split");
    if (!wanted->check) find_target(app, *wanted, target->count() > 0);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = std::make_shared<pif::sort::SortOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-sort";
  tool.summary = "Sorts the records of files, on all their LFSs at once; always stable.";
  tool.examples =
      "  pif-sort /lines /sorted                 lines of text, or whole records\n"
      "  pif-sort /monday /tuesday /both         records of several files, in the order of these where keys are equal\n"
      "  pif-sort -o /sorted /a /b               the same, as sort(1) has it\n"
      "  pif-sort log.txt /sorted                a local file into the file system\n"
      "  zcat log.gz | pif-sort - - | head       in a pipe, sorted on all LFSs\n"
      "  pif-sort -k 0:10 /records /sorted       by the first 10 bytes\n"
      "  pif-sort -k 8:4:u -k 0:8:fr ...       by a number, then by a float, largest first\n"
      "  pif-sort -t , -k 3,3n /csv /by-third    by the third field's value\n"
      "  pif-sort --csv -k city -k price:nr /table /by-price     columns by name\n"
      "  pif-sort -k 2,2nr --top 10 /log -       the ten largest, without sorting all\n"
      "  pif-sort -c -k 0:10 /sorted             is it sorted?\n"
      "Keys: OFF:LEN[:b|u|i|f[le|be]][r] (bytes, unsigned, signed, float), or F[.C][OPTS][,F[.C][OPTS]] as in "
      "sort(1),\n"
      "with OPTS of bdfghiMnrV. The options of these letters are for keys without letters of their own; of OFF:LEN "
      "only\n"
      "-r, where it has no type. Order is by bytes in every locale, as sort(1) has it with LC_ALL=C.\n";
  tool.options = [wanted](CLI::App& app) { add_options(app, wanted); };
  tool.control = [wanted](pif::tool::Controller& controller) { return pif::sort::control(controller, *wanted); };
  tool.work = pif::sort::work;
  tool.explain = [wanted](pif::tool::Controller& controller) { return pif::sort::explain(controller, *wanted); };
  return pif::tool::main(argc, argv, tool);
}
