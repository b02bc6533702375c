#include "pif/client/server_session.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/timers.h"
#include "session/one_user.h"

namespace pif::client {

namespace {

constexpr Duration kReconnectPause = std::chrono::milliseconds(50);
constexpr std::int64_t kAliveSeconds = kAliveEvery / std::chrono::seconds(1);
constexpr std::int64_t kReconnectSeconds = 1;
constexpr std::int64_t kRenewSeconds = 24 * 3600;  // of the seven days for which a credential is good
constexpr std::int64_t kRenewAgainSeconds = 10;
constexpr Duration kRenewPatience = std::chrono::seconds(5);
constexpr Duration kAliveHello = std::chrono::milliseconds(300);  // others are waited for meanwhile
constexpr std::size_t kServerRequestsAtOnce = 256;  // the server commits those that wait together in one transaction

// The credential may have expired, or be of a key that has been changed.
bool is_refused(const Result<net::Packet>& reply) { return !reply && reply.error().code == Code::kBadCapability; }

// Whoever waited wanted to wait no more.
bool is_ended_here(const Error& error) { return error.code == Code::kCancelled && error.node.empty(); }

}  // namespace

Error outcome_unknown(Error error, const std::string& what, const std::string& path) {
  if (!access::is_lost(error.code) && !is_ended_here(error)) return error;
  error.text += fmt::format(": whether {} is not known: look with pif stat {}", what, path);
  return error;
}

struct ServerSession::Asked {
  Result<net::Packet> reply = fail(Code::kUnavailable, "no connection to the PIF Server: is it running? (pif up)");
  bool may_be_done = false;   // it was sent at least once without an answer
  bool lost_session = false;  // and then again in another session, where it is not recognised
};

ServerSession::ServerSession(const World& world, Where where, net::Route route, std::string cluster,
                             const ConnectOptions& options)
    : world_(world),
      where_(std::move(where)),
      route_(route),
      program_(options.program),
      timeout_(options.timeout),
      cluster_(std::move(cluster)) {
  PIF_ASSERT(where_ != nullptr, route_);
}

// A Unix socket's end tells by itself; over ZeroMQ the server would wait for more.
void ServerSession::say_bye() {
  if (peer_ == 0) return;
  const auto via = world_.messenger.identity(peer_).via;
  if (via == net::Identity::Via::kUnix || via == net::Identity::Via::kSimulated) return;
  net::Packet packet;
  packet.envelope.mutable_bye();
  packet.envelope.set_credential(world_.links.credential());
  (void)world_.messenger.send(peer_, std::move(packet));
}

net::Packet ServerSession::hello_packet() const {
  net::Packet packet;
  packet.envelope.mutable_hello()->set_program(program_);
  packet.envelope.set_credential(world_.links.credential());
  return packet;
}

// ZeroMQ says nothing about who is at the other end (CURVE apart): a session that is forced onto it starts on the Unix
// socket, where the kernel does, and shows the credential it got there. The connection stays: it is the session's life.
Status ServerSession::hello(Time deadline) {
  server_ = where_();  // asked anew: at another port after a start, over tcp
  const bool introduced_elsewhere =
      route_ != net::Route::kAuto && route_ != net::Route::kUnix && !server_.unix_path().empty();
  if (introduced_elsewhere) {
    const bool vouches = route_ == net::Route::kTcp && !server_.curve_key().empty();
    const Status greeted = hello_by(net::Route::kUnix, deadline);
    // Without a socket CURVE says as much; a server that has one and is silent there is silent everywhere.
    if (!greeted && (!vouches || greeted.error().code != Code::kUnavailable)) return greeted;
  }
  return hello_by(route_, deadline);
}

Status ServerSession::hello_by(net::Route route, Time deadline) {
  PIF_TRY_VALUE(const net::PeerId peer, world_.messenger.connect(server_, route));
  auto greeted = hello_over(peer, deadline);
  if (!greeted && greeted.error().code == Code::kBadCapability && !world_.links.credential().empty()) {
    // The session we wanted to resume is over: start a new one.
    world_.links.set_credential({});
    greeted = hello_over(peer, deadline);
  }
  if (!greeted)
    world_.messenger.disconnect(peer);
  else
    ++hellos_;
  return greeted;
}

Status ServerSession::hello_over(net::PeerId peer, Time deadline) {
  PIF_ASSERT(peer != 0, route_);
  auto reply = world_.caller.call(peer, hello_packet(), deadline - clock().now(), "server");
  if (!reply) return fail(std::move(reply.error()));
  const proto::HelloReply& hello = reply->envelope.hello_reply();
  if (!cluster_.empty() && hello.cluster() != cluster_) {
    return fail(Code::kInvalid, fmt::format("the server there belongs to file system {}, not to {}: look at pif.toml",
                                            hello.cluster(), cluster_));
  }
  if (!hello.node().empty() && hello.node() != "server") {
    return fail(Code::kInvalid, fmt::format("{} answers where the PIF Server should: look at pif.toml", hello.node()));
  }
  cluster_ = hello.cluster();
  world_.links.set_credential(hello.credential());
  world_.links.set_cluster(cluster_);
  number_ = hello.session();
  uid_ = hello.uid();
  peer_ = peer;
  alive_at_ = clock().wall_seconds() + kAliveSeconds;
  renew_at_ = clock().wall_seconds() + kRenewSeconds;
  return {};
}

// Over the connection that there is, for it is the session's life. One that vouches for nobody refuses a credential
// that has expired: then a connection that does is made first.
Status ServerSession::renew_credential(Time deadline) {
  if (peer_ == 0) return hello(deadline);
  const net::PeerId peer = peer_;
  const std::uint64_t number = number_;
  auto greeted = hello_over(peer, deadline);
  if (greeted && number_ != number) ++hellos_;
  if (greeted || greeted.error().code != Code::kBadCapability) return greeted;
  PIF_TRY(hello(deadline));
  if (peer_ != peer) world_.messenger.disconnect(peer);
  return {};
}

void ServerSession::renew_old_credential() {
  renew_at_ = clock().wall_seconds() + kRenewAgainSeconds;  // for when nobody answers; and not for ever within itself
  static_cast<void>(renew_credential(clock().now() + kRenewPatience).has_value());
}

void ServerSession::is_lost() {
  peer_ = 0;
  alive_at_ = 0;
}

void ServerSession::say_alive() {
  static_cast<void>(world_.caller.pump(Time{}).has_value());  // the end of the connection may be there, unread
  if (peer_ == 0) {
    alive_at_ = clock().wall_seconds() + kReconnectSeconds;
    static_cast<void>(hello(clock().now() + kAliveHello).has_value());
    return;
  }
  alive_at_ = clock().wall_seconds() + kAliveSeconds;
  keep_credential();
  if (peer_ == 0) return;
  net::Packet packet;
  packet.envelope.mutable_renew();
  tell(std::move(packet));
}

std::optional<net::CallId> ServerSession::start(net::Packet request, net::Calls::OnReply on_reply) {
  if (peer_ == 0) return std::nullopt;
  request.envelope.set_credential(world_.links.credential());
  return world_.caller.calls().start(peer_, std::move(request), timeout_, "server", std::move(on_reply));
}

bool ServerSession::tell(net::Packet request) {
  if (peer_ == 0) return false;
  request.envelope.set_credential(world_.links.credential());
  world_.caller.forget(world_.caller.start(peer_, std::move(request), timeout_, "server"));
  return true;
}

// Lets time pass (and packets arrive) before another attempt.
Status ServerSession::wait_a_moment(Time deadline) {
  const Time until = std::min(deadline, clock().now() + kReconnectPause);
  while (clock().now() < until) PIF_TRY(world_.caller.pump(until));
  return {};
}

ServerSession::Asked ServerSession::try_until(net::Packet request, Time deadline, std::uint64_t sent_in) {
  Asked asked;
  asked.may_be_done = sent_in != 0;
  proto::Envelope envelope = std::move(request.envelope);
  bool has_renewed = false;
  keep_credential();
  do {
    if (peer_ == 0) {
      if (auto greeted = hello(deadline); !greeted) asked.reply = fail(std::move(greeted.error()));
    }
    if (peer_ != 0) {
      net::Packet packet;
      packet.envelope = envelope;
      packet.envelope.set_credential(world_.links.credential());
      const net::PeerId peer = peer_;
      const net::CallId id = world_.caller.start(peer, std::move(packet), deadline - clock().now(), "server");
      envelope.set_id(id);  // the same when it is sent again: the server knows it by that
      asked.lost_session = asked.may_be_done && sent_in != number_;
      sent_in = number_;
      asked.reply = world_.caller.wait(id);
      if (!has_renewed && is_refused(asked.reply)) {
        has_renewed = true;
        if (renew_credential(deadline)) continue;
      }
      const bool answered = asked.reply || (peer_ == peer && !asked.reply.error().node.empty());
      asked.may_be_done |= !answered && is_ended_here(asked.reply.error());
      if (answered || !access::is_lost(asked.reply.error().code)) return asked;
      asked.may_be_done = true;
      world_.messenger.disconnect(peer);
      is_lost();
    } else if (!access::is_lost(asked.reply.error().code)) {
      return asked;
    }
    if (clock().now() >= deadline) return asked;
    if (auto waited = wait_a_moment(deadline); !waited) {
      asked.reply = fail(std::move(waited.error()));
      return asked;
    }
  } while (clock().now() < deadline);
  return asked;
}

Result<net::Packet> ServerSession::ask(net::Packet request, Duration timeout) {
  PIF_TRY_VALUE(const Use use, Use::begin(world_.user));
  return try_until(std::move(request), clock().now() + or_default(timeout)).reply;
}

Result<net::Packet> ServerSession::change(net::Packet request, const Change& change) {
  return change_again(std::move(request), change, 0);
}

Result<net::Packet> ServerSession::change_again(net::Packet request, const Change& change, std::uint64_t sent_in) {
  PIF_TRY_VALUE(const Use use, Use::begin(world_.user));
  Asked asked = try_until(std::move(request), clock().now() + std::max(timeout_, change.patience), sent_in);
  if (asked.reply) return std::move(asked.reply);
  Error error = std::move(asked.reply.error());
  // Another session's answer (there is no such name) can be what the first request, which was not answered, has left.
  if (asked.lost_session && !change.settles && !access::is_lost(error.code))
    error = {Code::kTimeout, std::move(error.text), {}};
  return fail(asked.may_be_done ? outcome_unknown(std::move(error), change.what, change.path) : std::move(error));
}

std::vector<Result<net::Packet>> ServerSession::ask_all(std::vector<net::Packet> requests, Duration timeout) {
  std::vector<Result<net::Packet>> replies;
  replies.reserve(requests.size());
  ask_all(
      std::move(requests), [&](Result<net::Packet> reply) { replies.push_back(std::move(reply)); }, timeout);
  return replies;
}

void ServerSession::ask_all(std::vector<net::Packet> requests, const TakeReply& take, Duration timeout) {
  const Time deadline = clock().now() + or_default(timeout);
  const auto again = [&](std::size_t, net::Packet request, std::uint64_t) {
    return ask(std::move(request), deadline - clock().now());
  };
  ask_each(std::move(requests), deadline, deadline, again, take);
}

std::vector<Result<net::Packet>> ServerSession::change_all(std::vector<net::Packet> requests,
                                                           const std::vector<Change>& changes) {
  std::vector<Result<net::Packet>> replies;
  replies.reserve(requests.size());
  PIF_ASSERT(requests.size() == changes.size(), requests.size(), changes.size());
  const auto again = [&](std::size_t index, net::Packet request, std::uint64_t sent_in) {
    return change_again(std::move(request), changes[index], sent_in);
  };
  ask_each(std::move(requests), clock().now() + timeout_, kNever, again,
           [&](Result<net::Packet> reply) { replies.push_back(std::move(reply)); });
  PIF_ASSERT(replies.size() == changes.size(), replies.size(), changes.size());
  return replies;
}

void ServerSession::ask_each(std::vector<net::Packet> requests, Time deadline, Time again_until, const AskAgain& again,
                             const TakeReply& take) {
  const auto use = Use::begin(world_.user);
  if (!use) {
    for (std::size_t i = 0; i < requests.size(); ++i) take(fail(use.error()));
    return;
  }
  keep_credential();
  for (std::size_t begin = 0; begin < requests.size(); begin += kServerRequestsAtOnce) {
    const std::size_t end = std::min(requests.size(), begin + kServerRequestsAtOnce);
    const std::uint64_t sent_in = number_;
    std::vector<net::CallId> calls;
    std::vector<proto::Envelope> copies;
    for (std::size_t i = begin; i < end && peer_ != 0; ++i) {
      requests[i].envelope.set_credential(world_.links.credential());
      copies.push_back(requests[i].envelope);
      calls.push_back(world_.caller.start(peer_, std::move(requests[i]), deadline - clock().now(), "server"));
      copies.back().set_id(calls.back());
    }
    PIF_ASSERT(calls.size() == copies.size() && calls.size() <= end - begin, calls.size(), copies.size(), end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const bool started = i - begin < calls.size();
      auto reply = started ? world_.caller.wait(calls[i - begin]) : Result<net::Packet>(fail(Code::kUnavailable, ""));
      const bool is_unanswered = !reply && access::is_lost(reply.error().code) && reply.error().node.empty();
      if ((is_unanswered || is_refused(reply)) && clock().now() < again_until) {
        net::Packet second;
        second.envelope = started ? std::move(copies[i - begin]) : std::move(requests[i].envelope);
        reply = again(i, std::move(second), started ? sent_in : 0);
      }
      take(std::move(reply));
    }
  }
}

}  // namespace pif::client
