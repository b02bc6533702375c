// What is particular to Unix sockets: who the peer is, descriptors, and the file system's names.
#include <algorithm>
#include <array>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/world.h"
#include "pif/base/limits.h"

using namespace pif;
using namespace pif::net;

namespace {

ListenOptions on_unix(const std::string& path) {
  ListenOptions out;
  out.unix_path = path;
  return out;
}

// A socket that is not ours: bare calls, to send what a messenger never would.
UniqueFd raw_connect(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

UniqueFd raw_listen(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(fd.get(), 8) == 0);
  return fd;
}

std::string raw_packet(const proto::Envelope& envelope) {
  const std::string body = envelope.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(body.size());
  std::string out(4, '\0');
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<char>((size >> (8 * i)) & 0xff);
  return out + body;
}

void raw_send(const UniqueFd& fd, const std::string& bytes) {
  REQUIRE(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

// Nothing if the peer has closed the connection.
std::optional<proto::Envelope> raw_receive(const UniqueFd& fd) {
  std::string bytes(kUnixPacketBytesMax, '\0');
  const ssize_t size = recv(fd.get(), bytes.data(), bytes.size(), 0);
  if (size < 4) return std::nullopt;
  proto::Envelope out;
  REQUIRE(out.ParseFromArray(bytes.data() + 4, static_cast<int>(size) - 4));
  return out;
}

std::string read_all(int fd) {
  std::string out(64, '\0');
  const ssize_t size = pread(fd, out.data(), out.size(), 0);
  out.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return out;
}

}  // namespace

TEST_CASE("the kernel names the peer of a Unix socket, with its groups, primary first") {
  const TempFolder folder;
  std::mutex mutex;
  Identity seen;
  EchoDaemon daemon(on_unix(folder / "d.sock"), [&](Messenger& messenger, Delivery& delivery) {
    if (delivery.kind == Delivery::Kind::kPacket) {
      const std::lock_guard lock(mutex);
      seen = messenger.identity(delivery.peer);
    }
    EchoDaemon::echo(messenger, delivery);
  });
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kAuto));
  must(caller.call(peer, question(1), kPatience, "daemon"));

  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, getgroups(0, nullptr))));
  getgroups(static_cast<int>(groups.size()), groups.data());
  const std::lock_guard lock(mutex);
  REQUIRE(seen.via == Identity::Via::kUnix);
  REQUIRE(seen.has_uid);
  REQUIRE(seen.uid == getuid());
  REQUIRE(seen.pid == getpid());
  REQUIRE(seen.gids.at(0) == getgid());
  for (const gid_t group : groups) REQUIRE(std::count(seen.gids.begin(), seen.gids.end(), group) == 1);
  REQUIRE(messenger->identity(peer).uid == getuid());
}

TEST_CASE("descriptors arrive as working descriptors that programs started later do not inherit") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"), [&](Messenger& messenger, Delivery& delivery) {
    if (delivery.kind != Delivery::Kind::kPacket) return;
    Packet reply = reply_to(delivery.packet.envelope);
    reply.envelope.mutable_length_reply();
    reply.handles = std::move(delivery.packet.handles);
    std::reverse(reply.handles.begin(), reply.handles.end());
    (void)messenger.send(delivery.peer, std::move(reply));
  });
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kUnix));
  for (const std::size_t count : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
    Packet request = question(1);
    for (std::size_t i = 0; i < count; ++i) {
      const auto path = folder / std::to_string(i);
      std::ofstream(path) << "file " << i;
      request.handles.push_back({UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), nullptr});
    }
    const Packet reply = must(caller.call(peer, std::move(request), kPatience, "daemon"));
    REQUIRE(reply.handles.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(read_all(reply.handles[i].fd.get()) == fmt::format("file {}", count - 1 - i));
      REQUIRE((fcntl(reply.handles[i].fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
  }
}

TEST_CASE("more descriptors than eight are refused, and a handle without one too") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const auto messenger = make_messenger();
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kUnix));
  Packet many = question(1);
  for (int i = 0; i < 9; ++i) many.handles.push_back({UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), nullptr});
  REQUIRE(messenger->send(peer, std::move(many)).error().code == Code::kTooLarge);
  Packet none = question(1);
  none.handles.emplace_back();
  REQUIRE(messenger->send(peer, std::move(none)).error().code == Code::kInvalid);
}

