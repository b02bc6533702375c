// wc: how many lines, words, records and bytes files have, and how long their lines are. Bytes and records are known
// without reading them, lines of text files nearly so. What is large and has to be read is counted by pif-count, whose
// workers are where the data lies.
#include <algorithm>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "../../counts/text_counts.h"
#include "command/program.h"
#include "command/run_tool.h"
#include "files/byte_view.h"
#include "names/operands.h"
#include "pif/client/bulk.h"
#include "text/text.h"

namespace pif::cli {
namespace {

// Below this, starting workers takes longer than it saves.
constexpr std::uint64_t kWorkersBytes = 64u << 20;
// Of records that are no lines workers tell how each begins and ends: not if that is as much as there is in them.
constexpr std::uint64_t kWorkersRecordBytes = 1024;

struct CountOptions {
  std::vector<std::string> paths;
  bool lines = false, words = false, records = false, bytes = false, longest = false;
};

struct Counts {
  std::uint64_t lines = 0, words = 0, records = 0, bytes = 0, longest = 0;
  void add(const Counts& other) {
    lines += other.lines;
    words += other.words;
    records += other.records;
    bytes += other.bytes;
    longest = std::max(longest, other.longest);
  }
};

// Reads all of it here.
Status count_here(ByteView& view, bool longest, Counts& counts) {
  const auto what = longest ? counts::What::kWordsAndLongest : counts::What::kWords;
  counts::TextCounts text;
  text.add(std::as_bytes(std::span(view.header())), what);
  PIF_TRY_VALUE(const BulkCounts read, export_blocks(view.file(), [&](std::span<const std::byte> block) -> Status {
                  text.add(block, what);
                  return {};
                }));
  counts.records = read.records;
  counts.bytes = view.header().size() + read.bytes;
  counts.lines = text.lines();
  counts.words = text.words();
  counts.longest = text.longest();
  return {};
}

bool is_for_workers(const Entry& entry, const FileLength& file_length) {
  if (entry.is_placed || file_length.bytes < kWorkersBytes) return false;
  return entry.format == Format::lines() || file_length.bytes / file_length.records >= kWorkersRecordBytes;
}

Status count_by_workers(const Program& program, const std::string& path, bool longest, Counts& counts) {
  std::vector<std::string> arguments;
  if (longest) arguments.emplace_back("--max-line-length");
  arguments.push_back(path);
  PIF_TRY_VALUE(const Json report, run_tool(program, "pif-count", arguments));
  const Json results = report.value("results", Json::object());
  const auto number = [&results](const char* name) { return results.value(name, std::uint64_t{0}); };
  if (!results.contains("lines") || !results.contains("words"))
    return fail(Code::kInternal, "pif-count did not say what it has counted");
  counts.lines = number("lines");
  counts.words = number("words");
  counts.longest = number("longest");
  return {};
}

// Where workers cannot count, as beside somebody who writes to the file, or on an LFS that is away, it is done here,
// and says what is wrong if that cannot be either.
Status count_text(const Program& program, const Entry& entry, const std::string& path, ByteView& view, bool longest,
                  Counts& counts) {
  if (is_for_workers(entry, view.file_length()) && count_by_workers(program, path, longest, counts)) return {};
  return count_here(view, longest, counts);
}

// Each record of a text file is a line; the last one counts if it has its end.
Status count_text_lines(ByteView& view, Counts& counts) {
  counts.lines = view.file_length().records;
  if (counts.lines == 0) return {};
  std::byte last{};
  PIF_TRY(view.read(view.size() - 1, {&last, 1}));
  counts.lines -= last == std::byte{'\n'} ? 0 : 1;
  return {};
}

// Of a file that grows the directory knows an older length than its LFSs, who are asked: a reader sees what they have.
Result<Counts> counts_of(const Program& program, Client& client, const CountOptions& options, const std::string& path) {
  PIF_TRY_VALUE(const Entry entry, client.stat(path));
  if (entry.kind == EntryKind::kFolder)
    return fail(Code::kIsDirectory, path + " is a folder; name files (pif du sums up folders)");
  PIF_TRY_VALUE(ByteView view, ByteView::open(client, path));
  Counts counts;
  counts.records = view.file_length().records;
  counts.bytes = view.size();
  const bool is_read = options.words || options.longest;
  if (is_read || options.lines) {
    const bool is_text = !is_read && entry.format == Format::lines() && view.header().empty();
    PIF_TRY(is_text ? count_text_lines(view, counts) : count_text(program, entry, path, view, options.longest, counts));
  }
  return counts;
}

// What was asked for, in the order of wc(1).
std::vector<std::pair<const char*, std::uint64_t>> columns_of(const CountOptions& options, const Counts& counts) {
  std::vector<std::pair<const char*, std::uint64_t>> columns;
  if (options.lines) columns.emplace_back("lines", counts.lines);
  if (options.words) columns.emplace_back("words", counts.words);
  if (options.records) columns.emplace_back("records", counts.records);
  if (options.bytes) columns.emplace_back("bytes", counts.bytes);
  if (options.longest) columns.emplace_back("longest", counts.longest);
  return columns;
}

Outcome count(const Program& program, const CountOptions& asked) {
  CountOptions options = asked;
  if (!options.lines && !options.words && !options.records && !options.bytes && !options.longest)
    options.lines = options.words = options.bytes = true;
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY(check_stdout());
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  Failures failures(program);
  Json files = Json::array();
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const Counts& counts, const std::string& name, Json& document) {
    rows.emplace_back();
    for (const auto& [column, value] : columns_of(options, counts)) {
      document[column] = value;
      rows.back().push_back(std::to_string(value));
    }
    rows.back().push_back(name);
  };
  Counts sum;
  PIF_TRY(for_each_operand(paths, failures, [&](const std::string& path) -> Status {
    PIF_TRY_VALUE(const Counts counts, counts_of(program, client, options, path));
    sum.add(counts);
    Json document = {{"path", path}};
    add(counts, shown(path), document);
    files.push_back(document);
    return {};
  }));
  Json total = Json::object();
  add(sum, "total", total);
  if (paths.size() == 1) rows.pop_back();
  Json document = {{"files", files}, {"total", total}};
  failures.add_to(document);
  std::vector<std::size_t> numbers(rows.front().size() - 1);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  PIF_TRY(program.common.json ? print(document) : print(table(rows, numbers)));
  return failures.exit_code();
}

}  // namespace

void add_count_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<CountOptions>();
  CLI::App* command =
      add_command(app, program, "wc", "Count lines, words, records and bytes of files",
                  "  pif wc /log.txt                 lines, words and bytes\n  pif wc -l '/logs/*.txt'\n"
                  "  pif wc -cr /big.dat             bytes and records: nothing is read\n"
                  "  pif wc -L /log.txt              columns of the longest line\n"
                  "  pif wc -r --json /sort.in | jq .total.records");
  command->add_option("FILE", options->paths, "Files")->required();
  command->add_flag("-l,--lines", options->lines, "Line ends");
  command->add_flag("-w,--words", options->words, "Words of printable ASCII, which white space separates");
  command->add_flag("-r,--records", options->records, "Records, as the file's format has them");
  command->add_flag("-c,--bytes", options->bytes, "Bytes, the kept header with them");
  command->add_flag("-L,--max-line-length", options->longest, "Columns of the longest line; tabs go to multiples of 8");
  command->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(command, program, options, count);
}

}  // namespace pif::cli
