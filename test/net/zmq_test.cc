// What is particular to ZeroMQ: keys, limits, and peers that come and go.
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.hpp>

#include "net/world.h"
#include "pif/base/limits.h"

using namespace pif;
using namespace pif::net;

namespace {

void add_client_key(const std::string& folder, const CurveKeys& keys, const std::string& name,
                    const std::string& holder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name + ".new") << keys.public_key << ' ' << holder << '\n';
  std::filesystem::rename(folder + "/" + name + ".new", folder + "/" + name + ".pub");
}

ListenOptions on_curve(const TempFolder& folder) {
  ListenOptions out;
  out.tcp = "tcp://127.0.0.1:0";
  out.curve = must(make_curve_keys());
  out.key_folder = folder / "clients";
  std::filesystem::create_directories(out.key_folder);
  return out;
}

ListenOptions on_tcp() {
  ListenOptions out;
  out.tcp = "tcp://127.0.0.1:0";
  out.insecure_loopback = true;
  return out;
}

ListenOptions on_ipc(const TempFolder& folder) {
  ListenOptions out;
  out.ipc = "ipc://" + (folder / "d.ipc");
  return out;
}

// A ZeroMQ socket that is not ours, to send what a messenger never would. Waits at most 10 s for a reply.
class RawDealer {
 public:
  explicit RawDealer(const std::string& endpoint) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(endpoint);
  }

  void send(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i)
      socket_.send(zmq::buffer(frames[i]), i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  proto::Envelope receive() {
    zmq::message_t bytes;
    REQUIRE(socket_.recv(bytes).has_value());
    proto::Envelope out;
    REQUIRE(out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    return out;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

std::string envelope(std::uint64_t id, std::uint32_t version = kProtocolVersion, bool with_op = true) {
  proto::Envelope out;
  out.set_version(version);
  out.set_id(id);
  if (with_op) out.mutable_length()->set_file(id);
  return out.SerializeAsString();
}

Result<Packet> ask(Messenger& messenger, const proto::Endpoints& to, Route route, Duration patience = kPatience) {
  PIF_TRY_VALUE(const PeerId peer, messenger.connect(to, route));
  Caller caller(messenger, 1);
  return caller.call(peer, question(1), patience, "daemon");
}

// Refusal by ZeroMQ is silence. Long enough that an accepted request would have been answered.
constexpr Duration kRefusal = std::chrono::milliseconds(700);

}  // namespace

TEST_CASE("a CURVE client is who the key folder says it is") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  MessengerOptions client;
  client.client_keys = must(make_curve_keys());
  add_client_key(listen.key_folder, client.client_keys, "alice", "1234 100,27,4");
  std::mutex mutex;
  Identity seen;
  EchoDaemon daemon(listen, [&](Messenger& messenger, Delivery& delivery) {
    if (delivery.kind == Delivery::Kind::kPacket) {
      const std::lock_guard lock(mutex);
      seen = messenger.identity(delivery.peer);
    }
    EchoDaemon::echo(messenger, delivery);
  });
  const auto messenger = make_messenger(client);
  must(ask(*messenger, daemon.endpoints(), Route::kAuto));
  const std::lock_guard lock(mutex);
  REQUIRE(seen.via == Identity::Via::kCurve);
  REQUIRE(seen.has_uid);
  REQUIRE(seen.uid == 1234);
  REQUIRE(seen.gids == std::vector<std::uint32_t>{100, 27, 4});
}

TEST_CASE("where one key only may connect, nobody else gets in") {
  const TempFolder folder;
  ListenOptions listen;
  listen.tcp = "tcp://127.0.0.1:0";
  listen.curve = must(make_curve_keys());
  listen.only_key = listen.curve.public_key;
  EchoDaemon daemon(listen);
  MessengerOptions same, stranger;
  same.client_keys = listen.curve;
  stranger.client_keys = must(make_curve_keys());
  const auto outsider = make_messenger(stranger);
  CHECK(ask(*outsider, daemon.endpoints(), Route::kTcp, kRefusal).error().code == Code::kTimeout);
  const auto insider = make_messenger(same);
  must(ask(*insider, daemon.endpoints(), Route::kTcp));
}

TEST_CASE("a CURVE daemon refuses unknown keys and plain clients, and takes a key as soon as it is in the folder") {
  const TempFolder folder;
  const auto listen = on_curve(folder);
  EchoDaemon daemon(listen);

  MessengerOptions stranger;
  stranger.client_keys = must(make_curve_keys());
  const auto unknown = make_messenger(stranger);
  REQUIRE(ask(*unknown, daemon.endpoints(), Route::kTcp, kRefusal).error().code == Code::kTimeout);

  proto::Endpoints without_key = daemon.endpoints();
  without_key.clear_curve_key();
  const auto plain = make_messenger();
  REQUIRE(ask(*plain, without_key, Route::kTcp, kRefusal).error().code == Code::kTimeout);
  const auto keyless = ask(*plain, daemon.endpoints(), Route::kTcp);
  REQUIRE(keyless.error().code == Code::kPermission);

  MessengerOptions friend_options;
  friend_options.client_keys = must(make_curve_keys());
  add_client_key(listen.key_folder, friend_options.client_keys, "friend", "7 7");
  const auto known = make_messenger(friend_options);
  must(ask(*known, daemon.endpoints(), Route::kTcp));

  std::filesystem::remove(listen.key_folder + "/friend.pub");
  const auto removed = make_messenger(friend_options);
  REQUIRE(ask(*removed, daemon.endpoints(), Route::kTcp, kRefusal).error().code == Code::kTimeout);
}

TEST_CASE("the key of another host's daemon speaks for no user") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  listen.host_folder = folder / "hosts";
  MessengerOptions host;
  host.client_keys = must(make_curve_keys());
  add_client_key(listen.host_folder, host.client_keys, "h2", "0 0");
  std::atomic<bool> has_uid = true;
  EchoDaemon daemon(listen, [&](Messenger& messenger, Delivery& delivery) {
    has_uid = messenger.identity(delivery.peer).has_uid;
    EchoDaemon::echo(messenger, delivery);
  });
  const auto messenger = make_messenger(host);
  must(ask(*messenger, daemon.endpoints(), Route::kTcp));
  CHECK_FALSE(has_uid);
}

