// Names: durable creation of empty files, stat, lists and deletion by 16 clients at once, beside an empty ZeroMQ
// handler.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <zmq.hpp>

#include "harness.h"
#include "pif/client/client.h"

extern char** environ;

namespace pif::bench {
namespace {

constexpr unsigned kClients = 16;

Client connected(const System& system, const std::string& route = "auto") {
  auto client = Client::connect({.where = system.folder(), .route = route});
  if (!client) die(client.error().to_string());
  return std::move(*client);
}

// Seconds that kClients threads, each with a client of its own, need for `work(client, number)`.
double all_clients(const System& system, const std::string& route, const std::function<void(Client&, unsigned)>& work) {
  std::vector<Client> clients;
  for (unsigned i = 0; i < kClients; ++i) clients.push_back(connected(system, route));
  std::vector<std::thread> threads;
  const double start = now();
  for (unsigned i = 0; i < kClients; ++i) threads.emplace_back([&, i] { work(clients[i], i); });
  for (std::thread& thread : threads) thread.join();
  return now() - start;
}

std::string name_of(unsigned client, std::uint64_t i) { return fmt::format("/names/c{}-{}", client, i); }

void must(const Status& status) {
  if (!status) die(status.error().to_string());
}

void bench_create_and_remove(Context& c, const System& system) {
  Client one = connected(system);
  const std::uint64_t each = c.options.names / kClients;
  std::vector<double> creates, removes;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    must(one.make_folder("/names"));
    creates.push_back(static_cast<double>(each * kClients) /
                      all_clients(system, "auto", [&](Client& client, unsigned n) {
                        for (std::uint64_t i = 0; i < each; ++i) must(client.create_empty(name_of(n, i)));
                      }));
    auto page = one.list("/names", {}, 1);
    if (!page || page->entries.size() != 1) die("created names are not listed");
    removes.push_back(static_cast<double>(each * kClients) /
                      all_clients(system, "auto", [&](Client& client, unsigned n) {
                        for (std::uint64_t i = 0; i < each; ++i) must(client.remove(name_of(n, i)));
                      }));
    must(one.remove("/names"));
  }
  const double create = median(creates), remove = median(removes);
  c.report.add(
      {"create an empty file, durable, 16 clients", fmt::format("{:.0f}/s", create), "", create, 10'000, true, ""});
  c.report.add({"delete : create", fmt::format("{:.0f}/s", remove), fmt::format("{:.0f}/s", create), remove / create, 1,
                true, ""});
}

void bench_stat(Context& c, const System& system) {
  Client one = connected(system);
  must(one.make_folder("/names"));
  const std::uint64_t each = c.options.names / kClients;
  std::vector<std::string> all;
  for (unsigned n = 0; n < kClients; ++n)
    for (std::uint64_t i = 0; i < each; ++i) all.push_back(name_of(n, i));
  for (std::size_t i = 0; i < all.size(); i += 1000) {
    auto made = one.create_empty_many(std::span(all).subspan(i, std::min<std::size_t>(1000, all.size() - i)));
    if (!made) die(made.error().to_string());
  }
  std::vector<double> rates, empties;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    rates.push_back(static_cast<double>(each * kClients) / all_clients(system, "ipc", [&](Client& client, unsigned n) {
                      for (std::uint64_t i = 0; i < each; ++i)
                        if (!client.stat(name_of(n, i))) die("a name is not there");
                    }));
    empties.push_back(empty_handler(c, kClients, each));
  }
  c.report.add({"stat through ZeroMQ ipc, 16 clients", fmt::format("{:.0f}/s", median(rates)),
                fmt::format("{:.0f}/s", median(empties)), median(rates), 40'000, true, "other: an empty handler"});
  std::vector<double> batched, listed;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    double start = now();
    auto got = one.stat_many(all);
    if (!got || got->size() != all.size() || !got->back()) die("stat_many: not all there");
    batched.push_back(static_cast<double>(all.size()) / (now() - start));
    start = now();
    std::uint64_t seen = 0;
    std::string after;
    for (bool more = true; more;) {
      auto page = one.list("/names", after, 10'000);
      if (!page || page->entries.empty()) die("list: not all there");
      seen += page->entries.size();
      after = page->entries.back().name;
      more = page->more;
    }
    if (seen != all.size()) die("list: not all there");
    listed.push_back(static_cast<double>(seen) / (now() - start));
  }
  c.report.add({"stat of many in one request, entries", fmt::format("{:.0f}/s", median(batched)), "", median(batched),
                500'000, true, ""});
  c.report.add({"list with attributes, entries", fmt::format("{:.0f}/s", median(listed)), "", median(listed), 500'000,
                true, ""});
}

}  // namespace

double empty_handler(Context& c, unsigned clients, std::uint64_t each) {
  const std::string endpoint = fmt::format("ipc://{}/echo", c.options.folder);
  const std::string role = "--echo";
  char* argv[] = {const_cast<char*>(c.self.c_str()), const_cast<char*>(role.c_str()),
                  const_cast<char*>(endpoint.c_str()), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, c.self.c_str(), nullptr, nullptr, argv, environ) != 0) die("cannot start the empty handler");
  zmq::context_t context;
  std::vector<zmq::socket_t> sockets;
  char buffer[64] = {};
  for (unsigned i = 0; i < clients; ++i) {
    auto& socket = sockets.emplace_back(context, zmq::socket_type::req);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(endpoint);
    socket.send(zmq::buffer(buffer));
    (void)socket.recv(zmq::buffer(buffer));
  }
  std::vector<std::thread> threads;
  const double start = now();
  for (zmq::socket_t& socket : sockets)
    threads.emplace_back([&socket, each] {
      char message[64] = {};
      for (std::uint64_t k = 0; k < each; ++k) {
        socket.send(zmq::buffer(message));
        (void)socket.recv(zmq::buffer(message));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const double seconds = now() - start;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return static_cast<double>(each * clients) / seconds;
}

int echo_main(const std::string& endpoint) {
  zmq::context_t context;
  zmq::socket_t router(context, zmq::socket_type::router);
  router.bind(endpoint);
  for (;;) {  // ended by its parent
    for (bool more = true; more;) {
      zmq::message_t part;
      (void)router.recv(part);
      more = part.more();
      router.send(part, more ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
}

void bench_names(Context& c) {
  const System system(c.options, "names-system", 4, {}, c.watch);
  touch_memory(c);
  bench_create_and_remove(c, system);
  bench_stat(c, system);
}

}  // namespace pif::bench
