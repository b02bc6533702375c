// parallel_threads FOLDER FILE N: N threads read a file of fixed records together, by parallel-open: in each round
// every thread gets one record, whatever the number of LFSs. Prints how many records have each first byte.
#include <array>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "pif/client/parallel.h"

namespace {

using Counts = std::array<std::uint64_t, 256>;

// A Client belongs to one thread: each has its own.
pif::Result<pif::Client> connect(const char* folder) {
  pif::ConnectOptions options;
  options.where = folder;
  return pif::Client::connect(options);
}

pif::Status count(const char* folder, const std::string& token, Counts& counts) {
  PIF_TRY_VALUE(pif::Client client, connect(folder));
  PIF_TRY_VALUE(pif::ParallelMember member, pif::ParallelMember::join(client, token));
  const std::size_t length = member.format().record_length;
  std::vector<std::byte> records(64 * length);
  while (true) {
    PIF_TRY_VALUE(const auto some, member.read(records));
    if (!some) return {};
    for (std::uint64_t i = 0; i < some->records; ++i) ++counts[static_cast<unsigned char>(records[i * length])];
  }
}

pif::Status control(pif::Client& client, const char* folder, const std::string& path, unsigned threads) {
  PIF_TRY_VALUE(pif::File file, client.open(path));
  PIF_TRY_VALUE(auto controller, pif::ParallelController::open(file, {.members = threads}));
  std::vector<Counts> counts(threads, Counts{});
  std::vector<pif::Status> outcome(threads);
  pif::Status released;
#pragma omp parallel num_threads(threads + 1)
  {
#pragma omp for schedule(static, 1)
    for (unsigned i = 0; i <= threads; ++i) {
      if (i < threads) {
        outcome[i] = count(folder, controller.token(), counts[i]);
        continue;
      }
      pif::Result<std::uint64_t> records = 1;
      while (records && *records > 0) records = controller.read(64);
      released = records ? controller.close() : pif::Status(pif::fail(records.error()));
    }
  }
  PIF_TRY(released);
  for (const pif::Status& status : outcome) PIF_TRY(status);
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::uint64_t sum = 0;
    for (const Counts& one : counts) sum += one[byte];
    if (sum > 0) std::cout << byte << "\t" << sum << "\n";
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc == 4 ? std::atoi(argv[3]) : 0;
  if (threads < 1) {
    std::cerr << "usage: parallel_threads FOLDER FILE N\n";
    return 2;
  }
  auto client = connect(argv[1]);
  const pif::Status done = client ? control(*client, argv[1], argv[2], static_cast<unsigned>(threads))
                                  : pif::Status(pif::fail(client.error()));
  if (done) return 0;
  std::cerr << "parallel_threads: " << done.error().to_string() << "\n";
  return 3;
}
