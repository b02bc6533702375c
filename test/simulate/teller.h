// A client of a history, as far as it works with names and tells the oracle what it does to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pif/client/client.h"
#include "simulate/shared.h"

namespace pif::simulate {

// Nobody knows what became of what ended so.
bool is_unknown(const Error& error);

class Teller {
 public:
  // stale: opens files with marks, too.
  Teller(Shared& shared, sim::Actor& self, std::string name, std::uint64_t seed, bool stale = false);

  // Connects, as often as it takes; false: in vain.
  bool connect();
  Client& client() { return *client_; }
  const Error& last_error() const { return last_error_; }
  bool pause(Duration duration) { return self_.pause(duration); }
  std::uint64_t subject() const { return subject_; }  // the file opened last

  // ---- single operations; false: it failed ----
  bool rename(std::size_t from, std::size_t to, bool no_replace);
  bool remove(std::size_t path);

 protected:
  using Kind = NameOp::Kind;
  Time now() { return self_.clock().now(); }
  // Lets a time of the dice's choice pass, at most so long. False: killed meanwhile.
  bool pause_up_to(Duration longest);
  const std::string& text(std::size_t path) const { return shared_.paths.text(path); }
  NameOp begin(Kind kind, std::size_t path);
  void end(NameOp op, const Status& status);
  // Counts and tells a failure; accuses of one that must never be. Always false.
  bool failed(const std::string& what, const Error& error);
  bool ended(NameOp op, const Status& status, const std::string& what);
  // None: it failed.
  std::optional<File> open(std::size_t path, Client::Mode mode);
  // One of the first, which all clients of a history use.
  std::size_t some_path() { return dice_.below(kShared); }

  // Of a file with parity: the LFSs of both bevies in some order, so that each is some file's LFS 0, and deputy.
  std::vector<std::uint32_t> some_nodes();

  static constexpr std::size_t kShared = 4;

  Shared& shared_;
  sim::Actor& self_;
  std::string name_;
  Dice dice_;
  std::uint64_t subject_ = 0;

 private:
  sim::ClientSide side_;
  ConnectOptions options_;
  std::optional<Client> client_;
  Error last_error_;
};

}  // namespace pif::simulate
