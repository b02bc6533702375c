// SOCK_SEQPACKET Unix sockets: one packet is one message, with the peer's identity from the kernel and descriptors
// beside it. docs/PROTOCOL.md "Unix sockets" has the layout.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "local/line.h"

namespace pif::net {

inline constexpr std::size_t kHandlesMax = 8;                // descriptors of one packet
inline constexpr std::size_t kUnixQueueBytesMax = 4u << 20;  // waiting for one slow peer
inline constexpr std::size_t kUnixQueuePacketsMax = 4096;
inline constexpr std::uint32_t kUnixPerUserMax =
    4096;  // connections of one user, if a quarter of the descriptors are more
inline constexpr std::uint32_t kUnixUnreadMax =
    1024;  // descriptors sent over one connection that nobody may have taken yet

// The state of each user at one listener.
struct UserShare {
  std::uint32_t connections = 0;
  std::uint32_t unread = 0;  // descriptors sent to him and perhaps not taken yet: of as many as he may have connections
};
using UserShares = std::unordered_map<std::uint32_t, UserShare>;

// A connection, from either side.
class UnixLine final : public Line, public Source {
 public:
  UnixLine(Hub& hub, UniqueFd fd) : hub_(hub), fd_(std::move(fd)) {}
  ~UnixLine() override;
  // Reads the peer's credentials and starts watching; `id` is the peer it is known as.
  [[nodiscard]] Status start();
  void set_id(PeerId id) { id_ = id; }
  // Counts this connection among its user's as long as it lives; false if they are `most` already.
  bool count_in(const std::shared_ptr<UserShares>& shares, std::uint32_t most);

  Status send(Packet packet) override;
  bool lost() const override { return overrun_; }
  Taken take() override;

 private:
  struct Waiting {
    std::string head;  // length, envelope
    Buffer body;
    std::vector<Handle> handles;
  };
  enum class Sent : std::uint8_t { kAll, kLater, kRefused, kGone };
  Sent write(const std::string& head, const Buffer& body, const std::vector<Handle>& handles);
  Status enqueue(std::string head, Packet packet);
  // Descriptors that a peer does not take are the daemon's, or its user's: so many and no more.
  Status count_unread(std::size_t handles);
  void all_are_read();
  Status overrun();
  void flush();
  Taken unpack(std::size_t size, int flags, std::vector<Handle> handles);
  Taken closed();

  Hub& hub_;
  UniqueFd fd_;
  PeerId id_ = 0;
  std::deque<Waiting> queue_;
  std::size_t queue_bytes_ = 0;
  std::string head_;            // reused between sends
  bool overrun_ = false;        // did not take what was sent to it
  bool output_broken_ = false;  // it is gone, but what it sent before may still be read
  bool reset_seen_ = false;
  std::uint32_t unread_ = 0;            // descriptors sent since the peer had last taken all
  std::shared_ptr<UserShares> shares_;  // at a listener
  std::uint32_t per_user_max_ = 0;
};

// Where others connect. Owns the socket's file.
class UnixListener final : public Source {
 public:
  UnixListener(Hub& hub, std::string path, std::uint32_t per_user_max)
      : hub_(hub), path_(std::move(path)), per_user_max_(per_user_max) {}
  ~UnixListener() override;
  // Replaces a dead socket's file. kBusy if somebody answers there, kExists if it is something else than a socket.
  [[nodiscard]] Status start();
  Taken take() override;

 private:
  [[nodiscard]] Status bind_path();
  void refuse_one();

  Hub& hub_;
  std::string path_;
  UniqueFd fd_;
  UniqueFd spare_;  // given up for a moment to refuse a connection when descriptors run out
  std::uint64_t inode_ = 0;
  const std::uint32_t per_user_max_;
  std::shared_ptr<UserShares> shares_ = std::make_shared<UserShares>();
};

// kUnavailable if nobody answers at `path`.
[[nodiscard]] Result<UniqueFd> connect_unix(const std::string& path);
// Whether a program answers at this stream socket (type: SOCK_STREAM or SOCK_SEQPACKET).
bool answers(const std::string& path, int type);

}  // namespace pif::net