TEST_CASE("a key that is removed is heard no more, over connections that there are neither") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  listen.host_folder = folder / "hosts";
  MessengerOptions host, client;
  host.client_keys = must(make_curve_keys());
  client.client_keys = must(make_curve_keys());
  add_client_key(listen.host_folder, host.client_keys, "h2", "7 7");
  add_client_key(listen.key_folder, client.client_keys, "friend", "7 7");
  EchoDaemon daemon(listen);
  const auto other_host = make_messenger(host);
  const auto user = make_messenger(client);
  must(ask(*other_host, daemon.endpoints(), Route::kTcp));
  must(ask(*user, daemon.endpoints(), Route::kTcp));
  std::filesystem::remove(listen.host_folder + "/h2.pub");
  SystemClock clock;
  const Time begun = clock.now();
  Result<Packet> answer = fail(Code::kTimeout, "");
  do answer = ask(*other_host, daemon.endpoints(), Route::kTcp, kRefusal);
  while (answer && clock.now() - begun < kPatience);
  REQUIRE_FALSE(answer);
  CHECK(clock.now() - begun < std::chrono::seconds(4));
  must(ask(*user, daemon.endpoints(), Route::kTcp));  // others are heard as before
}

TEST_CASE("who is refused is told once, with address and key") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  std::mutex mutex;
  std::vector<std::string> told;
  listen.on_refused = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    told.push_back(what);
  };
  EchoDaemon daemon(listen);
  MessengerOptions stranger;
  stranger.client_keys = must(make_curve_keys());
  for (int i = 0; i < 3; ++i) {
    const auto messenger = make_messenger(stranger);
    REQUIRE(ask(*messenger, daemon.endpoints(), Route::kTcp, kRefusal / 4).error().code == Code::kTimeout);
  }
  const std::lock_guard lock(mutex);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("127.0.0.1") && Catch::Contains(stranger.client_keys.public_key));
}

TEST_CASE("key files that say something else admit nobody") {
  const auto* holder = GENERATE("", " ", "12", "12 ", "12 x", "-1 4", "12 4,", "12 4 5", "99999999999 4");
  INFO("holder: '" << holder << "'");
  const TempFolder folder;
  const auto listen = on_curve(folder);
  MessengerOptions client;
  client.client_keys = must(make_curve_keys());
  add_client_key(listen.key_folder, client.client_keys, "odd", holder);
  EchoDaemon daemon(listen);
  const auto messenger = make_messenger(client);
  REQUIRE(ask(*messenger, daemon.endpoints(), Route::kTcp, kRefusal / 4).error().code == Code::kTimeout);
}

