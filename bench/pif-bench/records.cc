// Records through the C API: 100-byte records against 64 KiB ones, and single records at random.
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "harness.h"
#include "pif/client/pif.h"

namespace pif::bench {
namespace {

class Connection {
 public:
  Connection(const System& system, const char* route, pif_data_path data_path) {
    pif_options options = {};
    options.route = route;
    options.data_path = data_path;
    connection_ = pif_connect(system.folder().c_str(), &options);
    check(connection_ != nullptr && pif_error(connection_) == PIF_OK);
  }
  ~Connection() { pif_disconnect(connection_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  pif_connection* get() { return connection_; }
  void check(bool good) const {
    if (!good) die(connection_ == nullptr ? "no memory for a connection" : pif_error_text(connection_));
  }

 private:
  pif_connection* connection_;
};

// Byte i of record n, so that every record tells whether it is the right one.
void fill(std::vector<char>& batch, std::uint64_t first, std::uint32_t length) {
  for (std::size_t at = 0, n = first; at < batch.size(); at += length, ++n) {
    std::memset(batch.data() + at, static_cast<int>(n % 251), length);
    std::memcpy(batch.data() + at, &n, sizeof n);
  }
}

void verify(const Connection& connection, const char* record, std::uint64_t n, std::uint32_t length) {
  std::uint64_t stored = 0;
  std::memcpy(&stored, record, sizeof stored);
  connection.check(stored == n && record[length - 1] == static_cast<char>(n % 251));
}

// Bytes per second, in the calls alone: numbering and checking the records is the benchmark's own work, and the commit
// the disk's.
struct Sequential {
  double write = 0, read = 0;
};

Sequential sequential(const System& system, std::uint32_t length, std::uint64_t records, std::uint64_t per_batch) {
  Connection connection(system, "auto", PIF_DATA_AUTO);
  pif_create_options options = {};
  options.kind = PIF_FIXED;
  options.record_length = length;
  pif_file* file = pif_create(connection.get(), "/records", &options);
  connection.check(file != nullptr);
  std::vector<char> batch(per_batch * length);
  fill(batch, 0, length);
  Sequential out;
  const double bytes = static_cast<double>(records * length);
  double seconds = 0;
  for (std::uint64_t n = 0; n < records; n += per_batch) {
    const std::uint64_t count = std::min(per_batch, records - n);
    for (std::uint64_t i = 0; i < count; ++i) {  // number the records; the rest of the pattern stays
      const std::uint64_t number = n + i;
      std::memcpy(batch.data() + i * length, &number, sizeof number);
      batch[(i + 1) * length - 1] = static_cast<char>(number % 251);
    }
    const double start = now();
    connection.check(pif_write(file, batch.data(), count * length) == PIF_OK);
    seconds += now() - start;
  }
  out.write = bytes / seconds;
  connection.check(pif_commit(file) == PIF_OK && pif_close(file) == PIF_OK);
  file = pif_open(connection.get(), "/records", PIF_READ);
  connection.check(file != nullptr);
  seconds = 0;
  for (std::uint64_t n = 0; n < records;) {
    const double start = now();
    const std::int64_t got = pif_read(file, batch.data(), batch.size(), per_batch);
    seconds += now() - start;
    connection.check(got > 0);
    for (std::int64_t i = 0; i < got; ++i)
      verify(connection, batch.data() + i * length, n + static_cast<std::uint64_t>(i), length);
    n += static_cast<std::uint64_t>(got);
  }
  out.read = bytes / seconds;
  connection.check(pif_close(file) == PIF_OK && pif_remove(connection.get(), "/records", 0) == PIF_OK);
  return out;
}

void bench_sequential(Context& c, const System& system) {
  std::vector<double> writes, reads, long_writes, long_reads;
  for (unsigned round = 0; round <= c.options.repeats; ++round) {
    system.settle();
    const Sequential small = sequential(system, 100, c.options.records, 4096);
    system.settle();
    const Sequential large = sequential(system, 64 << 10, c.options.records * 100 >> 16, 64);
    if (round == 0) continue;
    writes.push_back(small.write), reads.push_back(small.read);
    long_writes.push_back(large.write), long_reads.push_back(large.read);
  }
  const double write = median(writes), read = median(reads), lw = median(long_writes), lr = median(long_reads);
  c.report.add({"100-byte records, write : 64 KiB records", rate_text(write), rate_text(lw), write / lw, 0.5, true,
                "4,096 a call"});
  c.report.add({"100-byte records, read : 64 KiB records", rate_text(read), rate_text(lr), read / lr, 0.5, true,
                "4,096 a call"});
}

double random_reads(const System& system, const char* route, pif_data_path data_path, std::uint64_t count,
                    std::uint64_t records) {
  Connection connection(system, route, data_path);
  pif_file* file = pif_open(connection.get(), "/random", PIF_READ);
  connection.check(file != nullptr);
  char record[100];
  std::uint64_t x = 88172645463325252u;
  const auto one = [&] {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    const std::uint64_t n = x % records;
    connection.check(pif_read_at(file, n, record, sizeof record, 1) == 1);
    verify(connection, record, n, sizeof record);
  };
  for (std::uint64_t i = 0; i < count / 10; ++i) one();
  const double start = now();
  for (std::uint64_t i = 0; i < count; ++i) one();
  const double rate = static_cast<double>(count) / (now() - start);
  connection.check(pif_close(file) == PIF_OK);
  return rate;
}

void bench_random(Context& c, const System& system) {
  Connection connection(system, "auto", PIF_DATA_AUTO);
  pif_create_options options = {};
  options.kind = PIF_FIXED;
  options.record_length = 100;
  pif_file* file = pif_create(connection.get(), "/random", &options);
  connection.check(file != nullptr);
  std::vector<char> batch(100 * 1000);
  const std::uint64_t records = std::max<std::uint64_t>(c.options.records / 10, 1000) / 1000 * 1000;
  for (std::uint64_t n = 0; n < records; n += 1000) {
    fill(batch, n, 100);
    connection.check(pif_write(file, batch.data(), batch.size()) == PIF_OK);
  }
  connection.check(pif_commit(file) == PIF_OK && pif_close(file) == PIF_OK);
  const std::uint64_t messages = c.options.names, reads = c.options.names * 20;
  std::vector<double> by_message, bare, by_descriptor;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    by_message.push_back(random_reads(system, "ipc", PIF_DATA_MESSAGES, messages, records));
    bare.push_back(empty_handler(c, 1, messages));
    by_descriptor.push_back(random_reads(system, "auto", PIF_DATA_DESCRIPTORS, reads, records));
  }
  c.report.add({"single random record : bare ZeroMQ round trip", fmt::format("{:.0f}/s", median(by_message)),
                fmt::format("{:.0f}/s", median(bare)), median(by_message) / median(bare), 0.7, true, "ipc"});
  c.report.add({"single random record, descriptors, checked", fmt::format("{:.0f}/s", median(by_descriptor)), "",
                median(by_descriptor), 300'000, true, ""});
}

}  // namespace

void bench_records(Context& c) {
  const System system(c.options, "records", 4, {}, c.watch);
  touch_memory(c);
  bench_sequential(c, system);
  bench_random(c, system);
}

}  // namespace pif::bench
