// head, tail: the first and the last lines, bytes or records of files. Only what is asked for is read, and from the end
// what is there.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command/program.h"
#include "files/byte_view.h"
#include "names/operands.h"
#include "pif/base/limits.h"
#include "pif/base/write_all.h"
#include "pif/client/bulk.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::uint64_t kLinesDefault = 10;

// How much of a file, as head(1) and tail(1) have it: "5", "-5", "+5".
struct Amount {
  char sign = 0;  // 0: none
  std::uint64_t count = kLinesDefault;

  // Which of `all` lines, bytes or records.
  Range of(std::uint64_t all, bool from_end) const {
    const std::uint64_t some = std::min(count, all);
    if (from_end && sign == '+') return {std::min(std::max<std::uint64_t>(count, 1) - 1, all), all};
    if (from_end) return {all - some, all};
    return {0, sign == '-' ? all - some : some};
  }
  // Whether it is counted from the end.
  bool counts_back(bool from_end) const { return from_end ? sign != '+' : sign == '-'; }
};

struct EndsOptions {
  std::vector<std::string> paths;
  std::string lines, bytes, records;  // as typed
  bool from_end = false;              // tail
};

Result<std::optional<Amount>> parse_amount(std::string_view text, std::string_view what) {
  if (text.empty()) return std::optional<Amount>();
  Amount amount;
  const bool has_sign = text[0] == '+' || text[0] == '-';
  if (has_sign) amount.sign = text[0];
  PIF_TRY_VALUE(amount.count, parse_number(text.substr(has_sign ? 1 : 0), what));
  return std::optional(amount);
}

Status to_stdout(std::span<const std::byte> bytes) { return write_all(1, bytes, "cannot write to standard output"); }

// Where line `count` (from 1) ends: behind that many line ends; the end of the file if there are fewer.
Result<std::uint64_t> end_of_line(ByteView& view, std::uint64_t count) {
  std::uint64_t end = 0;
  PIF_TRY(view.for_each_piece(
      {0, count == 0 ? 0 : view.size()}, [&](std::span<const std::byte> piece) -> Result<ByteView::More> {
        for (std::size_t at = 0; at < piece.size() && count > 0; --count) {
          const void* const found = std::memchr(piece.data() + at, '\n', piece.size() - at);
          const auto* const line_end =
              found == nullptr ? piece.data() + piece.size() : static_cast<const std::byte*>(found) + 1;
          const auto next = static_cast<std::size_t>(line_end - piece.data());
          end += next - at;
          at = next;
          if (found == nullptr) break;
        }
        return count > 0 ? ByteView::More::kYes : ByteView::More::kNo;
      }));
  return end;
}

// Where the last `count` lines begin. What follows the last line end is a line, if it has any bytes.
Result<std::uint64_t> start_of_last_lines(ByteView& view, std::uint64_t count) {
  if (count == 0 || view.size() == 0) return view.size();
  std::byte last{};
  PIF_TRY(view.read(view.size() - 1, {&last, 1}));
  std::uint64_t ends_to_pass =
      count - (last == std::byte{'\n'} ? 0 : 1);  // behind the line before the first one stands the next
  std::uint64_t at = view.size();
  bool is_found = false;
  PIF_TRY(view.for_each_piece_back({0, view.size()}, [&](std::span<const std::byte> piece) -> Result<ByteView::More> {
    std::size_t left = piece.size();
    while (const void* const found = ::memrchr(piece.data(), '\n', left)) {
      left = static_cast<std::size_t>(static_cast<const std::byte*>(found) - piece.data());
      if (ends_to_pass == 0) {
        is_found = true;
        at -= piece.size() - left - 1;
        return ByteView::More::kNo;
      }
      --ends_to_pass;
    }
    at -= piece.size();
    return ByteView::More::kYes;
  }));
  return is_found ? at : 0;
}

// Much of it is read ahead, a little with no more around it than has to be checked.
Status print_bytes(ByteView& view, Range bytes) {
  const std::uint64_t header = view.header().size();
  if (bytes.begin >= header && bytes.size() >= kBulkBytes) {
    BulkOptions options;
    options.bytes = {bytes.begin - header, bytes.end - header};
    const auto moved = export_stream(view.file(), 1, options);
    return moved ? Status{} : Status(fail(moved.error()));
  }
  return view.for_each_piece(bytes, [](std::span<const std::byte> piece) -> Result<ByteView::More> {
    PIF_TRY(to_stdout(piece));
    return ByteView::More::kYes;
  });
}