TEST_CASE(
    "a key that is not one is refused, and so is one of another length, which ZeroMQ might take for a binary key") {
  const auto good = must(make_curve_keys());
  const std::string bad =
      GENERATE(std::string(31, 'a'), std::string(32, 'a'), std::string(41, 'a'), std::string(40, '"'));
  INFO("key: " << bad);
  MessengerOptions listening;
  listening.listen.tcp = "tcp://127.0.0.1:0";
  listening.listen.curve = {good.public_key, bad};
  CHECK(make_real_messenger(listening).error().code == Code::kInvalid);

  MessengerOptions client;
  client.client_keys = good;
  proto::Endpoints to;
  to.set_tcp("tcp://127.0.0.1:1");
  to.set_curve_key(bad);
  CHECK(make_messenger(client)->connect(to, Route::kTcp).error().code == Code::kInvalid);
}

TEST_CASE("tcp without keys is refused, except on 127.0.0.1 when asked for") {
  MessengerOptions options;
  options.listen.tcp = "tcp://127.0.0.1:0";
  REQUIRE(make_real_messenger(options).error().code == Code::kInvalid);
  options.listen.insecure_loopback = true;
  for (const auto* endpoint :
       {"tcp://0.0.0.0:0", "tcp://*:0", "tcp://127.0.0.10:0", "tcp://localhost:0", "127.0.0.1:0"}) {
    INFO(endpoint);
    options.listen.tcp = endpoint;
    REQUIRE(make_real_messenger(options).error().code == Code::kInvalid);
  }
  EchoDaemon daemon(on_tcp());
  REQUIRE(daemon.endpoints().curve_key().empty());
  REQUIRE_THAT(daemon.endpoints().tcp(), !Catch::EndsWith(":0"));
}

TEST_CASE("an endpoint that is in use is busy") {
  const TempFolder folder;
  EchoDaemon tcp(on_tcp());
  MessengerOptions options;
  options.listen = on_tcp();
  options.listen.tcp = tcp.endpoints().tcp();
  REQUIRE(make_real_messenger(options).error().code == Code::kBusy);
  EchoDaemon ipc(on_ipc(folder));
  options.listen = on_ipc(folder);
  REQUIRE(make_real_messenger(options).error().code == Code::kBusy);
  const auto messenger = make_messenger();
  must(ask(*messenger, ipc.endpoints(), Route::kIpc));
}

TEST_CASE("a port in use is named, with what to do, and so is an address of another machine") {
  const TempFolder folder;
  EchoDaemon daemon(on_curve(folder));
  MessengerOptions options;
  options.listen = on_curve(folder);
  options.listen.tcp = daemon.endpoints().tcp();
  const auto busy = make_real_messenger(options);
  CHECK(busy.error().code == Code::kBusy);
  CHECK_THAT(busy.error().text, Catch::Contains(daemon.endpoints().tcp()) && Catch::Contains("ss -ltnp"));
  options.listen.tcp = "tcp://192.0.2.1:0";  // for documents (RFC 5737)
  const auto elsewhere = make_real_messenger(options);
  CHECK(elsewhere.error().code == Code::kInvalid);
  CHECK_THAT(elsewhere.error().text, Catch::Contains("no address of this machine"));
}

TEST_CASE("others are told of another address than the one that is listened on") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  listen.announce = "tcp://h1.example:7400";
  const EchoDaemon daemon(listen);
  CHECK(daemon.endpoints().tcp() == "tcp://h1.example:7400");
}

TEST_CASE("IPv6 is listened on, and reached") {
  const UniqueFd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  if (!probe || bind(probe.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
    WARN("skipped: this machine has no IPv6");
    return;
  }
  const TempFolder folder;
  auto listen = on_curve(folder);
  listen.tcp = "tcp://[::1]:0";
  MessengerOptions client;
  client.client_keys = must(make_curve_keys());
  add_client_key(listen.key_folder, client.client_keys, "friend", "7 7");
  const EchoDaemon daemon(listen);
  CHECK_THAT(daemon.endpoints().tcp(), Catch::StartsWith("tcp://[::1]:"));
  must(ask(*make_messenger(client), daemon.endpoints(), Route::kTcp));
}

TEST_CASE("a daemon on IPv4 is reached by name") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  MessengerOptions client;
  client.client_keys = must(make_curve_keys());
  add_client_key(listen.key_folder, client.client_keys, "friend", "7 7");
  const EchoDaemon daemon(listen);
  proto::Endpoints named = daemon.endpoints();
  named.set_tcp("tcp://localhost" + named.tcp().substr(named.tcp().rfind(':')));
  must(ask(*make_messenger(client), named, Route::kTcp));
}

