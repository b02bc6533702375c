// Which port a worker listens at for workers of other machines.
#include "../../libtool/src/worker/worker_ports.h"

#include <catch2/catch.hpp>

#include <set>

namespace pif::tool {
namespace {

// Ports that are taken, and what was tried.
struct Ports {
  std::set<std::string> taken;
  std::vector<std::string> tried;

  Result<std::string> listen(const std::string& where, std::uint64_t start) {
    const auto ports = parse_worker_listen(where);
    if (!ports) return fail(ports.error());
    auto box = listen_at_free_port(*ports, start, [this](const std::string& tcp) -> Result<Mailbox> {
      tried.push_back(tcp);
      if (taken.contains(tcp)) return fail(Code::kBusy, "taken");
      Mailbox made;
      made.at.set_tcp(tcp);
      return made;
    });
    if (!box) return fail(box.error());
    return box->at.tcp();
  }
};

TEST_CASE("a worker listens at a free port of those that workers may have, from one of its own on and around") {
  Ports ports;
  ports.taken = {"tcp://10.0.0.1:7502", "tcp://10.0.0.1:7500"};
  CHECK(ports.listen("tcp://10.0.0.1:7500-7502", 2).value() == "tcp://10.0.0.1:7501");
  CHECK(ports.tried.size() == 3);
  CHECK(Ports().listen("tcp://10.0.0.1:7500-7502", 7).value() == "tcp://10.0.0.1:7501");
  CHECK(Ports().listen("tcp://[::1]:7500-7500", 1000).value() == "tcp://[::1]:7500");
  CHECK(Ports().listen("tcp://10.0.0.1:0", 1000).value() == "tcp://10.0.0.1:0");
}

TEST_CASE("where all ports of workers are taken, the error names the address and the setting") {
  Ports ports;
  for (const char* port : {"7500", "7501", "7502"}) ports.taken.insert(std::string("tcp://10.0.0.1:") + port);
  const auto none = ports.listen("tcp://10.0.0.1:7500-7502", 1);
  REQUIRE(!none);
  CHECK(none.error().code == Code::kBusy);
  CHECK(none.error().text.find("10.0.0.1 are taken (7500-7502)") != std::string::npos);
  CHECK(none.error().text.find("worker-ports") != std::string::npos);
  CHECK(ports.tried.size() == 3);
}

TEST_CASE("what is no address with ports is refused") {
  for (const char* bad :
       {"", "10.0.0.1:7500-7502", "tcp://:0", "tcp://h1", "tcp://h1:", "tcp://h1:7500", "tcp://h1:7502-7500",
        "tcp://h1:0-7", "tcp://h1:7500-", "tcp://h1:-7500", "tcp://h1:7500-65536", "tcp://h1:7500-7502x"}) {
    INFO(bad);
    CHECK(parse_worker_listen(bad).error().code == Code::kInvalid);
  }
}

TEST_CASE("other machines are told the address that they know, with the port that was found") {
  CHECK(advertised("tcp://10.0.0.1:7501", "tcp://h1.example:0") == "tcp://h1.example:7501");
  CHECK(advertised("tcp://10.0.0.1:7501", "tcp://[fe80::1]:0") == "tcp://[fe80::1]:7501");
}

}  // namespace
}  // namespace pif::tool