TEST_CASE("an empty packet ends its connection, and the descriptors that came with it are closed") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const auto sender = raw_connect(folder / "d.sock");
  msghdr message{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  const int sent = write_end.get();
  std::memcpy(CMSG_DATA(c), &sent, sizeof sent);
  REQUIRE(sendmsg(sender.get(), &message, MSG_NOSIGNAL) == 0);
  write_end.reset();
  CHECK_FALSE(raw_receive(sender));
  char byte = 0;
  CHECK(read(read_end.get(), &byte, 1) == 0);  // the end: nobody has the other one any more
}

TEST_CASE("a peer that leaves descriptors unread is disconnected, and one that takes them is not") {
  const TempFolder folder;
  const auto two_ends = [](Messenger& messenger, Delivery& delivery) {
    if (delivery.kind != Delivery::Kind::kPacket) return;
    Packet reply = reply_to(delivery.packet.envelope);
    reply.envelope.mutable_attach_reply();
    for (int i = 0; i < 4; ++i) reply.handles.push_back({UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), nullptr});
    (void)messenger.send(delivery.peer, std::move(reply));
  };
  EchoDaemon daemon(on_unix(folder / "d.sock"), two_ends);
  proto::Envelope request;
  request.set_version(kProtocolVersion);
  request.set_id(1);
  request.mutable_attach();
  const auto packet = raw_packet(request);
  const auto slow = raw_connect(folder / "d.sock");
  std::size_t sent = 0;
  while (sent < 100'000 && send(slow.get(), packet.data(), packet.size(), MSG_NOSIGNAL) > 0) ++sent;
  CHECK(sent < 100'000);
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kUnix));
  for (std::uint32_t i = 0; i < 1024; ++i) {
    Packet question;
    question.envelope.mutable_attach();
    REQUIRE(must(caller.call(peer, std::move(question), kPatience, "daemon")).handles.size() == 4);
  }
}

TEST_CASE("a packet of exactly the limit passes, and one byte more is refused by the sender") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1000);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), Route::kUnix));
  Packet request = question(1);
  request.envelope.set_version(kProtocolVersion);
  request.envelope.set_id(1000);
  request.envelope.set_timeout_ms(
      static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count()));
  const std::size_t room = kUnixPacketBytesMax - 4 - request.envelope.ByteSizeLong();
  const Packet reply = must(caller.call(peer, question(1, room), kPatience, "daemon"));
  REQUIRE(answers_question(reply, 1, room));
  const auto refused = caller.call(peer, question(1, room + 1), kPatience, "daemon");
  REQUIRE(refused.error().code == Code::kTooLarge);
  must(caller.call(peer, question(1), kPatience, "daemon"));  // and the connection goes on
}

TEST_CASE("both ends of a socketpair can be adopted, and closing one is told to the other") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const auto left = make_messenger();
  auto right = make_messenger();
  const PeerId to_right = must(left->adopt({UniqueFd(ends[0]), nullptr}));
  const PeerId to_left = must(right->adopt({UniqueFd(ends[1]), nullptr}));
  must(right->send(to_left, question(3)));
  right.reset();
  auto first = must(left->receive(kNever));
  REQUIRE(first->kind == Delivery::Kind::kPacket);  // what was sent before the end still arrives
  REQUIRE(first->packet.envelope.length().file() == 3);
  auto second = must(left->receive(kNever));
  REQUIRE(second->kind == Delivery::Kind::kClosed);
  REQUIRE(second->peer == to_right);
  REQUIRE(left->identity(to_right).uid == getuid());
  REQUIRE(left->send(to_right, question(4)).error().code == Code::kUnavailable);
}