TEST_CASE("the longest record passes over ZeroMQ, and more than the longest body is refused by the sender") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kIpc));
  REQUIRE(answers_question(must(caller.call(peer, question(1, kBodyBytesMax), kPatience, "daemon")), 1, kBodyBytesMax));
  REQUIRE(caller.call(peer, question(2, kBodyBytesMax + 1), kPatience, "daemon").error().code == Code::kTooLarge);
  Packet long_header = question(3);
  long_header.envelope.set_credential(std::string(kHeaderBytesMax, 'x'));
  REQUIRE(caller.call(peer, std::move(long_header), kPatience, "daemon").error().code == Code::kTooLarge);
  Packet with_handle = question(4);
  with_handle.handles.push_back({UniqueFd(dup(0)), nullptr});
  REQUIRE(caller.call(peer, std::move(with_handle), kPatience, "daemon").error().code == Code::kUnsupported);
  must(caller.call(peer, question(5), kPatience, "daemon"));
}

TEST_CASE("headers of any length below the limit pass whole") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kIpc));
  for (const std::size_t size : {100u, 4096u, 5000u, 1'000'000u}) {
    Packet request = question(size, 10);
    request.envelope.set_credential(std::string(size, 'c'));
    const Packet reply = must(caller.call(peer, std::move(request), kPatience, "daemon"));
    REQUIRE(reply.envelope.credential() == std::string(size, 'c'));
  }
}

TEST_CASE("malformed ZeroMQ messages get an error where an id can be read, and never end the service") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  RawDealer dealer(daemon.endpoints().ipc());
  dealer.send({envelope(4, kProtocolVersion + 1)});
  REQUIRE(dealer.receive().error().code() == static_cast<std::uint32_t>(Code::kVersion));
  dealer.send({envelope(5, kProtocolVersion, false)});
  auto reply = dealer.receive();
  REQUIRE(reply.id() == 5);
  REQUIRE(reply.error().code() == static_cast<std::uint32_t>(Code::kUnsupported));
  dealer.send({envelope(6), "body", "too much", "far too much"});
  reply = dealer.receive();
  REQUIRE(reply.id() == 6);
  REQUIRE(reply.error().code() == static_cast<std::uint32_t>(Code::kInvalid));
  dealer.send({""});
  dealer.send({"\xff\xff\xff\xff"});
  dealer.send({std::string(kHeaderBytesMax + 1, 'x')});
  dealer.send({envelope(7)});
  reply = dealer.receive();
  REQUIRE(reply.id() == 7);
  REQUIRE(reply.length_reply().generation() == 7);
}

TEST_CASE("peers of a daemon are told apart, and each gets its own answers") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  std::vector<std::unique_ptr<Messenger>> clients;
  std::vector<PeerId> peers;
  for (std::uint64_t i = 0; i < 20; ++i) {
    clients.push_back(make_messenger());
    peers.push_back(must(clients[i]->connect(daemon.endpoints(), Route::kIpc)));
    Packet request = question(i);
    request.envelope.set_id(1);  // the same of all
    must(clients[i]->send(peers[i], std::move(request)));
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto reply = must(clients[i]->receive(kNever));
    REQUIRE(reply->peer == peers[i]);
    REQUIRE(answers_question(reply->packet, i));
  }
}

TEST_CASE("many requests under way over one ZeroMQ connection are all answered, in order") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kIpc));
  std::vector<CallId> calls;
  for (std::uint64_t i = 0; i < 2000; ++i) calls.push_back(caller.start(peer, question(i), kPatience, "daemon"));
  for (std::uint64_t i = 0; i < 2000; ++i) REQUIRE(answers_question(must(caller.wait(calls[i])), i));
}

