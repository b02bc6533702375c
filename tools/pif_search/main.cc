// pif-search PATTERN FILE...: the records that match, found by a worker on every LFS.
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/tool/tool_main.h"
#include "search.h"

namespace {

using pif::Code;
using pif::fail;
using pif::Result;
using pif::Status;

struct CommandLine {
  pif::search::SearchOptions search;
  std::vector<std::string> patterns, operands;
  std::string pattern_file;
  std::uint64_t context = 0;
  bool extended = false;
  bool is_count_given = false;  // -c
};

constexpr std::size_t kPatternBytesMax = 15u << 20;  // all of them travel to every worker

Result<std::string> read_patterns(const std::string& name) {
  std::ifstream file(name == "-" ? "/dev/stdin" : name, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) return fail(Code::kNotFound, fmt::format("cannot read the patterns of {}", name));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Status gather_patterns(CommandLine& line) {
  if (line.patterns.empty() && line.pattern_file.empty()) {
    if (line.operands.empty()) return fail(Code::kInvalid, "what is to be looked for?");
    line.patterns.push_back(line.operands.front());
    line.operands.erase(line.operands.begin());
  }
  std::string& all = line.search.query.patterns;
  for (const std::string& pattern : line.patterns) all += (&pattern == &line.patterns.front() ? "" : "\n") + pattern;
  if (!line.pattern_file.empty()) {
    PIF_TRY_VALUE(const std::string more, read_patterns(line.pattern_file));
    all += (line.patterns.empty() ? "" : "\n") + more;
  }
  if (all.size() > kPatternBytesMax)
    return fail(Code::kTooLarge,
                fmt::format("patterns of {} bytes; at most {} MiB", all.size(), kPatternBytesMax >> 20));
  if (line.operands.empty()) return fail(Code::kInvalid, "which file is to be searched?");
  line.search.files = std::move(line.operands);
  return {};
}

Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, CommandLine& line) {
  PIF_TRY(gather_patterns(line));
  pif::search::SearchOptions& options = line.search;
  line.is_count_given = options.query.count;
  if (options.before == 0) options.before = line.context;
  if (options.after == 0) options.after = line.context;
  if (options.query.tag) options.query.only_match = true;
  if (options.query.only_match) options.before = options.after = 0;
  if (options.list || controller.report().is_json) options.query.count = true;
  if (options.list) options.query.max = 1;
  options.quiet = controller.report().is_quiet;
  if (options.quiet) options.query.count = options.list = false;
  if (!options.to.empty()) {
    if (line.is_count_given || options.list || options.quiet || options.numbers || options.names ||
        options.before > 0 || options.after > 0 || options.query.max > 0)
      return fail(Code::kInvalid, "--to is for records alone: without -c, -l, -m, -n, -q, -A, -B, -C and -H");
    options.query.to_file = true;
    options.query.count = false;
  }
  return pif::search::control(controller, options);
}

void add_options(CLI::App& app, CommandLine& line) {
  pif::search::SearchOptions& search = line.search;
  app.add_option("PATTERN", line.operands, "what to look for, unless -e or -f says it; then files and folders")
      ->type_name("FILE...");
  app.add_option("-e,--regexp", line.patterns, "a pattern; may be given several times")->allow_extra_args(false);
  app.add_option("-f,--file", line.pattern_file, "a local file with patterns, one a line; -: standard input");
  app.add_flag("-F,--fixed-strings", search.query.fixed, "patterns are strings as they stand");
  app.add_flag("-E,--extended-regexp", line.extended, "accepted: patterns are RE2's, which are extended");
  app.add_flag("-i,--ignore-case", search.query.ignore_case, "of ASCII letters");
  app.add_flag("-w,--word-regexp", search.query.words, "a match is no part of a longer word");
  app.add_flag("-x,--line-regexp", search.query.whole, "the whole record must match");
  app.add_flag("-v,--invert-match", search.query.invert, "records that do not match");
  app.add_flag("-c,--count", search.query.count, "only how many records match, of each file");
  app.add_flag("-l,--files-with-matches", search.list, "only names of files that have a match");
  app.add_option("-m,--max-count", search.query.max, "at most so many records of each file");
  app.add_flag("-n,--line-number", search.numbers, "numbers of records, from 1");
  app.add_flag("-H,--with-filename", search.names, "the name of the file with each record");
  app.add_flag("--no-filename", search.no_names, "no names of files");
  app.add_flag("-o,--only-matching", search.query.only_match, "only what matches, each match on a line");
  app.add_option("--to", search.to, "make DST of the records that match, with -o of the matches; of one file")
      ->type_name("DST");
  app.add_flag("--tag", search.query.tag, "in front of each match the number of its pattern, from 1; with -o");
  app.add_option("-A,--after-context", search.after, "so many records after each that matches");
  app.add_option("-B,--before-context", search.before, "so many records before it");
  app.add_option("-C,--context", line.context, "so many before and after it");
}

}  // namespace

int main(int argc, char** argv) {
  const auto line = std::make_shared<CommandLine>();
  pif::tool::Tool tool;
  tool.name = "pif-search";
  tool.summary = "Finds records that match patterns, on all LFSs at once. Patterns are RE2's, over bytes.";
  tool.examples =
      "  pif search 'GET /(a|b)' /log\n  pif search -F -c error /logs\n"
      "  pif search -n -B 2 -A 2 timeout /log\n  pif search -o --tag -e '[0-9]+' -e '[a-z]+' /text\n"
      "  pif search error /log --to /errors\n";
  tool.options = [line](CLI::App& app) { add_options(app, *line); };
  tool.control = [line](pif::tool::Controller& controller) { return control(controller, *line); };
  tool.work = pif::search::work;
  tool.prints = true;
  return pif::tool::main(argc, argv, tool);
}
