// Passes frames on between two network devices, each a while later, and drops a share: what netem does where the kernel
// has it.
//
//   pif-delay DEVICE DEVICE MILLISECONDS PERCENT     until it is killed; says "ready" when it begins
//   pif-delay --checksums DEVICE                     the kernel computes checksums, and cuts packets, for frames there
//
// Devices of hosts whose frames are passed on need the latter: what leaves the work to a card is wrong on the way.
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFrameBytesMax = 70000;
constexpr std::size_t kFramesMax = 100000;  // of one direction under way; more are dropped
constexpr int kReadAtOnce = 64;
constexpr auto kIdle = std::chrono::seconds(10);

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

void compute_checksums(int socket, const std::string& device) {
  for (const std::uint32_t command : {ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO}) {
    ethtool_value off = {command, 0};
    ifreq request{};
    device.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&off);
    ::ioctl(socket, SIOCETHTOOL, &request);  // a device that has no such thing has it off
  }
}

// Gets all frames that arrive at the device; what is sent leaves by it. -1 and a message if that cannot be.
int open_device(const std::string& device) {
  const int all = htons(ETH_P_ALL), one = 1;
  const int socket = ::socket(AF_PACKET, SOCK_RAW, all);
  compute_checksums(socket, device);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = static_cast<std::uint16_t>(all);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(device.c_str()));
  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = address.sll_ifindex;
  promiscuous.mr_type = PACKET_MR_PROMISC;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) != 0 ||
      ::setsockopt(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0) {
    std::perror(("pif-delay: " + device).c_str());
    return -1;
  }
  return socket;
}

// Frames from one device to the other.
class Direction {
 public:
  Direction(int from, int to, std::chrono::microseconds delay, double loss)
      : from_(from), to_(to), delay_(delay), lost_(loss) {}

  void read() {
    static std::array<char, kFrameBytesMax> buffer;
    for (int i = 0; i < kReadAtOnce; ++i) {
      const ssize_t got = ::recv(from_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      if (lost_(random_) || frames_.size() >= kFramesMax) continue;
      frames_.push_back({Clock::now() + delay_, std::vector<char>(buffer.data(), buffer.data() + got)});
    }
  }
  void send_due(Clock::time_point now) {
    for (; !frames_.empty() && frames_.front().due <= now; frames_.pop_front())
      ::send(to_, frames_.front().bytes.data(), frames_.front().bytes.size(), 0);  // no room: lost, as on a wire
  }
  Clock::time_point next() const { return frames_.empty() ? Clock::time_point::max() : frames_.front().due; }
  int from() const { return from_; }

 private:
  int from_, to_;
  std::chrono::microseconds delay_;
  std::bernoulli_distribution lost_;
  std::mt19937 random_{1};
  std::deque<Frame> frames_;
};

[[noreturn]] void pass_on(std::array<Direction, 2> directions) {
  while (true) {
    const auto now = Clock::now();
    for (Direction& direction : directions) direction.send_due(now);
    const auto next = std::min({directions[0].next(), directions[1].next(), now + kIdle});
    const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(next - now);
    const timespec until = {wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    std::array<pollfd, 2> ready = {{{directions[0].from(), POLLIN, 0}, {directions[1].from(), POLLIN, 0}}};
    ::ppoll(ready.data(), ready.size(), &until, nullptr);
    for (std::size_t i = 0; i < directions.size(); ++i) {
      if (ready[i].revents != 0) directions[i].read();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "--checksums") {
    compute_checksums(::socket(AF_INET, SOCK_DGRAM, 0), words[1]);
    return 0;
  }
  if (words.size() != 4) {
    std::fputs("usage: pif-delay DEVICE DEVICE MILLISECONDS PERCENT, or pif-delay --checksums DEVICE\n", stderr);
    return 2;
  }
  const int a = open_device(words[0]), b = open_device(words[1]);
  if (a < 0 || b < 0) return 3;
  const auto delay = std::chrono::microseconds(std::lround(std::stod(words[2]) * 1000));
  const double loss = std::stod(words[3]) / 100;
  std::puts("ready");
  std::fflush(stdout);
  pass_on({Direction(a, b, delay, loss), Direction(b, a, delay, loss)});
}
