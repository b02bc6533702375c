// pif-sort SRC DST: sorts the records of a file.
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "pif/tool/memory.h"
#include "pif/tool/tool_main.h"
#include "sort.h"

namespace {

// One character, or \t or \0.
std::string set_separator(const std::string& text, pif::sort::Wish& wish) {
  if (text == "\\t") {
    wish.keys.separator = '\t';
  } else if (text == "\\0") {
    wish.keys.separator = '\0';
  } else if (text.size() == 1) {
    wish.keys.separator = text[0];
  } else {
    return "a separator is one character, or \\t or \\0";
  }
  return {};
}

void add_options(CLI::App& app, const std::shared_ptr<pif::sort::Wish>& wish) {
  app.add_option("SRC", wish->source, "the file to sort")->required();
  auto* const target = app.add_option("DST", wish->target, "the sorted file; replaced when it is complete (may be SRC)");
  app.add_option("-k,--key", wish->keys.keys, "sort by this; may be given again")->type_name("KEY")->allow_extra_args(false);
  app.add_option_function<std::string>("-t", [wish](const std::string& text) {
       if (const std::string wrong = set_separator(text, *wish); !wrong.empty()) throw CLI::ValidationError("-t", wrong);
     }, "character between fields")->type_name("C");
  app.add_flag("-n", wish->keys.numeric, "by numeric value (not for OFF:LEN, which has types)");
  app.add_flag("-r", wish->keys.reverse, "largest first; equal ones stay as they are");
  app.add_flag("-b", wish->keys.skip_blanks, "fields begin behind their blanks");
  app.add_flag("-u", wish->unique, "of records with equal keys only the first");
  app.add_flag_callback("-s", [] {}, "accepted: pif-sort is always stable");
  auto* const check = app.add_flag("-c", wish->check, "only say whether SRC is sorted: exit code 1 and the first that is not");
  pif::tool::add_memory_option(app, wish->memory, "what needs more is sorted in runs, on the disks of its LFSs");
  std::map<std::string, pif::sort::MergeKind> kinds;
  for (const auto& [kind, name] : pif::sort::kMerges) kinds.emplace(name, kind);
  app.add_option("--merge", wish->merge, "how the sorted components become one file: split (default), token (pass by pass), or "
                                         "pipelined (all passes at once)")
      ->transform(CLI::CheckedTransformer(kinds).description(""))->type_name("split|token|pipelined");
  app.add_option("--token-batch", wish->token_batch, "records that a token decides on at once (default 4096; fewer if some are long); 0: "
                                                     "one record per hop, as in figure 5.4 of the thesis")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 20))->transform(pif::decimal)->type_name("N");
  pif::tool::add_target_options(app, *wish);
  for (const char* const of_output : {"--merge", "--token-batch", "--width", "--nodes", "--bevy", "--no-clobber"})
    check->excludes(app.get_option(of_output));
  app.final_callback([target, check] {
    if (target->count() + check->count() != 1) throw CLI::ValidationError("DST", "is needed, or -c instead of it");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto wish = std::make_shared<pif::sort::Wish>();
  pif::tool::Tool tool;
  tool.name = "pif-sort";
  tool.summary = "Sorts the records of a file, on all its LFSs at once; always stable.";
  tool.examples =
      "  pif-sort /lines /sorted                 lines of text, or whole records\n"
      "  pif-sort -k 0:10 /records /sorted       by the first 10 bytes\n"
      "  pif-sort -k 8:4:u -k 0:8:fr ...       by a number, then by a float, largest first\n"
      "  pif-sort -t , -k 3,3n /csv /by-third    by the third field's value\n"
      "  pif-sort -c -k 0:10 /sorted             is it sorted?\n"
      "Keys: OFF:LEN[:b|u|i|f[le|be]][r] (bytes, unsigned, signed, float), or F[.C][bnr][,F[.C][bnr]] as in sort(1).\n"
      "-n, -b and -r are for keys without letters of their own; of OFF:LEN only -r, where it has no type.\n";
  tool.options = [wish](CLI::App& app) { add_options(app, wish); };
  tool.control = [wish](pif::tool::Controller& controller) { return pif::sort::control(controller, *wish); };
  tool.work = pif::sort::work;
  tool.explain = [wish](pif::tool::Controller& controller) { return pif::sort::explain(controller, *wish); };
  return pif::tool::main(argc, argv, tool);
}
