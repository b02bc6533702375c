// Many clients that read single records by message, beside one that reads random pieces without an end: how long the
// others wait, and what the LFSs get done in all.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "harness.h"
#include "pif/client/client.h"
#include "pif/pattern/builders.h"

namespace pif::bench {
namespace {

constexpr unsigned kReaders = 63;
constexpr std::uint32_t kRecordBytes = 64;
constexpr std::uint64_t kPiecesPerCall = 100'000;
constexpr std::string_view kPath = "/fair";

template <typename T>
T must(pif::Result<T> result) {
  if (!result) die(result.error().to_string());
  return std::move(*result);
}
void must(const pif::Status& status) {
  if (!status) die(status.error().to_string());
}

Client connect(const System& system) {
  ConnectOptions options;
  options.where = system.folder();
  options.route = "ipc";
  options.data_path = DataPath::kMessages;
  return must(Client::connect(options));
}

// Record n is its number, and then bytes that follow from it.
void fill(std::span<std::byte> record, std::uint64_t n) {
  std::memset(record.data(), static_cast<int>(n % 251), record.size());
  std::memcpy(record.data(), &n, sizeof n);
}
bool is_record(std::span<const std::byte> record, std::uint64_t n) {
  std::array<std::byte, kRecordBytes> wanted;
  fill(wanted, n);
  return std::memcmp(record.data(), wanted.data(), wanted.size()) == 0;
}

void make_file(const System& system, std::uint64_t records) {
  Client client = connect(system);
  CreateOptions options;
  options.format = Format::fixed(kRecordBytes);
  File file = must(client.create(std::string(kPath), options));
  std::vector<std::byte> batch(std::size_t{4096} * kRecordBytes);
  for (std::uint64_t n = 0; n < records; n += 4096) {
    const std::uint64_t count = std::min<std::uint64_t>(4096, records - n);
    for (std::uint64_t i = 0; i < count; ++i) fill(std::span(batch).subspan(i * kRecordBytes, kRecordBytes), n + i);
    must(file.write(std::span(batch).first(count * kRecordBytes)));
  }
  must(file.commit());
}

struct Shared {
  const System& system;
  std::uint64_t records;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> ready{0};
  std::mutex mutex;  // guards why
  std::string why;   // a thread died
};

// A thread of these clients: that one dies ends the others, and is told when all have ended.
template <typename Body>
std::thread start(Shared& shared, Body body) {
  return std::thread([&shared, body = std::move(body)] {
    try {
      body();
    } catch (const Died& died) {
      const std::lock_guard lock(shared.mutex);
      shared.why = died.what();
      shared.stop = true;
    }
  });
}

// Until it is stopped; microseconds of each read.
std::vector<double> read_singles(Shared& shared, unsigned seed) {
  Client client = connect(shared.system);
  File file = must(client.open(std::string(kPath)));
  std::mt19937_64 random(seed);
  std::array<std::byte, kRecordBytes> record;
  std::vector<double> out;
  for (unsigned warm = 0; !shared.stop; ++warm) {
    if (warm == 8) ++shared.ready;
    const std::uint64_t n = random() % shared.records;
    const double start = now();
    if (must(file.read_at(n, record, 1)) != 1 || !is_record(record, n)) die("a record is not what was written");
    if (warm >= 8) out.push_back((now() - start) * 1e6);
  }
  return out;
}

// Until it is stopped; how many pieces.
std::uint64_t read_pieces(Shared& shared) {
  Client client = connect(shared.system);
  File file = must(client.open(std::string(kPath)));
  std::mt19937_64 random(1);
  std::vector<patterns::Piece> pieces(kPiecesPerCall);
  std::vector<std::byte> memory(kPiecesPerCall * kRecordBytes);
  std::uint64_t out = 0;
  ++shared.ready;
  while (!shared.stop) {
    for (auto& piece : pieces)
      piece = {static_cast<std::int64_t>(random() % shared.records * kRecordBytes), kRecordBytes};
    const File::Pieces wanted{patterns::list(pieces), patterns::range(0, memory.size()), 0, 0, {}};
    if (must(file.read_pieces(wanted, memory)) != memory.size()) die("pieces are missing");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto n = static_cast<std::uint64_t>(pieces[i].offset) / kRecordBytes;
      if (!is_record(std::span(memory).subspan(i * kRecordBytes, kRecordBytes), n))
        die("a piece is not what was written");
    }
    out += pieces.size();
  }
  return out;
}

// Per second; and of the readers, in microseconds.
struct Figures {
  double singles = 0, pieces = 0;
  double p50 = 0, p99 = 0;
};

Figures measure(const System& system, std::uint64_t records, unsigned readers, bool with_pieces, double seconds) {
  Shared shared{system, records};
  std::vector<std::vector<double>> times(readers);
  std::uint64_t pieces = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < readers; ++i)
    threads.push_back(start(shared, [&, i] { times[i] = read_singles(shared, i + 2); }));
  if (with_pieces) threads.push_back(start(shared, [&] { pieces = read_pieces(shared); }));
  const unsigned all = readers + (with_pieces ? 1 : 0);
  while (shared.ready < all && !shared.stop) std::this_thread::yield();
  const double begin = now();
  while (now() - begin < seconds && !shared.stop) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  shared.stop = true;
  for (auto& thread : threads) thread.join();
  const double took = now() - begin;
  if (!shared.why.empty()) die(shared.why);
  std::vector<double> sorted;
  for (const auto& some : times) sorted.insert(sorted.end(), some.begin(), some.end());
  std::sort(sorted.begin(), sorted.end());
  Figures out;
  out.singles = static_cast<double>(sorted.size()) / took;
  out.pieces = static_cast<double>(pieces) / took;
  if (sorted.empty()) return out;
  out.p50 = sorted[sorted.size() / 2];
  out.p99 = sorted[sorted.size() * 99 / 100];
  return out;
}

std::string latency_text(const Figures& figures) {
  return fmt::format("p50 {:.0f} p99 {:.0f} us", figures.p50, figures.p99);
}

}  // namespace

void bench_fairness(Context& c) {
  const System system(c.options, "fairness", 4, {}, c.watch);
  const std::uint64_t records = c.options.records / 4;
  const double seconds = c.options.smoke ? 0.2 : 4;
  const unsigned readers = c.options.smoke ? 7 : kReaders;
  make_file(system, records);
  std::vector<double> p99s, totals;
  Figures alone, quiet, busy;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    alone = measure(system, records, 0, true, seconds);
    quiet = measure(system, records, readers, false, seconds);
    busy = measure(system, records, readers, true, seconds);
    p99s.push_back(busy.p99 / quiet.p99);
    totals.push_back(busy.pieces / alone.pieces + busy.singles / quiet.singles);
  }
  c.report.add({fmt::format("{} clients' single reads, with pieces : without", readers), latency_text(busy),
                latency_text(quiet), median(p99s), 3, false, "p99; one client reads random pieces"});
  c.report.add({"both together : each by itself", fmt::format("{:.0f} + {:.0f}/s", busy.singles, busy.pieces),
                fmt::format("{:.0f}, {:.0f}/s", quiet.singles, alone.pieces), median(totals), 0.9, true,
                "records and pieces: the sum of their shares"});
}

}  // namespace pif::bench
