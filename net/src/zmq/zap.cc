#include "zmq/zap.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pif/base/assert.h"
#include "pif/net/z85.h"

namespace pif::net {
namespace {

constexpr std::size_t kKeysMax = 10'000;
constexpr std::size_t kCurveKeyBytes = 32;
constexpr std::size_t kZ85Bytes = 40;
constexpr std::size_t kHolderGroupsMax = 64;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// ZAP request: version, request id, domain, address, routing id, mechanism, credentials.
constexpr std::size_t kZapFrames = 7;

constexpr std::int64_t kTellEvery = 60;   // seconds
constexpr std::size_t kReportedMax = 64;  // keys in that time

std::int64_t nanoseconds(const timespec& t) { return static_cast<std::int64_t>(t.tv_sec) * kNsPerSecond + t.tv_nsec; }

std::int64_t monotonic_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// Takes a decimal number off the front.
bool take_number(std::string_view& text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

bool parse_holder(std::string_view text, Identity& out) {
  out.gids.clear();
  if (!take_number(text, out.uid) || !take_char(text, ' ')) return false;
  do {
    std::uint32_t gid = 0;
    if (out.gids.size() == kHolderGroupsMax || !take_number(text, gid)) return false;
    out.gids.push_back(gid);
  } while (take_char(text, ','));
  out.has_uid = text.empty();
  return out.has_uid;
}

std::string_view KeyFolder::holder(const std::string& z85_key) const {
  const auto found = holders_.find(z85_key);
  return found == holders_.end() ? std::string_view{} : std::string_view(found->second);
}

bool KeyFolder::refresh() {
  struct stat folder {};
  if (path_.empty() || ::stat(path_.c_str(), &folder) != 0) {
    modified_ns_ = -1;
    return !std::exchange(holders_, {}).empty();
  }
  const std::int64_t modified = nanoseconds(folder.st_mtim);
  if (modified == modified_ns_) return false;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto before = std::exchange(holders_, {});
  read();
  const bool settled = nanoseconds(now) - modified > kNsPerSecond;
  modified_ns_ = settled ? modified : -1;
  return holders_ != before;
}

void KeyFolder::read() {
  std::error_code error;  // a folder that cannot be read admits nobody
  for (auto entry = std::filesystem::directory_iterator(path_, error);
       !error && entry != std::filesystem::directory_iterator() && holders_.size() < kKeysMax; entry.increment(error))
    if (entry->path().extension() == ".pub") read_file(entry->path().string());
  PIF_ASSERT(holders_.size() <= kKeysMax, holders_.size());
}

void KeyFolder::read_file(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return;
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  if (line.size() < kZ85Bytes + 2 || line[kZ85Bytes] != ' ') return;
  std::string key = line.substr(0, kZ85Bytes);
  std::string holder = line.substr(kZ85Bytes + 1);
  std::array<std::uint8_t, kCurveKeyBytes> binary{};
  Identity checked;
  if (!z85_decode(key, binary) || !parse_holder(holder, checked)) return;
  holders_.insert_or_assign(std::move(key), std::move(holder));
}

void KeyRing::add_own(const std::string& z85_key) {
  own_key_ = z85_key;
  own_holder_ = std::to_string(getuid()) + " " + std::to_string(getgid());
}

std::string_view KeyRing::holder(const std::string& z85_key) const {
  if (!own_key_.empty() && z85_key == own_key_) return own_holder_;
  if (!hosts_.holder(z85_key).empty()) return kHost;
  return clients_.holder(z85_key);
}

void KeyRing::refresh() {
  refreshed_ = monotonic_seconds();
  const bool clients = clients_.refresh();
  const bool hosts = hosts_.refresh();
  if (clients || hosts) ++generation_;
}

std::uint64_t KeyRing::generation() {
  if (monotonic_seconds() != refreshed_) refresh();
  return generation_;
}

void Refusals::add(const std::string& address, const std::string& key) {
  if (!tell_) return;
  const std::int64_t now = monotonic_seconds();
  std::erase_if(reported_, [now](const auto& entry) { return now - entry.second >= kTellEvery; });
  if (reported_.size() >= kReportedMax || !reported_.emplace(key, now).second) return;
  PIF_ASSERT(reported_.size() <= kReportedMax, reported_.size());
  tell_(key.empty() ? fmt::format("a connection from {} was refused: it does not speak CURVE", address)
                    : fmt::format("a connection from {} was refused: its key {} is not one of this file system's "
                                  "(keys/clients, keys/hosts)",
                                  address, key));
}

std::pair<std::string_view, std::string_view> split_user(std::string_view user) {
  if (user.size() <= kZ85Bytes + 1 || user[kZ85Bytes] != ' ') return {};
  return {user.substr(0, kZ85Bytes), user.substr(kZ85Bytes + 1)};
}

ZapServer::~ZapServer() { hub_.unwatch(socket_.fd(), *this); }

Status ZapServer::start(zmq::context_t& context) {
  PIF_TRY_VALUE(socket_, ZmqSocket::open(context, zmq::socket_type::rep));
  PIF_TRY(socket_.set(zmq::sockopt::linger, 0));
  PIF_TRY(socket_.bind("inproc://zeromq.zap.01"));
  return hub_.watch(socket_.fd(), *this);
}

Taken ZapServer::take() {
  Taken out;
  std::vector<std::string> frames;
  for (bool more = true; more;) {
    zmq::message_t frame;
    if (socket_.receive(frame) != ZmqSocket::Io::kDone) return out;
    if (frames.size() < kZapFrames) frames.push_back(frame.to_string());
    more = frame.more();
  }
  PIF_ASSERT(frames.size() <= kZapFrames, frames.size());
  std::string key, user;
  if (frames.size() == kZapFrames && frames[5] == "CURVE" && frames[6].size() == kCurveKeyBytes) {
    const auto text = z85_encode({reinterpret_cast<const std::uint8_t*>(frames[6].data()), kCurveKeyBytes});
    key = text ? *text : "";
    keys_.refresh();
    if (const auto holder = keys_.holder(key); !holder.empty()) user = fmt::format("{} {}", key, holder);
  }
  if (user.empty()) refusals_.add(frames.size() > 3 ? frames[3] : "?", key);
  reply(frames.size() > 1 ? frames[1] : std::string_view{}, user);
  out.what = Taken::What::kMore;
  return out;
}

void ZapServer::reply(std::string_view request_id, const std::string& user) {
  const bool known = !user.empty();
  const std::array<std::string_view, 6> frames{"1.0", request_id, known ? "200" : "400", known ? "OK" : "unknown key",
                                               user,  ""};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    zmq::message_t frame(frames[i]);
    if (socket_.send(frame, i + 1 < frames.size()) != ZmqSocket::Io::kDone) return;  // ZeroMQ is closing
  }
}

}  // namespace pif::net
