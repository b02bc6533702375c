#include "hosts/remote_shell.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "command/child.h"
#include "command/failures.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::size_t kAtOnce = 32;
constexpr std::string_view kDefaultShell = "ssh -o BatchMode=yes -o ConnectTimeout=5";
constexpr int kShellFailed = 255;  // ssh's own exit code
constexpr int kNoProgram = 127;    // a shell's

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// A login may print what it likes before and after: the document is the last line that is one.
Json document_in(const std::string& output) {
  Json found;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('{')) continue;
    if (Json document = Json::parse(line, nullptr, false); document.is_object()) found = std::move(document);
  }
  return found;
}

// The last line of what was said on stderr; the reason is there.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return one_line(text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1));
}

std::string text_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Every command of `pif` that has an answer ends like this. Otherwise what looks like one was printed by a login.
bool has_answered(int exit_code) {
  return exit_code == static_cast<int>(ExitCode::kDone) || exit_code == static_cast<int>(ExitCode::kNegative);
}

bool says(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

}  // namespace

RemoteShell::RemoteShell(const std::string& command) : words_(words_of(command)) {
  if (const char* set = std::getenv("PIF_RSH"); words_.empty() && set != nullptr) words_ = words_of(set);
  if (words_.empty()) words_ = words_of(std::string(kDefaultShell));
}

std::string RemoteShell::by_hand(const RemoteCommand& command, const std::string& words) const {
  return fmt::format("{} {} {}", words_[0] == "ssh" ? "ssh" : fmt::format("{}", fmt::join(words_, " ")),
                     command.address, words);
}

// What a person has to do there.
Error RemoteShell::error_of(const RemoteCommand& command, const std::string& said, int exit_code) const {
  const auto because = [&](Code code, const std::string& what, const std::string& todo) {
    const std::string reason = said.empty() ? "" : fmt::format(" ({})", said);
    return Error{code, fmt::format("{} ({}): {}{}: {}", command.host, command.address, what, reason, todo), {}};
  };
  if (says(said, "Permission denied") || says(said, "assword"))
    return because(Code::kPermission, "wants a password or refuses the key",
                   fmt::format("let this user in by key, and try: {}", by_hand(command, "true")));
  if (says(said, "Host key verification"))
    return because(Code::kPermission, "is not known, or is another one",
                   fmt::format("look at its key: {}", by_hand(command, "true")));
  if (exit_code == kShellFailed)
    return because(Code::kUnavailable, "cannot be reached", "is it on, and does it let us in?");
  if (exit_code == kNoProgram || says(said, "not found"))
    return because(Code::kNotFound, "has no pif",
                   fmt::format("install it there, and try: {}", by_hand(command, "pif --version")));
  if (exit_code == static_cast<int>(ExitCode::kUsage))
    return because(Code::kVersion, "has another release of pif", "install the one that is here");
  return because(Code::kUnavailable, fmt::format("gave no answer, and exit code {}", exit_code),
                 fmt::format("try: {}", by_hand(command, fmt::format("pif {}", fmt::join(command.words, " ")))));
}

Result<Json> RemoteShell::ask_one(const RemoteCommand& command, std::chrono::seconds patience) const {
  std::vector<std::string> words = words_;
  words.push_back(command.address);
  words.emplace_back("pif");
  // They are a line for the shell there.
  for (const std::string& word : command.words) words.push_back(shell_word(word));
  words.emplace_back("--json");
  auto heard = talk_to_child(std::move(words), command.input, std::chrono::steady_clock::now() + patience);
  if (!heard) return fail(heard.error().code, fmt::format("{}: {}", command.host, heard.error().text));
  Json document = document_in(heard->output);
  if (const auto error = document.find("error"); error != document.end() && error->is_object())
    return fail(code_named(text_in(*error, "code")).value_or(Code::kUnavailable),
                fmt::format("{} ({}): {}", command.host, command.address, one_line(text_in(*error, "text"))));
  if (document.is_object() && has_answered(heard->exit_code)) return document;
  if (heard->was_late)
    return fail(Code::kTimeout, fmt::format("{} ({}): no answer for {} s: is it on? Try: {}", command.host,
                                            command.address, patience.count(), by_hand(command, "pif --version")));
  return fail(error_of(command, last_line(heard->errors), heard->exit_code));
}

std::vector<Result<Json>> RemoteShell::ask(const std::vector<RemoteCommand>& commands,
                                           std::chrono::seconds patience) const {
  std::vector<Result<Json>> answers(commands.size(), Json());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < commands.size(); i = next++) answers[i] = ask_one(commands[i], patience);
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(kAtOnce, commands.size()); ++i) threads.emplace_back(work);
  threads.clear();  // waits
  return answers;
}

}  // namespace pif::cli
