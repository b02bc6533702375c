// Peers that may connect over CURVE: ZeroMQ asks this handler (RFC 27, ZAP) for every handshake, over an inproc socket
// that the messenger serves in its own loop. The keys are those of two folders; what the file says of its user becomes
// the connection's identity, but the keys of other hosts' daemons speak for no user.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "local/line.h"
#include "zmq/zmq_socket.h"

namespace pif::net {

inline constexpr const char* kZapDomain = "pif";

// Files NAME.pub of a folder, each "Z85KEY UID GID[,GID...]". Other files, and lines that say something else, are
// ignored.
class KeyFolder {
 public:
  explicit KeyFolder(std::string path) : path_(std::move(path)) {}
  // Reads the folder again if it has changed. Whether the keys are others now.
  bool refresh();
  // "UID GID[,GID...]" of the key's holder; empty: nobody's.
  std::string_view holder(const std::string& z85_key) const;

 private:
  void read();
  void read_file(const std::string& path);

  std::string path_;
  std::int64_t modified_ns_ = -1;  // -1: not read, or read so soon after a change that another may look the same
  std::unordered_map<std::string, std::string> holders_;
};

// All who may connect to a daemon.
class KeyRing {
 public:
  KeyRing(std::string client_folder, std::string host_folder)
      : clients_(std::move(client_folder)), hosts_(std::move(host_folder)) {}
  // Besides, this key is this process's user's.
  void add_own(const std::string& z85_key);

  // The user of the key, as of the last refresh(): "UID GID[,GID...]", or kHost; empty: it may not connect.
  std::string_view holder(const std::string& z85_key) const;
  void refresh();
  // Rises when keys change. Looks for that once a second.
  std::uint64_t generation();

  static constexpr std::string_view kHost = "host";

 private:
  KeyFolder clients_, hosts_;
  std::string own_key_, own_holder_;
  std::uint64_t generation_ = 1;
  std::int64_t refreshed_ = 0;  // seconds of the monotonic clock
};

// "UID GID[,GID...]" as an identity; false if it is something else.
bool parse_holder(std::string_view text, Identity& out);

// Says who was refused, but not again and again: who is refused tries again at once.
class Refusals {
 public:
  using Tell = std::function<void(const std::string& what)>;
  explicit Refusals(Tell tell) : tell_(std::move(tell)) {}
  // key: of CURVE; empty: it has none.
  void add(const std::string& address, const std::string& key);

 private:
  Tell tell_;
  std::unordered_map<std::string, std::int64_t> reported_;  // by key: when, in seconds of the monotonic clock
};

// The user of a connection, as the ZAP handler gives it to ZeroMQ: "KEY HOLDER", with KeyRing::holder().
class ZapServer final : public Source {
 public:
  // keys outlives it.
  ZapServer(Hub& hub, KeyRing& keys, Refusals::Tell on_refused)
      : hub_(hub), keys_(keys), refusals_(std::move(on_refused)) {}
  ~ZapServer() override;
  // Before any CURVE socket of the context is bound.
  [[nodiscard]] Status start(zmq::context_t& context);
  Taken take() override;
  bool stays_ready() const override { return true; }

 private:
  void reply(std::string_view request_id, const std::string& user);

  Hub& hub_;
  KeyRing& keys_;
  Refusals refusals_;
  ZmqSocket socket_;
};

// Key and holder of "KEY HOLDER"; both empty if it is something else.
std::pair<std::string_view, std::string_view> split_user(std::string_view user);

}  // namespace pif::net