TEST_CASE("what a peer sent before it ended arrives even if it left something unread") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const auto left = make_messenger();
  auto right = make_messenger();
  const PeerId to_right = must(left->adopt({UniqueFd(ends[0]), nullptr}));
  const PeerId to_left = must(right->adopt({UniqueFd(ends[1]), nullptr}));
  must(left->send(to_right, question(1)));
  must(right->send(to_left, question(2)));
  right.reset();  // question(1) was never read: the kernel calls this a reset
  REQUIRE(must(left->receive(kNever))->packet.envelope.length().file() == 2);
  REQUIRE(must(left->receive(kNever))->kind == Delivery::Kind::kClosed);
}

TEST_CASE("only sequenced packet sockets can be adopted") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const UniqueFd other(ends[1]);
  const auto messenger = make_messenger();
  REQUIRE(messenger->adopt({UniqueFd(ends[0]), nullptr}).error().code == Code::kInvalid);
  REQUIRE(messenger->adopt({}).error().code == Code::kInvalid);
}

TEST_CASE("a socket where a daemon answers is busy, a dead daemon's is replaced, and any other file is left alone") {
  const TempFolder folder;
  const auto path = folder / "d.sock";
  MessengerOptions options;
  options.listen.unix_path = path;
  {
    EchoDaemon daemon(options.listen);
    const auto second = make_real_messenger(options);
    REQUIRE(!second);
    REQUIRE(second.error().code == Code::kBusy);
    REQUIRE_THAT(second.error().text, Catch::Contains(path));
    const auto messenger = make_messenger();
    Caller caller(*messenger, 1);
    must(caller.call(must(messenger->connect(daemon.endpoints(), Route::kUnix)), question(1), kPatience, "daemon"));
  }
  REQUIRE(!std::filesystem::exists(path));  // a daemon that ends takes its socket along
  raw_listen(path).reset();                 // and one that was killed does not
  REQUIRE(std::filesystem::exists(path));
  {
    EchoDaemon daemon(options.listen);
    struct stat made {};
    REQUIRE(stat(path.c_str(), &made) == 0);
    REQUIRE((made.st_mode & 0777) == 0666);
  }
  std::ofstream(path) << "precious";
  const auto refused = make_real_messenger(options);
  REQUIRE(refused.error().code == Code::kExists);
  REQUIRE(std::filesystem::file_size(path) == 8);
}

TEST_CASE("connecting where nobody listens fails at once, and paths that are too long say so") {
  const TempFolder folder;
  const auto messenger = make_messenger();
  proto::Endpoints nowhere;
  nowhere.set_unix_path(folder / "none.sock");
  REQUIRE(messenger->connect(nowhere, Route::kUnix).error().code == Code::kUnavailable);
  REQUIRE(messenger->connect(nowhere, Route::kAuto).error().code == Code::kUnavailable);
  raw_listen(folder / "none.sock").reset();
  REQUIRE(messenger->connect(nowhere, Route::kAuto).error().code == Code::kUnavailable);
  nowhere.set_unix_path(folder / std::string(120, 'x'));
  REQUIRE(messenger->connect(nowhere, Route::kUnix).error().code == Code::kInvalid);
  MessengerOptions options;
  options.listen.unix_path = nowhere.unix_path();
  REQUIRE(make_real_messenger(options).error().code == Code::kInvalid);
}

