// `pif` on other hosts, by ssh or whatever else runs a command on a host.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "command/program.h"
#include "pif/base/result.h"

namespace pif::cli {

// One command of `pif` on one host.
struct RemoteCommand {
  std::string host;                // as messages name it
  std::string address;             // as the shell reaches it
  std::vector<std::string> words;  // "host", "up", ...
  std::string input{};             // its standard input
};

// Any thread.
class RemoteShell {
 public:
  // command: a program and words for it, with spaces between, which an address and a line of shell follow: "ssh -p
  // 2222". Empty: $PIF_RSH, or else ssh that asks for nothing.
  explicit RemoteShell(const std::string& command);

  // Runs all of them with --json, 32 at once; in their order, the document that each printed. A host that cannot be
  // reached, does not answer within `patience`, has no `pif` or an older one, and an error in the document itself are
  // errors whose text begins with the host's name and says what to do.
  std::vector<Result<Json>> ask(const std::vector<RemoteCommand>& commands, std::chrono::seconds patience) const;

 private:
  Result<Json> ask_one(const RemoteCommand& command, std::chrono::seconds patience) const;
  Error error_of(const RemoteCommand& command, const std::string& said, int exit_code) const;
  std::string by_hand(const RemoteCommand& command, const std::string& words) const;

  std::vector<std::string> words_;
};

}  // namespace pif::cli
