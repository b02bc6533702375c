// The real transport: SOCK_SEQPACKET Unix sockets (SO_PEERCRED, SCM_RIGHTS) and ZeroMQ. A messenger belongs to one
// thread at a time (messenger.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pif/net/messenger.h"

namespace pif::net {

struct CurveKeys {
  std::string public_key;  // Z85, 40 characters
  std::string secret_key;
};
// A new pair. kUnsupported if this machine's ZeroMQ has no CURVE. Any thread.
Result<CurveKeys> make_curve_keys();

struct ListenOptions {
  std::string unix_path;           // empty: no Unix socket. Replaces a dead socket, kBusy if a live one answers.
  std::string ipc;                 // "ipc://...", empty: none
  std::string tcp;                 // "tcp://127.0.0.1:0" picks a port; an address, no name; empty: none
  std::string announce;            // "tcp://HOST:PORT", where others connect to that; empty: the same
  bool insecure_loopback = false;  // plain tcp, on 127.0.0.1 only
  CurveKeys curve;                 // needed for tcp unless insecure_loopback
  std::string key_folder;   // CURVE clients that may connect: files NAME.pub "Z85KEY UID GID[,GID...]", read anew
                            // when the folder changes; anybody else is refused by the ZAP handler, and a key that
                            // was removed is no longer heard within 2 s
  std::string host_folder;  // the same for daemons of other hosts; their keys speak for no user (Identity::has_uid)
  std::string only_key;     // instead of the folders: the one public key that may connect
  // Gets a line for people about a peer that was refused; for one key not more often than once a minute. From
  // receive().
  std::function<void(const std::string& what)> on_refused;
};

struct MessengerOptions {
  CurveKeys client_keys;  // for CURVE connections made from here; empty: none can be made
  unsigned io_threads = 1;
  // This machine, as daemons of the same file system here call it (Endpoints.machine). Sockets in the file system are
  // then those of peers on it only: another machine may have others at the same paths. Nothing: all that there are.
  std::optional<std::uint64_t> machine;
  bool heartbeats = true;  // ends ZeroMQ connections that are silent for kSilenceMax. Without them, whoever is stopped
                           // for longer loses nothing: for peers whose end is learnt in another way
  ListenOptions listen;
};

// Starts listening at once; one that listens raises the process's soft limit of descriptors. Errors name the endpoint
// and what to do (kBusy: in use; kPermission; kInvalid: tcp without keys, plain tcp on another address than 127.0.0.1).
[[nodiscard]] Result<std::unique_ptr<Messenger>> make_real_messenger(MessengerOptions options);
// Where a messenger made above listens (the port that was picked filled in). Empty for one that does not listen, or is
// none of these.
proto::Endpoints listening(const Messenger& messenger);
// Messages of peers that it could not make sense of so far.
std::uint64_t malformed_count(const Messenger& messenger);

}  // namespace pif::net
