// wc: how many lines, words, records and bytes files have. Bytes and records are known without reading them, lines of
// text files nearly so.
#include <cstring>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "command/program.h"
#include "files/byte_view.h"
#include "names/operands.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct CountOptions {
  std::vector<std::string> paths;
  bool lines = false, words = false, records = false, bytes = false;
};

struct Counts {
  std::uint64_t lines = 0, words = 0, records = 0, bytes = 0;
  void add(const Counts& other) {
    lines += other.lines;
    words += other.words;
    records += other.records;
    bytes += other.bytes;
  }
};

bool is_space(std::byte byte) { return byte == std::byte{' '} || (byte >= std::byte{'\t'} && byte <= std::byte{'\r'}); }

// Reads all of it.
Status count_bytes(ByteView& view, Counts& counts) {
  bool in_word = false;
  return view.for_each_piece({0, view.size()}, [&](std::span<const std::byte> piece) -> Result<ByteView::More> {
    for (const std::byte byte : piece) {
      counts.lines += byte == std::byte{'\n'} ? 1 : 0;
      const bool space = is_space(byte);
      counts.words += in_word || space ? 0 : 1;
      in_word = !space;
    }
    return ByteView::More::kYes;
  });
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
Result<Counts> counts_of(Client& client, const CountOptions& options, const std::string& path) {
  PIF_TRY_VALUE(const Entry entry, client.stat(path));
  if (entry.kind == EntryKind::kFolder)
    return fail(Code::kIsDirectory, path + " is a folder; name files (pif du sums up folders)");
  PIF_TRY_VALUE(ByteView view, ByteView::open(client, path));
  Counts counts;
  counts.records = view.file_length().records;
  counts.bytes = view.size();
  if (!options.lines && !options.words) return counts;
  const bool is_text = !options.words && entry.format == Format::lines() && view.header().empty();
  PIF_TRY(is_text ? count_text_lines(view, counts) : count_bytes(view, counts));
  return counts;
}

// What was asked for, in the order of wc(1).
std::vector<std::pair<const char*, std::uint64_t>> columns_of(const CountOptions& options, const Counts& counts) {
  std::vector<std::pair<const char*, std::uint64_t>> columns;
  if (options.lines) columns.emplace_back("lines", counts.lines);
  if (options.words) columns.emplace_back("words", counts.words);
  if (options.records) columns.emplace_back("records", counts.records);
  if (options.bytes) columns.emplace_back("bytes", counts.bytes);
  return columns;
}

Outcome count(const Program& program, const CountOptions& asked) {
  CountOptions options = asked;
  if (!options.lines && !options.words && !options.records && !options.bytes)
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
    PIF_TRY_VALUE(const Counts counts, counts_of(client, options, path));
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
                  "  pif wc -r --json /sort.in | jq .total.records");
  command->add_option("FILE", options->paths, "Files")->required();
  command->add_flag("-l,--lines", options->lines, "Line ends");
  command->add_flag("-w,--words", options->words, "Words: what white space separates");
  command->add_flag("-r,--records", options->records, "Records, as the file's format has them");
  command->add_flag("-c,--bytes", options->bytes, "Bytes, the kept header with them");
  command->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(command, program, options, count);
}

}  // namespace pif::cli
