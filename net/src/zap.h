// Who may connect over CURVE: ZeroMQ asks this handler (RFC 27, ZAP) for every handshake, over an inproc socket that
// the messenger serves in its own loop. The keys are those of a folder; what the file says of its user becomes the
// connection's identity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "line.h"
#include "zmq_socket.h"

namespace pif::net {

inline constexpr const char* kZapDomain = "pif";

// Files NAME.pub of a folder, each "Z85KEY UID GID[,GID...]". Other files, and lines that say something else, are
// ignored.
class KeyFolder {
 public:
  explicit KeyFolder(std::string path) : path_(std::move(path)) {}
  // Besides, this key is this process's user's.
  void add_own(const std::string& z85_key);
  // "UID GID[,GID...]" of the key's holder; empty: nobody's. Reads the folder again if it has changed.
  std::string_view holder(const std::string& z85_key);

 private:
  void read_if_changed();
  void read();
  void read_file(const std::string& path);

  std::string path_;
  std::int64_t modified_ns_ = -1;  // -1: not read, or read so soon after a change that another may look the same
  std::unordered_map<std::string, std::string> holders_;
  std::string own_key_, own_holder_;
};

// "UID GID[,GID...]" as an identity; false if it is something else.
bool parse_holder(std::string_view text, Identity& out);

class ZapServer final : public Source {
 public:
  ZapServer(Hub& hub, KeyFolder keys) : hub_(hub), keys_(std::move(keys)) {}
  ~ZapServer() override;
  // Before any CURVE socket of the context is bound.
  [[nodiscard]] Status start(zmq::context_t& context);
  Taken take() override;
  bool stays_ready() const override { return true; }

 private:
  void reply(std::string_view request_id, std::string_view holder);

  Hub& hub_;
  KeyFolder keys_;
  ZmqSocket socket_;
};

}  // namespace pif::net