TEST_CASE("malformed packets get an error where an id can be read, and never end the service") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const auto fd = raw_connect(folder / "d.sock");

  proto::Envelope newer;
  newer.set_version(kProtocolVersion + 1);
  newer.set_id(5);
  newer.mutable_read_bytes();
  raw_send(fd, raw_packet(newer));
  auto reply = raw_receive(fd);
  REQUIRE(reply->id() == 5);
  REQUIRE(reply->error().code() == static_cast<std::uint32_t>(Code::kVersion));

  proto::Envelope empty;
  empty.set_version(kProtocolVersion);
  empty.set_id(6);
  raw_send(fd, raw_packet(empty));
  reply = raw_receive(fd);
  REQUIRE(reply->id() == 6);
  REQUIRE(reply->error().code() == static_cast<std::uint32_t>(Code::kUnsupported));

  empty.mutable_length()->set_file(300);
  empty.set_id(7);
  auto broken = raw_packet(empty);
  broken.back() = static_cast<char>(broken.back() | 0x80);  // a number without its last byte
  raw_send(fd, broken);
  reply = raw_receive(fd);
  REQUIRE(reply->id() == 7);
  REQUIRE(reply->error().code() == static_cast<std::uint32_t>(Code::kInvalid));

  raw_send(fd, "abc");                                       // shorter than a length
  raw_send(fd, std::string("\xff\xff\xff\xff", 4) + "abc");  // a length past the end
  proto::Envelope nobody;                                    // an error is never answered with an error
  nobody.set_version(kProtocolVersion + 1);
  nobody.set_id(8);
  nobody.mutable_error()->set_code(1);
  raw_send(fd, raw_packet(nobody));
  empty.set_id(9);
  raw_send(fd, raw_packet(empty));
  reply = raw_receive(fd);
  REQUIRE(reply->id() == 9);
  REQUIRE(reply->length_reply().generation() == 300);
}

TEST_CASE("malformed packets are counted, and not delivered") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const UniqueFd other(ends[1]);
  const auto messenger = make_messenger();
  must(messenger->adopt({UniqueFd(ends[0]), nullptr}));
  raw_send(other, "abc");
  raw_send(other, "abcdefgh");
  REQUIRE(!must(messenger->receive(Time{})));
  REQUIRE(!must(messenger->receive(Time{})));
  REQUIRE(malformed_count(*messenger) == 2);
}

TEST_CASE("a packet over the limit ends the connection that sent it, and no other") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const auto bad = raw_connect(folder / "d.sock");
  const int room = 1 << 20;
  setsockopt(bad.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  raw_send(bad, std::string(kUnixPacketBytesMax + 100, 'x'));
  REQUIRE(!raw_receive(bad));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  must(caller.call(must(messenger->connect(daemon.endpoints(), Route::kUnix)), question(1), kPatience, "daemon"));
}

TEST_CASE("a peer that does not read is disconnected once its queue is full, and the others go on") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const auto slow = raw_connect(folder / "d.sock");
  proto::Envelope request;
  request.set_version(kProtocolVersion);
  request.set_id(1);
  request.mutable_read_bytes();
  auto packet = raw_packet(request);
  packet.append(100'000, 'b');  // comes back in the reply, which nobody reads
  // The daemon closes when 4 MiB wait; until then its socket and ours hold a few more.
  std::size_t sent = 0;
  while (sent < 1000 && send(slow.get(), packet.data(), packet.size(), MSG_NOSIGNAL) > 0) ++sent;
  REQUIRE(sent < 1000);
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  must(caller.call(must(messenger->connect(daemon.endpoints(), Route::kUnix)), question(1), kPatience, "daemon"));
}

