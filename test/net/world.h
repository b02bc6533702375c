// What the tests of net/ are made of: a folder, a daemon that answers everything it is asked, and requests.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "pif/net/caller.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"

namespace pif::net {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pif-net-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

template <typename T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().to_string());
  return std::move(*result);
}
inline void must(Status status) {
  if (!status) FAIL(status.error().to_string());
}

inline std::unique_ptr<Messenger> make_messenger(MessengerOptions options = {}) {
  return must(make_real_messenger(std::move(options)));
}

// A daemon: one thread with a messenger that answers Length{file} with LengthReply{generation}, the same number, and
// the body it got.
class EchoDaemon {
 public:
  using Handler = std::function<void(Messenger&, Delivery&)>;

  explicit EchoDaemon(ListenOptions listen, Handler handler = echo) : handler_(std::move(handler)) {
    MessengerOptions options;
    options.listen = std::move(listen);
    messenger_ = make_messenger(std::move(options));
    endpoints_ = listening(*messenger_);
    thread_ = std::thread([this] { serve(); });
  }
  ~EchoDaemon() {
    stop_ = true;
    messenger_->wake();
    thread_.join();
  }
  const proto::Endpoints& endpoints() const { return endpoints_; }

  static void echo(Messenger& messenger, Delivery& delivery) {
    if (delivery.kind != Delivery::Kind::kPacket) return;
    Packet reply = reply_to(delivery.packet.envelope);
    const auto& request = delivery.packet.envelope;
    reply.envelope.mutable_length_reply()->set_generation(request.length().file());
    reply.envelope.set_credential(request.credential());
    reply.body = std::move(delivery.packet.body);
    (void)messenger.send(delivery.peer, std::move(reply));
  }

 private:
  void serve() {
    while (!stop_) {
      auto delivery = messenger_->receive(kNever);
      if (!delivery) return;
      if (*delivery) handler_(*messenger_, **delivery);
    }
  }

  Handler handler_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<Messenger> messenger_;
  proto::Endpoints endpoints_;
  std::thread thread_;
};

inline Packet question(std::uint64_t number, std::size_t body_bytes = 0) {
  Packet request;
  request.envelope.mutable_length()->set_file(number);
  if (body_bytes == 0) return request;
  request.body = Buffer(body_bytes);
  for (std::size_t i = 0; i < body_bytes; ++i) request.body.data()[i] = static_cast<std::byte>(i * 31 + number);
  return request;
}

inline bool answers_question(const Packet& reply, std::uint64_t number, std::size_t body_bytes = 0) {
  if (reply.envelope.length_reply().generation() != number || reply.body.size() != body_bytes) return false;
  for (std::size_t i = 0; i < body_bytes; ++i)
    if (reply.body.data()[i] != static_cast<std::byte>(i * 31 + number)) return false;
  return true;
}

inline constexpr Duration kPatience = std::chrono::seconds(20);  // a bound for broken code, not a delay

}  // namespace pif::net
