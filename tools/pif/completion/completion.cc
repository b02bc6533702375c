// completion: the script that makes a shell complete command lines. complete: what the script asks, at every press of
// the key.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "command/child.h"
#include "command/dispatch.h"
#include "command/help.h"
#include "command/program.h"
#include "completion/candidates.h"
#include "completion/scripts.h"
#include "pif/base/typed_path.h"
#include "text/expand.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);  // somebody waits at the keyboard
constexpr std::size_t kNamesMax = 2000;

struct ScriptOptions {
  std::string shell;
};

Outcome print_script(const Program& program, const ScriptOptions& options) {
  const std::string_view script = options.shell == "bash"  ? kBashScript
                                  : options.shell == "zsh" ? kZshScript
                                                           : kFishScript;
  PIF_TRY(program.common.json ? print(Json{{"script", script}}) : print(std::string(script)));
  return ExitCode::kDone;
}

struct WordOptions {
  const CLI::App* app = nullptr;
  std::string words;  // each with a NUL behind it
};

std::vector<std::string> split(const std::string& joined) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < joined.size();) {
    const std::size_t end = joined.find('\0', begin);
    words.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// A script takes a line for a name, and what stands behind a tab for a description.
bool is_plain(const std::string& name) {
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

// The entries whose paths begin so, folders with a slash at the end. Nothing, in silence, if anything is wrong.
Result<std::string> paths_like(const Program& program, const std::string& typed) {
  const std::string scheme = typed.starts_with("pif:") ? "pif:" : "";
  const std::string path = typed.empty() ? "/" : typed.substr(scheme.size());
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return std::string();
  PIF_TRY_VALUE(const std::string folder, parse_path(path.substr(0, slash + 1)));
  const std::string prefix = path.substr(slash + 1);
  PIF_TRY_VALUE(Client client, program.connect(kPatience));
  std::string out;
  std::size_t count = 0;
  const Status listed = for_each_with_prefix(client, folder, prefix, [&](const Entry& entry) -> Status {
    if (!is_plain(entry.name) || (entry.name.starts_with('.') && prefix.empty())) return {};
    out += scheme + path.substr(0, slash + 1) + entry.name + (entry.kind == EntryKind::kFolder ? "/\n" : "\n");
    return ++count < kNamesMax ? Status{} : Status(fail(Code::kTooLarge, "more names than anybody reads"));
  });
  if (!listed && listed.error().code != Code::kTooLarge) return fail(listed.error());
  return out;
}

Outcome complete(const Program& asked, const WordOptions& options) {
  const Candidates candidates =
      candidates_for(*options.app, tools_in(*options.app, program_folders()), split(options.words));
  std::string out;
  for (const Candidate& candidate : candidates.words)
    out += candidate.word + (candidate.description.empty() ? "" : "\t" + candidate.description) + "\n";
  if (!candidates.tool.empty()) {
    const auto help = run_child({"pif-" + candidates.tool, "--help"}, ChildOutput::kCatch);
    for (const Candidate& option : options_in_help(help ? help->output : "", candidates.name))
      out += option.word + "\n";
  } else if (candidates.names == NameKind::kPath || candidates.names == NameKind::kPathOrLocal) {
    Program program;
    program.common = asked.common;
    if (!candidates.where.empty()) program.common.where = candidates.where;
    out += paths_like(program, candidates.name).value_or("");
  }
  if (candidates.names == NameKind::kLocal || candidates.names == NameKind::kPathOrLocal) out += ":files\n";
  if (candidates.names == NameKind::kLocalFolder) out += ":folders\n";
  PIF_TRY(print(out));
  return ExitCode::kDone;
}

}  // namespace

void add_completion_commands(CLI::App& app, Program& program) {
  auto script = std::make_shared<ScriptOptions>();
  CLI::App* completion =
      add_command(app, program, "completion", "Print the script that lets a shell complete command lines",
                  "  source <(pif completion bash)               in this shell\n"
                  "  pif completion zsh > ~/.zfunc/_pif          a folder of $fpath\n"
                  "  pif completion fish > ~/.config/fish/completions/pif.fish\n"
                  "An installed pif has them where the shells look.");
  completion->add_option("SHELL", script->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  on_run(completion, program, script, print_script);

  auto words = std::make_shared<WordOptions>();
  words->app = &app;
  CLI::App* ask = add_command(app, program, "complete",
                              "Say what may stand at the end of a command line, for the scripts of completion",
                              "  pif complete -- ls /da");
  ask->add_option("--words", words->words);
  ask->group("");
  on_run(ask, program, words, complete);
}

}  // namespace pif::cli