TEST_CASE("a sender whose peer does not read gets an error instead of growing for ever, and is told of the end") {
  const TempFolder folder;
  const auto deaf = raw_listen(folder / "d.sock");
  const auto messenger = make_messenger();
  proto::Endpoints to;
  to.set_unix_path(folder / "d.sock");
  const PeerId peer = must(messenger->connect(to, Route::kUnix));
  std::size_t sent = 0;
  Status status;
  while ((status = messenger->send(peer, question(1, 100'000))) && sent < 1000) ++sent;
  REQUIRE(status.error().code == Code::kUnavailable);
  const auto delivery = must(messenger->receive(kNever));
  REQUIRE(delivery->kind == Delivery::Kind::kClosed);
  REQUIRE(delivery->peer == peer);
}

TEST_CASE("a slow reader gets everything that fits its queue, in order") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const auto left = make_messenger();
  const auto right = make_messenger();
  const PeerId to_right = must(left->adopt({UniqueFd(ends[0]), nullptr}));
  must(right->adopt({UniqueFd(ends[1]), nullptr}));
  constexpr std::uint64_t kPackets = 40;
  for (std::uint64_t i = 0; i < kPackets; ++i) must(left->send(to_right, question(i, 100'000)));
  for (std::uint64_t i = 0; i < kPackets;) {
    must(left->receive(Time{}));  // sends what waits
    auto delivery = must(right->receive(Time{}));
    if (!delivery) continue;
    REQUIRE(delivery->packet.envelope.length().file() == i);
    REQUIRE(delivery->packet.body.size() == 100'000);
    ++i;
  }
}

TEST_CASE("a thousand connections that say nothing do not stop the service") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 1000; ++i) silent.push_back(raw_connect(folder / "d.sock"));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  must(caller.call(must(messenger->connect(daemon.endpoints(), Route::kUnix)), question(1), kPatience, "daemon"));
}

TEST_CASE("one user has so many connections and no more, and a closed one makes room") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  rlimit descriptors{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
  const std::size_t most = std::min<std::size_t>(4096, descriptors.rlim_cur / 4);
  std::vector<UniqueFd> held;
  while (held.size() < most) held.push_back(raw_connect(folder / "d.sock"));
  const auto ask = [&] {
    const auto client = make_messenger();
    Caller caller(*client, 1);
    const auto peer = client->connect(daemon.endpoints(), Route::kUnix);
    return peer ? caller.call(*peer, question(1), kPatience, "daemon") : Result<Packet>(fail(peer.error()));
  };
  REQUIRE(ask().error().code == Code::kUnavailable);
  held.pop_back();
  Result<Packet> answer = ask();
  for (int tries = 0; !answer && tries < 1000; ++tries) answer = ask();  // until the daemon has seen it go
  REQUIRE(answer);
}

TEST_CASE("messages nested deeper than anybody reads are refused, and the service goes on") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const UniqueFd raw = raw_connect(folder / "d.sock");
  std::string nested = "\x08\x01\x10\x05";                // version 1, id 5
  for (int i = 0; i < 30'000; ++i) nested += "\xfb\x01";  // groups of an unknown field, never closed
  std::string packet;
  for (unsigned i = 0; i < 4; ++i) packet += static_cast<char>(nested.size() >> (8 * i));
  packet += nested;
  REQUIRE(send(raw.get(), packet.data(), packet.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size()));
  std::string answer(4096, '\0');
  const auto size = recv(raw.get(), answer.data(), answer.size(), 0);
  REQUIRE(size > 4);
  proto::Envelope envelope;
  REQUIRE(envelope.ParseFromArray(answer.data() + 4, static_cast<int>(size) - 4));
  REQUIRE(envelope.id() == 5);
  REQUIRE(envelope.error().code() == static_cast<std::uint32_t>(Code::kInvalid));
  const auto messenger = make_messenger();
  Caller caller(*messenger, 1);
  must(caller.call(must(messenger->connect(daemon.endpoints(), Route::kUnix)), question(1), kPatience, "daemon"));
}

TEST_CASE("the same endpoint and route give the same peer while it is open, and a new one afterwards") {
  const TempFolder folder;
  EchoDaemon daemon(on_unix(folder / "d.sock"));
  const auto messenger = make_messenger();
  const PeerId first = must(messenger->connect(daemon.endpoints(), Route::kUnix));
  REQUIRE(must(messenger->connect(daemon.endpoints(), Route::kUnix)) == first);
  messenger->disconnect(first);
  REQUIRE(must(messenger->connect(daemon.endpoints(), Route::kUnix)) != first);
}
