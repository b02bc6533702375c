// parallel_processes FOLDER FILE N: N processes write one new file together, by parallel-open: in each round every
// process writes one line of 32 bytes. The first process creates the file and starts the others, which need nothing but
// a token; it commits the file when all of them are done, so that nobody ever sees a part of it.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pif/client/parallel.h"

extern char** environ;

namespace {

constexpr std::uint32_t kLineBytes = 32;
constexpr unsigned kRounds = 100;
constexpr const char* kToken = "PARALLEL_TOKEN";  // in hexadecimal: an environment has no zero bytes

std::string hex_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    char two[3];
    static_cast<void>(std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c)));
    out += two;
  }
  return out;
}
std::string bytes_of(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

pif::Result<pif::Client> connect(const char* folder) {
  pif::ConnectOptions options;
  options.where = folder;
  return pif::Client::connect(options);
}

pif::Status member(const char* folder, const std::string& token) {
  PIF_TRY_VALUE(pif::Client client, connect(folder));
  PIF_TRY_VALUE(pif::ParallelMember self, pif::ParallelMember::join(client, token));
  for (unsigned round = 0; round < kRounds; ++round) {
    char line[kLineBytes + 1];
    static_cast<void>(std::snprintf(line, sizeof line, "member %8u, round %8u\n", self.index(), round));
    PIF_TRY(self.write(std::as_bytes(std::span(line, kLineBytes))));
  }
  return self.done();
}

pif::Status control(const char* folder, const char* path, unsigned processes, char** argv) {
  PIF_TRY_VALUE(pif::Client client, connect(folder));
  pif::CreateOptions options;
  options.format = pif::Format::fixed(kLineBytes);
  PIF_TRY_VALUE(pif::File file, client.create(path, options));
  PIF_TRY_VALUE(auto controller, pif::ParallelController::open(file, {.members = processes}));
  if (::setenv(kToken, hex_of(controller.token()).c_str(), 1) != 0)
    return pif::fail(pif::Code::kInternal, "no room in the environment");
  std::vector<pid_t> started(processes);
  for (pid_t& pid : started) {
    if (::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv, environ) != 0)
      return pif::fail(pif::Code::kInternal, "a process could not be started");
  }
  PIF_TRY(controller.write(kRounds));
  PIF_TRY(controller.close());
  for (const pid_t pid : started) {
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid || status != 0)
      return pif::fail(pif::Code::kCancelled, "a process has failed: nothing is committed");
  }
  return file.commit();
}

}  // namespace

int main(int argc, char** argv) {
  const int processes = argc == 4 ? std::atoi(argv[3]) : 0;
  if (processes < 1) {
    std::cerr << "usage: parallel_processes FOLDER FILE N\n";
    return 2;
  }
  const char* token = std::getenv(kToken);
  const pif::Status done = token != nullptr ? member(argv[1], bytes_of(token))
                                            : control(argv[1], argv[2], static_cast<unsigned>(processes), argv);
  if (done) return 0;
  std::cerr << "parallel_processes: " << done.error().to_string() << "\n";
  return 3;
}