Status print_records(ByteView& view, Range records) {
  BulkOptions options;
  options.records = records;
  const auto moved = export_stream(view.file(), 1, options);
  return moved ? Status{} : Status(fail(moved.error()));
}

// What is asked for: one of them at most.
struct Amounts {
  std::optional<Amount> lines, bytes, records;

  static Result<Amounts> parse(const EndsOptions& options) {
    Amounts amounts;
    PIF_TRY_VALUE(amounts.lines, parse_amount(options.lines, "-n"));
    PIF_TRY_VALUE(amounts.bytes, parse_amount(options.bytes, "-c"));
    PIF_TRY_VALUE(amounts.records, parse_amount(options.records, "-r"));
    return amounts;
  }
};

// Lines are found from the end that they are counted from: so much is read, and no more.
Result<Range> bytes_of_lines(ByteView& view, const Amount& lines, bool from_end) {
  std::uint64_t at = 0;
  if (lines.counts_back(from_end)) {
    PIF_TRY_VALUE(at, start_of_last_lines(view, lines.count));
  } else {
    const std::uint64_t before = from_end ? std::max<std::uint64_t>(lines.count, 1) - 1 : lines.count;
    PIF_TRY_VALUE(at, end_of_line(view, before));
  }
  return from_end ? Range{at, view.size()} : Range{0, at};
}

Status print_end(Client& client, const Amounts& amounts, bool from_end, const std::string& path) {
  PIF_TRY_VALUE(ByteView view, ByteView::open(client, path));
  if (amounts.records) return print_records(view, amounts.records->of(view.file_length().records, from_end));
  if (amounts.bytes) return print_bytes(view, amounts.bytes->of(view.size(), from_end));
  const Amount wanted = amounts.lines.value_or(Amount());
  const bool are_lines = view.file().format() == Format::lines() && view.header().empty() && !view.file().is_placed();
  if (are_lines) return print_records(view, wanted.of(view.file_length().records, from_end));
  PIF_TRY_VALUE(const Range lines, bytes_of_lines(view, wanted, from_end));
  return print_bytes(view, lines);
}

Outcome print_ends(const Program& program, const EndsOptions& options) {
  if (program.common.json)
    return fail(Code::kInvalid,
                "stdout cannot bear bytes and a JSON document; pif cat --records A:B --json has records in base64");
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY_VALUE(const Amounts amounts, Amounts::parse(options));
  PIF_TRY(check_stdout());
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  Failures failures(program);
  bool is_first = true;
  const Status done = for_each_operand(paths, failures, [&](const std::string& path) -> Status {
    if (paths.size() > 1 && !program.common.quiet)
      PIF_TRY(print(fmt::format("{}==> {} <==\n", is_first ? "" : "\n", shown(path))));
    is_first = false;
    return print_end(client, amounts, options.from_end, path);
  });
  PIF_TRY(done);
  return failures.exit_code();
}

void add_end_command(CLI::App& app, Program& program, const char* name, const char* what, bool from_end) {
  auto options = std::make_shared<EndsOptions>();
  options->from_end = from_end;
  const std::string end = from_end ? "last" : "first";
  CLI::App* command =
      add_command(app, program, name, what,
                  fmt::format("  pif {0} /log.txt                 ten lines\n  pif {0} -n 100 '/logs/*.txt'\n"
                              "  pif {0} -c 512 /big.dat | xxd\n  pif {0} -r 3 /sort.in            three records",
                              name));
  command->add_option("FILE", options->paths, "The files, one after another")->required();
  const std::string other = from_end ? "; +N: from number N on" : "; -N: all but the last N";
  auto* lines = command->add_option("-n,--lines", options->lines,
                                    fmt::format("So many {} lines (default: {}){}", end, kLinesDefault, other));
  auto* bytes =
      command->add_option("-c,--bytes", options->bytes, fmt::format("So many {} bytes{}", end, other))->excludes(lines);
  auto* records = command->add_option("-r,--records", options->records,
                                      fmt::format("So many {} records, without the kept header{}", end, other));
  records->excludes(lines)->excludes(bytes);
  for (CLI::Option* option : {lines, bytes, records}) option->type_name(from_end ? "[+]N" : "[-]N");
  command->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(command, program, options, print_ends);
}

}  // namespace

void add_end_commands(CLI::App& app, Program& program) {
  add_end_command(app, program, "head", "Write the first lines, bytes or records of files", false);
  add_end_command(app, program, "tail", "Write the last lines, bytes or records of files", true);
}

}  // namespace pif::cli
