// find: the names below a path that pass all tests, and a command run for them.
#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command/child.h"
#include "command/interrupt.h"
#include "command/program.h"
#include "names/operands.h"
#include "text/find_words.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::string_view kTypeLetters = "dflpscb";
constexpr std::size_t kNamesAtOnce = 1000;
constexpr std::size_t kNameBytesAtOnce = 128u << 10;  // the kernel's own limit on arguments is above it

struct FindOptions {
  std::vector<std::string> paths;
  std::string name, type, size, newer, exec;
  bool print = false, print0 = false;
};

// What an entry must be; what is not set does not matter.
struct Tests {
  std::string name;
  std::optional<EntryKind> kind;
  std::optional<SizeTest> size;
  std::optional<std::int64_t> newer_than_ns;

  bool hold(const Entry& entry, const std::string& path) const {
    if (kind && entry.kind != *kind) return false;
    if (size && (entry.kind != EntryKind::kFile || !size->holds(entry.file_length.bytes))) return false;
    if (newer_than_ns && entry.modified_ns <= *newer_than_ns) return false;
    return name.empty() || matches(name, path == "/" ? path : base_name(path), Dots::kShow);
  }
};

// Runs the command for the names that were found, many at a time or each.
class Runner {
 public:
  explicit Runner(ExecPlan plan) : plan_(std::move(plan)) {}

  Status add(const std::string& path) {
    bytes_ += path.size() + 1;
    paths_.push_back(path);
    return !plan_.many || paths_.size() >= kNamesAtOnce || bytes_ >= kNameBytesAtOnce ? flush() : Status{};
  }
  Status flush() {
    if (paths_.empty()) return {};
    PIF_TRY(check_interrupt());
    PIF_TRY_VALUE(const ChildEnd end, run_child(words_for(plan_, paths_), ChildOutput::kPass));
    ++runs_;
    if (end.exit_code != 0) ++failed_;
    paths_.clear();
    bytes_ = 0;
    return {};
  }
  Status outcome() const {
    if (failed_ == 0) return {};
    return fail(Code::kCancelled, fmt::format("{} of {} runs of {} failed", failed_, runs_, plan_.words[0]));
  }

 private:
  const ExecPlan plan_;
  std::vector<std::string> paths_;
  std::size_t bytes_ = 0;
  std::uint64_t runs_ = 0, failed_ = 0;
};

// What becomes of an entry that passes.
class Sink {
 public:
  Sink(const Program& program, const FindOptions& options, std::optional<ExecPlan> plan)
      : json_(program.common.json), prints_(options.print || options.print0 || !plan), ends_with_nul_(options.print0) {
    if (plan) runner_.emplace(std::move(*plan));
  }

  Status take(const Entry& entry, const std::string& path) {
    if (json_) {
      const std::string before = std::exchange(is_first_, false) ? kBeginning : ",";
      PIF_TRY(print(before + json_of(entry, path).dump(-1, ' ', false, Json::error_handler_t::replace)));
    } else if (prints_) {
      PIF_TRY(print(ends_with_nul_ ? path + '\0' : shown(path) + '\n'));
    }
    return runner_ ? runner_->add(path) : Status{};
  }
  Status end(Failures& failures) {
    if (runner_) {
      PIF_TRY(runner_->flush());
      failures.add(runner_->outcome());
    }
    return json_ ? print(std::string(is_first_ ? kBeginning : "") + "]" + failures.members() + "}\n") : Status{};
  }
  bool has_begun_json() const { return json_ && !is_first_; }

 private:
  static constexpr const char* kBeginning = "{\"entries\":[";

  const bool json_, prints_, ends_with_nul_;
  bool is_first_ = true;
  std::optional<Runner> runner_;
};

Result<Tests> parse_tests(const FindOptions& options) {
  Tests tests;
  tests.name = options.name;
  // By EntryKind.
  if (!options.type.empty()) tests.kind = static_cast<EntryKind>(kTypeLetters.find(options.type));
  if (!options.size.empty()) {
    PIF_TRY_VALUE(tests.size, parse_size(options.size));
  }
  return tests;
}

Status search(Client& client, const Tests& tests, const std::string& path, Failures& failures, Sink& sink) {
  const auto visit = [&](const std::string& found, const Entry& entry) -> Status {
    PIF_TRY(check_interrupt());
    return tests.hold(entry, found) ? sink.take(entry, found) : Status{};
  };
  PIF_TRY_VALUE(const Entry top, client.stat(path));
  PIF_TRY(visit(path, top));
  return top.kind == EntryKind::kFolder ? walk(client, path, failures, visit) : Status{};
}

Outcome find(const Program& program, const FindOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths.empty() ? std::vector<std::string>{"/"} : options.paths));
  PIF_TRY_VALUE(Tests tests, parse_tests(options));
  std::optional<ExecPlan> plan;
  if (!options.exec.empty()) {
    PIF_TRY_VALUE(plan, parse_exec(options.exec));
  }
  if (plan && program.common.json)
    return fail(Code::kInvalid, "stdout cannot bear what the command prints and a JSON document; leave one out");
  PIF_TRY(check_stdout());
  PIF_TRY_VALUE(Client client, program.connect());
  if (!options.newer.empty()) {
    PIF_TRY_VALUE(const std::string newer, parse_path(options.newer));
    PIF_TRY_VALUE(const Entry entry, client.stat(newer));
    tests.newer_than_ns = entry.modified_ns;
  }
  PIF_TRY(expand(client, paths));
  ::setenv("PIF", program.folder().c_str(), 1);  // commands of this program mean this file system
  if (plan) catch_interrupts();
  Failures failures(program);
  Sink sink(program, options, std::move(plan));
  const Status searched = for_each_operand(
      paths, failures, [&](const std::string& path) { return search(client, tests, path, failures, sink); });
  if (!searched)
    return sink.has_begun_json() ? program.fail_within(searched.error(), "]") : Outcome(fail(searched.error()));
  PIF_TRY(sink.end(failures));
  return failures.exit_code();
}

}  // namespace

void add_find_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<FindOptions>();
  CLI::App* command =
      add_command(app, program, "find", "Find names below a path, and run a command for them",
                  "  pif find / -name '*.log' -size +10M\n  pif find /results -type f -newer /results/done\n"
                  "  pif find /tmp -name '*.tmp' -exec pif rm {} +         many names at once\n"
                  "  pif find / -type f -exec pif locate {} \\;             one at a time\n"
                  "An entry must pass all tests. Options may have one dash, as find(1) has them, or two.");
  command->add_option("PATH", options->paths, "Where to look: files or folders (default: /)");
  command->add_option("--name", options->name, "The last part of the path matches this pattern")->type_name("GLOB");
  command
      ->add_option("--type", options->type,
                   "f: files, d: folders, l: links, p: fifos, s: sockets, c and b: character and block devices")
      ->check(CLI::IsMember({"f", "d", "l", "p", "s", "c", "b"}));
  command
      ->add_option("--size", options->size,
                   "More than (+), less than (-) or just so many bytes, KiB (k), MiB (M), GiB, TiB")
      ->type_name("[+-]N[ckMGT]");
  command->add_option("--newer", options->newer, "Changed after this file or folder")->type_name("PATH");
  command->add_option("--exec", options->exec, "Run a command for what is found: CMD ... {} + or CMD ... {} \\;")
      ->type_name("CMD");
  auto* print = command->add_flag("--print", options->print, "Print the paths, though there is a command");
  command->add_flag("--print0", options->print0, "Print the paths, each with a NUL behind it, for xargs -0")
      ->excludes(print);
  on_run(command, program, options, find);
}

}  // namespace pif::cli
