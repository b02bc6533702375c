#include "net/world.h"

#include <fmt/format.h>

using namespace pif;
using namespace pif::net;

namespace {

struct Setup {
  ListenOptions listen;
  MessengerOptions client;
};

void add_client_key(const std::string& folder, const CurveKeys& keys, const std::string& holder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + holder.substr(0, holder.find(' ')) + ".pub") << keys.public_key << ' ' << holder << '\n';
}

Setup setup_for(const TempFolder& folder, const std::string& transport) {
  Setup out;
  if (transport == "unix") out.listen.unix_path = folder / "daemon.sock";
  if (transport == "ipc") out.listen.ipc = "ipc://" + (folder / "daemon.ipc");
  if (transport == "tcp" || transport == "curve") out.listen.tcp = "tcp://127.0.0.1:0";
  out.listen.insecure_loopback = transport == "tcp";
  if (transport != "curve") return out;
  out.listen.curve = must(make_curve_keys());
  out.listen.key_folder = folder / "clients";
  out.client.client_keys = must(make_curve_keys());
  add_client_key(out.listen.key_folder, out.client.client_keys, "1234 100,27");
  return out;
}

Route route_of(const std::string& transport) {
  return transport == "unix" ? Route::kUnix : transport == "ipc" ? Route::kIpc : Route::kTcp;
}

}  // namespace

TEST_CASE("a request comes back with its id, its fields and its body over every transport") {
  const auto* transport = GENERATE("unix", "ipc", "tcp", "curve");
  INFO(transport);
  const TempFolder folder;
  auto setup = setup_for(folder, transport);
  EchoDaemon daemon(setup.listen);
  const auto messenger = make_messenger(setup.client);
  Caller caller(*messenger, 100);
  const PeerId peer = must(messenger->connect(daemon.endpoints(), route_of(transport)));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{100'000}}) {
    const Packet reply = must(caller.call(peer, question(size + 7, size), kPatience, "daemon"));
    REQUIRE(answers_question(reply, size + 7, size));
  }
}