TEST_CASE("a daemon that is not there is silence over ZeroMQ, and is reached when it comes") {
  const TempFolder folder;
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  proto::Endpoints to;
  to.set_ipc("ipc://" + (folder / "d.ipc"));
  const PeerId peer = must(messenger->connect(to, Route::kIpc));
  const auto lost = caller.call(peer, question(1), std::chrono::milliseconds(50), "lfs7");
  REQUIRE(lost.error().code == Code::kTimeout);
  REQUIRE_THAT(lost.error().text, Catch::Contains("lfs7"));
  EchoDaemon daemon(on_ipc(folder));
  must(caller.call(peer, question(2), kPatience, "lfs7"));
}

TEST_CASE("a ZeroMQ peer that does not read costs itself its connection, not the sender its memory") {
  // A listener that accepts and never speaks ZeroMQ's greeting: everything sent stays here.
  const UniqueFd deaf(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(deaf.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(deaf.get(), 4) == 0);
  REQUIRE(getsockname(deaf.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const auto messenger = make_messenger();
  proto::Endpoints to;
  to.set_tcp(fmt::format("tcp://127.0.0.1:{}", ntohs(address.sin_port)));
  const PeerId peer = must(messenger->connect(to, Route::kTcp));
  std::size_t sent = 0;
  Status status;
  while (sent < 200 && (status = messenger->send(peer, question(1, 1 << 20)))) ++sent;
  REQUIRE(sent >= 64);
  REQUIRE(sent < 70);
  REQUIRE(status.error().code == Code::kUnavailable);
  REQUIRE(must(messenger->receive(kNever))->kind == Delivery::Kind::kClosed);
}

TEST_CASE("a thousand half-open tcp connections do not stop the service") {
  EchoDaemon daemon(on_tcp());
  const auto& endpoint = daemon.endpoints().tcp();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int made = connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    REQUIRE((made == 0 || errno == EINPROGRESS));
  }
  const auto messenger = make_messenger();
  must(ask(*messenger, daemon.endpoints(), Route::kTcp));
}

TEST_CASE("an endpoint without the asked route is unavailable, and auto takes what there is") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  const auto messenger = make_messenger();
  REQUIRE(messenger->connect(daemon.endpoints(), Route::kTcp).error().code == Code::kUnavailable);
  REQUIRE(messenger->connect(daemon.endpoints(), Route::kUnix).error().code == Code::kUnavailable);
  must(ask(*messenger, daemon.endpoints(), Route::kAuto));

  EchoDaemon tcp(on_tcp());
  proto::Endpoints remote = tcp.endpoints();
  remote.set_unix_path("/nonexistent/pif.sock");  // of another machine
  must(ask(*messenger, remote, Route::kAuto));
}

TEST_CASE("sockets in the file system are for peers on this machine, where that is known") {
  const TempFolder folder;
  auto listen = on_curve(folder);
  listen.unix_path = folder / "d.sock";
  listen.ipc = "ipc://" + (folder / "d.ipc");
  MessengerOptions client;
  client.client_keys = must(make_curve_keys());
  client.machine = 5;
  add_client_key(listen.key_folder, client.client_keys, "friend", "7 7");
  const EchoDaemon daemon(listen);
  const auto messenger = make_messenger(client);
  const auto via = [&](std::uint64_t machine) {
    proto::Endpoints to = daemon.endpoints();
    to.set_machine(machine);
    const PeerId peer = must(messenger->connect(to, Route::kAuto));
    return messenger->identity(peer).via;
  };
  CHECK(via(5) == Identity::Via::kUnix);
  CHECK(via(6) == Identity::Via::kCurve);
  CHECK(via(0) == Identity::Via::kCurve);
  for (const Route route : {Route::kUnix, Route::kIpc}) {
    const auto refused = messenger->connect(daemon.endpoints(), route);
    CHECK(refused.error().code == Code::kUnavailable);
    CHECK_THAT(refused.error().text, Catch::Contains("another host"));
  }
}

TEST_CASE("a process out of descriptors is told so, and what to do about it") {
  const TempFolder folder;
  EchoDaemon daemon(on_ipc(folder));
  const auto messenger = make_messenger();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 256;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<UniqueFd> all;
  do all.emplace_back(dup(STDIN_FILENO));
  while (all.back());
  const auto peer = messenger->connect(daemon.endpoints(), Route::kIpc);
  all.clear();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(!peer);
  CHECK(peer.error().code == Code::kBusy);
  CHECK_THAT(peer.error().text, Catch::Contains("Too many open files") && Catch::Contains("ulimit -n"));
  must(ask(*messenger, daemon.endpoints(), Route::kIpc));  // with descriptors it works
}
